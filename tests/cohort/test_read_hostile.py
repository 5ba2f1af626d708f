"""Inputs that once ended in a fault, an aborted process or silence: each is refused with its place, or noticed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leeward import annotate, index
from leeward.cohort import Cohort, read
from leeward.errors import BadInput
from leeward.methods.visits.selection import carry_payload


def kinds(cohort: Cohort) -> dict[str, tuple[int, tuple[int, ...]]]:
    return {notice.kind: (notice.count, notice.rows) for notice in cohort.notices}


@pytest.mark.parametrize("sign", ["\x00", "\x01", "\x1b", "\ufffe"])
def test_a_control_character_in_a_code(tmp_path: Path, sign: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"patient,code\n1,401.9\n2,25{sign}0\n", encoding="utf-8")
    with pytest.raises(
        BadInput, match=r"a\.csv: column 'code' holds a code with a control character \(row 2\)"
    ):
        read(file)


def test_a_control_character_in_a_level_or_a_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"column 'sex' holds a text with a control character \(row 2\)"):
        read(pl.DataFrame({"sex": ["a", "\x1b[31m"]}), format="table")
    file = tmp_path / "a.csv"
    file.write_text("patient,code,x\x1b\n1,401.9,1\n")
    with pytest.raises(BadInput, match="the name of column 3 has a control character"):
        read(file)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("code", pa.array([[1]]), "column 'code' holds list<"),
        ("code", pa.array([{"a": 1}]), "column 'code' holds struct<"),
        ("code", pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "column 'code' holds map<"),
        ("patient", pa.array([Decimal(1)], pa.decimal256(50, 2)), "column 'patient' holds decimal256"),
        ("age", pa.array([[1.0]]), "column 'age' holds list<"),
    ],
)
def test_columns_of_other_types(tmp_path: Path, column: str, values: pa.Array, message: str) -> None:
    columns = {"patient": pa.array([1]), "code": pa.array(["401.9"]), "age": pa.array([1.0])} | {
        column: values
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(BadInput) as error:
        read(tmp_path / "a.parquet")
    assert message in str(error.value) and "a.parquet" in str(error.value)


def test_an_age_of_another_type_in_a_frame() -> None:
    with pytest.raises(BadInput, match="column 'age' holds"):
        read(pl.DataFrame({"patient": [1], "code": ["401.9"], "age": [[1]]}))


def test_a_dictionary_that_its_values_point_outside_of() -> None:
    from leeward.cohort.readers.values import CodeNumbers

    bad = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), pa.array(["a"]), safe=False)
    with pytest.raises(BadInput, match="is damaged"):
        CodeNumbers(frozenset()).number(bad, "a.parquet", "code")


def test_a_table_with_two_columns_for_the_patient() -> None:
    with pytest.raises(BadInput, match="another column is called 'patient'"):
        read(pl.DataFrame({"patient": [1], "id": [2]}), format="table", columns={"patient": "id"})


def test_digits_of_another_script_are_text() -> None:
    cohort = read(pl.DataFrame({"x": ["1", "\u0661"]}), format="table")
    assert cohort.patients is not None and cohort.patients["x"].dtype == pl.String


def test_blanks_around_levels_are_noticed() -> None:
    cohort = read(pl.DataFrame({"x": ["a", " a", "b "]}), format="table")
    assert kinds(cohort)["trimmed"][0] == 2


@pytest.mark.parametrize("path", ["x" * 5000, "a\0b", "*" * 300 + "\0"])
@pytest.mark.parametrize("form", [None, "events", "table", "omop", "fhir"])
def test_paths_that_no_file_has(path: str, form: str | None) -> None:
    with pytest.raises(BadInput):
        read(path, format=form)


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f.csv")
    with pytest.raises(BadInput, match=r"f\.csv: a pipe or a device, not a file"):
        read(tmp_path / "f.csv")


@pytest.mark.parametrize("url", ["postgresql://u:p@ss@host/db", "postgresql://u@h:port/db"])
def test_urls_that_cannot_be_read(url: str) -> None:
    with pytest.raises(BadInput) as error:
        read(url, format="sql")
    assert "p@ss" not in str(error.value)


def test_identifiers_that_differ_in_zeros_or_blanks_alone() -> None:
    frame = pl.DataFrame({"patient": ["1", "01", "1.0", "2 3", "23", "007a", "x"], "code": ["401.9"] * 7})
    cohort = read(frame)
    assert kinds(cohort)["identifiers alike"] == (5, (1, 2, 3, 4, 5))
    assert len(cohort.code_sets()) == 7
    assert "identifiers alike" not in kinds(
        read(frame.with_columns(patient=pl.int_range(7).cast(pl.String) + "a"))
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{a: " * 2000, "not valid YAML"),
        ("- " * 4000, "not valid YAML"),
        ("source: !!float x\nmethod: {name: x}", "not valid YAML"),
        ("source: !!timestamp 2020-99-99\n", "not valid YAML"),
        ("? [a]\n: 1\n", "a key must be a text"),
    ],
)
def test_specs(text: str, message: str) -> None:
    from leeward.release.spec import parse

    with pytest.raises(BadInput, match=message):
        parse(text)


@pytest.mark.parametrize("value", [True, {"a": 1}, ["x"], 3])
@pytest.mark.parametrize("key", ["response", "covariates", "event", "time"])
def test_plans(key: str, value: Any) -> None:
    from datetime import date

    from leeward.analysis.plan import models_of

    good = {"time": "t", "event": "d", "covariates": ["x"]}
    for odd in (value, date(2020, 1, 1)):
        if key == "covariates" and odd == ["x"]:
            continue
        with pytest.raises(BadInput):
            models_of([{"cox": {**good, key: odd}}])


PANIC = """
import sys
class Panic(BaseException):
    pass
