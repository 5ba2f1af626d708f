"""The vocabulary of last resort: every text is a term.

For an index whose terms no public vocabulary lists. What may be asked must not depend on the data, so nothing is
refused and nothing is offered: a term that nobody has counts 0, plus noise, like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from leeward.errors import BadInput
from leeward.queries.language.query import EXACT, fold
from leeward.queries.language.vocabulary import ALIASES, SCHEMA

FORM: Final = "any text"
"""How an index that has no list of terms says so."""


@dataclass(frozen=True)
class AnyText:
    """A vocabulary without a list; terms differ by their folded text alone."""

    name: str = FORM
    public: bool = False

    def term_of(self, value: str) -> str | None:
        """The folded text; None for an empty one."""
        return plain(value) or None

    def resolve(self, asked: str) -> str:
        """The folded text. `=term` is `term`: without a list nothing is below a term, so it means itself anyway."""
        term = plain(asked)
        if not term:
            raise BadInput("a term needs at least one letter or digit.")
        return term

    def covers(self, outer: str, inner: str) -> bool:
        """Nothing is known of one term from another."""
        return outer == inner

    def expand(self, name: str, held: Iterable[str]) -> list[str]:
        """The term itself, where it is held."""
        return [term for term in held if term == name]

    def shown(self, name: str) -> str:
        """The term itself."""
        return name

    def sample(self) -> tuple[str, ...]:
        """There is no list."""
        return ()

    def one_of(self, name: str) -> str:
        """The term itself."""
        return name

    def to_tables(self) -> tuple[pa.Table, pa.Table]:
        """No names; the form goes along as metadata."""
        return SCHEMA.empty_table().replace_schema_metadata({"form": FORM}), ALIASES.empty_table()


def plain(text: str) -> str:
    """Folded text without marks of an exact term in front, in data and questions alike."""
    return fold(text).lstrip(EXACT).strip()
