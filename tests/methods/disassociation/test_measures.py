"""What disassociation cost, on the running example and on planted figures."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.oracles import estimates as plain
from tests.oracles.disassociation_checks import Leaf
from tests.oracles.itemsets import apriori
from tests.oracles.published import POLICY, project, running_example, running_records, write

from leeward.analysis.workloads import frequent_queries, intervals, random_queries
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.methods.disassociation.measures import are
from leeward.methods.disassociation.measures.placement import item_only_at_least
from leeward.methods.disassociation.measures.published import read
from leeward.release import Release
from leeward.runs.measure import measure


def cohort_of(records: list[frozenset[str]]) -> Cohort:
    rows = [(p, code) for p, record in enumerate(records) for code in sorted(record)]
    events = pl.DataFrame(rows, schema=["patient", "code"], orient="row")
    return Cohort(events.with_columns(pl.col("code").cast(pl.Enum(events["code"].unique().sort()))))


@pytest.fixture
def running(tmp_path: Path) -> Release:
    out = write(tmp_path / "out", running_example(), 3, 2)
    (out / "custody" / "data").mkdir(parents=True)
    rows = [(name, code) for name, codes in POLICY.items() for code in codes.split()]
    policy = pl.DataFrame(rows, schema=["constraint", "code"], orient="row")
    policy.write_parquet(out / "custody" / "data" / "policy.parquet")
    return Release.open(out)


def test_everything_is_measured_by_default_and_is_json(running: Release) -> None:
    found = measure(running, cohort_of(running_records()))
    assert set(found) == {"are", "mre", "placement", "risk"}
    assert [w["name"] for w in found["are"]["workloads"]] == ["frequent"] * 2 + ["random"] * 5
    assert json.loads(json.dumps(found)) == found


def test_mre_of_the_running_example(running: Release) -> None:
    found = measure(running, cohort_of(running_records()), [{"mre": {"prior": "uniform"}}])["mre"]
    by_name = {each["name"]: each for each in found["constraints"]}
    assert [by_name[u]["mre"] for u in ("u1", "u2", "u3", "u5")] == pytest.approx([0, 0, 0.25, 0], abs=1e-12)
    assert by_name["u3"]["true"] == 4
    assert by_name["u3"]["estimate"] == pytest.approx(3)
    assert by_name["u4"]["mre"] == pytest.approx(0.25)
    assert found["within_5_percent"] == pytest.approx(0.6)
    assert sum(each["count"] for each in found["intervals"]) == 5


def test_are_on_frequent_itemsets_is_the_plain_mean(running: Release) -> None:
    records = running_records()
    found = measure(running, cohort_of(records), [{"are": {"min_support": 0.2, "prior": "uniform"}}])["are"][
        "workloads"
    ][0]
    codes = sorted(set().union(*records))
    numbered = [frozenset(codes.index(c) for c in r) for r in records]
    errors = []
    for items, true in apriori(numbered, 2).items():
        wanted = frozenset(codes[i] for i in items)
        errors.append(abs(plain.estimate(running_example(), wanted, 3, "uniform")[1] - true) / true)
    assert found["queries"] == found["itemsets"] == len(errors)
    assert found["are"] == pytest.approx(sum(errors) / len(errors))
    assert found["skipped"] == found["outside_bounds"] == 0


def test_a_sample_of_the_frequent_itemsets(running: Release) -> None:
    (found,) = are(read(running), cohort_of(running_records()).code_sets(), min_support=1, queries=7)[
        "workloads"
    ]
    assert found["queries"] == 7
    assert found["itemsets"] > 100
    assert "largest_set" not in found


def test_a_few_records_that_share_many_codes_do_not_stop_the_default_measures(tmp_path: Path) -> None:
    """Two patients with 40 codes in common have 2^40 sets in common: W1 asks for the sets of few codes."""
    chronic = frozenset(f"c{i:02d}" for i in range(40))
    records = [chronic, chronic, *(frozenset({"a", "b"}) for _ in range(98))]
    cohort = cohort_of(records)
    release = Release.open(write(tmp_path / "out", [Leaf(100, [], set(chronic) | {"a", "b"})], 2, 2))
    found = measure(release, cohort, ["are"])["are"]["workloads"][0]
    assert found["largest_set"] == 4
    assert found["itemsets"] == 40 + 780 + 9880 + 91390 + 3
    assert found["label"] == (
        "sets of up to 4 codes that at least 1.25 % of the patients have (a sample of 1,000 of 102,093)"
    )


def test_frequent_queries_keep_to_the_most_that_are_wanted() -> None:
    sets = cohort_of(running_records()).code_sets()
    everything = frequent_queries(sets, 1)
    few = frequent_queries(sets, 1, most=60)
    assert everything.largest is None
    assert few.largest == 2
    assert all(len(query) <= 2 for query in few.queries)
    assert len(few.queries) == few.itemsets < everything.itemsets
    assert frequent_queries(sets, 1, most=3).largest == 1


def test_random_queries_extend_each_other_and_occur(running: Release) -> None:
    records = running_records()
    sets = cohort_of(records).code_sets()
    by_size = random_queries(sets, 50)
    assert [len(queries) for queries in by_size][:3] == [50] * 3
    assert 0 < len(by_size[4]) < 50
    for size, queries in enumerate(by_size, 1):
        assert all(len(set(q.tolist())) == size for q in queries)
        assert all(any({sets.codes[c] for c in q} <= r for r in records) for q in queries)
    for shorter, longer in pairwise(by_size):
        sets_of = {frozenset(q.tolist()) for q in shorter}
        assert all(frozenset(q.tolist()[:-1]) in sets_of for q in longer)


def test_short_records_give_no_large_queries() -> None:
    by_size = random_queries(cohort_of([frozenset("ab"), frozenset("b")]).code_sets(), 5)
    assert [len(queries) for queries in by_size] == [5, 5, 0, 0, 0]


def test_placement_of_the_running_example(running: Release) -> None:
    found = measure(running, cohort_of(running_records()), ["placement"])["placement"]
    assert found["occurrences"] == {"record": 32, "shared": 8, "item": 6, "total": 46}
    assert sum(row["item"] for row in found["codes"]) == 6
    assert found["codes_never_counted"] == 3
    assert "item_only_records" not in found


def test_the_methods_own_count_of_item_only_records_is_taken(running: Release) -> None:
    assert running.custody is not None
    (running.custody / "measures.json").write_text(json.dumps({"method": {"item_only_records": 4}}))
    assert (
        measure(running, cohort_of(running_records()), ["placement"])["placement"]["item_only_records"] == 4
    )


def test_item_only_records_seen_from_the_files(tmp_path: Path) -> None:
    records = [frozenset("a")] * 3 + [frozenset("x"), frozenset("y"), frozenset("z")]
    forest = [Leaf(6, [project(records, {"a"})], {"x", "y", "z"}), Leaf(3, [], {"q"})]
    assert item_only_at_least(read(write(tmp_path / "out", forest, 3, 2))) == 6


@pytest.mark.parametrize(
    ("error", "low"),
    [
        (0.0, -0.025),
        (0.025, -0.025),
        (-0.025, -0.025),
        (0.03, 0.025),
        (-0.05, -0.05),
        (-0.1, -0.1),
        (-0.9, None),
        (0.5, 0.24),
    ],
)
def test_intervals_of_the_paper(error: float, low: float | None) -> None:
    found = [each for each in intervals(np.array([error])) if each["count"]]
    assert [each["low"] for each in found] == [low]
    assert found[0]["share"] == 1.0


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["arr"], "no measure `arr` for disassociation; known: are, mre"),
        ([{"are": {"suport": 1}}], "unknown option `suport`"),
        ([{"are": {"workload": "all"}}], "frequent"),
        ([{"are": {"prior": "flat"}}], "prior"),
        ([{"are": {"min_support": 2.0}}], "min_support"),
        ([7], "each entry is a name"),
    ],
)
def test_bad_options(running: Release, wanted: list[object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        measure(running, cohort_of(running_records()), wanted)


def test_other_methods_have_no_measures_here(tmp_path: Path) -> None:
    release = Release.open(write(tmp_path / "out", running_example(), 3, 2, method="wishing"))
    with pytest.raises(BadInput, match="no measures"):
        measure(release, cohort_of(running_records()))
