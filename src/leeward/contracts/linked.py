"""What a release of linked tables may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.contracts import classes
from leeward.contracts.contract import (
    CODES,
    Contract,
    Counting,
    Table,
    Words,
    declared,
    stated_facts,
    texts_of,
)
from leeward.contracts.readme import README

TEXT = texts_of("linked")


ROWS = {
    "patients+events": "one code",
    "patients+visits": "the day of one visit",
    "patients+visits+events": "one code with its day",
    "patients+events+events": "two codes",
}
"""What an attacker knows who can do a join, beside demographics."""


def views(value: Any) -> bool:
    """Some of the views, each once and in their order."""
    return isinstance(value, list) and bool(value) and value == [each for each in ROWS if each in value]


def words(parameters: Mapping[str, Any]) -> Words:
    named, names, days = parameters["views"], classes.names_of(parameters), parameters.get("days")
    known = " or ".join(ROWS[view] for view in named)
    whose = (
        f"the exact {classes.in_words(names)} of a patient and {known}" if names else f"{known} of a patient"
    )
    reading = TEXT.readme.format(and_days=" and visits" if days else "", views=", ".join(named))
    return Words(
        "k-anonymity of joined tables",
        f"knows {whose}, and that the patient is in the data",
        (
            *TEXT.not_protected,
            README.knows_algorithm.format(what=TEXT.fitting),
            *classes.limits(parameters),
        ),
        (classes.readme(parameters) + "\n" if names else "")
        + reading
        + (TEXT.days.format(days=days) if days else ""),
        stated_facts("rows of views", "release", **classes.facts(parameters), views=named),
    )


def visit_columns(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    found = {"record": "int64", "visit": "int64"}
    return {**found, **({"day": "int64"} if parameters.get("days") else {})}


CONTRACT = Contract(
    tables=(
        *classes.TABLES,
        Table("patients.parquet", {}, made=classes.label_columns({"record": "int64"}), order=("record",)),
        Table("visits.parquet", {}, made=visit_columns, order=("record", "visit")),
        Table("events.parquet", {"record": "int64", "visit": "int64", "code": "string"}),
        CODES,
    ),
    parameters=declared("linked"),
    # days are released where a view has visits, and only then
    rules=lambda p: views(p["views"]) and any("visits" in view for view in p["views"]) == ("days" in p),
    words=words,
    records=("patients.parquet", "visits.parquet", "events.parquet"),
    owners={"records.parquet": "place"},
    meanings=TEXT.meanings,
    counting=Counting(README.bounded, TEXT.pandas, TEXT.r),
)
