"""Workbooks, zip files, files of databases and of SAS, Stata and SPSS."""

from __future__ import annotations

import datetime
import sqlite3
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import duckdb
import pandas as pd
import polars as pl
import pyreadstat
import pytest

from leeward.cohort import read
from leeward.errors import BadInput

COLUMNS = {"patient": "pid", "code": "icd"}
ROWS = [("1", "250.00"), ("2", "401.9"), ("2", "E11.9")]
PARTS = {
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship '
    'Id="r" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="xl/workbook.xml"/></Relationships>',
    "xl/styles.xml": '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><cellXfs count="2">'
    '<xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default '
    'Extension="xml" ContentType="application/xml"/></Types>',
}
DAY_ZERO = datetime.date(1899, 12, 30)


def workbook(path: Path, sheets: Mapping[str, Sequence[Sequence[Any]]]) -> Path:
    """A workbook; a cell is text, a number, a date, None, or an exception: a formula's error."""
    main, office = "spreadsheetml/2006/main", "officeDocument/2006/relationships"
    at = "http://schemas.openxmlformats.org/"
    listed = "".join(
        f'<sheet name="{escape(name)}" sheetId="{n}" r:id="s{n}"/>' for n, name in enumerate(sheets, 1)
    )
    links = "".join(
        f'<Relationship Id="s{n}" Type="{at}{office}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(sheets) + 1)
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in PARTS.items():
            archive.writestr(name, text)
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{at}{main}" xmlns:r="{at}{office}"><sheets>{listed}</sheets></workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{at}package/2006/relationships">{links}<Relationship Id="st" '
            f'Type="{at}{office}/styles" Target="styles.xml"/></Relationships>',
        )
        for n, rows in enumerate(sheets.values(), 1):
            cells = "".join(
                f'<row r="{r}">{"".join(_cell(f"{chr(65 + c)}{r}", value) for c, value in enumerate(row))}</row>'
                for r, row in enumerate(rows, 1)
            )
            archive.writestr(
                f"xl/worksheets/sheet{n}.xml",
                f'<worksheet xmlns="{at}{main}"><sheetData>{cells}</sheetData></worksheet>',
            )
    return path


def _cell(place: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Exception):
        return f'<c r="{place}" t="e"><v>#N/A</v></c>'
    if isinstance(value, datetime.date):
        return f'<c r="{place}" s="1"><v>{(value - DAY_ZERO).days}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def events_of(path: Any, **options: Any) -> list[tuple[str, str]]:
    frame = read(path, columns=COLUMNS, vocabulary="none", **options).require_events()
    return list(frame.select(pl.col("patient").cast(pl.String), pl.col("code").cast(pl.String)).iter_rows())


def test_a_workbook_with_dates_and_numbers(tmp_path: Path) -> None:
    day = datetime.date(2023, 3, 15)
    rows = [
        ["pid", "icd", "day", "age"],
        [1, "250.00", day, 61.5],
        [2, 401, None, 70],
        [2, "E11.9", day, None],
    ]
    path = workbook(tmp_path / "a.xlsx", {"Codes": [*rows, [None, None]]})
    cohort = read(path, columns={**COLUMNS, "date": "day", "age": "age"})
    frame = cohort.require_events()
    assert frame["date"].to_list() == [day, None, day]
    assert frame["age"].to_list() == [61.5, 70.0, None]
    assert frame["code"].to_list() == ["250.00", "401", "E11.9"]
    (notice,) = [each for each in cohort.notices if each.kind == "codes as numbers"]
    assert (notice.count, notice.rows) == (1, (2,))
    assert "zeros" in notice.message
    table = read(path, format="table", columns={"patient": "pid"}).patients
    assert table is not None and table.schema["age"] == pl.Float64 and table.schema["day"] == pl.Date


