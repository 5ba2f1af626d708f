"""What a release of censored records may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.contracts import classes
from leeward.contracts.contract import CODES, LISTS, Contract, Table, Words, declared, stated_facts, texts_of
from leeward.contracts.readme import README, of_codes

TEXT = texts_of("censoring")


MOST_MENTIONS = 65_535


def words(parameters: Mapping[str, Any]) -> Words:
    """The wording of a k-map by scope."""
    k, scope, payload = parameters["k"], parameters["scope"], parameters.get("payload") or ()
    grouped = scope == "groups"
    attacker, exact, fits = TEXT.attacker, TEXT.exact, TEXT.fits
    if grouped:
        attacker, exact, fits = TEXT.attacker_of_groups, TEXT.everybody, TEXT.alike
    names, opening, carried = classes.names_of(parameters), "", ""
    if names:
        opening = TEXT.classes.format(names=classes.in_words(names))
        opening += (TEXT.left_out if parameters.get("small") == "drop" else "") + "\n"
        carried = f", the labels {classes.quoted(names)}"
        exact = exact.format(names=classes.in_words(names))
    else:
        exact = fits = ""
    carried += f", and {classes.quoted(payload)} as they were" if payload else ""
    known = "codes and mentions" + (", and the method" if grouped else "")
    return Words(
        "k-map" + (classes.INSIDE if names else ""),
        attacker.format(k=k, exact=exact, fits=fits),
        (
            *TEXT.not_protected,
            *(each.format(k=k) for each in TEXT.knows_the_rule[scope]),
            *classes.limits(parameters),
        ),
        opening + TEXT.readme.format(payload=carried, rule=TEXT.rules[scope]),
        stated_facts(known, "population", payload, **classes.facts(parameters)),
    )


CONTRACT = Contract(
    tables=(
        *classes.TABLES,
        Table(
            "records.parquet",
            {},
            payload=True,
            made=classes.label_columns({"record": "int64", "codes": LISTS}),
            order=("record",),
        ),
        CODES,
    ),
    parameters=declared("censoring"),
    words=words,
    model="journalist",
    records=("records.parquet",),
    owners={"records.parquet": "place"},
    meanings=TEXT.meanings,
    counting=of_codes(TEXT.pandas, TEXT.r, README.bounded_below),
)
