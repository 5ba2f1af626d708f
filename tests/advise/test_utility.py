"""What a release keeps of a plan, against counts by hand; floors by resampling; measured risk beside its promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.laws.cases import CODES, cases, cohort_of_events, cohort_of_table, events

import leeward as lw
from leeward.advise.plan import Counts, Query, line_of, within_of
from leeward.advise.risk import measure_risk
from leeward.advise.utility.counts import ask, floor_of
from leeward.advise.utility.measure import prepare, utility_of
from leeward.advise.utility.models import overlaps
from leeward.advise.utility.presence import Entries, counter_of
from leeward.advise.utility.verdicts import verdict_of
from leeward.analysis.generalized import none_there
from leeward.analysis.reidentification import Known
from leeward.methods import METHODS
from leeward.methods.trajectories import reidentification
from leeward.runs.protect import method_of

PREVALENT = [code for code in CODES if code.startswith(("250", "401"))]


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A release of every method, with its case."""
    folder = tmp_path_factory.mktemp("releases")
    made = {}
    for name, case in cases().items():
        result = lw.protect(
            case.cohort,
            method_of({"name": name, **case.parameters}),
            folder / name,
            seed=1,
            population=case.population,
        )
        made[name] = (result.release, case)
    return made


@pytest.mark.parametrize(("value", "floor", "verdict"), [
    (0.95, None, "serves"), (0.949, None, "with care"), (0.5, 0.5, "serves"), (0.41, 0.5, "with care"),
    (0.39, 0.5, "does not"), (None, 0.5, "does not"), (0.96, 0.99, "serves"),
])  # fmt: skip
def test_the_verdict(value: float | None, floor: float | None, verdict: str) -> None:
    assert verdict_of(value, floor) == verdict


def test_the_overlap_of_intervals() -> None:
    low, high = np.array([0.0, 0.0, 0.0, 0.0]), np.array([2.0, 2.0, 2.0, 2.0])
    other_low, other_high = np.array([0.0, 1.0, 3.0, 0.5]), np.array([2.0, 3.0, 4.0, 1.5])
    assert overlaps(low, high, other_low, other_high).tolist() == [1.0, 0.5, 0.0, 0.75]


def test_the_floor_is_that_of_resamples() -> None:
    true, n = np.array([5.0, 40.0, 90.0]), 100
    draws = np.random.Generator(np.random.Philox(3))
    found = np.mean([np.abs(draws.binomial(n, true / n) - true) <= 0.1 * true + 1e-9 for _ in range(20_000)])
    assert floor_of(true, n, within_of("10 %", "w")) == pytest.approx(float(found), abs=0.01)


def test_the_counts_of_a_line_are_the_source_s() -> None:
    cohort = cohort_of_events()
    held = events().select("patient", "code").unique()
    asked = ask(Counts(of="codes", least=10), cohort)
    expected = {code: n for code, n in held.group_by("code").len().iter_rows() if n >= 10}
    assert {codes[0]: int(n) for codes, n in zip(asked.codes, asked.true, strict=True)} == expected
    groups = ask(Counts(of="hierarchy:1", least=1), cohort)
    diabetes = held.filter(pl.col("code").str.starts_with("250"))["patient"].n_unique()
    assert len(groups.codes) == 6 and diabetes in groups.true.tolist()
    pairs = ask(Counts(of="codes", together=2, least=5), cohort)
    both = dict.fromkeys(map(tuple, pairs.codes))
    one = next(iter(both))
    having = [set(held.filter(pl.col("code") == code)["patient"]) for code in one]
    assert int(pairs.true[0]) == len(having[0] & having[1])


def test_questions_are_half_pairs() -> None:
    asked = ask(Query(questions=10, least=5), cohort_of_events())
    assert len(asked.codes) == 10 and sum(len(codes) == 2 for codes in asked.codes) == 5


