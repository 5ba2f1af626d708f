"""Users' hierarchies: CSV, lines of transaction-anonymization tools, OMOP CONCEPT_ANCESTOR; and `load`."""

from __future__ import annotations

from pathlib import Path

import pytest

from leeward.errors import BadInput
from leeward.vocabulary import VOCABULARIES, load, omop, trees

FOODS = "node,parent\nall,\nfruit,all\napple,fruit\npear,fruit\nplum,fruit\nnuts,all\nhazel,nuts\nmisc,all\n"
HEADER = "ANCESTOR_CONCEPT_ID,DESCENDANT_CONCEPT_ID,MIN_LEVELS_OF_SEPARATION,MAX_LEVELS_OF_SEPARATION\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_load_by_name_and_by_path(tmp_path: Path) -> None:
    assert load("icd9").name == "ICD-9-CM"
    assert load("ICD10").name == "ICD-10-CM"
    assert set(VOCABULARIES) == {"icd9", "icd10", "icd", "icd-undotted"}
    foods = load(write(tmp_path / "foods.csv", FOODS))
    assert foods.name == "foods.csv"
    assert foods.is_known("apple")
    assert not foods.is_known("fig")
    with pytest.raises(BadInput, match="neither built in"):
        load("icd11")


def test_custom_levels_never_reach_the_root(tmp_path: Path) -> None:
    foods = load(write(tmp_path / "foods.csv", FOODS))
    assert [foods.level("apple", n) for n in range(4)] == ["apple", "fruit", "fruit", "fruit"]
    assert foods.level("misc", 1) == "misc"
    assert foods.level("fig", 1) == "fig"
    assert foods.level_groups(["pear", "apple", "hazel", "misc"], 1) == {
        "fruit": ("apple", "pear"),
        "nuts": ("hazel",),
        "misc": ("misc",),
    }
    with pytest.raises(BadInput, match="hierarchy level -1"):
        foods.level("apple", -1)


def test_custom_codes_and_groups(tmp_path: Path) -> None:
    foods = load(write(tmp_path / "foods.csv", FOODS))
    assert foods.sibling_groups(["apple", "pear", "plum", "hazel", "fig"], 2) == [("apple", "pear")]
    assert [foods.normalise(" apple "), foods.normalise("")] == ["apple", None]
    assert foods.title("fruit") == "fruit"
    assert set(foods.hierarchy(["apple", "misc"]).labels) == {"all", "fruit", "apple", "misc"}
    with pytest.raises(BadInput, match="1 of 2 codes"):
        foods.hierarchy(["apple", "fig"])


def test_lines_of_transaction_tools(tmp_path: Path) -> None:
    tree = trees.read(write(tmp_path / "t.txt", "1;1,3;1,6;*\n2;1,3;1,6;*\n\n4;4,6;1,6;*\n"))
    assert set(tree.leaf_labels()) == {"1", "2", "4"}
    assert tree.labels[tree.lca(tree.index["1"], tree.index["4"])] == "1,6"
    assert tree.labels[0] == "*"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1;a;*\n1;a;*\n", "row 2: the leaf '1' appears again (row 1)"),
        ("1;a;*\n2;b;a;*\n3;b;*\n", "row 3: 'b' is under '*' here and under 'a' in row 2"),
        ("1;;*\n", "row 1: write `leaf;parent"),
        ("1;*\n2;+\n", "2 roots"),
    ],
)
def test_bad_lines(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        trees.read(write(tmp_path / "t.txt", text))
    assert message in str(caught.value)


def test_omop_parents_are_the_nearest_ancestors(tmp_path: Path) -> None:
    rows = [
        "10,10,0,0",
        "10,20,1,1",
        "10,30,2,2",
        "20,30,1,1",
        "15,30,1,1",
        "20,31,1,1",
        "99,99,0,0",
        "10,31,2,2",
    ]
    tree = trees.read(write(tmp_path / "CONCEPT_ANCESTOR.csv", HEADER + "\n".join(rows) + "\n"))
    parent = dict(tree.to_pairs())
    # 30 has the parents 15 and 20: 20 has more descendants.
    assert parent["30"] == "20"
    assert parent["31"] == "20"
    assert parent["20"] == "10"
    assert parent["10"] == omop.ROOT
    assert parent["99"] == omop.ROOT
    # 15 has no ancestor in the file; 10 covers its only descendant and more.
    assert parent["15"] == "10"


def test_omop_equal_parents_fall_to_the_smallest_id_and_tabs_are_read(tmp_path: Path) -> None:
    text = (HEADER + "8,5,1,1\n7,5,1,1\n").replace(",", "\t")
    tree = trees.read(write(tmp_path / "CONCEPT_ANCESTOR.csv", text))
    assert dict(tree.to_pairs()) == {"*": "", "5": "7", "7": "*", "8": "*"}


def test_omop_needs_whole_numbers(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="row 2: the column 'ancestor_concept_id' needs a whole number"):
        trees.read(write(tmp_path / "CONCEPT_ANCESTOR.csv", HEADER + "x,5,1,1\n"))
