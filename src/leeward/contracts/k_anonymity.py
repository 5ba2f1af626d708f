"""What a release of a k-anonymous table may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.contracts.condensation import COUNTING, is_model
from leeward.contracts.contract import Contract, Table, Words, declared, stated_facts

ATTACKER = (
    "Somebody who knows all quasi-identifiers of a patient: at least k released rows agree on all of them."
)

OTHERS = "Columns that are no quasi-identifiers are published as they are: {columns}."

SHARED = "What a whole group shares can be read from the release (no l-diversity)."

POOLED = (
    "People who pool what they know: somebody who knows a value of all patients of a group but one can subtract these "
    "from the group's mean, and has the last patient's value. Who is in a group follows from everybody's "
    "quasi-identifiers, and often from columns that are published as they are."
)

README = (
    "`table.parquet` has the columns and types of the original table. In quasi-identifiers ({columns}) each row has "
    "the typical value of its group: the mean, or the most frequent level."
)


def words(parameters: Mapping[str, Any], *, columns: Sequence[str]) -> Words:
    """The wording of k-anonymity over the quasi-identifiers named; `columns` of the table."""
    names = parameters["quasi_identifiers"]
    rest = [name for name in columns if name not in names]
    return Words(
        "k-anonymity",
        ATTACKER,
        (*([OTHERS.format(columns=", ".join(rest))] if rest else []), SHARED, POOLED),
        README.format(columns=", ".join(names)),
        stated_facts("quasi-identifiers", "release", rest),
    )


CONTRACT = Contract(
    tables=(Table("table.parquet", None),),
    parameters=declared("k-anonymity"),
    rules=lambda p: bool(p["quasi_identifiers"]) and all(map(is_model, p.get("plan", []))),
    words=words,
    records=("table.parquet",),
    owners={"released_rows.parquet": "group"},
    counting=COUNTING,
)
