"""Synthea's CSV: conditions.csv, patients.csv and encounters.csv, in the column names of all its versions.

Years of two digits (5/28/88) are put into the latest century in which the patient is born by the first event.
This is the only reading without events before birth for patients under a hundred years; who was older at the
first event is read as a hundred years younger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from leeward.cohort.cohort import CodeName, Cohort
from leeward.cohort.names import names_of_events
from leeward.cohort.readers.ages import ISO
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnMap
from leeward.cohort.readers.people import (
    add_events,
    birth_notices,
    births_of,
    code_and_patients,
    domains_of,
    gather,
    patients_of,
    visits_of,
)
from leeward.cohort.readers.request import Request
from leeward.cohort.readers.stores import Store, pick, require_table
from leeward.cohort.readers.trees import with_tree
from leeward.errors import BadInput

DOMAINS = {
    "condition": "conditions",
    "drug": "medications",
    "procedure": "procedures",
    "allergy": "allergies",
}
"""Tables of events."""

FORMS = (*ISO, "%m/%d/%Y", "%m/%d/%y")

PREFIXES = ("", "con_", "cond_", "med_", "proc_", "all_", "enc_")
"""What some copies put before each column's name."""

ROLES = {
    "patient": ("patient", "pat_id", "patient_id"),
    "code": ("code",),
    "visit": ("encounter", "enc_id", "encounter_id"),
    "date": ("start", "date", "start_date"),
    "system": ("system",),
}
PATIENT = ("id", "pat_id", "patient", "patient_id")
BIRTH = ("birthdate", "birth_date", "dob")
ATTRIBUTES = {
    "gender": "gender",
    "race": "race",
    "ethnicity": "ethnicity",
    "marital": "marital",
    **dict.fromkeys(("birthdate", "birth_date"), "birth_date"),
    **dict.fromkeys(("deathdate", "death_date"), "death_date"),
}
"""Columns of patients.csv that go into the patients frame, and their names there: no names, numbers, addresses."""


def read_synthea(asked: Request) -> Cohort:
    """A cohort from the folder's tables; `columns` may name the `code` and columns of patients.csv."""
    store = asked.tables
    code, attributes = code_and_patients(asked.columns, "synthea")
    tables: dict[str, ColumnMap] = {}
    for table in domains_of(asked.domains, DOMAINS):
        require_table(store, table, "a table of Synthea's CSV")
        tables[table] = _columns_of(store, table, code)
    first = next(iter(tables.values()))
    collector = Collector(store.name, first, asked.missing, asked.date_format, lenient=True, forms=FORMS)
    add_events(collector, store, tables)
    require_table(store, "patients", "which identifies the patients")
    patient = _find_column(store, "patients", PATIENT, "the patient")
    forms = FORMS if asked.date_format is None else (asked.date_format, *FORMS)
    births = births_of(store, "patients", patient, pick(store, "patients", BIRTH), forms)
    cohort = collector.cohort(asked.vocabulary, births, lambda: _visits(store))
    patients, told = patients_of(store, "patients", patient, attributes, ATTRIBUTES, cohort, asked.missing)
    names: dict[str, CodeName] = {}
    for table, mapped in tables.items():
        names |= _names(store, table, mapped)
    return replace(with_tree(cohort), patients=patients, names=names).with_notices(
        *birth_notices(births), *told
    )


def _names(store: Store, table: str, mapped: ColumnMap) -> dict[str, CodeName]:
    name = pick(store, table, _candidate_names(("description",)))
    if name is None or name == mapped.code[0]:
        return {}
    columns = [mapped.patient, *mapped.code, name]
    texts = gather(store, table, columns, lambda _, frame: frame.select(pl.col(columns).cast(pl.String)))
    if texts is None:
        return {}
    who, codes, names = (each.str.strip_chars().str.replace_all(r"\s+", " ") for each in texts)
    return names_of_events(pl.DataFrame({"patient": who}), codes, names, "SNOMED CT")


def _columns_of(store: Store, table: str, code: str | None) -> ColumnMap:
    names = {role: pick(store, table, _candidate_names(choices)) for role, choices in ROLES.items()}
    return ColumnMap(
        patient=names["patient"] or _find_column(store, table, ROLES["patient"], "the patient"),
        code=(
            code.lower() if code else names["code"] or _find_column(store, table, ROLES["code"], "the code"),
        ),
        visit=names["visit"],
        date=names["date"],
        vocabulary=names["system"],
    )


def _candidate_names(names: Sequence[str]) -> list[str]:
    return [prefix + name for name in names for prefix in PREFIXES]


def _find_column(store: Store, table: str, names: Sequence[str], what: str) -> str:
    found = pick(store, table, names)
    if found is None:
        raise BadInput(f"{table}: no column of {what} (none of {', '.join(names)}).")
    return found


def _visits(store: Store) -> pl.DataFrame | None:
    if not store.has("encounters"):
        return None
    visit = _find_column(store, "encounters", _candidate_names(("id", *ROLES["visit"])), "the encounter")
    return visits_of(store, "encounters", visit, pick(store, "encounters", _candidate_names(ROLES["date"])))
