"""The public vocabulary of an index: terms, the nodes above them, other names.

Plain data: who builds an index brings it from the lexicon of notes or from a code hierarchy. Everything here is
public, so an unknown term may be refused; what the data hold never decides it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Protocol

import pyarrow as pa

from leeward.errors import BadInput
from leeward.queries.language.query import EXACT, fold

OFFERED = 3
"""Nearest names that a refusal of an unknown one offers."""

SCHEMA = pa.schema(
    [("name", pa.string()), ("term", pa.bool_()), ("parent", pa.string()), ("label", pa.string())]
)
ALIASES = pa.schema([("alias", pa.string()), ("name", pa.string())])


class Vocabulary(Protocol):
    """What an index asks of a vocabulary; `Terms` is a list, `codes.Codes` a form, `any_text.AnyText` neither."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def public(self) -> bool:
        """Whether its terms are listed, or known by their form; False where any text is one."""

    def term_of(self, value: str) -> str | None:
        """The term that a value in the data is; None for what the vocabulary lacks."""

    def resolve(self, asked: str) -> str:
        """The canonical name of what a query's term names; BadInput for an unknown one."""

    def covers(self, outer: str, inner: str) -> bool:
        """Whether all that `inner` stands for, `outer` stands for too (canonical names)."""

    def expand(self, name: str, held: Iterable[str]) -> list[str]:
        """Those of the terms `held` that a canonical name stands for."""

    def shown(self, name: str) -> str:
        """How to call a resolved name to a person."""

    def sample(self) -> tuple[str, ...]:
        """Terms of the vocabulary, for made-up data: all of a list, one a category of a form."""

    def one_of(self, name: str) -> str:
        """A term that a canonical name stands for, for made-up data."""

    def to_tables(self) -> tuple[pa.Table, pa.Table]:
        """(names, aliases) as they stand in an index."""


