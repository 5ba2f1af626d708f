"""Sources beside files of events, from the command line and from a spec."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from leeward.release.spec import parse, to_yaml, without_password

PERSON = "person_id,year_of_birth,month_of_birth,day_of_birth\n" + "".join(
    f"{p},1960,1,1\n" for p in range(60)
)
CONDITIONS = "person_id,condition_concept_id,condition_start_date,condition_source_value\n" + "".join(
    f"{p},{concept},2010-01-01,{code}\n"
    for p in range(60)
    for concept, code in ((201826, "E11.9"), (320128, "I10"), (4000000 + p % 50, "Z00.0"))
)


@pytest.fixture
def cdm(tmp_path: Path) -> Path:
    folder = tmp_path / "cdm"
    folder.mkdir()
    (folder / "PERSON.csv").write_text(PERSON)
    (folder / "CONDITION_OCCURRENCE.csv").write_text(CONDITIONS)
    return folder


@pytest.fixture
def database(tmp_path: Path) -> str:
    file = tmp_path / "hospital.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE stays (pid INTEGER, icd TEXT, day TEXT, dob TEXT)")
        connection.executemany(
            "INSERT INTO stays VALUES (?, ?, ?, ?)",
            [(p, code, "2010-01-01", "canary") for p in range(60) for code in ("401.9", "250.00")],
        )
    return f"sqlite:///{file}"


def test_a_folder_of_omop_is_known_by_its_files(leeward: Run, cdm: Path) -> None:
    shown = leeward("profile", cdm, "--json")
    assert shown.status == 0
    assert shown.json()["source"] == {
        "name": "cdm",
        "vocabulary": "flat",
        "patients": 60,
        "events": 180,
        "codes": 52,
    }
    by_source = leeward("profile", cdm, "--code", "condition_source_value", "--vocabulary", "icd10", "--json")
    assert by_source.json()["source"]["codes"] == 3


def test_a_format_can_be_said(leeward: Run, cdm: Path) -> None:
    shown = leeward("profile", cdm, "--source-format", "synthea")
    assert shown.status == 2
    assert "there is no table CONDITIONS" in shown.err
    shown = leeward("profile", cdm, "--source-format", "omob")
    assert shown.status == 2
    assert "No reader for the format 'omob'. Did you mean 'omop'?" in shown.err


def test_a_database_and_ages_from_births(leeward: Run, database: str) -> None:
    flags = ("--patient", "pid", "--code", "icd", "--date", "day", "--birth", "dob")
    shown = leeward("profile", database, "--query", "SELECT * FROM stays", *flags, "--json")
    assert shown.status == 0
    assert (shown.json()["source"]["patients"], shown.json()["source"]["events"]) == (60, 120)
    assert {notice["kind"] for notice in shown.json()["notices"]} >= {"unreadable birth", "age unknown"}
    assert "canary" not in shown.out + shown.err
    assert leeward("profile", f"{database}#stays", *flags).status == 0


@pytest.mark.usefixtures("counting")
def test_a_release_from_omop_in_a_spec(leeward: Run, cdm: Path, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "source: {path: cdm, format: omop, domains: [condition], columns: {code: condition_source_value}, "
        "vocabulary: icd10}\nmethod: {name: counting, k: 5}\nseed: 7\n"
    )
    assert leeward("protect", spec, "-o", tmp_path / "out").status == 0
    shown = leeward("verify", tmp_path / "out", "--json")
    assert shown.status == 0
    assert shown.json()["with_source"] is True


def test_custody_has_no_password_of_a_database() -> None:
    spec = parse(
        "source: {path: 'postgresql://custodian:p#s:s@w@db.hospital/ehr#cdm', query: events, concepts: true}\n"
        "method: {name: counting}\n"
    )
    text = to_yaml(spec)
    assert parse(text).source.path == "postgresql://custodian@db.hospital/ehr#cdm"
    assert "s@w" not in text and "p#s" not in text
    assert parse(text).source.query == "events" and parse(text).source.concepts


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("postgresql://u:p@h/d", "postgresql://u@h/d"),
        ("postgresql://u@h:5432/d?x=1&password=secret&y=2#t", "postgresql://u@h:5432/d?x=1&y=2#t"),
        ("sqlite:////data/a.db#t", "sqlite:////data/a.db#t"),
        ("folder/odd:name@x.csv", "folder/odd:name@x.csv"),
    ],
)
def test_urls_without_their_password(path: str, expected: str) -> None:
    assert without_password(path) == expected
