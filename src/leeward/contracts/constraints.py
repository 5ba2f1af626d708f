"""What a release of generalized records may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.contracts import classes
from leeward.contracts.contract import LISTS, Contract, Table, Words, declared, stated_facts, texts_of
from leeward.contracts.readme import README, of_codes

TEXT = texts_of("constraints")


def words(parameters: Mapping[str, Any]) -> Words:
    """The wording for sets of up to m codes, or for the custodian's list; alone, or with demographics."""
    m, names = parameters.get("m"), classes.names_of(parameters)
    if names:
        name = ("protected code sets" if m is None else "(k, k^m)-anonymity") + TEXT.in_classes
        attacker = TEXT.classed_attacker_of_listed if m is None else TEXT.classed_attacker_of_any
    else:
        name = "protected code sets" if m is None else "k^m-anonymity"
        attacker = TEXT.attacker_of_listed if m is None else TEXT.attacker_of_any
    return Words(
        name,
        attacker.format(names=classes.in_words(names), k=parameters["k"], m=m),
        (
            TEXT.beyond_list if m is None else TEXT.beyond_m.format(m=m),
            *TEXT.not_protected,
            TEXT.classed_occur if names else TEXT.suppressed_occur,
            README.knows_algorithm.format(what=TEXT.fitting),
            TEXT.several,
            *classes.limits(parameters),
        ),
        (classes.readme(parameters) + TEXT.classes + "\n" if names else "") + TEXT.readme,
        stated_facts(
            "listed sets of codes" if m is None else "up to m codes", "release", **classes.facts(parameters)
        ),
    )


RECORDS = {"record": "int64", "codes": LISTS}
CODES = {"code": "string", "members": LISTS, "suppressed": "bool"}


def code_columns(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**({"class": "int64"} if classes.names_of(parameters) else {}), **CODES}


CONTRACT = Contract(
    tables=(
        Table("records.parquet", RECORDS, made=classes.label_columns(RECORDS), order=("record",)),
        Table("codes.parquet", CODES, made=code_columns),
        *classes.TABLES,
    ),
    parameters=declared("constraints"),
    completed=lambda p: {**p, "algorithm": "mapping"} if p.get("mapping") else p,
    rules=lambda p: ("m" in p) != ("privacy" in p),
    words=words,
    numbers=("k", "m"),
    records=("records.parquet",),
    meanings=TEXT.meanings,
    counting=of_codes(TEXT.pandas, TEXT.r),
)
