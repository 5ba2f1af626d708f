"""`leeward vocabulary add`."""

from __future__ import annotations

from pathlib import Path

import pytest

from leeward.cli.main import status_of
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
    from leeward.vocabulary import load, open_tree

    monkeypatch.setattr(open_tree, "SMALL_BYTES", 1 << 20 if small else 0)
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


def test_without_a_hierarchy_each_code_is_alone() -> None:
    from leeward.vocabulary import load

    flat = load("flat")
    assert flat.level_groups(["b", "a"], 2) == {"a": ("a",), "b": ("b",)}
    assert flat.sibling_groups(["a", "b"], 2) == []
    assert sorted(flat.hierarchy(["a", "b"]).leaf_labels()) == ["a", "b"]
