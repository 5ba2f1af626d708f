"""Reading CSV, TSV and Parquet: every form, and the cohort that comes out."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

from leeward.cohort import Cohort, read

PAIRS = [(2, "250.00", 1), (1, "401.1", 2), (2, "V10.1", 3), (1, "250.00", 4)]
CSV = "patient,code\n2,250.00\n1,401.1\n2,V10.1\n1,250.00\n"


def pairs(cohort: Cohort) -> list[tuple[object, ...]]:
    return cohort.require_events().select("patient", "code", "row").rows()


def kinds(cohort: Cohort) -> dict[str, tuple[int, tuple[int, ...]]]:
    return {notice.kind: (notice.count, notice.rows) for notice in cohort.notices}


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    data = text.encode()
    file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return file


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", CSV),
        ("a.csv.gz", CSV),
        ("a.tsv", CSV.replace(",", "\t")),
        ("a.txt", CSV.replace(",", "|")),
        ("semicolons.csv", CSV.replace(",", ";")),
        ("windows.csv", CSV.replace("\n", "\r\n")),
        ("with_mark.csv", "\ufeff" + CSV),
        ("blank_lines.csv", CSV.replace("\n2,V", "\n\n2,V") + "\n\n"),
        ("UPPER.CSV", CSV),
    ],
)
def test_delimited_text_of_every_kind(tmp_path: Path, name: str, text: str) -> None:
    cohort = read(written(tmp_path, name, text))
    assert pairs(cohort) == PAIRS
    assert cohort.name == name


def test_parquet_gives_the_same_cohort_as_csv(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pl.read_csv(CSV.encode(), schema_overrides={"code": pl.String}).write_parquet(file)
    assert pairs(read(file)) == PAIRS


@pytest.mark.parametrize(
    "type_of_code", [pl.Categorical, pl.Enum(["250.00", "401.1", "V10.1"]), pl.String], ids=str
)
@pytest.mark.parametrize("type_of_patient", [pl.Int32, pl.UInt64, pl.Float64, pl.String], ids=str)
def test_parquet_types(tmp_path: Path, type_of_code: pl.DataType, type_of_patient: pl.DataType) -> None:
    file = tmp_path / "a.parquet"
    frame = pl.DataFrame({"patient": [p for p, _, _ in PAIRS], "code": [c for _, c, _ in PAIRS]})
    frame = frame.with_columns(pl.col("code").cast(type_of_code), pl.col("patient").cast(type_of_patient))
    if type_of_patient == pl.String:
        frame = frame.with_columns(pl.col("patient"))
    frame.write_parquet(file)
    assert pairs(read(file)) == PAIRS


def test_events_are_an_enum_of_sorted_codes_and_source_rows(tmp_path: Path) -> None:
    events = read(written(tmp_path, "a.csv", CSV)).require_events()
    assert events["code"].dtype == pl.Enum(["250.00", "401.1", "V10.1"])
    assert events["row"].dtype == pl.UInt32
    assert events["patient"].dtype == pl.Int64


def test_repeated_codes_stay(tmp_path: Path) -> None:
    cohort = read(written(tmp_path, "a.csv", "patient,code\n1,401.1\n1,401.1\n"))
    assert len(pairs(cohort)) == 2
    assert cohort.code_sets().lengths().tolist() == [1]


def test_wide_form_keeps_source_rows_and_counts_gaps(tmp_path: Path) -> None:
    text = "id,d1,d2,d3\n1,401.1,?,250.00\n2,?,?,?\n1,?,V10.1,\n3,?,,?\n2,401.1,?,?\n"
    cohort = read(
        written(tmp_path, "wide.csv", text),
        columns={"patient": "id", "code": ["d1", "d2", "d3"]},
        missing=["?"],
    )
    assert pairs(cohort) == [(1, "401.1", 1), (1, "250.00", 1), (1, "V10.1", 3), (2, "401.1", 5)]
    found = kinds(cohort)
    assert found["missing code"] == (2, (2, 4)), (
        "rows without any code; of wide rows the last cells are empty as a rule"
    )
    assert found["record without codes"] == (1, (4,))
    assert cohort.code_sets().patients.to_list() == [1, 2]


def test_long_form_names_patients_without_any_code(tmp_path: Path) -> None:
    cohort = read(written(tmp_path, "a.csv", "patient,code\n1,401.1\n2, \n1,\n3,\n3,\n"))
    assert kinds(cohort)["missing code"] == (4, (2, 3, 4, 5))
    assert kinds(cohort)["record without codes"] == (2, (2, 4, 5))


def test_folder_and_glob_read_all_files_in_order(tmp_path: Path) -> None:
    written(tmp_path, "part-1.csv", "patient,code\n1,401.1\n2,250.00\n")
    written(tmp_path, "part-2.csv.gz", "code,patient\nV10.1,3\n")
    written(tmp_path, "_SUCCESS", "")
    written(tmp_path, ".part-0.csv.crc", "x")
    expected = [(1, "401.1", 1), (2, "250.00", 2), (3, "V10.1", 3)]
    assert pairs(read(tmp_path)) == expected
    assert pairs(read(tmp_path / "part-*.csv*")) == expected


def test_folder_of_parquet_parts_with_an_empty_one(tmp_path: Path) -> None:
    for i, rows in enumerate(([1, 2], [], [3])):
        frame = pl.DataFrame(
            {"patient": rows, "code": ["401.1"] * len(rows)}, schema={"patient": pl.Int64, "code": pl.String}
        )
        frame.write_parquet(tmp_path / f"{i}.parquet")
    assert [p for p, _, _ in pairs(read(tmp_path))] == [1, 2, 3]


def test_identifiers_with_leading_zeros_stay_apart(tmp_path: Path) -> None:
    cohort = read(written(tmp_path, "a.csv", "patient,code\n007,401.1\n7,401.1\n"))
    assert cohort.require_events()["patient"].to_list() == ["007", "7"]


def test_identifiers_that_turn_to_text_in_a_later_file_become_text(tmp_path: Path) -> None:
    written(tmp_path, "1.csv", "patient,code\n12,401.1\n")
    written(tmp_path, "2.csv", "patient,code\nA7,401.1\n12,250.00\n")
    cohort = read(tmp_path)
    assert cohort.require_events()["patient"].to_list() == ["12", "A7", "12"]
    assert len(cohort.code_sets()) == 2


def test_outer_blanks_make_no_new_patient(tmp_path: Path) -> None:
    cohort = read(written(tmp_path, "a.csv", "patient,code\n x1,401.1\nx1 ,250.00\n"))
    assert len(cohort.code_sets()) == 1


def test_quoted_values_with_separators_and_line_breaks(tmp_path: Path) -> None:
    text = 'patient,note,code\n1,"a, b",401.1\n2,"two\nlines",250.00\n3,"say ""x""",V10.1\n'
    assert pairs(read(written(tmp_path, "a.csv", text))) == [
        (1, "401.1", 1),
        (2, "250.00", 2),
        (3, "V10.1", 3),
    ]