@pytest.mark.parametrize("name", ["constraints", "visits", "censoring", "disassociation", "trajectories"])
def test_a_count_is_what_recipients_are_told_to_count(name: str, releases: dict[str, Any]) -> None:
    release, case = releases[name]
    counter = counter_of(release, case.cohort)
    assert counter is not None
    group, single = counter.any_of([PREVALENT, [CODES[0]]])
    if name == "disassociation":
        assert (
            counter.all_of([[CODES[0], CODES[3]]])[0] == lw.estimate(release, [CODES[0], CODES[3]]).expected
        )
    elif name == "censoring":
        rows = release.table("records.parquet").collect()["codes"]
        assert single == sum(CODES[0] in row for row in rows)
        assert group == sum(bool(set(PREVALENT) & set(row)) for row in rows)
    elif name == "trajectories":
        parents = dict(pl.read_csv(release.share / "data/code_hierarchy.csv").rows())
        parents = {str(child): None if parent is None else str(parent) for child, parent in parents.items()}
        rows = release.table("trajectories.parquet").collect().with_columns(pl.col("code").cast(pl.String))
        by_hand = 0.0
        for _, codes in rows.group_by("record").agg("code").iter_rows():
            absent = 1.0
            for node in codes:
                leaves = [leaf for leaf in _leaves(parents) if node in _line(leaf, parents)]
                absent *= 1 - len(set(PREVALENT) & set(leaves)) / len(leaves)
            by_hand += 1 - absent
        assert group == pytest.approx(by_hand)
    else:
        table, column = ("records", "codes") if name == "constraints" else ("visits", "codes")
        rows = (
            release.table(f"{table}.parquet")
            .collect()
            .group_by("record")
            .agg(pl.col(column).list.explode(keep_nulls=False, empty_as_null=False))
        )
        by_hand = 0.0
        for _, labels in rows.iter_rows():
            absent = 1.0
            for label in set(labels):
                members = label.strip("()").replace("|", ",").split(",")
                t = len(set(PREVALENT) & set(members))
                absent *= none_there(len(members), t, "subset") if t else 1.0
            by_hand += 1 - absent
        assert group == pytest.approx(by_hand)


def _leaves(parents: dict[str, str | None]) -> list[str]:
    return [node for node in parents if node not in set(parents.values())]


def _line(node: str, parents: dict[str, str | None]) -> list[str]:
    found: list[str] = []
    at: str | None = node
    while at is not None:
        found.append(at)
        at = parents.get(at)
    return found


def test_codes_of_a_set_multiply() -> None:
    entries = Entries(
        np.array([0, 0, 1]),
        np.array([0, 1, 0]),
        (("a", "b"), ("c",)),
        np.array([1.0, 2.0]),
        lambda n, t: 1 - t / n,
    )
    counter = entries.counter()
    assert counter.any_of([["a"], ["c"], ["a", "b"], ["z"]]).tolist() == [1.5, 1.0, 3.0, 0.0]
    assert counter.all_of([["a", "c"], ["a"]]).tolist() == [0.5, 1.5]


PLAN: list[Any] = [
    {"counts": {"of": "hierarchy:1", "from": 5}},
    {"prevalence": {"from": 5}},
    {"query": {"questions": 6, "from": 5}},
    {"cox": {"time": "days", "event": "died", "event_value": 1, "covariates": ["age"]}},
    {"sequences": {"min_support": 0.02}},
    {"poisson": {"response": "days", "covariates": ["age", "sex"]}},
    {"forest": {"response": "died", "covariates": ["age", "sex"]}},
]
CODED = ("counts", "prevalence", "query")
SERVED: dict[str, set[str]] = {
    "disassociation": {*CODED},
    "constraints": {*CODED},
    "visits": {*CODED},
    "censoring": {*CODED},
    "trajectories": {*CODED, "sequences"},
    "linked": {*CODED},
    "condensation": {"regression"},
    "k-anonymity": {"regression"},
}


@pytest.mark.parametrize("name", METHODS)
def test_every_line_has_a_figure_or_a_reason(name: str, releases: dict[str, Any]) -> None:
    release, case = releases[name]
    lines = [line_of(each, n) for n, each in enumerate(PLAN, 1)]
    kept = utility_of(prepare(lines, case.cohort), release)
    assert [each.line for each in kept] == [line.title for line in lines]
    assert {each.kind for each in kept if each.value is not None} == SERVED[name]
    assert all(each.value is not None or (each.reason and each.verdict == "does not") for each in kept)
    assert all(each.value is None or 0 <= each.value <= 1 for each in kept)


