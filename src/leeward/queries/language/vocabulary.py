"""The public vocabulary of an index: a list of terms with nodes above them, codes known by their form, or any text.

Plain data: who builds an index brings it from the lexicon of notes or from a code hierarchy. Everything here is
public, so an unknown term may be refused; what the data hold never decides it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import compress
from typing import Any, ClassVar, Final

import pyarrow as pa

from leeward.errors import BadInput
from leeward.queries.language.query import EXACT, fold

OFFERED = 3
"""Nearest names that a refusal of an unknown one offers."""
FORM: Final = "any text"
"""Name of the vocabulary where an index has no list of terms."""

SCHEMA = pa.schema(
    [("name", pa.string()), ("term", pa.bool_()), ("parent", pa.string()), ("label", pa.string())]
)
ALIASES = pa.schema([("alias", pa.string()), ("name", pa.string())])


@dataclass(frozen=True, kw_only=True)
class Vocabulary(ABC):
    """Interface of vocabularies: `Terms` is a list, `Codes` a form, `AnyText` neither.

    `parents` has the node above each term or node (a tree or forest; a node stands for all terms at and below it),
    `aliases` other names of them, such as synonyms, `labels` display names, which questions may use too.
    """

    parents: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    name: str = "terms"
    public: ClassVar[bool] = True
    """Whether its terms are listed, or known by their form; False where any text is one."""

    @abstractmethod
    def term_of(self, value: str) -> str | None:
        """Term of a value in the data; None if the vocabulary lacks it."""

    @abstractmethod
    def resolve(self, asked: str) -> str:
        """The canonical name of what a query's term names; BadInput for an unknown one, with the nearest ones."""

    @abstractmethod
    def covers(self, outer: str, inner: str) -> bool:
        """Whether `outer` covers all that `inner` stands for (canonical names)."""

    @abstractmethod
    def expand(self, name: str, held: Iterable[str]) -> list[str]:
        """Terms among `held` that a canonical name stands for."""

    @abstractmethod
    def sample(self) -> tuple[str, ...]:
        """Terms of the vocabulary, for made-up data: all of a list, one a category of a form."""

    def label_of(self, name: str) -> str:
        return self.labels.get(name.removeprefix(EXACT), name)

    def title_of(self, name: str) -> str:
        """What a person calls a term or node; its name where it has no other."""
        return self.label_of(name)

    @property
    @abstractmethod
    def texts(self) -> Iterable[tuple[str, str]]:
        """Every public text, folded, and the term or node that it names: names, labels, other names."""

    def parent_of(self, name: str) -> str | None:
        return self.parents.get(name)

    def children_of(self, name: str) -> Sequence[str]:
        """The names directly below a node, sorted; of the empty name those that nothing is above."""
        return self._children.get(name, ()) if name else self._tops

    @cached_property
    def _tops(self) -> Sequence[str]:
        every = {*self.sample(), *self.parents.values()}
        return sorted(name for name in every if name not in self.parents)

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        below: dict[str, list[str]] = {}
        for child, parent in sorted(self.parents.items()):
            below.setdefault(parent, []).append(child)
        return below

    def _unknown(self, wanted: str, exact: bool, known: Iterable[str]) -> BadInput:
        near = nearest(fold(wanted), known)
        hint = f" Nearest known: {', '.join(repr(name) for name in near)}." if near else ""
        return BadInput(
            f"the vocabulary {self.name!r} has no {'code' if exact else 'term'} {wanted!r}.{hint}"
        )

    def _write_tables(self, terms: Iterable[str]) -> tuple[pa.Table, pa.Table]:
        listed = set(terms)
        names = sorted({*listed, *self.parents, *self.parents.values(), *self.labels})
        columns = [
            names,
            [name in listed for name in names],
            [self.parents.get(name) for name in names],
            [self.labels.get(name) for name in names],
        ]
        aliases = dict(sorted(self.aliases.items()))
        others = pa.table([list(aliases.keys()), list(aliases.values())], schema=ALIASES)
        return pa.table(columns, schema=SCHEMA), others

    @abstractmethod
    def to_tables(self) -> tuple[pa.Table, pa.Table]:
        """Tables (names, aliases) as an index stores them."""


