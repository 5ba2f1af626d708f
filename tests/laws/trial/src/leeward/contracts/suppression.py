"""What a release of suppressed codes may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.contracts.contract import LISTS, Contract, Table, Words, declared, stated_facts


def words(parameters: Mapping[str, Any]) -> Words:
    """The one wording."""
    return Words(
        "codes of k patients",
        "Somebody who knows one code of a patient: at least k records have it, or none.",
        ("Somebody who knows two codes or more of a patient.",),
        "`records.parquet` has one row per patient; codes of fewer than k patients were suppressed.",
        stated_facts("a code", "release"),
    )


CONTRACT = Contract(
    tables=(Table("records.parquet", {"codes": LISTS}),),
    parameters=declared("suppression"),
    words=words,
    records=("records.parquet",),
)
