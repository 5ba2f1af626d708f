"""Measures of trajectories against plain versions: AvgRE of ranges of ages, ILoss, the classification metric."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.trajectories.frames import HIERARCHY, as_released, cohort
from tests.oracles import trajectories as oracle

from leeward.errors import BadInput
from leeward.methods.trajectories import Trajectories, measures
from leeward.methods.trajectories.report import costs, sections
from leeward.runs.measure import measure
from leeward.runs.protect import protect
from leeward.vocabulary.age import AgeTree
from leeward.vocabulary.hierarchy import Hierarchy

CODE_PAIRS = [("Any", None), ("S", "Any"), ("a", "S"), ("b", "S"), ("c", "Any")]
AGE_PAIRS = [  # as a user may write them: blocks out of order, a leaf of several years
    ("0-15", None), ("8-15", "0-15"), ("0-7", "0-15"),
    ("12-15", "8-15"), ("8-11", "8-15"), ("4-7", "0-7"), ("0-3", "0-7"),
    *((str(v), f"{v // 4 * 4}-{v // 4 * 4 + 3}") for v in (9, 8, 10, 11, 7, 6, 5, 4, 0, 1, 2, 3)),
]  # fmt: skip
CODES, OF_AGES = Hierarchy.from_pairs(CODE_PAIRS), Hierarchy.from_pairs(AGE_PAIRS)
AGES = AgeTree(OF_AGES, 0, OF_AGES.nodes_of([str(v) if v < 12 else "12-15" for v in range(16)]))
ICD = oracle.Tree(CODE_PAIRS)


class Years(oracle.Tree):
    """The ages of the oracle are years: a leaf of several years counts once, as its first."""

    def __init__(self):
        super().__init__(AGE_PAIRS)
        first = {leaf: leaf.split("-")[0] for leaf in self.leaves}
        self.covers = {node: {first[leaf] for leaf in leaves} for node, leaves in self.covers.items()}


AGE = Years()


SOURCE = st.tuples(st.sampled_from(ICD.leaves), st.sampled_from([str(v) for v in range(13)]))
SHOWN = st.tuples(st.sampled_from(list(ICD.parent)), st.sampled_from(list(AGE.parent)))


@settings(max_examples=60, deadline=None)
@given(
    records=st.lists(
        st.tuples(
            st.lists(SOURCE, min_size=1, max_size=4).map(tuple), st.lists(SHOWN, max_size=4).map(tuple)
        ),
        min_size=1,
        max_size=6,
    ),
    years=st.integers(1, 20),
    min_support=st.sampled_from([0.01, 0.5]),
)
def test_avgre_of_ranges_is_the_oracles(records, years, min_support):
    records, published = zip(*records, strict=True)
    found = measures.avgre(as_released(records, published, CODES, AGES), min_support, years)
    threshold = -(-len(records) * Fraction(str(min_support)) // 1)
    queries = oracle.workload(records, threshold, years)
    assert found["queries"] == len(queries) and found["years"] == years
    if queries:
        expected, _ = oracle.average_relative_error(records, published, ICD, AGE, threshold, years)
        assert found["avgre"] == pytest.approx(float(expected))


SMALL = st.tuples(st.sampled_from(["S", "a", "b"]), st.sampled_from(["0-3", "8", "9", "2"]))


@settings(max_examples=60, deadline=None)
@given(
    T=st.lists(SMALL, max_size=3),
    query=st.sets(st.tuples(st.sampled_from("ab"), st.sampled_from("0248")), max_size=3),
    years=st.sampled_from([1, 2, 3]),
)
def test_inclusion_and_exclusion_is_the_count_of_readings(T, query, years):
    """Every reading of every published pair, one by one."""
    query = {(code, str(int(v) // years * years)) for code, v in query}
    readings = list(product(*(list(product(ICD.covers[c], AGE.covers[v])) for c, v in T)))
    holding = sum(query <= {(code, str(int(v) // years * years)) for code, v in each} for each in readings)
    assert oracle.probability(query, T, ICD, AGE, years) == Fraction(holding, len(readings))


@pytest.mark.parametrize("years", [0, -1, 2.5, True, "10"])
def test_a_range_is_whole_years(years):
    with pytest.raises(BadInput, match="`years` is a whole number of years, at least 1"):
        measures.avgre(as_released([(("a", "1"),)], [()], CODES, AGES), years=years)


@settings(max_examples=60, deadline=None)
@given(
    records=st.lists(st.lists(st.tuples(SOURCE, SHOWN, st.booleans()), min_size=1, max_size=4), min_size=1)
)
def test_iloss_is_that_of_the_definition(records):
    sources = [tuple(source for source, _, _ in T) for T in records]
    published = [tuple(shown for _, shown, kept in T if kept) for T in records]
    found = measures.loss(as_released(sources, published, CODES, AGES), (0.75, 0.25))["iloss"]
    years = oracle.Tree(AGE_PAIRS)
    code, age = oracle.iloss(sources, published, ICD, 0), oracle.iloss(sources, published, years, 1)
    assert found["code"] == pytest.approx(float(code))
    assert found["age"] == pytest.approx(float(age))
    assert found["both"] == pytest.approx(float(code * 3 / 4 + age / 4))


@pytest.fixture
def release(tmp_path):
    """A release with payload whose `weights` are not equal, and its source."""
    (tmp_path / "codes.csv").write_text(HIERARCHY, encoding="utf-8")
    source = cohort()
    tree = str(tmp_path / "codes.csv")
    method = Trajectories(k=4, hierarchy=tree, payload=("sex", "dna"), weights=(0.75, 0.25))
    return protect(source, method, tmp_path / "out", seed=1), source


def test_classification_metric_counted_record_by_record(release):
    result, _ = release
    shown = result.release.table("trajectories.parquet").collect().sort("record", "position")
    people = result.release.table("records.parquet").collect().sort("record")
    published = [[] for _ in people["record"]]
    for record, _, code, age in shown.iter_rows():
        published[record].append((code, age))

    def wrong(labels):
        groups = {}
        for T, label in zip(published, labels, strict=True):
            groups.setdefault(tuple(T), Counter())[label] += 1
        return 1 - sum(max(group.values()) for T, group in groups.items() if T) / len(people)

    order = np.random.Generator(np.random.Philox(measures.SEED)).permutation(len(people)).tolist()
    for found, name in zip(result.measures["cm"], ("sex", "dna"), strict=True):
        labels = people[name].to_list()
        assert found == {
            "column": name,
            "cm": pytest.approx(wrong(labels)),
            "shuffled": pytest.approx(wrong([labels[place] for place in order])),
            "alone": pytest.approx(1 - max(Counter(labels).values()) / len(people)),
        }


def test_no_classification_without_payload(release, tmp_path):
    _, source = release
    plain = protect(
        source, Trajectories(k=4, hierarchy=str(tmp_path / "codes.csv")), tmp_path / "plain", seed=1
    )
    assert "cm" not in plain.measures and plain.measures["loss"]["iloss"]


def test_report_says_ranges_iloss_and_classes(release):
    result, source = release
    assert result.measures["loss"]["iloss"]["both"] == pytest.approx(
        0.75 * result.measures["loss"]["iloss"]["code"] + 0.25 * result.measures["loss"]["iloss"]["age"]
    )
    found = measure(result.path, source, ["loss", "cm", {"avgre": {"years": 10}}])
    made = {section.title: section.parts for section in sections(result.release, found, {})}
    assert "pairs, ages in ranges of 10 years, reading" in made["What it cost: counts"][0]
    words = "mean error of counts of frequent pairs, ages in ranges of 10 years"
    assert words in [each.what for each in costs(result.release, found).figures]
    assert "ILoss" in made["How finely codes and ages are released"][-1]
    assert [row[0] for row in made["What it cost: classes"][1].rows] == ["sex", "dna"]