def from_tables(table: pa.Table, aliases: pa.Table, name: str) -> Vocabulary:
    form = (table.schema.metadata or {}).get(b"form")
    if form == FORM.encode():
        return AnyText()
    names, parents, labels = (table.column(c).to_pylist() for c in ("name", "parent", "label"))
    others = (aliases.column(c).to_pylist() for c in ("alias", "name"))
    common: dict[str, Any] = {
        "parents": {n: p for n, p in zip(names, parents, strict=True) if p is not None},
        "labels": {n: x for n, x in zip(names, labels, strict=True) if x is not None},
        "aliases": dict(zip(*others, strict=True)),
        "name": name,
    }
    if form is not None:
        return Codes(form.decode(), **common)
    # `table.filter` imports all of pyarrow.compute
    return Terms(tuple(compress(names, table.column("term").to_pylist())), **common)


@dataclass(frozen=True)
class Terms(Vocabulary):
    """A vocabulary that is a list of terms (concept identifiers, or codes: every one that a row can hold)."""

    terms: tuple[str, ...]

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

    @property
    def texts(self) -> Iterable[tuple[str, str]]:
        return self.names.items()

    @cached_property
    def members(self) -> Callable[[str], frozenset[int]]:
        """Name -> numbers of the terms at and below a term or node (exactly that name); of `=term`, the term alone."""
        return cache(self._find_below)

    def _find_below(self, name: str) -> frozenset[int]:
        if name.startswith(EXACT) and name not in self.number:
            return frozenset([self.number[name.removeprefix(EXACT)]])
        below = [name]
        for each in below:  # which grows meanwhile
            below += self._children.get(each, ())
        return frozenset(self.number[each] for each in below if each in self.number)

    def resolve(self, asked: str) -> str:
        """The term if the name stands for one, else the lowest node with the same members, by name; an exact term keeps
        its mark only where it differs from the node."""
        exact = asked.startswith(EXACT)
        wanted = fold(asked.removeprefix(EXACT))
        name = self.names.get(wanted)
        if name is None or (exact and name not in self.number):
            raise self._unknown(wanted, exact, self.names)
        if exact:
            return f"{EXACT}{name}" if len(self.members(name)) > 1 else name
        members = self.members(name)
        if len(members) == 1:
            return self.terms[next(iter(members))]
        while True:  # a chain of nodes with the same members has its last one for a name
            same = [child for child in self._children.get(name, ()) if self.members(child) == members]
            if not same:
                return name
            name = same[0]

    def covers(self, outer: str, inner: str) -> bool:
        return self.members(inner) <= self.members(outer)

    def expand(self, name: str, held: Iterable[str]) -> list[str]:
        members = self.members(name)
        return [term for term in held if self.number.get(term) in members]

    def term_of(self, value: str) -> str | None:
        if value in self.number:
            return value
        name = self.names.get(fold(value))
        return name if name in self.number else None

    def sample(self) -> tuple[str, ...]:
        return self.terms

    def to_tables(self) -> tuple[pa.Table, pa.Table]:
        return self._write_tables(self.terms)


@dataclass(frozen=True)
class AnyText(Vocabulary):
    """The vocabulary of last resort: every text is a term; terms differ by their folded text alone.

    For an index whose terms no public vocabulary lists. What may be asked must not depend on the data, so nothing is
    refused and nothing is offered: a term that nobody has counts 0, plus noise, like any other.
    """

    name: str = FORM
    public: ClassVar[bool] = False

    def term_of(self, value: str) -> str | None:
        """The folded text without marks of an exact term in front; None for an empty one."""
        return fold(value).lstrip(EXACT).strip() or None

    def resolve(self, asked: str) -> str:
        """As in the data. `=term` is `term`: without a list nothing is below a term, so it means itself anyway."""
        term = self.term_of(asked)
        if term is None:
            raise BadInput("a term needs at least one letter or digit.")
        return term

    def covers(self, outer: str, inner: str) -> bool:
        return outer == inner

    def expand(self, name: str, held: Iterable[str]) -> list[str]:
        return [term for term in held if term == name]

    @property
    def texts(self) -> Iterable[tuple[str, str]]:
        return ()

    def sample(self) -> tuple[str, ...]:
        return ()

    def to_tables(self) -> tuple[pa.Table, pa.Table]:
        return SCHEMA.empty_table().replace_schema_metadata({"form": FORM}), ALIASES.empty_table()


