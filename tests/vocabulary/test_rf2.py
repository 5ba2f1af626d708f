"""SNOMED CT in Release Format 2, with a made-up release of ten concepts; errors name file, row and column."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from leeward import read
from leeward.cli.main import status_of
from leeward.cohort.names import names_of
from leeward.errors import BadInput
from leeward.vocabulary import load, registry, rf2

IS_A = [  # child, parent; 9 has two parents, of which 3 has more below it
    (2, 1), (3, 2), (4, 2), (5, 3), (6, 3), (7, 4), (8, 3), (9, 4), (9, 3), (9, 8),
]  # fmt: skip
NAMES = {1: "SNOMED CT Concept", 2: 'Clinical "finding"', 3: "Infection", 4: "Injury", 9: "Infected wound"}
HEADERS = {
    "Concept": "id\teffectiveTime\tactive\tmoduleId\tdefinitionStatusId",
    "Description": "id\teffectiveTime\tactive\tmoduleId\tconceptId\tlanguageCode\ttypeId\tterm\tcaseSignificanceId",
    "Relationship": "id\teffectiveTime\tactive\tmoduleId\tsourceId\tdestinationId\trelationshipGroup\ttypeId"
    "\tcharacteristicTypeId\tmodifierId",
}
ROWS = {
    "Concept": [f"{n}\t20260101\t{int(n < 10)}\t0\t0" for n in range(1, 11)],
    "Description": [
        row
        for n, name in NAMES.items()
        for row in (
            f"{n}1\t20260101\t1\t0\t{n}\ten\t{rf2.SYNONYM}\tcalled {name}\t0",
            f"{n}2\t20260101\t0\t0\t{n}\ten\t{rf2.FULLY_SPECIFIED}\told {name}\t0",
            f"{n}3\t20260101\t1\t0\t{n}\ten\t{rf2.FULLY_SPECIFIED}\t{name} (disorder)\t0",
        )
    ],
    "Relationship": [
        "90\t20260101\t0\t0\t10\t1\t0\t116680003\t0\t0",
        "91\t20260101\t1\t0\t9\t7\t0\t363698007\t0\t0",
        *(
            f"{n}\t20260101\t1\t0\t{child}\t{parent}\t0\t{rf2.IS_A}\t0\t0"
            for n, (child, parent) in enumerate(IS_A)
        ),
    ],
}


def release(folder: Path, **changed: list[str]) -> Path:
    """A folder of RF2, below `Snapshot/Terminology` as SNOMED International's are."""
    inside = folder / "Snapshot" / "Terminology"
    inside.mkdir(parents=True)
    for what, header in HEADERS.items():
        language = "-en" if what == "Description" else ""
        rows = changed.get(what, ROWS[what])
        (inside / f"sct2_{what}_Snapshot{language}_INT_20260101.txt").write_text(
            "\r\n".join([header, *rows]) + "\r\n"
        )
    return folder


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LEEWARD_HOME", str(tmp_path / "home"))
    assert status_of(["vocabulary", "add", str(release(tmp_path / "rf2"))]) == 0
    return registry.find("snomed")


def test_the_tree_and_its_names(added: Path) -> None:
    """Of several parents the one with the most below it, the smallest id of equals: 9 is below 3, not below 4 or 8."""
    assert rf2.parents(added) == {
        "*": "", "1": "*", "2": "1", "3": "2", "4": "2", "5": "3", "6": "3", "7": "4", "8": "3", "9": "3",
    }  # fmt: skip
    assert rf2.names(added)["2"] == 'Clinical "finding" (disorder)' and rf2.names(added)["5"] == ""
    vocabulary = load("snomed")
    assert vocabulary.title("3") == "Infection (disorder)" and vocabulary.title("77") == "77"
    groups = vocabulary.level_groups(["5", "6", "7", "9", "77"], 1)
    assert groups == {"3": ("5", "6", "9"), "4": ("7",), "77": ("77",)}
    assert sorted(vocabulary.hierarchy(["3", "5", "77"]).leaf_labels()) == ["3", "5", "77"]