def test_a_sheet_is_named_where_there_are_several(tmp_path: Path) -> None:
    sheets = {"Notes & more": [["x"], ["y"]], "Codes": [["pid", "icd"], *map(list, ROWS)]}
    path = workbook(tmp_path / "a.xlsx", sheets)
    assert events_of(path, table="Codes") == ROWS
    with pytest.raises(BadInput, match=r"it has 2 sheets \(Notes & more, Codes\); name one with --table"):
        events_of(path)
    with pytest.raises(BadInput, match=r"a\.xlsx: no sheet 'Code'\. Did you mean 'Codes'"):
        events_of(path, table="Code")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([["pid", "icd"], [1, "401.9"], [2, ValueError()]], r"cell B3 \(row 2 of column 'icd'\) holds an error"),
        ([["pid", "icd"], [1, "401.9"], [2, 250.1]], r"column 'icd' holds codes as decimal numbers \(row 2\)"),
        ([["pid", "icd"]], "^a.xlsx, sheet 'S': the sheet has column names but no rows"),
        ([], "sheet 'S': the first row is blank"),
        ([["pid", "icd"], [1, "401.9", "canary"]], "sheet 'S': row 1 has a value below no column name"),
        ([["pid", None, "icd"], [1, "canary", "401.9"]], "sheet 'S': column 2 is below no column name"),
        ([["pid", "pid", "icd"], [1, 1, "401.9"]], "sheet 'S': 2 columns are named 'pid'"),
        ([["pid", "code"], [1, "401.9"]], "sheet 'S': no column 'icd'"),
        ([["pid", "icd"], [None, "401.9"]], "sheet 'S': column 'pid' names no patient in row 1"),
    ],
)  # fmt: skip
def test_bad_sheets_name_the_place(tmp_path: Path, rows: list[list[Any]], said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        events_of(workbook(tmp_path / "a.xlsx", {"S": rows}))
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "ending", ["xlsx", "zip", "sas7bdat", "xpt", "dta", "sav", "por", "duckdb", "sqlite"]
)
@pytest.mark.parametrize("content", [b"", b"canary,x\n" * 500, b"PK\x03\x04canary"])
def test_damaged_files_are_bad_input(tmp_path: Path, ending: str, content: bytes) -> None:
    path = tmp_path / f"a.{ending}"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=rf"^a\.{ending}: ") as caught:
        events_of(path)
    assert "canary" not in str(caught.value)


