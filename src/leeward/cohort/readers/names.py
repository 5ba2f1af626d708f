"""Names of codes from the tables of a source: OMOP's CONCEPT, or a column of descriptions beside the events."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from leeward.cohort.code_name import CodeName
from leeward.cohort.names import names_of_events
from leeward.cohort.readers.codes import as_written
from leeward.cohort.readers.stores import Store, frames, pick


def names_of_concepts(store: Store, codes: Collection[str], *, by_code: bool = False) -> dict[str, CodeName]:
    """Name and vocabulary of concept ids (or, `by_code`, of concept codes) from CONCEPT; nothing without that table."""
    if not store.has("concept") or pick(store, "concept", ["concept_name"]) is None:
        return {}
    key = "concept_code" if by_code else "concept_id"
    wanted = pl.Series(list(codes), dtype=pl.String).implode()
    found: dict[str, CodeName] = {}
    for _, _, frame in frames(store, "concept", [key, "concept_name", "vocabulary_id"]):
        texts = frame.select(pl.all().cast(pl.String).str.strip_chars())
        rows = texts.filter(pl.col(key).is_in(wanted)).drop_nulls([key, "concept_name"])
        for code, name, vocabulary in rows.sort(pl.all()).iter_rows():
            found.setdefault(code, CodeName(as_written(name), vocabulary or ""))
    return found


def names_of_descriptions(
    store: Store, table: str, patient: str, code: str, name: str | None, vocabulary: str = ""
) -> dict[str, CodeName]:
    """The names that a table of events gives beside its codes."""
    if name is None or name == code:
        return {}
    parts = [frame for _, _, frame in frames(store, table, [patient, code, name])]
    if not parts:
        return {}
    texts = [pl.concat([part[column].cast(pl.String) for part in parts]) for column in (patient, code, name)]
    who, codes, names = (series.str.strip_chars().str.replace_all(r"\s+", " ") for series in texts)
    return names_of_events(pl.DataFrame({"patient": who}), codes, names, vocabulary)