def test_sources_with_its_codes_use_it_by_themselves(added: Path, tmp_path: Path) -> None:
    """Synthea's codes are SNOMED's: they get its tree, and its public names before those of the rows."""
    folder = tmp_path / "synthea"
    folder.mkdir()
    people = pl.DataFrame({"Id": [f"p{n}" for n in range(12)], "BIRTHDATE": ["1960-01-01"] * 12})
    people.write_csv(folder / "patients.csv")
    rows = [(f"p{n}", "2020-01-01", code, "of a row") for n in range(12) for code in (5, 6, 9, 7)]
    pl.DataFrame(rows, schema=["PATIENT", "START", "CODE", "DESCRIPTION"], orient="row").write_csv(
        folder / "conditions.csv"
    )
    cohort = read(folder)
    assert cohort.vocabulary == "snomed"
    found = {code: each.name for code, each in names_of(cohort, ["9", "5", "3"]).items()}
    assert found == {"9": "Infected wound (disorder)", "5": "of a row", "3": "Infection (disorder)"}
    out = tmp_path / "out"
    assert status_of(["trajectories", str(folder), "--k", "3", "-o", str(out)]) == 0
    codes = pl.read_parquet(out / "share/data/codes.parquet")
    assert "Infected wound (disorder)" in codes["name"].to_list()


@pytest.mark.parametrize(
    ("what", "row", "message"),
    [
        ("Concept", "x\t20260101\t1\t0\t0", "row 2: the column 'id' needs an identifier"),
        ("Concept", "1\t20260101\tyes\t0\t0", "row 2: the column 'active' needs 0 or 1"),
        ("Concept", "1\t20260101", "row 2: 2 cells where the header has 5"),
        (
            "Relationship",
            f"0\t0\t1\t0\t77\t1\t0\t{rf2.IS_A}\t0\t0",
            "row 2: the column 'sourceId' names a concept",
        ),
        (
            "Relationship",
            f"0\t0\t1\t0\t2\t10\t0\t{rf2.IS_A}\t0\t0",
            "row 2: the column 'destinationId' names",
        ),
        ("Relationship", f"0\t0\t1\t0\t1\t9\t0\t{rf2.IS_A}\t0\t0", "the concept is above itself"),
        (
            "Description",
            f"0\t0\t1\t0\t-\ten\t{rf2.FULLY_SPECIFIED}\tx\t0",
            "row 2: the column 'conceptId' needs",
        ),
    ],
)
def test_a_broken_release_names_file_row_and_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, row: str, message: str
) -> None:
    monkeypatch.setenv("LEEWARD_HOME", str(tmp_path / "home"))
    folder = release(tmp_path / "rf2", **{what: [row, *ROWS[what]]})
    with pytest.raises(BadInput, match=re.escape(message)) as error:
        registry.add("snomed", folder)
    assert str(error.value).startswith("sct2_")
    assert not registry.has("snomed") and not (tmp_path / "home").exists()


@pytest.mark.parametrize("row", [1, 2, 4])
def test_a_cell_longer_than_csv_reads_is_told_with_its_row(tmp_path: Path, row: int) -> None:
    folder = release(tmp_path / "rf2")
    file = rf2.require_file(folder, "Concept")
    rows = file.read_text().splitlines()
    rows[row - 1] = "9" * 200_000
    file.write_text("\n".join(rows) + "\n")
    with pytest.raises(BadInput, match=rf"{file.name}, row {row}: a cell of more than 131,072 characters"):
        rf2.convert(folder, tmp_path / "tree.csv")


def test_what_is_no_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEEWARD_HOME", str(tmp_path / "home"))
    folder = release(tmp_path / "rf2")
    next(folder.rglob("sct2_Relationship*")).unlink()
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.csv").write_text("a\n")
    given = (
        [folder],
        ["snomed", tmp_path / "empty"],
        [tmp_path / "empty"],
        [tmp_path / "file.csv"],
        ["snomed", "x"],
    )
    for words in given:
        assert status_of(["vocabulary", "add", *map(str, words)]) == 2
    said = capsys.readouterr().err
    for message in (
        "no sct2_Relationship_*.txt", "no sct2_Concept_*.txt", "holds neither", "say which KIND", "no such folder",
    ):  # fmt: skip
        assert message in said
