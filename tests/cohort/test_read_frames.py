"""Frames of other libraries, other encodings, files of databases: what people have."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from leeward.cohort import Cohort, read
from leeward.cohort.readers.formats import READERS
from leeward.errors import BadInput

PATIENTS, CODES = [1, 1, 2, 3], ["401.9", "250.00", "401.9", None]
FRAME = pl.DataFrame({"patient": PATIENTS, "code": CODES, "age": [30.0, 31.0, None, 5.0]})


class Streamed:
    """Something with Arrow's C stream and nothing else."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return FRAME.__arrow_c_stream__(requested_schema)


def pandas_frame() -> pd.DataFrame:
    return pd.DataFrame({"patient": PATIENTS, "code": CODES, "age": [30.0, 31.0, None, 5.0]})


def same(cohort: Cohort) -> bool:
    expected = read(FRAME)
    return (
        cohort.require_events().equals(expected.require_events())
        and [str(each) for each in cohort.notices] == [str(each) for each in expected.notices]
        and cohort.vocabulary == expected.vocabulary
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: FRAME.lazy(),
        pandas_frame,
        lambda: pandas_frame().astype({"code": "category", "patient": "Int64"}),
        lambda: pandas_frame().set_index("patient"),
        lambda: pandas_frame().set_index(["patient", "code"]),
        lambda: pandas_frame().iloc[::-1].iloc[::-1],
        lambda: FRAME.to_arrow(),
        lambda: FRAME.to_arrow().to_batches()[0],
        Streamed,
    ],
)
def test_a_frame_of_another_library_is_the_same_cohort(make: Callable[[], Any]) -> None:
    assert same(read(make()))


def test_a_frame_as_a_table_of_patients() -> None:
    cohort = read(pandas_frame(), format="table")
    assert cohort.patients is not None and cohort.patients.columns == ["patient", "code", "age"]


@pytest.mark.parametrize("thing", [{"patient": [1]}, [1, 2], 3, None, object()])
def test_anything_else_is_refused(thing: Any) -> None:
    with pytest.raises(BadInput, match="a cohort cannot be read from"):
        read(thing)


def test_a_column_of_several_types_is_refused() -> None:
    with pytest.raises(BadInput, match="several types"):
        read(pd.DataFrame({"patient": [1, 2], "code": ["401.9", {"a": 1}]}))


def test_a_frame_has_dates_in_the_form_that_is_given() -> None:
    frame = pl.DataFrame({"patient": [1], "code": ["401.9"], "date": ["03.04.2010"]})
    dates = read(frame, date_format="%d.%m.%Y").require_events()["date"]
    assert str(dates[0]) == "2010-04-03"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize(("encoding", "name"), [("cp1252", "Windows-1252"), ("utf-16", "UTF-16")])
def test_other_encodings_are_recognised_and_said(
    tmp_path: Path, encoding: str, name: str, ending: str
) -> None:
    text = "patient;code;größe\r\nMüller;401.9;groß\r\nMäier;250.00;klein\r\n"
    file = tmp_path / f"f{ending}"
    data = text.encode(encoding)
    file.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    cohort = read(file, columns={"patient": "patient", "code": "code", "patients": ["größe"]})
    assert cohort.require_events()["patient"].to_list() == ["Müller", "Mäier"]
    assert cohort.patients is not None and set(cohort.patients["größe"]) == {"groß", "klein"}
    (notice,) = [each for each in cohort.notices if each.kind == "encoding"]
    assert str(notice) == f"f{ending} is not UTF-8: read as {name} (save it as UTF-8 to be sure)"


def test_the_first_sign_that_is_not_ascii_may_come_late(tmp_path: Path) -> None:
    rows = b"".join(b"%d,401.9,x\n" % i for i in range(600_000))
    (tmp_path / "f.csv").write_bytes(b"patient,code,name\n" + rows + b"7,401.9,caf\xe9\n")
    cohort = read(tmp_path / "f.csv")
    assert cohort.require_events().height == 600_001
    assert [each.kind for each in cohort.notices if each.kind == "encoding"] == ["encoding"]


def test_utf8_is_no_other_encoding(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_bytes("\ufeffpatient,code\né,401.9\n".encode())
    assert not [each for each in read(tmp_path / "f.csv").notices if each.kind == "encoding"]


@pytest.mark.parametrize("ending", [".db", ".sqlite"])
def test_the_file_of_a_database(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"events{ending}"
    with sqlite3.connect(file) as base:
        base.execute("create table events (patient integer, code text)")
        base.executemany("insert into events values (?, ?)", [(1, "401.9"), (2, "250.00")])
    base.close()
    assert read(file, query="events").require_events().height == 2
    with pytest.raises(BadInput, match="events"):
        read(file, query="nothing")


def test_every_format_has_its_options() -> None:
    assert list(READERS) == ["events", "table", "lines", "omop", "fhir", "synthea", "i2b2", "sql"]
    assert READERS["lines"].options == ("code_separator",) and READERS["fhir"].options == ()
    with pytest.raises(BadInput, match="`query` is for the format sql; this is 'events'"):
        read(FRAME, query="SELECT 1")
    with pytest.raises(BadInput, match="a frame is read as `events` or as a `table`"):
        read(FRAME, format="fhir")


def test_an_arrow_table_with_indexes_out_of_bounds_is_refused() -> None:
    bad = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), pa.array(["250.00"]), safe=False)
    with pytest.raises(BadInput, match="the frame cannot be read"):
        read(pa.table({"patient": [1, 2], "code": bad}))


def test_a_notebook_shows_what_was_read_and_no_patient() -> None:
    frame = pl.DataFrame({"patient": ["canary-1", "canary-2"], "code": ["<401.9>", "<250.00>"]})
    cohort = read(frame, vocabulary="none")
    card = cohort._repr_html_()
    assert "<th style='text-align:left'>events</th><td style='text-align:left'>2</td>" in card
    assert "canary" not in card and "<401.9>" not in card
