"""Measures of censoring: the figures of Figure 1d by hand, everything else against plain code."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.censoring.frames import CAPS, POPULATION, SAMPLE, cohort, released
from tests.methods.censoring.test_properties import large_problem
from tests.oracles import censoring as oracle

from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.methods.censoring import Censoring
from leeward.randomness import Randomness
from leeward.release import Release, write
from leeward.runs.measure import measure


def measured(tmp_path: Path, sample, population, method: Censoring, wanted=()):
    source, everyone = cohort(sample, "sample"), cohort(population, "population")
    anonymized = method.protect(source, randomness=Randomness.of(1), population=everyone)
    out = write(anonymized, tmp_path / f"out{len(list(tmp_path.iterdir()))}")
    return measure(Release.open(out), source, wanted, everyone), released(anonymized)


def test_figure_1d(tmp_path: Path) -> None:
    figures, _ = measured(tmp_path, SAMPLE, POPULATION, Censoring(k=2, scope="global", caps=CAPS))
    assert figures["cul"]["cul"]["mean"] == pytest.approx(2 / 9)
    assert figures["cul"]["cul"]["median"] == pytest.approx(1 / 3)
    assert figures["cul"]["cul"] == figures["cul"]["cul_after_cap"]
    assert figures["cul"]["mentions_kept"] == 5
    risk = figures["risk"]
    assert risk["before"]["unique"] == pytest.approx(1 / 3)
    assert (risk["before"]["smallest"], risk["after"]["smallest"]) == (1, 2)
    assert risk["before"]["at_most"][:4] == pytest.approx([1 / 3, 2 / 3, 2 / 3, 1])
    assert risk["before"]["marketer"] == pytest.approx((1 / 4 + 1 + 1 / 2) / 3)
    assert risk["after"]["journalist"] == {"highest": 0.5, "above_1_in_k": 0.0}
    assert risk["after"]["prosecutor"] == {"highest": 1.0, "mean": 1.0}
    assert figures["repeats"] == {"before": 2, "after": 0, "kept": 0.0}
    assert figures["pairs"] == {"before": 2, "after": 2, "kept": 1.0}
    assert figures["phenotypes"]["patients_before"] == 2
    assert figures["phenotypes"]["patients_kept"] == 0.0


def test_the_two_definitions_of_cul_differ_by_what_the_caps_take(tmp_path: Path) -> None:
    sample = [["a"] * 6, ["a", "b"]]
    population = [*sample, ["a"] * 6, ["a", "b"]]
    figures, _ = measured(tmp_path, sample, population, Censoring(k=2, scope="global", cap=3))
    assert figures["cul"]["cul"]["mean"] == pytest.approx(0.25)
    assert figures["cul"]["cul_after_cap"]["mean"] == 0.0
    assert figures["cul"]["changed_records_after_cap"] == 0.0


@pytest.mark.parametrize("scope", ["global", "record"])
def test_every_figure_equals_plain_counting(tmp_path: Path, scope) -> None:
    population, sample = large_problem(300)
    figures, shown = measured(tmp_path, sample, population, Censoring(k=4, cap=3, scope=scope))
    before, after = ([oracle.dis(record, population) for record in records] for records in (sample, shown))
    for name, values in (("before", before), ("after", after)):
        risk = figures["risk"][name]
        assert risk["unique"] == pytest.approx(sum(v == 1 for v in values) / len(values))
        assert risk["marketer"] == pytest.approx(sum(1 / v for v in values) / len(values))
        assert risk["smallest"] == min(values)
        assert risk["at_most"] == pytest.approx(
            [sum(v <= x for v in values) / len(values) for x in figures["risk"]["at"]]
        )
    classes = Counter(map(tuple, shown))
    assert figures["risk"]["after"]["smallest_class_in_sample"] == min(classes.values())
    assert figures["risk"]["after"]["prosecutor"]["mean"] == pytest.approx(len(classes) / len(shown))
    losses = [oracle.cul(*pair) for pair in zip(sample, shown, strict=True)]
    assert figures["cul"]["cul"] == pytest.approx(oracle.statistics(losses))
    limits = {code: 3 for record in sample for code in record}
    capped = [oracle.capped(record, limits) for record in sample]
    after_cap = [oracle.cul(*pair) for pair in zip(capped, shown, strict=True)]
    assert figures["cul"]["cul_after_cap"] == pytest.approx(oracle.statistics(after_cap))
    assert sum(each["count"] for each in figures["cul"]["intervals"]) == len(sample)
    assert figures["repeats"]["after"] == sum(len(record) - len(set(record)) for record in shown)
    assert figures["pairs"]["after"] == sum(len(list(combinations(set(record), 2))) for record in shown)
    cases = sum(count >= 2 for record in shown for count in Counter(record).values())
    assert figures["phenotypes"]["cases_after"] == cases


record = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5)


@settings(max_examples=15)  # each writes a release
@given(st.lists(record, min_size=3, max_size=14), st.data())
def test_the_attack_on_the_record_rule_equals_carrying_the_rule_out(
    tmp_path_factory, population, data
) -> None:
    k = data.draw(st.integers(2, len(population)))
    sample = population[::2]
    method = Censoring(k=k, cap=3, scope="record")
    figures, shown = measured(tmp_path_factory.mktemp("a"), sample, population, method, ["attack"])
    caps = dict.fromkeys("abcd", 3)
    owners = [oracle.consistent_owners(each, population, k, caps) for each in shown]
    assert figures["attack"]["smallest"] == min(owners) >= 1
    assert figures["attack"]["below_k"] == pytest.approx(sum(n < k for n in owners) / len(owners))
    assert figures["attack"]["pinned_down"] == pytest.approx(sum(n == 1 for n in owners) / len(owners))
    assert figures["attack"]["mean_success"] == pytest.approx(sum(1 / n for n in owners) / len(owners))
    assert figures["attack"]["exact"]


@settings(max_examples=15)  # each writes a release
@given(st.lists(record, min_size=3, max_size=14), st.data())
def test_the_attack_on_global_caps_equals_cutting_everybody(tmp_path_factory, population, data) -> None:
    k = data.draw(st.integers(2, len(population)))
    sample = population[::2]
    figures, shown = measured(
        tmp_path_factory.mktemp("a"), sample, population, Censoring(k=k, scope="global", cap=2), ["attack"]
    )
    final = Counter()
    for each in shown:
        final |= Counter(each)
    owners = [sum(oracle.capped(person, final) == each for person in population) for each in shown]
    assert figures["attack"]["smallest"] == min(owners) >= 1
    assert figures["attack"]["below_k"] == pytest.approx(sum(n < k for n in owners) / len(owners))


def test_the_attack_finds_more_than_the_k_map_promises(tmp_path: Path) -> None:
    """Figure 1, k = 2: John (250, 250, 272, 272) contains {250, 250, 272}, yet the rule shows more of him."""
    figures, _ = measured(tmp_path, SAMPLE, POPULATION, Censoring(k=2, caps=CAPS, scope="record"), ["attack"])
    caps = CAPS
    shown = [oracle.largest_safe(each, POPULATION, 2, caps) for each in SAMPLE]
    assert [oracle.consistent_owners(each, POPULATION, 2, caps) for each in shown] == [2, 1, 2]
    assert figures["attack"]["smallest"] == 1
    assert figures["attack"]["pinned_down"] == pytest.approx(1 / 3)


def test_a_part_of_the_records_can_be_attacked(tmp_path: Path) -> None:
    population, sample = large_problem(300)
    method = Censoring(k=4, cap=3, scope="record")
    figures, _ = measured(tmp_path, sample, population, method, [{"attack": {"most": 5}}])
    assert 5 <= figures["attack"]["records"] < len(sample)


def test_errors(tmp_path: Path) -> None:
    source = cohort(SAMPLE, "sample")
    anonymized = Censoring(k=2, scope="global", caps=CAPS).protect(source, population=cohort(POPULATION))
    release = Release.open(write(anonymized, tmp_path / "out"))
    with pytest.raises(BadInput, match="--population"):
        measure(release, source)
    with pytest.raises(BadInput, match="no measure `are`"):
        measure(release, source, ["are"], cohort(POPULATION))
    with pytest.raises(BadInput, match="`measure: cul`: unknown option `level`"):
        measure(release, source, [{"cul": {"level": 1}}], cohort(POPULATION))
    with pytest.raises(BadInput, match="not its source"):
        measure(release, cohort(POPULATION), (), cohort(POPULATION))
    with pytest.raises(BadInput, match="custody"):
        measure(Release(release.share, None, release.manifest), source, (), cohort(POPULATION))
    assert isinstance(source, Cohort)
