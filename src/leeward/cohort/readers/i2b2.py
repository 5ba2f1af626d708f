"""The i2b2 star schema: OBSERVATION_FACT, PATIENT_DIMENSION and VISIT_DIMENSION, as files or in a database.

A concept is `PREFIX:CODE` (`ICD10:E11.9`); the facts of diagnoses are read, or those of the asked prefixes. A
fact of several rows, one a modifier, is one event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.cohort.notices import Notice
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnMap
from leeward.cohort.readers.people import birth_notices, births_of, code_and_patients, patients_of, visits_of
from leeward.cohort.readers.request import Request
from leeward.cohort.readers.stores import Store, frames, pick, require_table
from leeward.errors import BadInput

DIAGNOSES = ("ICD9", "ICD9CM", "ICD-9", "ICD-9-CM", "ICD10", "ICD10CM", "ICD-10", "ICD-10-CM")
"""The prefixes of diagnoses, read unless others are asked."""

ATTRIBUTES = (
    "birth_date",
    "death_date",
    "vital_status_cd",
    "sex_cd",
    "age_in_years_num",
    "language_cd",
    "race_cd",
    "ethnicity_cd",
    "marital_status_cd",
    "religion_cd",
)
"""Columns of PATIENT_DIMENSION that go into the patients frame."""

BATCH_ROWS = 1 << 20
FACT = ("encounter_num", "patient_num", "concept_cd", "start_date")


def read_i2b2(asked: Request) -> Cohort:
    """A cohort from the star's tables; `domains` are the prefixes of concepts to read, diagnoses by default."""
    store, vocabulary = asked.tables, asked.vocabulary
    code, attributes = code_and_patients(asked.columns, "i2b2")
    if code is not None:
        raise BadInput("The format 'i2b2' has its codes in 'concept_cd'; leave the code column out.")
    for table in ("observation_fact", "patient_dimension"):
        require_table(store, table, "a table of the i2b2 star schema")
    facts, notices = _facts(store, [name.removesuffix(":") for name in asked.domains] or DIAGNOSES)
    mapped = ColumnMap(
        patient="patient_num",
        code=("concept_cd",),
        visit="encounter_num",
        date="start_date",
        vocabulary="prefix" if vocabulary is None else None,
    )
    collector = Collector(store.name, mapped, asked.missing, asked.date_format, lenient=True)
    for part in facts.iter_slices(BATCH_ROWS):
        (batch,) = part.select(mapped.columns_to_read()).rechunk().to_arrow().combine_chunks().to_batches()
        collector.add(batch, part["row"].to_numpy())
    patient = ("patient_dimension", "patient_num")
    births = births_of(store, *patient, pick(store, "patient_dimension", ["birth_date"]))
    cohort = collector.cohort(
        vocabulary, births, lambda: visits_of(store, "visit_dimension", "encounter_num", "start_date")
    )
    patients, told = patients_of(store, *patient, attributes, ATTRIBUTES, cohort, asked.missing)
    return replace(cohort, patients=patients).with_notices(*notices, *birth_notices(births), *told)


def _facts(store: Store, prefixes: Sequence[str]) -> tuple[pl.DataFrame, list[Notice]]:
    """The facts with the asked prefixes, each once, with their row: concept_cd without its prefix."""
    instance = pick(store, "observation_fact", ["instance_num"])
    key = [*FACT, *([instance] if instance else [])]
    wanted = [prefix.upper() for prefix in prefixes]
    parts, rows = [], 0
    for _, frame in frames(store, "observation_fact", key):
        concept = frame["concept_cd"].cast(pl.String).str.strip_chars()
        pieces = concept.str.split_exact(":", 1)
        prefix = pieces.struct.field("field_0")
        part = frame.with_columns(
            row=pl.int_range(rows + 1, rows + 1 + frame.height, dtype=pl.UInt32),
            prefix=prefix,
            concept_cd=concept.str.slice(prefix.str.len_chars() + 1),
        )
        rows += frame.height
        parts.append(part.filter(prefix.str.to_uppercase().is_in(wanted).fill_null(False)))
    parts = [part for part in parts if part.height]
    if not parts:
        raise BadInput(
            f"{store.name}: no row of OBSERVATION_FACT has a concept with the prefix {' or '.join(prefixes)}; "
            f"name the prefixes of this database in `domains`."
        )
    facts = pl.concat(parts, how="vertical_relaxed")
    once = facts.unique([*key, "prefix"], keep="first", maintain_order=True)
    others, repeated = rows - facts.height, facts.height - once.height
    notices = []
    if others:
        message = f"{others:,} facts that are not diagnoses (or not of the given prefixes) were left out"
        notices.append(Notice("other facts", message, others))
    if repeated:
        message = f"{repeated:,} further rows of the same facts (modifiers) were left out"
        notices.append(Notice("repeated fact", message, repeated))
    return once, notices
