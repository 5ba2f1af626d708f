"""Partition and greedy suppression, comparators of the study of disassociation: by hand, and what they guarantee."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.studies.pages import faults_of

from leeward.analysis import generalized
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.vocabulary.hierarchy import Hierarchy

ROOT = Path(__file__).resolve().parents[2]
TREE = Hierarchy.from_pairs(
    [
        ("ALL", None),
        ("A", "ALL"),
        ("a1", "A"),
        ("a2", "A"),
        ("B", "ALL"),
        ("b1", "B"),
        ("b2", "B"),
        ("b3", "B"),
    ]
)
SETS = st.lists(
    st.frozensets(st.sampled_from(TREE.leaf_labels()), min_size=1, max_size=4), min_size=2, max_size=24
)


@pytest.fixture(autouse=True, scope="module")
def benchmarks_can_be_imported() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield


def numbered(sets: list[frozenset[str]]) -> list[tuple[int, ...]]:
    return [tuple(TREE.nodes_of(sorted(each)).tolist()) for each in sets]


def published(sets: list[frozenset[str]], k: int) -> list[frozenset[str]]:
    """What each record is published as."""
    from set_valued import partition

    found: dict[int, frozenset[str]] = {}
    for part in partition(numbered(sets), TREE, k):
        found |= dict.fromkeys(part.rows, frozenset(TREE.labels[node] for node in part.nodes))
    return [found[row] for row in range(len(sets))]


def test_partition_by_hand() -> None:
    """k = 2. The root splits into {A} (rows 0 to 2), {B} (3, 4) and {A, B} (5, 6). A of the first would leave one
    record alone, and stays; B becomes b1; of the last no two are alike below a node. With one more a1 there are three,
    of which one is taken back for the rest."""
    sets = [frozenset(each.split()) for each in ("a1", "a1", "a1 a2", "b1", "b1", "a1 b1", "a2 b2")]
    assert [sorted(each) for each in published(sets, 2)] == [
        ["A"], ["A"], ["A"], ["b1"], ["b1"], ["A", "B"], ["A", "B"]
    ]  # fmt: skip
    more = [frozenset({"a1"}), *sets]
    assert [sorted(each) for each in published(more, 2)][:4] == [["A"], ["a1"], ["a1"], ["A"]]


@given(SETS, st.integers(1, 5))
def test_every_record_is_published_like_k_and_generalizes_its_own(sets: list[frozenset[str]], k: int) -> None:
    """Complete k-anonymity, and no record is published without a node above each of its codes, or with another one."""
    if len(sets) < k:
        with pytest.raises(ValueError, match="fewer than k"):
            published(sets, k)
        return
    made = published(sets, k)
    assert min(Counter(made).values()) >= k
    for codes, nodes in zip(sets, made, strict=True):
        above = [
            {TREE.labels[n] for n in (node, *TREE.ancestors(node))} & nodes
            for node in TREE.nodes_of(sorted(codes)).tolist()
        ]
        assert all(len(each) == 1 for each in above) and set().union(*above) == nodes


@given(SETS, st.integers(1, 5), st.integers(1, 3))
def test_no_set_is_left_that_fewer_than_k_hold(sets: list[frozenset[str]], k: int, p: int) -> None:
    from set_valued import suppressed

    records = numbered(sets)
    gone = suppressed(records, k, p)
    left = [set(record) - gone for record in records]
    supports = Counter(
        held for record in left for size in range(1, p + 1) for held in combinations(sorted(record), size)
    )
    assert min(supports.values(), default=k) >= k


def test_suppression_by_hand() -> None:
    """k = 2, p = 2. Moles: {4}, held once, and the pairs {1, 2} and {1, 3}. 4 goes; then 1, in both pairs and in four
    records, is 2/4 where 2 and 3 are 1/3."""
    from set_valued import minimal_moles, suppressed

    records = [(1, 2), (1, 3), (2, 3), (2, 3), (1,), (1, 4)]
    assert sorted(map(sorted, minimal_moles(records, 2, 2))) == [[1, 2], [1, 3], [4]]
    assert suppressed(records, 2, 2) == {1, 4}


@pytest.mark.parametrize("reading", generalized.READINGS)
def test_counts_are_those_of_generalized_releases(reading: str) -> None:
    """Where all records are cut alike, the labels are those of global recoding."""
    from set_valued import Part, expected

    a, b1, b2 = TREE.nodes_of(["A", "b1", "b2"]).tolist()
    parts = [
        Part([0, 1], frozenset({a, b1})),
        Part([2, 3, 4], frozenset({a})),
        Part([5, 6], frozenset({b1, b2})),
    ]
    asked = [["a1"], ["a1", "a2"], ["a2", "b1"], ["b1", "b2"], ["b3"], ["b1", "b3"]]
    labels = ("A", "b1", "b2")
    rows = [(0, 1)] * 2 + [(0,)] * 3 + [(1, 2)] * 2
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    sets = CodeSets(offsets, np.concatenate(rows).astype(np.int32), labels, pl.Series(range(len(rows))))
    release = generalized.of_labels(sets, (("a1", "a2"), ("b1",), ("b2",)), frozenset({"b3"}))
    found = expected(parts, TREE, numbered([frozenset(each) for each in asked]), reading)
    assert found == pytest.approx(generalized.counts(release, asked, reading).expected)


def test_the_section_has_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import study_disassociation_related as study
    from leeward.cohort.readers import read
    from leeward.synthetic.codes import write_codes

    monkeypatch.setattr(study, "SUPPORT", 0.05)
    monkeypatch.setattr("study_disassociation.SUPPORTS", (0.05,))
    write_codes(tmp_path / "codes.parquet", 150, 60, 4.0, seed=1)
    cohort = read(tmp_path / "codes.parquet", vocabulary="icd9")
    page = study.section({"made up": [study.Study("made up", cohort, tmp_path, 1)]})
    assert faults_of(page) == [] and page.count("\n|") == 2 + 5
    (tmp_path / "page.md").write_text(f"# Page\n\n{study.BEFORE}\nall\n", encoding="utf-8")
    for body in ("first", "second"):
        study.put(body, tmp_path / "page.md")
    found = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "first" not in found and found.index("second") < found.index(study.BEFORE)
