"""Groups joined by payload, and condensed tables with and without a few patients."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.attacks.test_condensation import registry as survival
from tests.attacks.test_k_anonymity import registry
from tests.laws.cases import cohort_of_events

from leeward.cohort.cohort import Cohort
from leeward.composition import Held, attacks, measure
from leeward.composition.tables import attack_groups, groups_of
from leeward.methods.condensation import Condensation
from leeward.methods.k_anonymity import KAnonymity
from leeward.methods.trajectories import Trajectories
from leeward.randomness import Randomness
from leeward.release import Release, write


def held(rows: pl.DataFrame, method: Any, out: Path) -> Held:
    cohort = rows if isinstance(rows, Cohort) else Cohort(patients=rows)
    write(method.protect(cohort, randomness=Randomness.of(1)), out)
    return Held(Release.open(out), cohort)


def named(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(patient=pl.Series([f"p{place:04d}" for place in range(rows.height)]))


def test_rows_of_two_groups_are_joined_by_the_columns_that_both_leave_alone(tmp_path: Path) -> None:
    source = named(registry(200))
    ways = [("age", "sex"), ("dose", "sex")]
    one, two = (held(source, KAnonymity(k=4, quasi_identifiers=names), tmp_path / names[0]) for names in ways)
    (found,) = attacks(one, two)
    groups = [groups_of(each.release, each.source) for each in (one, two)]
    assert groups[0] is not None
    assert groups[1] is not None
    stages = dict(source.select("patient", "stage").rows())
    truth: Counter[Any] = Counter()
    for patient in stages:
        truth[groups[0].of_patient[patient], groups[1].of_patient[patient]] += 1
    members = [
        Counter((each.of_patient[name], stage) for name, stage in stages.items()) for each in groups if each
    ]
    fewest = Counter()
    for patient in stages:
        pair = groups[0].of_patient[patient], groups[1].of_patient[patient]
        bound = sum(min(members[0][pair[0], stage], members[1][pair[1], stage]) for stage in "1234")
        assert bound >= truth[pair]
        fewest[min(bound, 4)] += 1
    assert found.by_fewest == tuple(fewest[n] for n in (1, 2, 3))
    assert found.looked_at == 200
    assert found.below > 0
    assert not found.exact


def test_intersecting_two_groups_tells_the_one_value_they_have_in_common() -> None:
    from leeward.composition.tables import Groups

    one = Groups({"p": 1, "q": 1}, pl.DataFrame({"group": [1, 1, 1], "snp": [0, 1, 2]}), ("snp",))
    two = Groups({"p": 7, "r": 7}, pl.DataFrame({"group": [7, 7, 7], "snp": [2, 3, 4]}), ("snp",))
    (found,) = attack_groups(one, two, 3)
    assert (found.looked_at, found.fewest, found.certain) == (1, 1, 1)
    without = Groups(two.of_patient, two.payload, ())
    (found,) = attack_groups(one, without, 3)
    assert (found.fewest, found.certain) == (3, 0)


def test_trajectories_by_their_payload(tmp_path: Path) -> None:
    cohort = cohort_of_events()
    patients = cohort.require_events()["patient"].unique().sort()
    values = pl.DataFrame({"patient": patients, "snp": [f"v{n % 40}" for n in range(len(patients))]})
    cohort = Cohort(cohort.events, values, name=cohort.name, vocabulary=cohort.vocabulary)
    one, two = (
        held(cohort, Trajectories(k=4, payload=("snp",), clustering=way), tmp_path / way)  # type: ignore[arg-type]  # one of the ways
        for way in ("cells", "alignment")
    )
    (found,) = attacks(one, two)
    assert found.looked_at == one.release.records
    (same,) = attacks(one, one)
    assert (same.below, same.certain) == (0, 0)


def condensed(rows: pl.DataFrame, out: Path) -> Held:
    return held(rows, Condensation(k=10, strata=("event",), time=("time",)), out)


def test_a_table_with_and_without_a_patient_differs_by_that_patient(tmp_path: Path) -> None:
    source = named(survival(200))
    one, two = condensed(source[1:], tmp_path / "1"), condensed(source, tmp_path / "2")
    for pair in ((one, two), (two, one)):
        found = measure(*pair)
        assert found is not None
        assert (found.fewest, found.by_fewest[0], found.looked_at, found.certain) == (1, 1, 1, 1)
        assert found.exact


def test_many_patients_who_differ_are_candidates_for_each_other(tmp_path: Path) -> None:
    source = named(survival(240))
    one, two = condensed(source[40:], tmp_path / "1"), condensed(source, tmp_path / "2")
    found = measure(one, two)
    assert found is not None
    assert (found.below, found.looked_at) == (0, 40)


def test_condensed_twice_is_not_measured(tmp_path: Path) -> None:
    """The same patients, other draws: no attack counts candidates, and none is said to."""
    source = named(survival(120))
    assert measure(condensed(source, tmp_path / "1"), condensed(source, tmp_path / "2")) is None


def test_without_identifiers_nothing_is_measured(tmp_path: Path) -> None:
    source = survival(120)
    assert measure(condensed(source, tmp_path / "1"), condensed(source[1:], tmp_path / "2")) is None


@pytest.mark.parametrize("method", ["visits", "censoring", "linked"])
def test_a_pair_without_an_attack_is_none(method: str, tmp_path: Path) -> None:
    one = condensed(named(survival(120)), tmp_path / "1")
    other = Release(one.release.share, None, {**one.release.manifest, "method": method})
    assert measure(one, Held(other, one.source)) is None