def test_optional_columns(tmp_path: Path) -> None:
    text = (
        "pid,icd,enc,when,years\n1,401.1,e1,2015-10-02,40.5\n1,250.00,e2,2015-10-03T10:00:00Z,\n"
        "2,401.1,,?,7\n"
    )
    cohort = read(
        written(tmp_path, "a.csv", text),
        columns={"patient": "pid", "code": "icd", "visit": "enc", "date": "when", "age": "years"},
        missing=["?"],
    )
    events = cohort.require_events()
    assert events["visit"].to_list() == ["e1", "e2", None]
    assert [str(d) if d else None for d in events["date"]] == ["2015-10-02", "2015-10-03", None]
    assert events["age"].to_list() == [40.5, None, 7.0]


def test_date_format(tmp_path: Path) -> None:
    file = written(tmp_path, "a.csv", "patient,code,date\n1,401.1,02.10.2015\n")
    assert str(read(file, date_format="%d.%m.%Y").require_events()["date"][0]) == "2015-10-02"


def test_parquet_dates_visits_and_ages_keep_their_type(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pl.DataFrame(
        {
            "patient": [1, 2],
            "code": ["401.1", "250.00"],
            "visit": [10, None],
            "date": ["2015-10-02", None],
            "age": [4, 5],
        }
    ).with_columns(pl.col("date").str.to_datetime()).write_parquet(file)
    events = read(file).require_events()
    assert events["visit"].dtype == pl.Int64
    assert events["date"].dtype == pl.Date
    assert events["age"].to_list() == [4.0, 5.0]


def test_payload_columns_become_the_patients_frame(tmp_path: Path) -> None:
    header = "patient,code,sex,bmi,dna,zip\n"
    text = header + "2,401.1,F,21.5,0/1,007\n1,250.00,,19,1/1,123\n1,401.1,M,19,0/1,123\n3,,F,1,,\n"
    cohort = read(
        written(tmp_path, "a.csv", text),
        columns={"patient": "patient", "code": "code", "patients": ["sex", "bmi", "dna", "zip"]},
    )
    assert cohort.patients is not None
    assert cohort.patients.to_dict(as_series=False) == {
        "patient": [1, 2],
        "sex": ["M", "F"],
        "bmi": [19.0, 21.5],
        "dna": ["1/1", "0/1"],
        "zip": ["123", "007"],
    }
    conflicts = [notice for notice in cohort.notices if notice.kind == "conflicting attribute"]
    assert [notice.message for notice in conflicts] == [
        "1 patient with several values of 'dna': the first is kept"
    ]


def test_attributes_from_a_file_of_their_own(tmp_path: Path) -> None:
    events = written(tmp_path, "events.csv", CSV)
    people = written(tmp_path, "people.csv", "patient,sex,born\n2,F,1950\n9,M,1960\n")
    cohort = read(events, patients=people)
    assert cohort.patients is not None
    assert cohort.patients.rows() == [(1, None, None), (2, "F", 1950)]
    assert kinds(cohort)["patient without attributes"][0] == 1
    only = read(events, columns={"patient": "patient", "code": "code", "patients": ["born"]}, patients=people)
    assert only.patients is not None
    assert only.patients.columns == ["patient", "born"]


def test_a_frame_in_memory() -> None:
    frame = pl.DataFrame({"p": ["a", "b"], "c": ["401.1", None]})
    cohort = read(frame, columns={"patient": "p", "code": "c"})
    assert pairs(cohort) == [("a", "401.1", 1)]
    assert kinds(cohort)["record without codes"] == (1, (2,))


def test_the_order_of_rows_does_not_change_the_code_sets(tmp_path: Path) -> None:
    rows = CSV.splitlines()
    turned = "\n".join([rows[0], *reversed(rows[1:])]) + "\n"
    one, other = (
        read(written(tmp_path, name, text)).code_sets() for name, text in (("1.csv", CSV), ("2.csv", turned))
    )
    assert one.codes == other.codes
    assert one.values.tolist() == other.values.tolist()
    assert one.offsets.tolist() == other.offsets.tolist()
