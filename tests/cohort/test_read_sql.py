"""Databases: SQLite, and PostgreSQL on a server of the tests' own."""

from __future__ import annotations

import datetime
import decimal
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from tests.cohort.sources import OMOP, Rows, frame_of, write_csv
from tests.cohort.test_read_i2b2 import STAR
from tests.postgres_fixture import postgres_server  # noqa: F401  # a fixture

from leeward.cohort import Cohort, read
from leeward.cohort.readers.databases import as_arrow
from leeward.errors import BadInput

EVENTS: Rows = {
    "pid": [2, 1, 1],
    "icd": ["250.00", "401.1", "250.00"],
    "day": ["2010-06-14", "2011-06-15", "2012-01-01"],
    "dob": ["1960-06-15", "1961-06-15", None],
}
COLUMNS = {"patient": "pid", "code": "icd", "date": "day", "birth": "dob"}
ROWS = [(1, "250.00"), (1, "401.1"), (2, "250.00")]


def fill(url: str, tables: dict[str, Rows], schema: str | None = None) -> None:
    """Tables with columns of the types that their values have; dates in PostgreSQL are dates."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    kinds: dict[type, Any] = {int: sa.BigInteger, str: sa.Text, datetime.date: sa.Date}
    with engine.begin() as connection:
        for name, rows in tables.items():
            frame = frame_of(rows)
            values = {c: next((v for v in frame[c] if v is not None), "") for c in frame.columns}
            columns = [sa.Column(c, kinds[type(value)]()) for c, value in values.items()]
            table = sa.Table(name, sa.MetaData(schema=schema), *columns)
            table.create(connection)
            connection.execute(table.insert(), frame.to_dicts())


def pairs(cohort: Cohort) -> list[tuple[Any, ...]]:
    return sorted(cohort.require_events().select("patient", "code").rows())


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'hospital.db'}"
    fill(url, {"events": EVENTS})
    return url


def test_sqlite_table_and_query(sqlite: str) -> None:
    by_table = read(f"{sqlite}#events", columns=COLUMNS)
    assert pairs(by_table) == ROWS
    assert by_table.name == "events"
    assert pairs(read(sqlite, columns=COLUMNS, query="EVENTS")) == ROWS
    only = read(
        sqlite,
        columns={"patient": "who", "code": "icd"},
        query="SELECT pid AS who, icd FROM events WHERE pid = 1",
    )
    assert pairs(only) == [(1, "250.00"), (1, "401.1")]
    ages = {(p, c): a for p, c, a in by_table.require_events().select("patient", "code", "age").rows()}
    assert int(ages[2, "250.00"]) == 49
    assert int(ages[1, "401.1"]) == 50
    assert ages[1, "250.00"] is None


def test_a_table_without_a_key_is_read_in_the_order_of_its_values(sqlite: str) -> None:
    frame = read(f"{sqlite}#events", columns={"patient": "pid", "code": "icd"}).require_events()
    assert frame.select("patient", "code", "row").rows() == [
        (1, "250.00", 1),
        (1, "401.1", 2),
        (2, "250.00", 3),
    ]


def test_omop_in_sqlite_is_the_folder(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'cdm.db'}"
    fill(url, OMOP)
    from_folder = read(write_csv(tmp_path / "cdm", OMOP), concepts=True)
    from_database = read(url, concepts=True)
    assert from_database.require_events().equals(from_folder.require_events())
    assert from_database.patients is not None
    assert from_database.patients.equals(from_folder.patients)
    assert from_database.notes is not None
    assert from_database.notes.equals(from_folder.notes)


def test_i2b2_in_sqlite_is_the_folder(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'star.db'}"
    fill(url, STAR)
    expected = read(write_csv(tmp_path / "star", STAR)).require_events().drop("row")
    found = read(url).require_events().drop("row")
    assert sorted(found.rows(), key=str) == sorted(expected.rows(), key=str)


def test_postgresql(postgres: str, tmp_path: Path) -> None:
    fill(postgres, {"Events": EVENTS})
    engine = sa.create_engine(postgres, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE SCHEMA cdm"))
        connection.execute(sa.text("CREATE SCHEMA star"))
    fill(postgres, OMOP, "cdm")
    fill(postgres, STAR, "star")
    assert pairs(read(f"{postgres}#Events", columns=COLUMNS)) == ROWS
    columns = "pid::numeric AS patient, icd AS code, day::timestamp AS date"
    query = f"SELECT {columns} FROM \"Events\" WHERE day > '2011-01-01'"
    asked = read(postgres, query=query)
    assert asked.require_events().select("patient", "code", "date").rows() == [
        (1, "401.1", datetime.date(2011, 6, 15)),
        (1, "250.00", datetime.date(2012, 1, 1)),
    ]
    folder = read(write_csv(tmp_path / "cdm", OMOP), domains=["condition", "drug"])
    database = read(f"{postgres}#cdm", domains=["condition", "drug"])
    assert database.require_events().equals(folder.require_events())
    assert pairs(read(f"{postgres}#cdm.note", columns={"patient": "person_id", "code": "note_id"})) == [
        (1, "31"),
        (2, "32"),
    ]
    assert pairs(read(f"{postgres}#star")) == [(7, "E11.9"), (8, "401.1"), (8, "I10")]


def test_refusals_of_postgresql_hold_no_values(postgres: str) -> None:
    with pytest.raises(
        BadInput, match=r"the database refused the query \(relation \"nothing\" does not exist\)"
    ):
        read(postgres, query="SELECT * FROM nothing")
    with pytest.raises(BadInput, match=r"the database refused the query \(SQLSTATE 22P02\)") as error:
        read(postgres, query="SELECT 1 AS patient, CAST('secret' AS int) AS code")
    assert "secret" not in str(error.value)
    with pytest.raises(BadInput, match="cannot be opened; check its URL, user and password"):
        read(postgres.replace(".5432", ".1") + "#x")


@pytest.mark.parametrize(
    ("place", "options", "message"),
    [
        ("", {}, "no column 'patient'"),  # of the one table
        ("#event", {}, "hospital.db: no table 'event'. Did you mean 'events'?"),
        (
            "#events",
            {"columns": {"patient": "pid", "code": "icdd"}},
            "events: no column 'icdd'. Did you mean 'icd'?",
        ),
        (
            "",
            {"query": "SELECT pid FROM events", "columns": {"patient": "pid", "code": "icd"}},
            "query: no column 'icd'",
        ),
        ("", {"query": "SELEC * FROM events"}, 'refused the query (near "SELEC": syntax error)'),
        ("", {"format": "omop"}, "there is no table PERSON"),
        ("", {"format": "fhir"}, "The format 'fhir' is read from files"),
        (
            "#events",
            {"domains": ["drug"]},
            "`domains` is for the format omop or synthea or i2b2; this is 'sql'",
        ),
    ],
)
def test_bad_input(sqlite: str, place: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as error:
        read(sqlite + place, **options)
    assert message in str(error.value)


def test_urls_that_lead_nowhere(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nothing\.db: no such database file"):
        read(f"sqlite:///{tmp_path / 'nothing.db'}#events")
    assert not (tmp_path / "nothing.db").exists()
    with pytest.raises(BadInput, match="No driver for the database 'klingon'"):
        read("klingon://host/db#events")
    with pytest.raises(BadInput, match="needs the URL of a database"):
        read(tmp_path, format="sql")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([None, None], pa.string()),
        (["x", None], pa.string()),
        ([1, None], pa.int64()),
        ([2**63], pa.string()),
        ([decimal.Decimal("7.00"), None], pa.int64()),
        ([decimal.Decimal("7.25"), 1], pa.float64()),
        ([datetime.datetime(2010, 1, 1, 23), datetime.date(2010, 1, 2)], pa.date32()),
        ([uuid.UUID(int=1)], pa.string()),
    ],
)
def test_types_of_values(values: list[Any], kind: pa.DataType) -> None:
    assert as_arrow(values, "db", "c").type == kind


def test_bytes_are_refused() -> None:
    with pytest.raises(BadInput, match="db: column 'c' holds bytes; readable are text, numbers and dates"):
        as_arrow([b"secret"], "db", "c")
