"""What the fuzzer feeds to readers of folders and databases: tables of which each may have odd cells or be gone."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.counting import counted, rows_accounted
from tests.fuzz.making import CELLS, Rows, mutated, one_value
from tests.notes import writers

from leeward.cohort import read

STAR: Rows = {
    "observation_fact": {
        "encounter_num": [1, 1, 2, 3], "patient_num": [7, 7, 8, 8],
        "concept_cd": ["ICD10:E11.9", "LOINC:4548-4", "icd10:I10", "ICD9:401.1"], "provider_id": ["@"] * 4,
        "start_date": ["2010-06-14 10:00:00", "2010-06-14", None, "2011-01-01"], "modifier_cd": ["@"] * 4,
        "instance_num": [1, 1, 1, 1],
    },
    "patient_dimension": {
        "patient_num": [7, 8], "birth_date": ["1960-06-15 00:00:00", "1980-01-01"], "sex_cd": ["F", "M"],
    },
    "visit_dimension": {"encounter_num": [1, 2, 3], "patient_num": [7, 8, 8], "start_date": ["2010-06-14"] * 3},
}  # fmt: skip

SYNTHEA: Rows = {
    "conditions": {
        "START": ["2010-06-14", "", "2011-01-01"], "STOP": ["", "", ""], "PATIENT": ["p1", "p1", "p2"],
        "ENCOUNTER": ["e1", "e2", "e3"], "SYSTEM": ["http://snomed.info/sct"] * 3,
        "CODE": ["44054006", "38341003", "38341003"],
    },
    "patients": {"Id": ["p1", "p2"], "BIRTHDATE": ["1960-06-15", "2011-01-02"], "GENDER": ["F", "M"]},
    "encounters": {"Id": ["e2"], "START": ["2010-06-15T10:00:00Z"], "PATIENT": ["p1"]},
}  # fmt: skip

OMOP: Rows = {
    "person": {"person_id": [1, 2], "gender_concept_id": [8507, 8532], "year_of_birth": [1960, 1980]},
    "condition_occurrence": {
        "person_id": [1, 1, 2], "condition_concept_id": [201826, 320128, 0],
        "condition_start_date": ["2010-06-14", "2010-06-15", "2015-01-01"], "visit_occurrence_id": [1, 1, 2],
    },
    "concept": {"concept_id": [201826], "concept_code": ["E11.9"], "vocabulary_id": ["ICD10CM"]},
}  # fmt: skip


def _changed(random: Random, source: Rows) -> Rows:
    """A copy with odd cells; now and then a column or a table is gone."""
    tables = {name: {column: list(cells) for column, cells in rows.items()} for name, rows in source.items()}
    for _ in range(random.randint(0, 4)):
        name = random.choice(list(tables))
        column = random.choice(list(tables[name]))
        cells = tables[name][column]
        if random.random() < 0.12:
            del tables[name][column]
            if not tables[name]:
                del tables[name]
            if not tables:
                break
        elif cells:
            cells[random.randrange(len(cells))] = random.choice(CELLS)
    return tables


def _written(folder: Path, tables: Rows) -> Path:
    """As a folder of CSV."""
    place = folder / "tables"
    place.mkdir()
    for name, columns in tables.items():
        out = io.StringIO()
        csv.writer(out).writerows([list(columns), *zip(*columns.values(), strict=True)])
        (place / f"{name}.csv").write_bytes(out.getvalue().encode("utf-8", "surrogatepass"))
    return place


def _events_in(tables: Rows, name: str) -> int:
    """Rows of a table in which some cell is not empty."""
    return sum(any(str(cell or "") for cell in row) for row in zip(*tables[name].values(), strict=True))


def omop(random: Random, folder: Path) -> None:
    """OMOP tables with odd cells, columns or tables gone."""
    tables = _changed(random, OMOP)
    cohort = read(
        _written(folder, tables),
        format="omop",
        concepts=random.random() < 0.5,
        accept_unknown=random.random() < 0.8,
    )
    rows_accounted(cohort, _events_in(tables, "condition_occurrence"))


def i2b2(random: Random, folder: Path) -> None:
    """A star schema of i2b2."""
    tables = _changed(random, STAR)
    cohort = read(_written(folder, tables), format="i2b2", accept_unknown=random.random() < 0.8)
    rows_accounted(cohort, _events_in(tables, "observation_fact"))


def synthea(random: Random, folder: Path) -> None:
    """Synthea's CSV."""
    tables = _changed(random, SYNTHEA)
    cohort = read(_written(folder, tables), format="synthea", accept_unknown=random.random() < 0.8)
    rows_accounted(cohort, _events_in(tables, "conditions"))


