"""What a release of a catalogue of itemsets may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.contracts.contract import LISTS, Contract, Table, number, one_of, whole
from leeward.contracts.words import Words, stated_facts

NOT_PROTECTED = (
    "facts of the population that the data show whoever takes part, such as which terms go together",
    "further answers about the same patients: their epsilons add up (the custodian's ledger limits them)",
    "what a term means where it was taken wrongly from a note: noise covers counts, not extraction",
)

README = """
There are no records here. `itemsets.parquet` has one row an itemset: `items`, health terms and values such as `sex=f`,
and `count`, the number of patients with a {row} that has all of them, plus noise. Rows are sorted by size, count, text.

- The noise is two-sided geometric; its scale for each size is in `release.json` under `levels`. With scale s, a
  count is off by about s on average, and by less than 3s in 95 of 100.
- Candidates were all terms of the public vocabulary; a larger itemset was tried when all its parts are listed. What is
  not listed had a noisy count below the threshold of its size, or was not tried.
- A patient is counted in at most {contributions:,} itemsets of each size, drawn at random. Counts are too low, on
  average, where patients have more.
- Counts of overlapping itemsets have independent noise: a part may have a smaller count than the whole.
"""


def words(parameters: Mapping[str, Any]) -> Words:
    """The wording of a catalogue."""
    reading = README.format(row=parameters["row"], contributions=parameters["contributions"])
    return Words(
        "differential privacy",
        "anybody, whatever they know of other patients or of this one",
        NOT_PROTECTED,
        reading,
        stated_facts("everything else", "none"),
    )


def real(value: Any) -> bool:
    """A number of at least 0 that is written with a point."""
    return type(value) is float and number(0)(value)


LEVEL = {
    "candidates": whole(0),
    "epsilon": real,
    "listed": whole(0),
    "scale": real,
    "size": whole(1),
    "threshold": whole(1),
}


def levels(value: Any) -> bool:
    """A list of levels of size 1, 2, …, each with its numbers and nothing else."""
    if not isinstance(value, list) or not value:
        return False
    for place, level in enumerate(value, 1):
        if not isinstance(level, dict) or list(level) != list(LEVEL) or level["size"] != place:
            return False
        if not all(fits(level[key]) for key, fits in LEVEL.items()):
            return False
    return True


def domains(value: Any) -> bool:
    """For each quasi-identifier its public values."""
    return isinstance(value, Mapping) and all(
        isinstance(values, list) and all(isinstance(each, str) for each in values)
        for values in value.values()
    )


CONTRACT = Contract(
    tables=(Table("itemsets.parquet", {"items": LISTS, "count": ("double",)}),),
    parameters={
        "max_size": whole(1),
        "contributions": whole(1),
        "mechanism": one_of("two-sided geometric noise"),
        "vocabulary": lambda value: isinstance(value, str),
        "domains": domains,
        "row": one_of("note", "visit", "patient"),
        "max_rows_per_patient": lambda value: value is None or whole(1)(value),
        "levels": levels,
    },
    required=(
        "max_size", "contributions", "mechanism", "vocabulary", "domains", "row", "max_rows_per_patient", "levels",
    ),
    words=words,
    numbers=("epsilon",),
)  # fmt: skip