@dataclass(frozen=True)
class Terms:
    """A vocabulary that is a list of terms, with nodes above them.

    Attributes
    ----------
    terms : tuple of str
        Every term that a row can hold: concept identifiers, or codes.
    parents : mapping
        Term or node -> the node above it (a tree or forest). A node stands for all terms at and below it.
    aliases : mapping
        Another name, such as a synonym -> term or node.
    labels : mapping
        Term or node -> how a person calls it; also a name to ask by.
    name : str
        What the vocabulary is called, for example `icd9`.
    """

    terms: tuple[str, ...]
    parents: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    name: str = "terms"

    @property
    def public(self) -> bool:
        """Its terms are listed."""
        return True

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", tuple(sorted(set(self.terms))))
        if not self.terms:
            raise BadInput(f"the vocabulary {self.name!r} has no term.")
        if any(not fold(term) for term in self.terms):
            raise BadInput(f"the vocabulary {self.name!r} has an empty term.")
        for name in self.parents:
            above, seen = name, {name}
            while above in self.parents:
                above = self.parents[above]
                if above in seen:
                    raise BadInput(f"the vocabulary {self.name!r} has a node that is above itself.")
                seen.add(above)

    @cached_property
    def number(self) -> dict[str, int]:
        """Term -> its place in `terms`."""
        return {term: i for i, term in enumerate(self.terms)}

    @cached_property
    def names(self) -> dict[str, str]:
        """Folded name -> term or node; a term's own name goes before labels and aliases."""
        found: dict[str, str] = {}
        nodes = {*self.parents, *self.parents.values()}
        for group in (self.terms, sorted(name for name in nodes if self.members(name))):
            for name in group:
                found.setdefault(fold(name), name)
        labels = ((label, name) for name, label in self.labels.items())
        for pairs in (labels, self.aliases.items()):
            for text, name in sorted(pairs):
                if name in self.number or self.members(name):
                    found.setdefault(fold(text), name)
        return found

    @cached_property
    def sorted_names(self) -> tuple[str, ...]:
        """Every folded name, in order."""
        return tuple(sorted(self.names))

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        below: dict[str, list[str]] = {}
        for child, parent in sorted(self.parents.items()):
            below.setdefault(parent, []).append(child)
        return below

    def members(self, name: str) -> frozenset[int]:
        """Numbers of the terms at and below a term or node (exactly `name`); of `=term`, the term alone."""
        known = self._members.get(name)
        if known is None:
            known = self._members[name] = self._find_below(name)
        return known

    @cached_property
    def _members(self) -> dict[str, frozenset[int]]:
        return {}

    def _find_below(self, name: str) -> frozenset[int]:
        if name.startswith(EXACT) and name not in self.number:
            return frozenset([self.number[name[len(EXACT) :]]])
        found: set[int] = set()
        waiting, seen = [name], set()
        while waiting:
            current = waiting.pop()
            if current in seen:
                continue
            seen.add(current)
            if current in self.number:
                found.add(self.number[current])
            waiting += self._children.get(current, ())
        return frozenset(found)

    def resolve(self, asked: str) -> str:
        """The one canonical name of what a query's term names: the term if it stands for one, else the lowest node
        with the same members, by name; an exact term keeps its mark only where it differs from the node.

        Raises
        ------
        BadInput
            Unknown name, with the nearest known ones.
        """
        exact = asked.startswith(EXACT)
        wanted = fold(asked[len(EXACT) :] if exact else asked)
        name = self.names.get(wanted)
        if name is None or (exact and name not in self.number):
            raise BadInput(
                f"the vocabulary {self.name!r} has no {'code' if exact else 'term'} {wanted!r}.{self._hint(wanted)}"
            )
        if exact:
            return f"{EXACT}{name}" if len(self.members(name)) > 1 else name
        return self._lowest(name)

    def _lowest(self, name: str) -> str:
        members = self.members(name)
        if len(members) == 1:
            return self.terms[next(iter(members))]
        while True:  # a chain of nodes with the same members has its last one for a name
            same = [child for child in self._children.get(name, ()) if self.members(child) == members]
            if not same:
                return name
            name = same[0]

    def covers(self, outer: str, inner: str) -> bool:
        """Whether all that `inner` stands for, `outer` stands for too (canonical names)."""
        return self.members(inner) <= self.members(outer)

    def expand(self, name: str, held: Iterable[str]) -> list[str]:
        """Those of the terms `held` that a canonical name stands for."""
        members = self.members(name)
        return [term for term in held if self.number.get(term) in members]

    def term_of(self, value: str) -> str | None:
        """The term that a value in the data is, by its name, a label or an alias; None for none."""
        if value in self.number:
            return value
        name = self.names.get(fold(value))
        return name if name in self.number else None

    def shown(self, name: str) -> str:
        """How to call a resolved name to a person."""
        return self.labels.get(name.removeprefix(EXACT), name)

    def sample(self) -> tuple[str, ...]:
        """All terms."""
        return self.terms

    def one_of(self, name: str) -> str:
        """The first term that a canonical name stands for."""
        return self.terms[min(self.members(name))]

    def _hint(self, wanted: str) -> str:
        near = nearest(wanted, self.names)
        return f" Nearest known: {', '.join(repr(name) for name in near)}." if near else ""

    # -- files ----

    def to_tables(self) -> tuple[pa.Table, pa.Table]:
        """(names, aliases) as they stand in an index."""
        names = sorted({*self.terms, *self.parents, *self.parents.values(), *self.labels})
        table = pa.table(
            {
                "name": names,
                "term": [name in self.number for name in names],
                "parent": pa.array([self.parents.get(name) for name in names], pa.string()),
                "label": pa.array([self.labels.get(name) for name in names], pa.string()),
            },
            SCHEMA,
        )
        return table, aliases_table(self.aliases)

    @staticmethod
    def from_tables(table: pa.Table, aliases: pa.Table, name: str) -> Terms:
        """What `to_tables` wrote."""
        names, parents, labels = (table.column(c).to_pylist() for c in ("name", "parent", "label"))
        terms = compress(
            names, table.column("term").to_pylist()
        )  # `table.filter` imports all of pyarrow.compute
        return Terms(
            tuple(terms),
            {n: p for n, p in zip(names, parents, strict=True) if p is not None},
            aliases_of(aliases),
            {n: x for n, x in zip(names, labels, strict=True) if x is not None},
            name,
        )


def aliases_table(aliases: Mapping[str, str]) -> pa.Table:
    """Other names as they stand in an index."""
    pairs = sorted(aliases.items())
    return pa.table({"alias": [a for a, _ in pairs], "name": [n for _, n in pairs]}, ALIASES)


def aliases_of(table: pa.Table) -> dict[str, str]:
    """What `aliases_table` wrote."""
    return dict(zip(table.column("alias").to_pylist(), table.column("name").to_pylist(), strict=True))


def nearest(wanted: str, names: Iterable[str], count: int = OFFERED) -> list[str]:
    """The `count` names most like `wanted` by shared pairs of letters, best first; none below a third."""
    pairs = _pairs(wanted)
    scored = []
    for name in names:
        other = _pairs(name)
        alike = 2 * len(pairs & other) / max(len(pairs) + len(other), 1)
        if alike > 1 / 3:
            scored.append((-alike, name))
    return [name for _, name in sorted(scored)[:count]]


def _pairs(text: str) -> set[str]:
    framed = f" {text} "
    return {framed[i : i + 2] for i in range(len(framed) - 1)}
