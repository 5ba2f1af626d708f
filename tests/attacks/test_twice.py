"""Two releases of the same patients, anonymized apart: k holds in each, and what both leave possible is one value."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
from tests.attacks.twice import Codes, attack
from tests.verify.test_visits import made_up

from leeward.cohort.cohort import Cohort
from leeward.methods.visits import Visits
from leeward.runs.protect import protect

VALUES = 40


def planted(folder: Path, values: list[str]) -> Path:
    """A release of three records that all show {a, b}, with these values, and a fourth that shows {a}."""
    (folder / "data").mkdir(parents=True)
    (folder / "release.json").write_text(json.dumps({"parameters": {"merge_visits": False}}))
    visits = {"record": [1, 2, 3, 4], "visit": [1] * 4, "codes": [["a", "b"]] * 3 + [["a"]]}
    pl.DataFrame(visits).write_parquet(folder / "data" / "visits.parquet")
    pl.DataFrame({"record": [1, 2, 3, 4], "value": values}).write_parquet(folder / "data" / "records.parquet")
    return folder


def test_worked_example(tmp_path: Path) -> None:
    """{a, b, c} is known, c is in neither: three candidates each, whose values have only y in common."""
    one, two = planted(tmp_path / "1", ["x", "y", "z", "u"]), planted(tmp_path / "2", ["y", "v", "w", "u"])
    found = attack(one, two, "value", [("y", frozenset("abc")), ("x", frozenset("d"))])
    assert (found.known, found.fewest) == (1, 3)
    assert (found.single_alone, found.single) == (0, 1)
    assert (found.right_alone, found.right) == (1 / 3, 1)


def with_values(people: int) -> Cohort:
    cohort = made_up(people)
    assert cohort.patients is not None
    draws = np.random.Generator(np.random.Philox(key=3)).integers(0, VALUES, people)
    return Cohort(
        cohort.events,
        cohort.patients.with_columns(value=draws),
        name=cohort.name,
        vocabulary=cohort.vocabulary,
    )


def known_of(cohort: Cohort, ids: pl.Series) -> list[tuple[object, Codes]]:
    """The visits of these patients, with their values."""
    assert cohort.patients is not None
    value = dict(cohort.patients.select("patient", "value").rows())
    events = cohort.require_events().with_columns(pl.col("code").cast(pl.String))
    visits = events.group_by("patient", "visit").agg("code").filter(pl.col("patient").is_in(ids.to_list()))
    return [(value[patient], frozenset(codes)) for patient, codes in visits.select("patient", "code").rows()]


def test_separate_releases_of_overlapping_cohorts_tell_values_that_each_alone_hides(tmp_path: Path) -> None:
    """Each keeps its k; together they do not: there is no guarantee over several releases, and this is why."""
    cohort = with_values(160)
    assert cohort.patients is not None
    ids = cohort.patients["patient"]
    parts = {"one": ids.head(110), "two": ids.tail(110)}
    for name, chosen in parts.items():
        rows = cohort.patients.filter(pl.col("patient").is_in(chosen.to_list()))
        part = cohort.restrict(chosen)
        part = Cohort(part.events, rows, name=part.name, vocabulary=part.vocabulary)
        protect(part, Visits(k=3, payload=("value",)), tmp_path / name, seed=1)
    known = known_of(cohort, ids.slice(50, 60))
    found = attack(tmp_path / "one/share", tmp_path / "two/share", "value", known)
    assert found.known > 60
    assert found.fewest >= 3
    assert found.right > 1.5 * found.right_alone
    assert found.single > found.single_alone + 5
