"""OMOP CDM 5.3 and 5.4: a folder of tables (CSV or Parquet) or a database.

Events come from CONDITION_OCCURRENCE, and from other domains when asked; ages from PERSON. Where PERSON knows no
day of birth it is the first of the month, and where it knows no month the patient's first event if that is in the
year of birth, else 15 June (the CDM's own conventions). A concept of 0 is no code: nothing was mapped.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import polars as pl

from leeward.arrays import count_noun
from leeward.cohort.cohort import CodeName, Cohort
from leeward.cohort.notices import Notice
from leeward.cohort.readers.ages import ISO, dates_leniently
from leeward.cohort.readers.codes import as_written
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnMap
from leeward.cohort.readers.people import (
    add_events,
    birth_notices,
    births_part,
    code_and_patients,
    domains_of,
    gather,
    notes_of,
    patients_of,
    visits_of,
)
from leeward.cohort.readers.request import Request
from leeward.cohort.readers.stores import Store, pick, require_table
from leeward.cohort.readers.trees import with_tree
from leeward.cohort.readers.values import identifiers
from leeward.errors import BadInput, did_you_mean


@dataclass(frozen=True)
class Domain:
    table: str
    prefix: str
    date: str


DOMAINS = {
    "condition": Domain("condition_occurrence", "condition", "condition_start_date"),
    "drug": Domain("drug_exposure", "drug", "drug_exposure_start_date"),
    "procedure": Domain("procedure_occurrence", "procedure", "procedure_date"),
    "observation": Domain("observation", "observation", "observation_date"),
    "measurement": Domain("measurement", "measurement", "measurement_date"),
}

CODES = ("concept_id", "source_value", "source_concept_id")
"""What may be the code, each after the domain's prefix."""

NOTHING_MAPPED = "0"
"""The concept of what has none."""

ATTRIBUTES = (
    "year_of_birth",
    "month_of_birth",
    "day_of_birth",
    "gender_concept_id",
    "gender_source_value",
    "race_concept_id",
    "race_source_value",
    "ethnicity_concept_id",
    "ethnicity_source_value",
)
"""Columns of PERSON that go into the patients frame; the person's identifier at the source does not."""


def read_omop(asked: Request) -> Cohort:
    """A cohort from the CDM's tables.

    `columns` may name the `code` (`condition_concept_id` by default; `condition_source_value` and
    `condition_source_concept_id` are the others, in each domain its own) and columns of PERSON as `patients`.
    `concepts` puts CONCEPT's concept_code in the place of concept ids, with its vocabulary.
    """
    store, concepts, missing = asked.tables, asked.concepts, asked.missing
    code, attributes = code_and_patients(asked.columns, "omop")
    ending = _ending(code)
    if concepts and ending == "source_value":
        raise BadInput("`concepts` maps concept ids; the code is a source value: leave one of the two out.")
    require_table(store, "person", "which identifies the patients")
    tables: dict[str, ColumnMap] = {}
    for domain in domains_of(asked.domains, DOMAINS):
        require_table(store, domain.table, f"which the domain '{domain.prefix}' needs")
        visit = pick(store, domain.table, ["visit_occurrence_id"])
        code_column = f"{domain.prefix}_{ending}"
        tables[domain.table] = ColumnMap("person_id", (code_column,), visit=visit, date=domain.date)
    first = next(iter(tables.values()))
    collector = Collector(store.name, first, missing, asked.date_format, lenient=True)
    if ending != "source_value":
        collector.codes.missing = missing | {NOTHING_MAPPED}
    add_events(collector, store, tables)
    notices = _translate_concepts(store, collector, named=asked.vocabulary is None) if concepts else []
    of_birth = ("month_of_birth", "day_of_birth", "birth_datetime")
    columns = ["person_id", "year_of_birth", *(c for c in of_birth if c in store.columns("person"))]
    births = gather(store, "person", columns, _births_in)
    cohort = collector.cohort(
        asked.vocabulary,
        births,
        lambda: visits_of(store, "visit_occurrence", "visit_occurrence_id", "visit_start_date"),
    )
    patients, of_patients = patients_of(store, "person", "person_id", attributes, ATTRIBUTES, cohort, missing)
    notes, of_notes = notes_of(store, "note", "note_id", "person_id", "note_date", "note_text")
    names: dict[str, CodeName] = {}
    if ending != "source_value":
        names = _names(store, cohort.code_sets().codes, by_code=concepts)
        beside = store.file("concept_ancestor") if store.file("concept") or not concepts else None
        cohort = with_tree(cohort, beside, None if concepts else "omop", by_code=concepts)
    return replace(cohort, patients=patients, notes=notes, names=names).with_notices(
        *notices, *birth_notices(births), *of_patients, *of_notes
    )


