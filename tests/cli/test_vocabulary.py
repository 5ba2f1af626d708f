"""`leeward vocabulary add`."""

from __future__ import annotations

from pathlib import Path

import pytest

from leeward.cli.main import status_of
from leeward.errors import BadInput
from leeward.vocabulary import registry


def test_a_phecode_map_is_checked_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEEWARD_HOME", str(tmp_path / "home"))
    (tmp_path / "map.csv").write_text("ICD9,PheCode\n250.0,250.1\n")
    assert status_of(["vocabulary", "add", "phecode", str(tmp_path / "map.csv")]) == 0
    assert registry.find("phecode").is_file()
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n")
    assert status_of(["vocabulary", "add", "phecode", str(tmp_path / "wrong.csv")]) == 2
    assert status_of(["vocabulary", "add", "phecode", str(tmp_path / "absent.csv")]) == 2
    assert "absent.csv: there is no such file" in capsys.readouterr().err


PAIRS = ((1, 10, 1), (1, 11, 1), (10, 100, 1), (10, 101, 1), (1, 100, 2), (1, 101, 2), (11, 110, 1))
ANCESTORS = (
    "ancestor_concept_id,descendant_concept_id,min_levels_of_separation,max_levels_of_separation\n"
    + "".join(f"{above},{below},{levels},{levels}\n" for above, below, levels in PAIRS)
)


def test_an_added_omop_vocabulary_is_listed_used_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEEWARD_HOME", str(tmp_path / "home"))
    folder = tmp_path / "vocabulary"
    folder.mkdir()
    (folder / "CONCEPT_ANCESTOR.csv").write_text(ANCESTORS)
    assert status_of(["vocabulary", "add", "omop", str(folder)]) == 0
    assert status_of(["vocabulary", "list"]) == 0
    assert "omop " in capsys.readouterr().out
    (tmp_path / "in.csv").write_text(
        "patient,code\n" + "".join(f"{p},{c}\n" for p in range(9) for c in (100, 101, 110, 999))
    )
    flags = ["--vocabulary", "omop", "--k", "3", "--m", "2", "--policy", "hierarchy:1"]
    assert status_of(["disassociate", str(tmp_path / "in.csv"), *flags, "-o", str(tmp_path / "out")]) == 0
    assert status_of(["vocabulary", "remove", "omop"]) == 0
    assert status_of(["vocabulary", "remove", "omop"]) == 2
    assert "run `leeward vocabulary add omop FILE`" in capsys.readouterr().err


@pytest.mark.parametrize("small", [True, False])
def test_codes_that_a_concept_ancestor_lacks_hang_below_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    """Read whole, and read only above the codes, as a large complete table is: the same groups."""
    from leeward.vocabulary import load, trees

    monkeypatch.setattr(trees, "SMALL_BYTES", 1 << 20 if small else 0)
    (tmp_path / "CONCEPT_ANCESTOR.csv").write_text(ANCESTORS)
    vocabulary = load(tmp_path / "CONCEPT_ANCESTOR.csv")
    codes = ["100", "101", "110", "999"]
    assert {frozenset(group) for group in vocabulary.level_groups(codes, 1).values()} == {
        frozenset({"100", "101"}), frozenset({"110"}), frozenset({"999"}),
    }  # fmt: skip
    tree = vocabulary.hierarchy(codes)
    assert sorted(tree.leaf_labels()) == codes
    assert tree.labels[int(tree.parent[tree.index["999"]])] == "*"
    assert tree.labels[int(tree.parent[tree.index["100"]])] == "10"


CONCEPTS = {
    1: "root-code", 10: "73211009", 11: "38341003", 100: "44054006", 101: "46635009", 110: "59621000",
    500: "7", 501: "7",
}  # fmt: skip


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("separator", [",", "\t"])
def test_a_concept_ancestor_by_the_codes_of_concept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: bool, separator: str
) -> None:
    """The tree has CONCEPT's codes as labels; a concept that CONCEPT lacks its id, codes that two have both."""
    from leeward.vocabulary import load, trees

    monkeypatch.setattr(trees, "SMALL_BYTES", 1 << 20 if small else 0)
    more = ANCESTORS + "1,500,1,1\n10,500,1,1\n1,501,1,1\n11,501,1,1\n10,102,1,1\n1,102,2,2\n"
    (tmp_path / "CONCEPT_ANCESTOR.csv").write_text(more.replace(",", separator))
    rows = [("concept_id", "concept_name", "concept_code", "vocabulary_id")]
    rows += [(str(number), 'a "b', code, "SNOMED") for number, code in CONCEPTS.items()]
    quoted = [[each.replace('a "b', '"a ""b"') for each in row] if separator == "," else row for row in rows]
    (tmp_path / "Concept.csv").write_text("".join(separator.join(row) + "\n" for row in quoted))
    by_id = load(tmp_path / "CONCEPT_ANCESTOR.csv")
    by_code = load(f"{tmp_path / 'CONCEPT_ANCESTOR.csv'}#concept_code")
    codes = ["44054006", "46635009", "59621000", "102", "7", "999"]
    groups = {frozenset(group) for group in by_code.level_groups(codes, 1).values()}
    assert groups == {
        frozenset({"44054006", "46635009", "102"}), frozenset({"59621000"}), frozenset({"7"}), frozenset({"999"}),
    }  # fmt: skip
    assert by_code.level("44054006", 1) == CONCEPTS[int(by_id.level("100", 1))] == "73211009"
    tree = by_code.hierarchy(codes)
    assert sorted(tree.leaf_labels()) == sorted(codes)
    above = {code: tree.labels[int(tree.parent[tree.index[code]])] for code in codes}
    assert (above["44054006"], above["59621000"], above["7"]) == ("73211009", "38341003", "*")


def test_a_concept_ancestor_by_code_needs_concept_beside_it(tmp_path: Path) -> None:
    from leeward.vocabulary import load

    (tmp_path / "CONCEPT_ANCESTOR.csv").write_text(ANCESTORS)
    name = f"{tmp_path / 'CONCEPT_ANCESTOR.csv'}#concept_code"
    with pytest.raises(BadInput, match=r"CONCEPT_ANCESTOR\.csv: there is no file CONCEPT beside it"):
        load(name)
    (tmp_path / "CONCEPT.csv").write_text("concept_id,concept_name\n1,a\n")
    with pytest.raises(BadInput, match=r"CONCEPT\.csv: cannot be read as OMOP's CONCEPT"):
        load(name).level("1", 1)


def test_without_a_hierarchy_each_code_is_alone() -> None:
    from leeward.vocabulary import load

    flat = load("flat")
    assert flat.level_groups(["b", "a"], 2) == {"a": ("a",), "b": ("b",)}
    assert flat.sibling_groups(["a", "b"], 2) == []
    assert sorted(flat.hierarchy(["a", "b"]).leaf_labels()) == ["a", "b"]
