"""What a release of a catalogue of itemsets may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.contracts.contract import LARGEST, LISTS, Contract, Counting, Table, Words, stated_facts

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
    reading = README.format(row=parameters["row"], contributions=parameters["contributions"])
    return Words(
        "differential privacy",
        "anybody, whatever they know of other patients or of this one",
        NOT_PROTECTED,
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

COUNTING = Counting(
    intro="""\
How many patients were counted for a set of terms, with an interval that holds that number in 95 of 100 cases. Run in
this folder:
""",
    pandas="""\
import json

import pandas as pd

found = pd.read_parquet("data/itemsets.parquet")
with open("release.json", encoding="utf-8") as file:
    scale = {level["size"]: level["scale"] for level in json.load(file)["parameters"]["levels"]}
for items, count in zip(found["items"], found["count"]):
    width = 3 * scale[len(items)]
    print(" & ".join(items), max(0, count - width), "to", count + width, "patients")
""",
    r="""\
found <- arrow::read_parquet("data/itemsets.parquet")
levels <- jsonlite::fromJSON("release.json")$parameters$levels
width <- 3 * levels$scale[match(lengths(found$items), levels$size)]
terms <- vapply(found$items, paste, "", collapse = " & ")
print(data.frame(terms, low = pmax(0, found$count - width), high = found$count + width))
""",
)


CONTRACT = Contract(
    tables=(Table("itemsets.parquet", {"items": LISTS, "count": ("double",)}),),
    parameters={name: {**each, "shown": "always"} for name, each in PARAMETERS.items()},
    rules=lambda p: levels(p["levels"]),
    words=words,
    numbers=("epsilon",),
    meanings=(
        ("itemsets", "items", "list of health terms, and of values such as `sex=f`"),
        ("itemsets", "count", "number of patients with all of them, with noise"),
    ),
    counting=COUNTING,
)