def _ending(code: str | None) -> str:
    """Which of `CODES` a name such as 'condition_source_value' means."""
    if code is None:
        return CODES[0]
    name = code.lower()
    for domain in DOMAINS.values():
        name = name.removeprefix(f"{domain.prefix}_")
    if name not in CODES:
        choices = [f"condition_{ending}" for ending in CODES]
        raise BadInput(
            f"OMOP has no code column '{code}'.{did_you_mean(code, choices)} Code columns: {', '.join(choices)}."
        )
    return name


def _births_in(title: str, frame: pl.DataFrame) -> pl.DataFrame:
    year, month, day = (_number(frame, f"{part}_of_birth") for part in ("year", "month", "day"))
    usable = year.is_between(1, 9999) & _null_or_to(month, 12) & _null_or_to(day, 31)
    day_or_default = day.fill_null(1).set(month.is_null(), 15)
    text = pl.format(
        "{}-{}-{}",
        year.cast(pl.String).str.zfill(4),
        month.fill_null(6).cast(pl.String).str.zfill(2),
        day_or_default.cast(pl.String).str.zfill(2),
    )
    birth = pl.select(pl.when(usable).then(text).str.to_date("%Y-%m-%d", strict=False)).to_series()
    year_only = year.is_not_null() & month.is_null()
    if "birth_datetime" in frame.columns:
        exact, _, _ = dates_leniently(frame["birth_datetime"], title, "birth_datetime", frozenset(), ISO)
        better = exact.is_not_null() & (day.is_null() | month.is_null())
        birth = exact.zip_with(better | birth.is_null(), birth)
        year_only = year_only & ~better
    given = frame["year_of_birth"].cast(pl.String).str.strip_chars().fill_null("") != ""
    who = identifiers(frame["person_id"], title, "person_id")
    return births_part(title, frame, who, birth, given & birth.is_null(), year_only=year_only)


def _null_or_to(numbers: pl.Series, last: int) -> pl.Series:
    return numbers.is_between(1, last).fill_null(True)


def _number(frame: pl.DataFrame, column: str) -> pl.Series:
    """Whole numbers, also from text; null where a value is none."""
    if column not in frame.columns:
        return pl.repeat(None, frame.height, dtype=pl.Int64, eager=True)
    series = frame[column]
    if series.dtype == pl.String:
        series = series.str.strip_chars().cast(pl.Float64, strict=False)
    return series.cast(pl.Int64, strict=False)


def _translate_concepts(store: Store, collector: Collector, *, named: bool) -> list[Notice]:
    """Concept ids become CONCEPT's codes; what CONCEPT lacks stays an id."""
    require_table(store, "concept", "which `concepts` needs")
    meanings = {
        number: (code, name)
        for number, code, name in _concepts(
            store, collector.codes.texts, "concept_id", "concept_code", "vocabulary_id"
        )
        .drop_nulls()
        .iter_rows()
    }
    lacking = collector.translate(meanings, named=named)
    if not lacking:
        return []
    message = f"{count_noun('concept', lacking)} without a row in CONCEPT: kept as ids"
    return [Notice("concept not in CONCEPT", message, lacking)]


def _names(store: Store, codes: Collection[str], *, by_code: bool) -> dict[str, CodeName]:
    if not store.has("concept") or pick(store, "concept", ["concept_name"]) is None:
        return {}
    key = "concept_code" if by_code else "concept_id"
    rows = _concepts(store, codes, key, "concept_name", "vocabulary_id").drop_nulls([key, "concept_name"])
    once = rows.sort(pl.all()).unique(key, keep="first", maintain_order=True)
    return {code: CodeName(as_written(name), vocabulary or "") for code, name, vocabulary in once.iter_rows()}


def _concepts(store: Store, wanted: Collection[str], key: str, *further: str) -> pl.DataFrame:
    keys = pl.Series(list(wanted), dtype=pl.String).implode()
    columns = [key, *further]
    texts = gather(
        store,
        "concept",
        columns,
        lambda _, frame: frame.select(pl.col(columns).cast(pl.String).str.strip_chars()).filter(
            pl.col(key).is_in(keys)
        ),
    )
    return pl.DataFrame(schema=dict.fromkeys(columns, pl.String)) if texts is None else texts
