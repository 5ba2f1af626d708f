"""Lists for the dictionary: people's names, of the US or a hospital's own; US states, large cities, countries."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from leeward.errors import require_extra
from leeward.notes.lexicon.concepts import Key, fold, text_key


@dataclass(frozen=True)
class Names:
    """Folded names. The `ordinary` ones are also words of everyday English, medicine or geography (White, Will, Crohn,
    Virginia); alone they are no name."""

    first: frozenset[str] = frozenset()
    last: frozenset[str] = frozenset()
    ordinary: frozenset[str] = frozenset()

    @classmethod
    @cache
    def common(cls) -> Names:
        """Common names of the United States: those of Faker's locale en_US (its last names are the 1,000 most frequent
        of the census), the project's additions for older people and for other origins, and those of other countries out
        of Faker's lists. Raises BadInput where Faker is not installed."""
        require_extra("A list of names", "notes", "faker")
        from faker.providers.lorem.en_US import Provider as English
        from faker.providers.person.en_US import Provider as People

        def listed(words: Iterable[str], *files: str) -> frozenset[str]:
            return frozenset(map(fold, words)).union(*map(word_file, files))

        return cls(
            listed(People.first_names, "first_names.txt", "first_names_abroad.txt"),
            listed(People.last_names, "last_names.txt", "last_names_abroad.txt"),
            listed(English.word_list, "ordinary_names.txt"),
        )


def word_file(name: str) -> frozenset[str]:
    """Folded words of a list in the package's data; lines beginning with # are comments."""
    text = resources.files("leeward.notes.lexicon").joinpath("data", name).read_text("utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return frozenset(fold(word) for line in lines for word in line.split())


@dataclass(frozen=True)
class Places:
    """Folded names of places. The `doubtful` ones are also words or people's names (Turkey, Charlotte) and count only
    after a preposition or before a state. `states` are postal abbreviations, in capitals."""

    names: frozenset[Key] = frozenset()
    doubtful: frozenset[Key] = frozenset()
    states: frozenset[str] = field(default=frozenset())

    def knows(self, text: str) -> bool:
        """Whether a text is the name of a place or a state's abbreviation."""
        key = text_key(text)
        return key in self.names or key in self.doubtful or text in self.states

    @classmethod
    @cache
    def common(cls) -> Places:
        """Countries, US states and territories, cities of the United States above about 100,000 people, large cities of
        the world."""
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
        return cls(frozenset(names), frozenset(doubtful), frozenset(states))