def test_the_one_table_in_a_zip(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    text = "pid,icd\n" + "".join(f"{patient},{code}\n" for patient, code in ROWS)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/events.csv", text)
        archive.writestr("__MACOSX/events.csv", "x")
        archive.writestr("readme.pdf", "x")
    assert events_of(path) == ROWS
    with zipfile.ZipFile(path, "a") as archive:
        archive.write(workbook(tmp_path / "b.xlsx", {"S": [["pid", "icd"], ["9", "x"]]}), "b.xlsx")
    with pytest.raises(
        BadInput, match=r"a\.zip: 2 files in it: b\.xlsx, data/events\.csv\. Name one with --table"
    ):
        events_of(path)
    assert events_of(path, table="b.xlsx") == [("9", "x")]
    with pytest.raises(BadInput, match=r"no file 'events\.csv' in it\. Did you mean 'data/events\.csv'"):
        events_of(path, table="events.csv")


@pytest.mark.parametrize(
    "kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_a_damaged_zip_is_said_to_be_one(tmp_path: Path, kind: int) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("events.csv", "patient,code\n" + "".join(f"p{i},{i % 97}\n" for i in range(3000)))
    whole = bytearray(path.read_bytes())
    for place in range(60, len(whole) - 200, max(1, len(whole) // 20)):
        broken = bytearray(whole)
        broken[place : place + 8] = bytes(each ^ 0x5A for each in broken[place : place + 8])
        path.write_bytes(broken)
        with pytest.raises(BadInput, match=r"a\.zip: this is not a readable"):
            events_of(path)


def test_nothing_of_a_zip_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("events.csv", "pid,icd\n,401.9\n")
    with pytest.raises(BadInput, match="names no patient"):
        events_of(tmp_path / "a.zip")
    assert not list((tmp_path / "temporary").iterdir())


def test_a_zip_larger_than_the_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("events.csv", "pid,icd\n" + "1,401.9\n" * 10_000)
    usage = __import__("collections").namedtuple("usage", "free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(1000))
    with pytest.raises(BadInput, match="unpacked it has"):
        events_of(tmp_path / "a.zip")


@pytest.mark.parametrize("ending", ["dta", "sav", "xpt"])
def test_files_of_statistics_packages(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame({"pid": [1, 2, 2], "icd": [code for _, code in ROWS], "age": [61.5, None, 70.0]})
    write = {"dta": pyreadstat.write_dta, "sav": pyreadstat.write_sav, "xpt": pyreadstat.write_xport}[ending]
    write(frame, str(tmp_path / f"a.{ending}"))
    assert events_of(tmp_path / f"a.{ending}") == ROWS
    cohort = read(tmp_path / f"a.{ending}", columns={**COLUMNS, "age": "age"})
    assert cohort.require_events()["age"].to_list() == [61.5, None, 70.0]
    with pytest.raises(BadInput, match="this file has one table"):
        events_of(tmp_path / f"a.{ending}", table="x")


def test_a_file_of_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    secret = tmp_path / "secret.csv"
    secret.write_text("pid,icd\n7,canary\n")
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE codes (pid INTEGER, icd VARCHAR, day DATE)")
        connection.executemany("INSERT INTO codes VALUES (?, ?, DATE '2020-01-02')", ROWS)
    assert events_of(path) == ROWS
    assert events_of(path, query="SELECT pid, icd FROM codes WHERE pid = 1") == ROWS[:1]
    assert events_of(f"duckdb:///{path}#codes") == ROWS
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE VIEW outside AS SELECT * FROM read_csv('{secret}')")
    with pytest.raises(BadInput, match=r"it has 2 tables \(codes, outside\); name one with --table"):
        events_of(path)
    assert events_of(path, table="codes") == ROWS
    with pytest.raises(BadInput, match=r"a\.duckdb: the database refused the query"):
        events_of(path, table="outside")  # which would read a file beside the database
    with pytest.raises(BadInput, match=r"no table 'code'\. Did you mean 'codes'"):
        events_of(path, table="code")
    with pytest.raises(BadInput, match=r"refused the query \(.*nothere"):
        events_of(path, query="SELECT * FROM nothere")


def test_an_omop_database_of_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "cdm.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE PERSON AS SELECT 1 AS person_id, 1950 AS year_of_birth")
        connection.execute(
            "CREATE TABLE CONDITION_OCCURRENCE AS SELECT 1 AS person_id, 320128 AS condition_concept_id, "
            "DATE '2020-01-02' AS condition_start_date"
        )
    frame = read(path).require_events()
    assert frame["code"].to_list() == ["320128"]
    assert frame["age"].to_list() == [pytest.approx(70.0, abs=1.1)]


def test_a_file_of_sqlite_with_one_table_needs_no_name(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE codes (pid INTEGER, icd TEXT)")
    connection.executemany("INSERT INTO codes VALUES (?, ?)", ROWS)
    connection.commit()
    assert events_of(path) == ROWS
    connection.execute("CREATE TABLE other (x)")
    connection.commit()
    connection.close()
    assert events_of(path, table="codes") == ROWS
    with pytest.raises(BadInput, match=r"it has 2 tables \(codes, other\)"):
        events_of(path)


def test_a_table_is_named_only_where_there_can_be_several(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("pid,icd\n1,401.9\n")
    with pytest.raises(BadInput, match=r"a\.csv: --table names a sheet"):
        events_of(tmp_path / "a.csv", table="x")


@pytest.mark.parametrize("ending", ["xlsx", "dta", "duckdb"])
def test_the_extra_is_named_where_it_lacks(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("python_calamine", "pyreadstat", "duckdb"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    (tmp_path / f"a.{ending}").write_bytes(b"x")
    with pytest.raises(BadInput, match=rf"a\.{ending}: a \.{ending} file needs leeward\[files\]:"):
        events_of(tmp_path / f"a.{ending}")


def test_codes_that_are_numbers_in_one_file_and_text_in_another_are_refused(tmp_path: Path) -> None:
    pl.DataFrame({"patient": [1, 2], "code": [250.0, 401.0]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"patient": [1, 2], "code": ["250.00", "008"]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(BadInput, match=r"b.parquet: column 'code' holds .*, in a.parquet double: save them"):
        read(tmp_path)
