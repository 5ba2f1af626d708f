"""A public vocabulary of codes known by their form: every code of a known category may be asked for.

Diagnosis classifications hold their structure (chapters, sections, categories), not the list of codes in use. So a code
is known by how it is written and by its category, and stands for itself and all codes that begin with it. Nothing here
depends on which codes the data hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from leeward.errors import BadInput
from leeward.queries.language.query import EXACT, fold
from leeward.queries.language.vocabulary import SCHEMA, aliases_of, aliases_table, nearest


@dataclass(frozen=True)
class Codes:
    """A classification as plain data.

    Attributes
    ----------
    form : str
        A regular expression of a code in upper case without blanks, with a group for the category and one for what
        follows it (of alternatives, those that matched): `250.00` and `25000` are both `250` and `00`.
    above : mapping
        Category -> section, section -> chapter.
    labels : mapping
        Node -> title.
    aliases : mapping
        Title of a category -> the category: what else to ask by.
    """

    form: str
    above: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    name: str = "codes"
    public: bool = True

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.form)

    @cached_property
    def _nodes(self) -> frozenset[str]:
        return frozenset(self.above.values())

    @cached_property
    def _names(self) -> dict[str, str]:
        """Folded label or title -> node, or the category of that title."""
        found = {fold(node): node for node in sorted(self._nodes)}
        for node, title in sorted(self.labels.items()):
            if node in self._nodes:
                found.setdefault(fold(title), node)
        for title, category in sorted(self.aliases.items()):
            found.setdefault(fold(title), category)
        return found

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        below: dict[str, list[str]] = {}
        for child, parent in self.above.items():
            below.setdefault(parent, []).append(child)
        return below

    def _parts(self, text: str) -> tuple[str, str] | None:
        """(category, what follows) of a code whose category exists."""
        found = self._pattern.fullmatch("".join(text.split()).upper())
        if found is None:
            return None
        category, tail = [group for group in found.groups() if group is not None]
        return (category, tail) if category in self.above and category not in self._nodes else None

    def term_of(self, value: str) -> str | None:
        """The canonical code of a value in the data; None for what is no code."""
        parts = self._parts(value)
        return None if parts is None else _join(*parts)

    def resolve(self, asked: str) -> str:
        """The canonical name of a code or node; BadInput for an unknown one, with the nearest known ones."""
        exact = asked.startswith(EXACT)
        wanted = asked[len(EXACT) :] if exact else asked
        parts = self._parts(wanted)
        if parts is not None:
            code = _join(*parts)
            return f"{EXACT}{code}" if exact and not self._deepest(*parts) else code
        node = None if exact else self._names.get(fold(wanted))
        if node is None:
            known = [*self._names, *(fold(c) for c in self.above if c not in self._nodes)]
            near = nearest(fold(wanted), known)
            hint = f" Nearest known: {', '.join(repr(name) for name in near)}." if near else ""
            raise BadInput(
                f"the vocabulary {self.name!r} has no {'code' if exact else 'term'} {wanted!r}.{hint}"
            )
        while len(self._children.get(node, ())) == 1:  # a chapter of one section is that section
            node = self._children[node][0]
        return node

    def _deepest(self, category: str, tail: str) -> bool:
        """Whether no code can begin with this one."""
        return all(self._pattern.fullmatch(f"{category}.{tail}{more}") is None for more in ("0", "A"))

    def covers(self, outer: str, inner: str) -> bool:
        """Whether all that `inner` stands for, `outer` stands for too (both canonical names)."""
        if outer == inner:
            return True
        code = inner.removeprefix(EXACT)
        if outer.startswith(EXACT):
            return outer.removeprefix(EXACT) == code and inner.startswith(EXACT)
        if outer not in self._nodes:
            return code == outer or code.startswith(outer if "." in outer else f"{outer}.")
        place = code if code in self._nodes else code.partition(".")[0]
        while place != outer and place in self.above:
            place = self.above[place]
        return place == outer

    def expand(self, name: str, held: Iterable[str]) -> list[str]:
        """Those of the codes `held` that a canonical name stands for."""
        return [code for code in held if self.covers(name, f"{EXACT}{code}")]

    def shown(self, name: str) -> str:
        """How to call a resolved name to a person."""
        return self.labels.get(name.removeprefix(EXACT), name)

    def sample(self) -> tuple[str, ...]:
        """Every category, as a code."""
        return tuple(sorted(category for category in self.above if category not in self._nodes))

    def one_of(self, name: str) -> str:
        """The code itself; of a node its first category."""
        below = name.removeprefix(EXACT)
        while below in self._children:
            below = min(self._children[below])
        return below

    def to_tables(self) -> tuple[pa.Table, pa.Table]:
        """(names, aliases) as they stand in an index; the form goes along as metadata."""
        names = sorted({*self.above, *self.above.values(), *self.labels})
        table = pa.table(
            {
                "name": names,
                "term": [False] * len(names),
                "parent": pa.array([self.above.get(name) for name in names], pa.string()),
                "label": pa.array([self.labels.get(name) for name in names], pa.string()),
            },
            SCHEMA,
        )
        return table.replace_schema_metadata({"form": self.form}), aliases_table(self.aliases)

    @staticmethod
    def from_tables(table: pa.Table, aliases: pa.Table, form: str, name: str) -> Codes:
        """What `to_tables` wrote."""
        names, parents, labels = (table.column(c).to_pylist() for c in ("name", "parent", "label"))
        above = {n: p for n, p in zip(names, parents, strict=True) if p is not None}
        titles = {n: x for n, x in zip(names, labels, strict=True) if x is not None}
        return Codes(form, above, titles, aliases_of(aliases), name)


def _join(category: str, tail: str) -> str:
    return f"{category}.{tail}" if tail else category
