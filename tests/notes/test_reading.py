"""Notes from files, and errors that name file and row."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from leeward.errors import BadInput
from leeward.notes.reading import LONGEST, read

SECRET = "Xanthippe Quorra"
"""Stands in every text; no message may say it."""


def table(path: Path, rows: list[dict[str, str]]) -> Path:
    pl.DataFrame(rows).write_csv(path)
    return path


def test_a_table_with_names_of_its_own(tmp_path: Path) -> None:
    file = table(
        tmp_path / "n.csv", [{"pid": "7", "GENDER": "F", "report": "fever", "chartdate": "2009-04-05"}]
    )
    (row,) = read(file, {"text": "report"}).to_dicts()
    assert (row["patient"], row["sex"], row["date"], row["text"]) == ("7", "F", "2009-04-05", "fever")
    assert row["row"] == 1 and row["note"] == "1"


def test_every_format_gives_the_same_notes(tmp_path: Path) -> None:
    rows = [
        {"note": "a", "patient": "p", "text": 'sore throat,\n"fever"'},
        {"note": "b", "patient": "q", "text": "é"},
    ]
    frame = pl.DataFrame(rows)
    frame.write_csv(tmp_path / "n.csv")
    frame.write_csv(tmp_path / "n.tsv", separator="\t")
    frame.write_parquet(tmp_path / "n.parquet")
    frame.write_ndjson(tmp_path / "n.jsonl")
    found = [read(tmp_path / f"n.{e}").drop("file").to_dicts() for e in ("csv", "tsv", "parquet", "jsonl")]
    assert all(each == found[0] for each in found[1:])
    assert [(r["note"], r["text"]) for r in found[0]] == [("a", rows[0]["text"]), ("b", "é")]


def test_a_folder_of_texts(tmp_path: Path) -> None:
    (tmp_path / "anna").mkdir()
    (tmp_path / "anna" / "1.txt").write_text("fever")
    (tmp_path / "anna" / "2.txt").write_text("cough")
    (tmp_path / "bob.txt").write_text("﻿rash", encoding="utf-8")
    found = read(tmp_path)
    assert found.select("note", "patient", "text").rows() == [
        ("anna/1.txt", "anna", "fever"),
        ("anna/2.txt", "anna", "cough"),
        ("bob.txt", "bob", "rash"),
    ]


def test_fhir_documents_with_what_the_patient_resource_knows(tmp_path: Path) -> None:
    patient = {"resourceType": "Patient", "id": "p1", "gender": "female", "birthDate": "1970-02-03"}
    document = {
        "resourceType": "DocumentReference",
        "id": "d1",
        "subject": {"reference": "Patient/p1"},
        "date": "2009-04-05T10:00:00Z",
        "content": [
            {"attachment": {"contentType": "text/plain", "data": base64.b64encode(b"fever").decode()}}
        ],
    }
    (tmp_path / "Patient.ndjson").write_text(json.dumps(patient))
    (tmp_path / "DocumentReference.ndjson").write_text(json.dumps(document))
    (row,) = read(tmp_path).to_dicts()
    assert (row["patient"], row["sex"], row["birth_date"], row["date"]) == (
        "p1",
        "female",
        "1970-02-03",
        "2009-04-05",
    )
    (alone,) = read(tmp_path / "DocumentReference.ndjson").to_dicts()
    assert (alone["text"], alone["sex"]) == ("fever", None)


def test_registration_data_by_patient_or_note(tmp_path: Path) -> None:
    notes = table(
        tmp_path / "n.csv",
        [{"note": "1", "patient": "p", "text": "fever"}, {"note": "2", "patient": "q", "text": "rash"}],
    )
    by_patient = table(tmp_path / "m.csv", [{"patient": "q", "zip": "12301", "sex": "M"}])
    assert read(notes, metadata=by_patient).select("zip", "sex").rows() == [(None, None), ("12301", "M")]
    by_note = table(tmp_path / "k.csv", [{"note": "1", "age": "9"}])
    assert read(notes, metadata=by_note)["age"].to_list() == ["9", None]


def _csv(content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "n.csv").write_bytes(content)
        return folder / "n.csv"

    return make


def _file(name: str, content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


HEAD = f"note,patient,text\n1,{SECRET},{SECRET} has fever\n".encode()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_csv(HEAD + b"2,p,\n"), r"n\.csv: row 2 has an empty note"),
        (_csv(HEAD + b"2,p,  \n3,p,\n"), r"n\.csv: rows 2, 3 \(2 in all\) each has an empty note"),
        (
            _csv(HEAD + b"2,p," + b"x" * LONGEST + b"\n"),
            r"n\.csv: row 2 has a note of 1,000,000 characters or more",
        ),
        (_csv(HEAD + b"2,p,caf\x81\n"), r"n\.csv: row 2 .*UTF-8"),
        (
            _csv(HEAD + "2,p,don\x92t can\x92t\n".encode()),
            r"n\.csv: row 2 has characters of a broken or mixed encoding",
        ),
        (_csv(HEAD + b"2,p,a\0b\0\n"), r"n\.csv: row 2 holds binary data"),
        (_file("n.txt", SECRET.encode() + b"\0\0"), r"n\.txt: row 1 holds binary data"),
        (_file("n.txt", b"\0"), r"n\.txt: row 1 has an empty note"),
        (_csv(HEAD + b"2,p\n"), r"n\.csv: row 2"),
        (_csv(b"note,patient,words\n1,p,x\n"), r"n\.csv: no column 'text' among note, patient, words"),
        (_csv(b""), r"n\.csv: the file is empty"),
        (_csv(b"note,patient,text\n"), r"n\.csv: has a header and no notes"),
        (_csv(HEAD + b"2,,fever\n"), r"n\.csv: row 2 has a note without a patient"),
        (_file("n.txt", b"\x89PNG\0\0" + SECRET.encode()), r"n\.txt: is a binary file"),
        (_file("n.txt", SECRET.encode() + b"\nn\xe9\n"), r"n\.txt: line 2 is not UTF-8"),
        (_file("n.txt", b" \n"), r"n\.txt: row 1 has an empty note"),
        (
            _file("n.jsonl", json.dumps({"text": SECRET}).encode() + b'\n{"text": '),
            r"n\.jsonl: row 2 is not JSON",
        ),
        (_file("n.jsonl", b"[1]\n"), r"n\.jsonl: row 1 is no JSON object"),
        (_file("n.parquet", b"PAR1 no"), r"n\.parquet: this is not a readable Parquet file"),
        (_file("n.ndjson", b'{"resourceType": "Document\n'), r"n\.ndjson: row 1 is not JSON"),
        (_file("n.docx", b"PK"), r"n\.docx: not a file of notes"),
        (_file("n.ndjson.gz", gzip.compress(b"{")), r"n\.ndjson\.gz: row 1 is not JSON"),
    ],
)
def test_what_cannot_be_read_is_named_and_not_shown(
    tmp_path: Path, make: Callable[[Path], Path], message: str
) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        read(make(tmp_path))
    assert SECRET not in str(caught.value) and "Quorra" not in str(caught.value)


@pytest.mark.parametrize(
    ("character", "text"),
    [("\0", "No fever."), ("\x01", "No fever."), ("\x92", "No fever."), ("\x1f", "No fev er.")],
)
@pytest.mark.parametrize("name", ["n.csv", "n.txt", "n.jsonl"])
def test_a_stray_control_character_costs_one_character(
    tmp_path: Path, name: str, character: str, text: str
) -> None:
    note = f"No fev{character}er."
    content = {"n.csv": f"text\nfever\n{note}\n", "n.txt": note, "n.jsonl": json.dumps({"text": note})}
    (tmp_path / name).write_bytes(content[name].encode())
    found = read(tmp_path / name)
    assert found["text"][-1] == text and found["controls"].sum() == 1


def test_folders_without_notes_and_paths_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no notes"):
        read(tmp_path)
    with pytest.raises(BadInput, match="no such file or folder"):
        read(tmp_path / "x")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"zip": "1"}], "no column 'patient' or 'note' among zip"),
        ([{"patient": "p", "zip": "1"}, {"patient": "p", "zip": "2"}], "a patient has several rows"),
    ],
)
def test_registration_data_that_do_not_fit(tmp_path: Path, rows: list[dict[str, str]], message: str) -> None:
    notes = table(tmp_path / "n.csv", [{"patient": "p", "text": "fever"}])
    with pytest.raises(BadInput, match=message):
        read(notes, metadata=table(tmp_path / "m.csv", rows))
