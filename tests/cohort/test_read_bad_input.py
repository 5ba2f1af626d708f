"""Bad input: each mistake with its message, and no patient's value in any of them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from leeward import BadInput
from leeward.cohort import read

GOOD = "patient,code\n1,401.1\n2,250.00\n"


def message_of(path: Path | str, **options: Any) -> str:
    with pytest.raises(BadInput) as error:
        read(path, **options)
    assert error.value.exit_code == 2
    return str(error.value)


ENDINGS = ".csv, .tsv, .tab, .txt, .parquet, .pq"
REPAIR = "quote values that hold the separator, or repair the row."
NAME_FORM = "repair it, name the form (`date_format`, --date-format), or name the text that means 'missing'."
NAME_MISSING = "repair it or name the text that means 'missing'."

DELIMITED = [
    ("empty file", "", "f.csv: the file is empty."),
    ("header only", "patient,code\n", "f.csv: the file has column names but no rows."),
    ("blank header", "  \n1,401.1\n", "f.csv: the first row is blank; it must hold the column names."),
    (
        "missing column, similar name",
        "patients,code\n1,401.1\n",
        (
            "f.csv: no column 'patient'. Did you mean 'patients'? Name yours with --patient patients. "
            "Its columns: patients, code."
        ),
    ),
    (
        "missing column, no similar",
        "patient,x\n1,401.1\n",
        "f.csv: no column 'code'. Name yours with --code COL. Its columns: patient, x.",
    ),
    (
        "no header: the first record is not shown",
        "98765,401.1\n2,250.00\n",
        "f.csv: no column 'patient'. Name yours with --patient COL. Check that its first row holds the column names.",
    ),
    (
        "two columns of one name",
        "patient,code,code\n1,401.1,2\n",
        "f.csv: 2 columns are named 'code'; rename all but one.",
    ),
    (
        "too few fields",
        "patient,code\n1,401.1\n\n2\n3,x\n",
        "f.csv: row 2 has 1 field where the header has 2; " + REPAIR,
    ),
    (
        "too many fields",
        "patient,code\n1,401.1\n2,250,00\n3,x\n",
        "f.csv: row 2 has 3 fields where the header has 2; " + REPAIR,
    ),
    (
        "no patient",
        "patient,code\n1,401.1\n,250.00\n 2,V10\n  ,V10\n",
        "f.csv: column 'patient' names no patient in rows 2, 4; every row needs one.",
    ),
    (
        "no codes at all",
        "patient,code\n1,\n2, \n",
        "f.csv: no row has a code in column 'code'; nothing remains to protect.",
    ),
    (
        "an unclosed quote",
        'patient,code\n1,"401.1\n2,250.00\n',
        "f.csv: a value in column 'code' spans several lines; look for an unclosed quote.",
    ),
    (
        "no age",
        "patient,code,age\n1,401.1,12\n2,250.00,[0-10)\n",
        "f.csv: column 'age' holds a value that is not an age between 0 and 150 years (row 2); "
        + NAME_MISSING,
    ),
    (
        "negative age",
        "patient,code,age\n1,401.1,-1\n",
        "f.csv: column 'age' holds a value that is not an age between 0 and 150 years (row 1); "
        + NAME_MISSING,
    ),
    (
        "no date",
        "patient,code,date\n1,401.1,2011-02-30\n2,250.00,2011-01-01\n",
        "f.csv: column 'date' holds a value that is no date (2015-10-02 or 2.10.2015) (row 1); " + NAME_FORM,
    ),
]


@pytest.mark.parametrize(
    ("text", "message"), [case[1:] for case in DELIMITED], ids=[case[0] for case in DELIMITED]
)
def test_delimited(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "f.csv").write_text(text)
    assert message_of(tmp_path / "f.csv") == message


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"patient,code\n1,401.1\n2,caf\xe9 caf\xc3\xa9\n", "row 2"),
        (b"patient,code,n\xe9 \xc3\xa9\n1,401.1,x\n", "the header"),
        (b"patient,code\n1,401.1\n2,caf\x81\n", "row 2"),
    ],
)
def test_text_that_is_not_utf8(tmp_path: Path, data: bytes, where: str) -> None:
    (tmp_path / "f.csv").write_bytes(data)
    assert message_of(tmp_path / "f.csv") == f"f.csv: {where} is not UTF-8 text; save the file as UTF-8."


@pytest.mark.parametrize(
    "data", [b"patient,code\n1,401.1\n", gzip.compress(b"patient,code\n" + b"1,401.1\n" * 50_000)[:-40]]
)
def test_gzip_that_is_none_or_cut_short(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f.csv.gz").write_bytes(data)
    assert message_of(tmp_path / "f.csv.gz") == "f.csv.gz: this is not a complete gzip file; copy it again."


def test_parquet_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "f.parquet"
    file.write_bytes(b"")
    assert message_of(file) == "f.parquet: the file is empty."
    file.write_text(GOOD)
    assert message_of(file) == "f.parquet: this is not a readable Parquet file (damaged, or another format)."


def test_parquet_with_a_damaged_part(tmp_path: Path) -> None:
    file = tmp_path / "f.parquet"
    pl.DataFrame({"patient": range(50_000), "code": [f"c{i}" for i in range(50_000)]}).write_parquet(
        file, compression="zstd"
    )
    data = bytearray(file.read_bytes())
    data[1_000:20_000] = b"\x00" * 19_000
    file.write_bytes(data)
    assert message_of(file) == "f.parquet: a part of this Parquet file cannot be read; it seems damaged."


def test_parquet_columns(tmp_path: Path) -> None:
    file = tmp_path / "f.parquet"
    pl.DataFrame({"person": [1], "code": ["401.1"]}).write_parquet(file)
    assert (
        message_of(file)
        == "f.parquet: no column 'patient'. Name yours with --patient COL. Its columns: person, code."
    )
    assert message_of(file, columns={"patient": "persn", "code": "code"}) == (
        "f.parquet: no column 'persn'. Did you mean 'person'? Its columns: person, code."
    )


def test_parquet_without_rows_or_with_columns_of_no_use(tmp_path: Path) -> None:
    file = tmp_path / "f.parquet"
    pl.DataFrame(schema={"patient": pl.Int64, "code": pl.String}).write_parquet(file)
    assert message_of(file) == "f.parquet: the file has column names but no rows."
    pl.DataFrame({"patient": [1], "code": [True]}).write_parquet(file)
    assert (
        message_of(file) == "f.parquet: column 'code' holds bool, not codes; codes are text or whole numbers."
    )
    pl.DataFrame({"patient": [1.5], "code": ["x"]}).write_parquet(file)
    assert message_of(file) == (
        "f.parquet: column 'patient' holds fractions; identifiers must be whole numbers or text."
    )


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    assert message_of(tmp_path / "nothing.csv") == "nothing.csv: no such file or folder."
    assert message_of(tmp_path / "no*.csv") == "no*.csv: no file matches this pattern."
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes.docx").write_text("x")
    assert message_of(folder) == (
        f"folder: the folder has no file that can be read ({ENDINGS}, each also .gz)."
    )
    assert message_of(folder / "notes.docx") == (
        f"notes.docx: this ending is not known; files end in {ENDINGS}, text also in .gz; single files also in .xlsx, "
        ".xlsm, .sas7bdat, .xpt, .dta, .sav, .zsav, .por, .zip, .sqlite, .duckdb."
    )


def test_files_of_a_folder_must_agree(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text(GOOD)
    (tmp_path / "2.csv").write_text("patient,icd,extra\n1,401.1,x\n")
    assert message_of(tmp_path) == (
        "2.csv: its columns differ from those of 1.csv (lacks 1 of them and has 2 others); "
        "files that are read together must have the same columns."
    )
    (tmp_path / "2.csv").write_text("patient,code\n3,401.1\n,250.00\n")
    assert message_of(tmp_path) == "2.csv: column 'patient' names no patient in row 2; every row needs one."
    pl.DataFrame({"patient": [1], "code": ["x"]}).write_parquet(tmp_path / "3.parquet")
    assert message_of(tmp_path).endswith(
        "mixes Parquet and text files; give one kind, for example '*.parquet'."
    )


def test_column_map_mistakes(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(GOOD)
    assert message_of(tmp_path / "f.csv", columns={"patient": "patient", "cod": "code"}) == (
        "The column map has no role 'cod'. Did you mean 'code'? "
        "Roles: patient, code, visit, date, age, birth, vocabulary, patients."
    )
    assert message_of(tmp_path / "f.csv", columns={"patient": ["patient", "code"]}) == (
        "The role 'patient' takes one column; got 2."
    )


def test_unknown_format(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(GOOD)
    assert message_of(tmp_path / "f.csv", format="event").startswith(
        "No reader for the format 'event'. Did you mean 'events'?"
    )


SECRET = "Zyxwvut98765"


@pytest.mark.parametrize(
    "text",
    [
        f"{SECRET},{SECRET}\n{SECRET},x\n",
        f"patient,code\n1,401.1\n{SECRET}\n",
        f"patient,code\n{SECRET},a,b\n",
        f"patient,code,age\n{SECRET},{SECRET},{SECRET}\n",
        f"patient,code,date\n{SECRET},{SECRET},{SECRET}\n",
        f'patient,code\n{SECRET},"{SECRET}\n{SECRET},2\n',
        f"patient,code\n,{SECRET}\n",
        f"patient,code\n{SECRET},?\n",
    ],
)
def test_no_message_holds_a_value_of_a_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "f.csv").write_text(text)
    assert SECRET not in message_of(tmp_path / "f.csv", missing=["?"])


def test_no_notice_holds_a_value_of_a_record(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text(f"patient,code,sex\n{SECRET},8,{SECRET}\n{SECRET},{SECRET},x\nB{SECRET},,x\n")
    columns = {"patient": "patient", "code": "code", "patients": ["sex"]}
    cohort = read(file, vocabulary="icd9", columns=columns, accept_unknown=True)
    assert {notice.kind for notice in cohort.notices} == {
        "missing code",
        "record without codes",
        "restored leading zeros",
        "unknown code",
        "conflicting attribute",
    }
    assert SECRET not in " ".join(map(str, cohort.notices)) + repr(cohort)
