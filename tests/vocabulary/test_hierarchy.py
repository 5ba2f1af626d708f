"""Hierarchies: construction, ancestors, loss (docs/methods/trajectories.md#loss), restriction and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.errors import BadInput
from leeward.vocabulary import Hierarchy

HYPERTENSION = [("401", None), ("401.0", "401"), ("401.1", "401"), ("401.9", "401")]


@st.composite
def trees(draw: st.DrawFn, most: int = 25) -> Hierarchy:
    """Random trees: node i hangs under an earlier one, the rows in any order."""
    n = draw(st.integers(1, most))
    pairs: list[tuple[str, str | None]] = [("n0", None)]
    pairs += [(f"n{i}", f"n{draw(st.integers(0, i - 1))}") for i in range(1, n)]
    return Hierarchy.from_pairs(draw(st.permutations(pairs)))


def naive_line(hierarchy: Hierarchy, node: int) -> list[int]:
    line = [node]
    while hierarchy.parent[line[-1]] >= 0:
        line.append(int(hierarchy.parent[line[-1]]))
    return line


def naive_leaves(hierarchy: Hierarchy, node: int) -> set[int]:
    inner = set(hierarchy.parent.tolist())
    return {x for x in range(len(hierarchy)) if x not in inner and node in naive_line(hierarchy, x)}


@given(trees())
def test_lca_is_the_first_common_ancestor(hierarchy: Hierarchy) -> None:
    nodes = np.arange(len(hierarchy), dtype=np.int32)
    table = hierarchy.lca(nodes[:, None], nodes)
    for a in nodes.tolist():
        above = naive_line(hierarchy, a)
        for b in nodes.tolist():
            expected = next(x for x in naive_line(hierarchy, b) if x in above)
            assert table[a, b] == expected == hierarchy.lca(a, b)


@given(trees())
def test_intervals_hold_exactly_the_leaves_below(hierarchy: Hierarchy) -> None:
    for node in range(len(hierarchy)):
        below = naive_leaves(hierarchy, node)
        interval = hierarchy.leaves[hierarchy.first_leaf[node] : hierarchy.last_leaf[node] + 1]
        assert set(interval.tolist()) == below
        assert hierarchy.leaf_count[node] == len(below)
        assert hierarchy.depth[node] == len(naive_line(hierarchy, node)) - 1
        for other in range(len(hierarchy)):
            assert bool(hierarchy.is_ancestor(node, other)) == (node in naive_line(hierarchy, other))


@given(trees())
def test_loss_counts_leaves_and_a_leaf_has_none(hierarchy: Hierarchy) -> None:
    total = len(naive_leaves(hierarchy, 0))
    for node in range(len(hierarchy)):
        below = naive_leaves(hierarchy, node)
        expected = 0 if below == {node} else len(below)
        assert hierarchy.deltas[node] == expected
        assert hierarchy.losses[node] == expected / total


@given(trees(), st.data())
def test_restriction_has_exactly_the_stated_leaves(hierarchy: Hierarchy, data: st.DataObject) -> None:
    codes = data.draw(st.sets(st.sampled_from(hierarchy.labels), min_size=1))
    part = hierarchy.restrict(codes)
    assert set(part.leaf_labels()) == codes
    for code in codes:
        line = [part.labels[x].removesuffix(".*") for x in part.ancestors(part.index[code])]
        full = [hierarchy.labels[x] for x in hierarchy.ancestors(hierarchy.index[code])]
        assert line[-len(full) :] == full if full else set(line) <= {code}


@given(trees())
def test_a_written_hierarchy_reads_back_equal(hierarchy: Hierarchy) -> None:
    assert Hierarchy.from_pairs(hierarchy.to_pairs()) == hierarchy


def test_hypertension_of_the_thesis() -> None:
    """H_ICD of the thesis's examples: different codes meet in 401 and lose everything, a code itself nothing."""
    hierarchy = Hierarchy.from_pairs(HYPERTENSION)
    leaves = hierarchy.nodes_of(["401.0", "401.1", "401.9"])
    assert hierarchy.losses[hierarchy.lca(leaves[:, None], leaves)].tolist() == [
        [0, 1, 1],
        [1, 0, 1],
        [1, 1, 0],
    ]


