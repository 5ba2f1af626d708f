"""What a release of trajectories may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.contracts import classes
from leeward.contracts.contract import CODES, Contract, Table, Words, declared, stated_facts, texts_of
from leeward.contracts.readme import README, of_codes

TEXT = texts_of("trajectories")


LISTED = "of at least k patients"
"""The manifest's word for a code hierarchy that lists, of a vocabulary, what k patients have a code below."""


def axis_of(parameters: Mapping[str, Any]) -> str:
    """The column beside the code, and the beginning of its hierarchy's name: `age` or `date`."""
    return "date" if "time" in parameters else "age"


def words(parameters: Mapping[str, Any]) -> Words:
    k, names, payload = parameters["k"], classes.names_of(parameters), parameters.get("payload") or ()
    time = TEXT.times[axis_of(parameters)]
    return Words(
        "k-anonymity in classes of demographics" if names else "k-anonymity",
        (TEXT.classed_attacker if names else TEXT.attacker).format(
            k=k, names=classes.in_words(names), **time
        ),
        (
            *(each.format(**time) for each in TEXT.not_protected),
            *((TEXT.dates,) if axis_of(parameters) == "date" else ()),
            README.knows_algorithm.format(what=TEXT.fitting.format(**time)),
            *((TEXT.payload_as_is,) if payload else ()),
            *classes.limits(parameters),
        ),
        (classes.readme(parameters) + TEXT.classes.format(k=k) + "\n" if names else "")
        + TEXT.readme.format(
            k=k,
            **time,
            payload=f" with {classes.quoted(payload)} as they were" if payload else "",
            listed=TEXT.unlisted.format(k=k) if "listed_codes" in parameters else "",
            order=TEXT.orders[parameters.get("order", "kept")].format(**time),
        ),
        stated_facts(f"codes and {axis_of(parameters)}s", "release", payload, **classes.facts(parameters)),
    )


def together(parameters: Mapping[str, Any]) -> bool:
    """Whether diversity is of something, and codes are listed as the hierarchy calls for."""
    sensitive = "sensitive" in parameters or "sensitive_column" in parameters
    whole = parameters["hierarchy"] == "custom" or "codes" in parameters
    return sensitive == ("diversity" in parameters) and (whole or "listed_codes" in parameters)


def meanings(parameters: Mapping[str, Any]) -> list[list[str]]:
    return [[text.format(**TEXT.times[axis_of(parameters)]) for text in row] for row in TEXT.meanings]


RECORDS = {"record": "int64"}


def pair_columns(parameters: Mapping[str, Any]) -> Mapping[str, str]:
    return {"record": "int64", "position": "int64", "code": "string", axis_of(parameters): "string"}


CONTRACT = Contract(
    tables=(
        Table("trajectories.parquet", {}, made=pair_columns, order=("record", "position")),
        Table(
            "records.parquet", RECORDS, payload=True, made=classes.label_columns(RECORDS), order=("record",)
        ),
        Table("code_hierarchy.csv", None),
        Table(lambda parameters: (f"{axis_of(parameters)}_hierarchy.csv",), None),
        *classes.TABLES,
        CODES,
    ),
    parameters=declared("trajectories"),
    rules=together,
    words=words,
    records=("records.parquet", "trajectories.parquet"),
    owners={"records.parquet": "place"},
    meanings=meanings,
    counting=of_codes(TEXT.pandas, TEXT.r, README.bounded_below),
)