@dataclass(frozen=True)
class Codes(Vocabulary):
    """A classification of codes known by their form: every code of a known category may be asked for.

    Diagnosis classifications hold their structure (chapters, sections, categories), not the list of codes in use. So a
    code is known by how it is written and by its category, and stands for itself and all codes that begin with it.
    `parents` are category -> section and section -> chapter, `labels` titles of these nodes, `aliases` titles of
    categories. `form` is a regular expression of a code in upper case without blanks, with a group for the category and
    one for what follows it (of alternatives, those that matched): `250.00` and `25000` are both `250` and `00`.
    """

    form: str

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.form)

    @cached_property
    def _nodes(self) -> frozenset[str]:
        return frozenset(self.parents.values())

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
    def texts(self) -> Iterable[tuple[str, str]]:
        return [*self._names.items(), *((fold(category), category) for category in self.sample())]

    @cached_property
    def _titles(self) -> dict[str, str]:
        return {category: title for title, category in self.aliases.items()} | dict(self.labels)

    def title_of(self, name: str) -> str:
        """The title of a node or category; of a code below one, that of the category."""
        name = name.removeprefix(EXACT)
        category = name.partition(".")[0]
        if name in self._titles or category not in self._titles:
            return self._titles.get(name, name)
        return f"{self._titles[category]}, a code of {category}"

    def parent_of(self, name: str) -> str | None:
        return name.partition(".")[0] if "." in name else self.parents.get(name)

    def _parts(self, text: str) -> tuple[str, str] | None:
        """(category, what follows) of a code whose category exists."""
        found = self._pattern.fullmatch("".join(text.split()).upper())
        if found is None:
            return None
        category, tail = [group for group in found.groups() if group is not None]
        return (category, tail) if category in self.parents and category not in self._nodes else None

    def term_of(self, value: str) -> str | None:
        parts = self._parts(value)
        return None if parts is None else _join(*parts)

    def resolve(self, asked: str) -> str:
        exact = asked.startswith(EXACT)
        wanted = asked.removeprefix(EXACT)
        parts = self._parts(wanted)
        if parts is not None:
            code = _join(*parts)
            known_below = any(self._pattern.fullmatch(f"{'.'.join(parts)}{more}") for more in ("0", "A"))
            return f"{EXACT}{code}" if exact and known_below else code
        node = None if exact else self._names.get(fold(wanted))
        if node is None:
            raise self._unknown(wanted, exact, [*self._names, *map(fold, self.sample())])
        while len(self._children.get(node, ())) == 1:  # a chapter of one section is that section
            node = self._children[node][0]
        return node

    def covers(self, outer: str, inner: str) -> bool:
        if outer == inner:
            return True
        code = inner.removeprefix(EXACT)
        if outer.startswith(EXACT):
            return outer.removeprefix(EXACT) == code and inner.startswith(EXACT)
        if outer not in self._nodes:
            return code == outer or code.startswith(outer if "." in outer else f"{outer}.")
        place = code if code in self._nodes else code.partition(".")[0]
        while place != outer and place in self.parents:
            place = self.parents[place]
        return place == outer

    def expand(self, name: str, held: Iterable[str]) -> list[str]:
        return [code for code in held if self.covers(name, f"{EXACT}{code}")]

    def sample(self) -> tuple[str, ...]:
        return tuple(sorted(self.parents.keys() - self._nodes))

    def to_tables(self) -> tuple[pa.Table, pa.Table]:
        """Like those of a list, with the form as metadata."""
        table, aliases = self._write_tables(())
        return table.replace_schema_metadata({"form": self.form}), aliases


def _join(category: str, tail: str) -> str:
    return f"{category}.{tail}" if tail else category


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