def test_an_inner_node_with_one_child_has_delta_one() -> None:
    hierarchy = Hierarchy.from_pairs([("*", None), ("a", "*"), ("b", "a"), ("c", "*")])
    assert hierarchy.deltas[hierarchy.index["a"]] == 1
    assert hierarchy.losses[hierarchy.index["a"]] == 0.5
    assert hierarchy.losses[0] == 1


def test_a_code_above_another_gets_a_leaf_of_its_own() -> None:
    part = Hierarchy.from_pairs(HYPERTENSION).restrict(["401", "401.1"])
    assert part.to_pairs() == [("401.*", ""), ("401", "401.*"), ("401.1", "401.*")]
    assert Hierarchy.from_pairs(HYPERTENSION).restrict(["401"]).to_pairs() == [("401", "")]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "is empty"),
        ([("a", None), ("", "a")], "row 2: the column `node` is empty"),
        ([("a", None), ("b", "a"), ("b", "a")], "row 3: node 'b' of row 2 appears again"),
        (
            [("a", None), ("c", "a"), ("b", "a"), ("b", "c")],
            "row 4: node 'b' of row 3 appears with a second parent",
        ),
        ([("a", None), ("b", "x")], "row 2: the parent 'x' of node 'b' is not a node"),
        ([("a", None), ("b", None)], "2 roots, 'a' (row 1), 'b' (row 2)"),
        ([("a", "b"), ("b", "a")], "no root"),
        ([("r", None), ("a", "b"), ("b", "a"), ("c", "a")], "is its own ancestor"),
    ],
)
def test_what_is_not_a_tree_is_refused(pairs: list[tuple[str, str | None]], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        Hierarchy.from_pairs(pairs, "h.csv")
    assert message in str(caught.value)
    assert str(caught.value).startswith("h.csv")


def test_missing_codes_are_counted_not_named() -> None:
    with pytest.raises(BadInput) as caught:
        Hierarchy.from_pairs(HYPERTENSION).nodes_of(["401.0", "250.00"])
    assert "1 of 2 codes" in str(caught.value)
    assert "250.00" not in str(caught.value)
    with pytest.raises(BadInput, match="no code is left"):
        Hierarchy.from_pairs(HYPERTENSION).restrict([])


def test_csv_files(tmp_path: Path) -> None:
    hierarchy = Hierarchy.from_pairs([("*", None), ("a, b", "*"), ('say "x"', "*"), ("é", "a, b")])
    path = tmp_path / "code_hierarchy.csv"
    hierarchy.write_csv(path)
    assert path.read_bytes().startswith(b"node,parent\n*,\n")
    assert Hierarchy.from_csv(path) == hierarchy
    path.write_bytes("\ufeffParent , Node\n,*\n\n*, a \n".encode())
    assert Hierarchy.from_csv(path).to_pairs() == [("*", ""), ("a", "*")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"child,parent\na,\n", "row 1: no column 'node'"),
        (b"node,parent\n", "hierarchy is empty"),
        (b"node,parent\n*,\n\nb,c,d\n", "row 4: 3 cells where the header has 2"),
        (b"node,parent\n*,\nb\xe9,*\n", "row 3: not UTF-8"),
        (b'node,parent\n*,\n"b,*\n', "row 3: the quotes do not match"),
        (b"node,parent\n*,\n\nb,x\n", "row 4: the parent 'x'"),
        (b"\x1f\x8b broken", "gzip data are damaged"),
    ],
)
def test_bad_files_name_file_and_row(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "tree.csv"
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        Hierarchy.from_csv(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith("tree.csv")


def test_a_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no\.csv: cannot be read"):
        Hierarchy.from_csv(tmp_path / "no.csv")