def test_a_release_equal_to_its_source_keeps_everything(tmp_path: Path) -> None:
    """Every patient five times: k = 5 takes nothing away."""
    table = pl.concat([cohort_of_table().patients] * 5)  # type: ignore[list-item]
    cohort = lw.read(table.drop("patient", strict=False), format="table")
    release = lw.protect(cohort, lw.KAnonymity(k=5), tmp_path / "r").release
    for line, off in ((PLAN[3], 1e-6), (PLAN[5], 1e-6), (PLAN[6], 0.05)):  # trees draw rows, by their order
        (kept,) = utility_of(prepare([line_of(line, 1)], cohort), release)
        assert kept.value == pytest.approx(1.0, abs=off) and kept.verdict == "serves"
    risk = measure_risk(release, cohort, thresholds=(0.1, 0.25))
    assert risk is not None and risk["maximum"] == 0.2 and risk["all"]
    assert [each["share"] for each in risk["above"]] == [pytest.approx(1.0, abs=0.5), 0.0]


@pytest.mark.parametrize("name", METHODS)
def test_the_measured_maximum_is_within_the_promise(name: str, releases: dict[str, Any]) -> None:
    release, case = releases[name]
    found = measure_risk(release, case.cohort, case.population, (0.01, 0.5))
    assert found is not None and found["promised"] == release.guarantee["risk"]["maximum"]
    assert 0 < found["mean"] <= found["maximum"] <= found["promised"] + 1e-12
    assert found["above"][0]["share"] >= found["above"][1]["share"] == 0


def test_the_measured_mean_is_one_whatever_the_order_of_classes(
    releases: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    release, case = releases["trajectories"]
    candidates = np.random.Generator(np.random.Philox(1)).integers(3, 90, 5_000).astype(float)
    means = set()
    for draw in range(20):
        shuffled = np.random.Generator(np.random.Philox(draw)).permutation(candidates)
        found_now = Known("all codes", shuffled)
        monkeypatch.setattr(reidentification, "count_candidates", lambda *_, given=found_now: given)
        found = measure_risk(release, case.cohort)
        assert found is not None
        means.add(found["mean"])
    assert len(means) == 1


def test_phewas_of_a_plan(tmp_path: Path) -> None:
    """A planted association survives, and a release without the exposure says why it cannot."""
    draws = np.random.Generator(np.random.Philox(9))
    carriers = draws.integers(0, 2, 400)
    rows = [
        (f"p{i:03}", "250.00" if draws.random() < 0.1 + 0.7 * carriers[i] else "401.9", 50)
        for i in range(400)
    ]
    rows += [(f"p{i:03}", "493.90", 50) for i in range(0, 400, 3)]
    frame = pl.DataFrame(rows, schema=["patient", "code", "age"], orient="row").join(
        pl.DataFrame({"patient": [f"p{i:03}" for i in range(400)], "snp": carriers}), on="patient"
    )
    (tmp_path / "map.csv").write_text("ICD9,phecode\n250.00,250.2\n401.9,401.1\n493.90,495\n")
    cohort = lw.read(
        frame, columns={"patient": "patient", "code": "code", "patients": ["snp"]}, vocabulary="icd9"
    )
    line = line_of({"phewas": {"exposure": "snp", "map": str(tmp_path / "map.csv"), "min_cases": 5}}, 1)
    prepared = prepare([line], cohort)
    carried = lw.protect(cohort, lw.Visits(k=3, merge_visits=True, payload=("snp",)), tmp_path / "v").release
    (kept,) = utility_of(prepared, carried)
    assert (
        kept.value == 1.0
        and kept.detail["associations"] >= 1
        and kept.detail["mean_overlap_of_intervals"] > 0.9
    )
    bare = lw.protect(cohort, lw.Disassociation(k=3, m=2), tmp_path / "d").release
    (kept,) = utility_of(prepared, bare)
    assert kept.value is None and "exposure" in kept.reason
