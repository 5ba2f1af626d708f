"""ICD-9-CM and ICD-10-CM in one table: each code by its spelling, one hierarchy with both."""

from __future__ import annotations

import numpy as np
import pytest

from leeward.errors import BadInput
from leeward.vocabulary import built_in, load
from leeward.vocabulary.icd import ICD, ICD_UNDOTTED, could_be_either

CODES = ["250.00", "401.9", "V20.2", "E812.0", "E888", "E11.9", "E87.6", "I10", "V20.2XXA", "V20.3XXA", "odd"]


@pytest.mark.parametrize(
    ("code", "of"),
    [
        ("250.00", "ICD-9-CM"), ("25000", "ICD-9-CM"), ("8", "ICD-9-CM"), ("V20.2", "ICD-9-CM"),
        ("E812.0", "ICD-9-CM"), ("E849", "ICD-9-CM"), ("E950", "ICD-9-CM"),
        ("E119", "ICD-10-CM"), ("E87.6", "ICD-10-CM"), ("E0520", "ICD-10-CM"), ("I10", "ICD-10-CM"),
        ("V20.2XXA", "ICD-10-CM"), ("V202XXA", "ICD-10-CM"), ("C4A.0", "ICD-10-CM"),
        ("xyz", None), ("25O.00", None), ("-", None),
    ],
)  # fmt: skip
def test_each_code_belongs_to_one(code: str, of: str | None) -> None:
    found = ICD.of(code)
    assert (found and found.name) == of


def test_an_undotted_e_code_may_be_of_either() -> None:
    assert [
        c for c in ("E876", "E8761", "e 888", "E119", "E950", "E87.6", "E876.1") if could_be_either(c)
    ] == [
        "E876",
        "E8761",
        "e 888",
    ]
    assert ICD_UNDOTTED.of("E876") is None and ICD_UNDOTTED.normalise("E876") is None
    assert ICD.normalise("E876") == "E876"  # where ICD-10-CM is written with dots, this is none of it
    assert [ICD_UNDOTTED.normalise(c) for c in ("E119", "25000", "E950", "E87.6")] == [
        "E11.9",
        "250.00",
        "E950",
        "E87.6",
    ]


def test_one_hierarchy_has_both_below_its_root() -> None:
    tree = ICD.hierarchy(CODES)
    assert sorted(tree.leaf_labels()) == sorted(CODES)
    below = [tree.labels[node] for node in np.flatnonzero(tree.parent == 0)]
    assert below == ["ICD-9-CM", "ICD-10-CM", "not in ICD-9-CM and ICD-10-CM"]
    assert [
        tree.labels[node]
        for node in np.flatnonzero(tree.parent == tree.index["not in ICD-9-CM and ICD-10-CM"])
    ] == ["odd"]

    def above(code: str) -> list[str]:
        return [tree.labels[node] for node in tree.ancestors(tree.index[code])]

    assert above("E11.9") == ["E11", "E08-E13", "E00-E89", "ICD-10-CM", "ICD-9-CM and ICD-10-CM"]
    assert above("250.00")[:3] == ["250.0", "250", "249-259"] and above("250.00")[-2] == "ICD-9-CM"
    assert "ICD-9-CM" in above("V20.2") and "ICD-10-CM" in above("V20.2XXA")
    lca = tree.labels[tree.lca(tree.index["V20.2"], tree.index["V20.2XXA"])]
    assert lca == ICD.name  # motorcyclists and well babies share V20-V29 in spelling only
    assert tree.level_names[tree.level[tree.index["250"]]] == "3-character"
    assert tree.level_names[tree.level[tree.index["E11"]]] == "3-character"


@pytest.mark.parametrize("level", [1, 2, 3])
def test_groups_of_a_level_never_mix_the_classifications(level: int) -> None:
    groups = ICD.level_groups(CODES, level)
    assert sorted(code for members in groups.values() for code in members) == sorted(CODES)
    for members in groups.values():
        assert len({(of := ICD.of(code)) and of.name for code in members}) == 1
    assert groups["odd"] == ("odd",)


def test_categories_sections_titles() -> None:
    assert ICD.level_groups(["V20.2", "V20.2XXA", "V20.3XXA"], 1) == {
        "V20": ("V20.2",),
        "V20 (ICD-10-CM)": ("V20.2XXA", "V20.3XXA"),
    }
    assert ICD.level("E11.9", 2) == "E08-E13" and ICD.title("E08-E13") == "Diabetes mellitus"
    assert ICD.title("V20-V29 (ICD-10-CM)") != ICD.title("V20-V29")
    assert ICD.sibling_groups(["250.00", "250.01", "E11.9", "E11.8"], 2) == [
        ("250.00", "250.01"),
        ("E11.8", "E11.9"),
    ]
    with pytest.raises(BadInput):
        ICD.level("odd", 4)


def test_by_name_and_by_root() -> None:
    assert load("icd") is ICD and load("icd-undotted") is ICD_UNDOTTED
    assert built_in(ICD.hierarchy(["I10", "401"]).labels[0]) is ICD
