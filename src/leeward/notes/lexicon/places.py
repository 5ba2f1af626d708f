"""Lists of places, for the dictionary: US states, large cities, countries."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from leeward.notes.lexicon.words import Key, text_key


@dataclass(frozen=True)
class Places:
    """Folded names of places; `doubtful` are words or people's names as well (Turkey, Charlotte) and count only
    after a preposition or before a state; `states` are the postal abbreviations, in capitals.
    """

    names: frozenset[Key] = frozenset()
    doubtful: frozenset[Key] = frozenset()
    states: frozenset[str] = field(default=frozenset())

    @classmethod
    def common(cls) -> Places:
        """Countries, US states and territories, cities of the United States above about 100,000 people, large
        cities of the world.
        """
        return _common()


@cache
def _common() -> Places:
    text = resources.files("leeward.notes.lexicon").joinpath("data", "places.tsv").read_text("utf-8")
    names: set[Key] = set()
    doubtful: set[Key] = set()
    states: set[str] = set()
    for row in csv.DictReader(text.splitlines(), delimiter="\t"):
        for place in row["names"].split("|"):
            key = text_key(place.removeprefix("~"))
            (doubtful if place.startswith("~") else names).add(key)
        if row["postal"]:
            states.add(row["postal"])
    return Places(frozenset(names), frozenset(doubtful), frozenset(states))
