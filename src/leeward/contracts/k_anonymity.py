"""What a release of a k-anonymous table may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.contracts.condensation import COUNTING, is_model
from leeward.contracts.contract import Contract, Table, Words, declared, stated_facts, texts_of
from leeward.contracts.readme import README

TEXT = texts_of("k-anonymity")


def words(parameters: Mapping[str, Any], *, columns: Sequence[str]) -> Words:
    """The wording of k-anonymity over the quasi-identifiers named; `columns` of the table."""
    names = parameters["quasi_identifiers"]
    rest = [name for name in columns if name not in names]
    return Words(
        "k-anonymity",
        TEXT.attacker,
        (
            *([TEXT.others.format(columns=", ".join(rest))] if rest else []),
            TEXT.shared,
            README.knows_algorithm.format(what=TEXT.fitting),
            TEXT.pooled,
        ),
        TEXT.readme.format(columns=", ".join(names)),
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
