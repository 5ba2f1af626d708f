"""Age hierarchies: the thesis' figures, arithmetic against the table, HIPAA, users' own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.errors import BadInput
from leeward.vocabulary import age


def test_lm_36_in_35_36_is_two_eighths() -> None:
    """docs/methods/trajectories.md#loss: |Age| = 8, LM(36, [35-36]) = 2/8, LM(leaf, root) = 1, LM(leaf, itself) = 0."""
    tree = age.binary(33, 40).hierarchy
    assert tree.n_leaves == 8
    assert tree.losses[tree.index["35-36"]] == 2 / 8
    assert tree.losses[0] == 1
    assert tree.losses[tree.index["36"]] == 0
    assert tree.leaf_count[tree.index["36"]] == 1


def test_lca_of_36_and_37_is_33_40() -> None:
    """Tamersoy (2011), chapter IV: 36 is in 33-36 and 37 in 37-40, in the hierarchy of 2, 4 and 8 years."""
    tree = age.binary(33, 40).hierarchy
    assert tree.labels[tree.lca(tree.index["36"], tree.index["37"])] == "33-40"
    thesis = age.binary(1, 128).hierarchy
    assert thesis.labels[thesis.lca(thesis.index["36"], thesis.index["37"])] == "33-40"
    assert thesis.labels[0] == "1-128"


def test_default_tree_holds_age_zero() -> None:
    tree = age.binary()
    assert (tree.first, tree.last, tree.hierarchy.n_leaves) == (0, 127, 128)
    assert [tree.hierarchy.labels[x] for x in tree.nodes([0, 33.9, 127])] == ["0", "33", "127"]
    assert tree.hierarchy.level_names[:3] == ("1-year", "2-year", "4-year")


@settings(max_examples=10)
@given(st.integers(0, 40), st.integers(0, 7))
def test_arithmetic_equals_the_table(first: int, height: int) -> None:
    last = first + 2**height - 1
    tree = age.binary(first, last)
    ages = np.arange(first, last + 1)
    nodes = tree.nodes(ages)
    table = tree.hierarchy.lca(nodes[:, None], nodes)
    differ = (ages[:, None] - first) ^ (ages - first)
    level = np.frexp(differ.astype(np.float64))[1]  # the number of bits
    assert np.array_equal(np.where(level == 0, 0, 2**level), tree.hierarchy.deltas[table])
    assert np.array_equal(level, tree.hierarchy.level[table])
    for i, j in ((0, -1), (0, 0), (-1, len(ages) // 2)):
        assert tree.hierarchy.labels[table[i, j]] == age.block_label(int(ages[i]), int(level[i, j]), first)


def test_hipaa_has_single_years_to_89_and_one_leaf_above() -> None:
    tree = age.hipaa()
    hierarchy = tree.hierarchy
    assert set(hierarchy.leaf_labels()) == {*(str(x) for x in range(90)), "90+"}
    assert [hierarchy.labels[x] for x in tree.nodes([89, 90, 101.5])] == ["89", "90+", "90+"]
    line = [hierarchy.labels[x] for x in hierarchy.ancestors(hierarchy.index["90+"])]
    assert line == ["88+", "80+", "64+", "0+"]
    assert hierarchy.deltas[hierarchy.index["88+"]] == 3
    assert hierarchy.labels[hierarchy.parent[hierarchy.index["88-89"]]] == "88+"
    assert age.hipaa(1, 128).hierarchy.labels[0] == "1+"


@pytest.mark.parametrize("bad", [-1, 128, float("nan")])
def test_ages_outside_are_errors_with_their_position(bad: float) -> None:
    with pytest.raises(BadInput) as caught:
        age.binary().nodes([30, bad, 40])
    assert "1 of 3 ages are missing or outside 0–127" in str(caught.value)
    assert "positions 2" in str(caught.value)


def test_ranges_that_make_no_tree() -> None:
    with pytest.raises(BadInput, match="binary age hierarchy"):
        age.binary(0, 99)
    with pytest.raises(BadInput, match="binary age hierarchy"):
        age.binary(-1, 0)
    with pytest.raises(BadInput, match="89 and 90"):
        age.hipaa(0, 63)


def test_a_users_own_hierarchy(tmp_path: Path) -> None:
    path = tmp_path / "ages.csv"
    path.write_text("node,parent\n0+,\n0-17,0+\n18+,0+\n18-64,18+\n65+,18+\n")
    tree = age.from_csv(path)
    assert (tree.first, tree.last) == (0, 150)
    assert [tree.hierarchy.labels[x] for x in tree.nodes([0, 17, 18, 64, 65, 99])] == [
        "0-17", "0-17", "18-64", "18-64", "65+", "65+",
    ]  # fmt: skip
    age.binary(33, 40).hierarchy.write_csv(path)
    again = age.from_csv(path)
    assert again.hierarchy == age.binary(33, 40).hierarchy
    assert np.array_equal(again.nodes(np.arange(33, 41)), age.binary(33, 40).nodes(np.arange(33, 41)))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0-9,\n0-4,0-9\n6-9,0-9\n", "leaves out ages"),
        ("0-9,\n0-5,0-9\n5-9,0-9\n", "repeats ages"),
        ("0-10,\n0-4,0-10\n5-9,0-10\n", "'0-10' does not span"),
        ("0-9,\nyoung,0-9\n", "'young' is not an age label"),
        ("9-0,\n", "ends before it begins"),
    ],
)
def test_bad_age_files(tmp_path: Path, rows: str, message: str) -> None:
    path = tmp_path / "ages.csv"
    path.write_text("node,parent\n" + rows)
    with pytest.raises(BadInput) as caught:
        age.from_csv(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith("ages.csv")