def sql(random: Random, folder: Path) -> None:
    """A database of SQLite whose columns hold anything, asked for a table, by a query, or as OMOP; or its damaged file."""
    file = folder / "some.db"
    tables = _changed(random, OMOP) if random.random() < 0.4 else {}
    n = random.randint(0, 7)
    tables["events"] = {
        "patient": [random.choice([1, 2, 3, "x", *CELLS[:9]]) for _ in range(n)],
        "code": [random.choice(["401.9", "250.00", None, 5, 2.5, b"\xff", *CELLS]) for _ in range(n)],
        "day": [random.choice(["2010-01-01", None, 3, "x"]) for _ in range(n)],
    }
    with sqlite3.connect(file) as books:
        for name, columns in tables.items():
            names = ", ".join(f'"{column}"' for column in columns)
            books.execute(f'CREATE TABLE "{name}" ({names})')
            rows = [
                [
                    cell.encode("utf-8", "surrogatepass")
                    if isinstance(cell, str) and not cell.isprintable()
                    else cell
                    for cell in row
                ]
                for row in zip(*columns.values(), strict=True)
            ]
            books.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns))})', rows)
    books.close()
    damaged = random.random() < 0.2
    if damaged:
        file.write_bytes(mutated(file.read_bytes(), random))
    ways: list[dict[str, Any]] = [
        {"query": "events"}, {"query": "SELECT patient, code FROM events"}, {"query": "SELECT 1"}, {"query": random.choice(CELLS)},
        {"query": "SELECT * FROM nothing"}, {"query": "DROP TABLE events"}, {"format": "omop"}, {},
    ]  # fmt: skip
    chosen = random.choice(ways)
    cohort = read(f"sqlite:///{file}", accept_unknown=random.random() < 0.8, **chosen)
    if not damaged and "events" in str(chosen.get("query")):
        rows_accounted(cohort, n)


def fhir(random: Random, folder: Path) -> None:
    """FHIR resources with parts replaced."""
    resources: list[dict[str, Any]] = [
        {"resourceType": "Patient", "id": "a", "birthDate": "1960-06-15", "gender": "male"},
        {
            "resourceType": "Condition", "id": "1", "subject": {"reference": "Patient/a"},
            "code": {"coding": [{"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": "E11.9"}]},
            "onsetDateTime": "2010-01-01", "encounter": {"reference": "Encounter/e"},
        },
        {"resourceType": "Condition", "id": "2", "subject": {"reference": "Patient/a"}, "code": {"coding": [{"code": "I10"}]}},
        {"resourceType": "Encounter", "id": "e", "period": {"start": "2010-01-01"}},
    ]  # fmt: skip
    for _ in range(random.randint(0, 3)):
        one = random.choice(resources)
        if one:
            one[random.choice(list(one))] = one_value(random)
    text = "\n".join(json.dumps(each) for each in resources)
    data = text.encode("utf-8", "surrogatepass")
    damaged = random.random() < 0.3
    (folder / "Condition.ndjson").write_bytes(mutated(data, random) if damaged else data)
    cohort = read(folder, format="fhir", accept_unknown=random.random() < 0.8)
    if not damaged and cohort.events is not None:
        rows_accounted(cohort, sum(each.get("resourceType") == "Condition" for each in resources))


def corpora(random: Random, folder: Path) -> None:
    """Annotated notes in each of their forms, damaged."""
    from leeward.notes.corpora import formats
    from leeward.notes.corpora import read as read_corpus
    from leeward.notes.spans import AnnotatedNote, Span

    text = "Mr. Bode was seen on 4/5/2009.\nHe has asthma. " + random.choice(CELLS).replace("\ud800", "")
    note = AnnotatedNote(
        "one", text, (Span(4, 8, "EID", "name", source="gold"), Span(21, 29, "QID", "date", source="gold"))
    )
    form = random.choice(["jsonl", "brat", "conll", "xml"])
    notes = [note] * random.randint(1, 3)
    place = folder / "notes"
    if form == "jsonl":
        place = folder / "notes.jsonl"
        formats.write_jsonl(place, notes)
    elif form == "brat":
        notes = notes[:1]
        writers.write_brat(place, notes)
    elif form == "conll":
        place = folder / "notes.conll"
        writers.write_conll(place, notes)
    else:
        place.mkdir()
        (place / "1.xml").write_text(
            f'<?xml version="1.0" encoding="UTF-8" ?><deIdi2b2><TEXT><![CDATA[{text[:40]}]]></TEXT><TAGS>'
            '<NAME id="P0" start="4" end="8" text="Bode" TYPE="PATIENT" comment="" /></TAGS></deIdi2b2>',
            encoding="utf-8",
        )
        notes = notes[:1]
    whole = random.random() < 0.2
    if not whole:
        files = [place] if place.is_file() else sorted(place.iterdir())
        file = random.choice(files)
        file.write_bytes(mutated(file.read_bytes(), random))
    found = list(read_corpus(place))
    if whole and form != "conll":  # words and labels alone: a blank line may be a note's or a sentence's
        counted(len(notes), len(found))