import leeward.cli.data as data
def broken(*args, **kwargs):
    raise {error}
import leeward.runs.specs as specs
specs.read_source = broken
from leeward.cli.main import status_of
sys.exit(status_of(["profile", "x.csv"]))
"""


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        ("Panic('secret')", 1, "a bug in Leeward (Panic"),
        ("MemoryError()", 2, "out of memory"),
        ('RuntimeError("can\'t start new thread")', 2, "out of memory"),
        ("OSError(12, 'Cannot allocate memory')", 2, "out of memory"),
    ],
)
def test_what_natives_raise_ends_in_a_sentence(error: str, status: int, said: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PANIC.format(error=error)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == status and said in ran.stderr
    assert "Traceback" not in ran.stderr and "secret" not in ran.stderr


def test_more_codes_known_than_any_record_has() -> None:
    from leeward.methods.disassociation.parameters import Disassociation
    from leeward.randomness import Randomness

    frame = pl.DataFrame({"patient": list(range(60)), "code": [f"40{i % 3}.9" for i in range(60)]})
    found = [
        Disassociation(k=5, m=m).protect(read(frame), randomness=Randomness.of(1)).tables
        for m in (1, 2**63 - 1)
    ]
    made = [[list(table.batches()) for table in each] for each in found]
    assert made[0] == made[1]


@pytest.mark.parametrize("encoding", ["utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"])
def test_wide_characters_by_their_mark(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes("\ufeffpatient,code\n1,401.9\n2,Größe\n".encode(encoding))
    cohort = read(file)
    assert cohort.code_sets().codes == ("401.9", "Größe")
    assert kinds(cohort)["encoding"] == (1, ())


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00\xd8A\x00\n\x00",
        b"\xff\xfe" + "patient,code\n1,401.9\n".encode("utf-16-le") + b"\x00\xd8A\x00\n\x00",
        b"\xff\xfe\x00\x00" + "patient,code\n1,401.9\n".encode("utf-32-le") + b"\xff\xff\xff\xff",
        b"\xff\xfe\x00\x00a",
    ],
)
def test_what_begins_as_wide_characters_and_goes_on_otherwise(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    with pytest.raises(
        BadInput,
        match=r"a\.csv: (starts as UTF-(16|32) but continues in another encoding|row 2 is not).* UTF-8",
    ):
        read(file)


def test_a_header_without_an_end(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("patient,code," + "x" * 200_000 + "\n1,2,3\n")
    with pytest.raises(BadInput, match=r"a\.csv: the header cannot be read as delimited text"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize("offset", [0x7FFFFFFF, 0xFFFFFFFE, 1])
def test_a_zip_whose_directory_is_elsewhere(tmp_path: Path, offset: int) -> None:
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.csv", "patient,code\n1,401.9\n")
    content = bytearray(file.read_bytes())
    at = content.rindex(b"PK\x05\x06") + 16
    content[at : at + 4] = offset.to_bytes(4, "little")
    file.write_bytes(content)
    with pytest.raises(BadInput, match=r"a\.zip: this is not a readable \.zip file"):
        read(file)


@pytest.mark.parametrize("name", ["Patient.ndjson", "Condition.jsonl"])
def test_json_that_lies_too_deep(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("[" * 100_000 + "\n")
    with pytest.raises(BadInput, match=rf"{name}: row 1 is not JSON"):
        read(tmp_path)
    with pytest.raises(BadInput, match="is not JSON"):
        annotate(tmp_path / name, tmp_path / "out")


def test_a_time_of_no_known_zone(tmp_path: Path) -> None:
    times = pa.array([1, 2], pa.timestamp("us", "Mars/Olympus"))
    codes = pa.array(["401.9", "250.00"])
    file = tmp_path / "a.parquet"
    for names in (["patient", "code"], ["code", "patient"]):
        pq.write_table(pa.table([times, codes], names), file)
        with pytest.raises(BadInput, match=r"a\.parquet: column '(patient|code)' holds timestamp"):
            read(file)
        with pytest.raises(BadInput, match=r"a\.parquet: column '(patient|code)' holds timestamp"):
            index(file, tmp_path / "index", epsilon_total=1)
        with pytest.raises(BadInput, match=r"a\.parquet: column '(patient|code)' holds timestamp"):
            index(file, tmp_path / "index", epsilon_total=1, engine="spark", terms="icd9")
    assert not (tmp_path / "index").exists()
    plain = pa.array(["1", "2"])
    pq.write_table(pa.table([plain, codes, times], ["patient", "code", "at"]), file)
    assert read(file).code_sets().codes == ("250.00", "401.9")
    for asked in ({"columns": {"patients": "at"}}, {"format": "table"}):
        with pytest.raises(BadInput, match=r"a\.parquet: column 'at' holds timestamp"):
            read(file, **asked)


def test_notes_and_selections_with_a_time_of_no_known_zone(tmp_path: Path) -> None:
    columns = {
        "patient": ["1", "2"],
        "text": ["Seen by Dr. Abel.", "No fever."],
        "terms": [["fever"], ["fever"]],
    }
    table = pa.table({**columns, "at": pa.array([1, 2], pa.timestamp("us", "Mars/Olympus"))})
    file = tmp_path / "a.parquet"
    pq.write_table(table, file)
    plain = tmp_path / "plain.parquet"
    pq.write_table(table.drop("at"), plain)
    calls: list[Callable[[], object]] = [
        lambda: annotate(file, tmp_path / "out"),
        lambda: annotate(plain, tmp_path / "out", metadata=file),
        lambda: index(file, tmp_path / "out", epsilon_total=1),
        lambda: carry_payload(file, "patient", None, np.array([0])),  # type: ignore[arg-type]  # the master comes later
    ]
    for call in calls:
        with pytest.raises(
            BadInput, match=r"a\.parquet: this Parquet file is damaged, or holds values of a type"
        ):
            call()
    assert not (tmp_path / "out").exists()
