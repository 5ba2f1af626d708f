"""What a release of a catalogue of itemsets may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.contracts.contract import (
    LARGEST,
    LISTS,
    Contract,
    Counting,
    Table,
    Words,
    stated_facts,
    texts_of,
)

TEXT = texts_of("notes")


def words(parameters: Mapping[str, Any]) -> Words:
    reading = TEXT.readme.format(row=parameters["row"], contributions=parameters["contributions"])
    return Words(
        "differential privacy",
        "anybody, whatever they know of other patients or of this one",
        tuple(TEXT.not_protected),
        reading,
        stated_facts("everything else", "none"),
    )


LEVEL = {
    "candidates": (int, 0),
    "epsilon": (float, 0),
    "listed": (int, 0),
    "scale": (float, 0),
    "size": (int, 1),
    "threshold": (int, 1),
}
"""Type and least value of a level's numbers."""


def levels(value: list[Any]) -> bool:
    """A list of levels of size 1, 2, …, each with its numbers and nothing else."""
    for place, level in enumerate(value, 1):
        if not isinstance(level, dict) or list(level) != list(LEVEL) or level["size"] != place:
            return False
        if not all(
            type(level[key]) is kind and least <= level[key] <= LARGEST
            for key, (kind, least) in LEVEL.items()
        ):
            return False
    return bool(value)


PARAMETERS: dict[str, dict[str, Any]] = {
    "max_size": {"type": "integer", "minimum": 1},
    "contributions": {"type": "integer", "minimum": 1},
    "mechanism": {"const": "two-sided geometric noise", "found": True},
    "vocabulary": {"type": "string"},
    "domains": {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": "string"}},
        "found": True,
    },
    "row": {"enum": ["note", "visit", "patient"]},
    "max_rows_per_patient": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "found": True},
    "levels": {"type": "array", "items": {}, "found": True},
}
"""As of `contract.declared`: a catalogue is made by no method, so that no fields declare them."""


CONTRACT = Contract(
    tables=(Table("itemsets.parquet", {"items": LISTS, "count": ("double",)}),),
    parameters={name: {**each, "shown": "always"} for name, each in PARAMETERS.items()},
    rules=lambda p: levels(p["levels"]),
    words=words,
    numbers=("epsilon",),
    meanings=TEXT.meanings,
    counting=Counting(TEXT.intro, TEXT.pandas, TEXT.r),
)
