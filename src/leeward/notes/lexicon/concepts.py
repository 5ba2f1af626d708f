"""Concepts and their terms: what a health vocabulary is to the annotators and to the table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from leeward.errors import BadInput
from leeward.notes.lexicon.words import keys, text_key

KINDS = ("symptom", "disease", "test", "drug", "procedure", "finding")
"""What a concept can be; `finding` is what foreign vocabularies hold besides (a state, a fact of the history)."""

SEPARATOR = "|"
EXACT, AMBIGUOUS, COMMON = "=", "~", "!"
"""Flags before a term in a lexicon file; see `Term`."""


class Term(NamedTuple):
    """One way to write a concept.

    Attributes
    ----------
    exact : bool
        Counts in this spelling of capitals only (`=MI`, so that "mi" is no infarction).
    ambiguous : bool
        Means other things too (`~cold`): counts only beside another health term, or where the same text names
        the concept by one of its plain terms.
    common : bool
        A word of everyday English, or a name, that was looked at and is meant wherever it occurs (`!pain`).
    """

    text: str
    exact: bool = False
    ambiguous: bool = False
    common: bool = False

    @classmethod
    def parse(cls, text: str) -> Term:
        """A term with its flags before it, in any order: `~=MS`."""
        bare = text.strip()
        flags = ""
        while bare[:1] in (EXACT, AMBIGUOUS, COMMON) and bare:
            flags, bare = flags + bare[0], bare[1:]
        return cls(" ".join(bare.split()), EXACT in flags, AMBIGUOUS in flags, COMMON in flags)

    def __str__(self) -> str:
        flags = AMBIGUOUS * self.ambiguous + EXACT * self.exact + COMMON * self.common
        return flags + self.text


@dataclass(frozen=True)
class Concept:
    """A thing of medicine under a stable id; `terms` begins with the preferred name."""

    id: str
    kind: str
    terms: tuple[Term, ...]

    @property
    def name(self) -> str:
        """The preferred name."""
        return self.terms[0].text

    @property
    def synonyms(self) -> tuple[str, ...]:
        """Every other way to write it, without flags."""
        return tuple(term.text for term in self.terms[1:])


@dataclass(frozen=True)
class Lexicon:
    """Concepts, ascending by id. Raises BadInput where two share an id or one has no name.

    Attributes
    ----------
    phrases : tuple of str
        Everyday phrases around a word of a term ("nervous system"): no term inside one counts.
    """

    name: str
    concepts: tuple[Concept, ...]
    phrases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "concepts", tuple(sorted(self.concepts, key=lambda c: c.id)))
        for before, after in zip(self.concepts, self.concepts[1:], strict=False):
            if before.id == after.id:
                raise BadInput(f"lexicon {self.name!r}: the id {after.id!r} stands for two concepts.")
        for concept in self.concepts:
            if not concept.terms or not concept.name:
                raise BadInput(f"lexicon {self.name!r}: the concept {concept.id!r} has no name.")

    @cached_property
    def by_id(self) -> dict[str, Concept]:
        """Concept by id."""
        return {concept.id: concept for concept in self.concepts}

    def __len__(self) -> int:
        return len(self.concepts)

    def __contains__(self, concept: str) -> bool:
        return concept in self.by_id

    def __getitem__(self, concept: str) -> Concept:
        return self.by_id[concept]

    def find(self, text: str) -> Concept | None:
        """The concept that a term stands for, as a person types it in a query; None if it stands for none.

        Case, accents, hyphens and a plural `s` make no difference. A name comes before a synonym, a plain term
        before an ambiguous one.
        """
        if not self._by_key:
            ranked: dict[tuple[str, ...], tuple[int, Concept]] = {}
            for concept in self.concepts:
                for place, term in enumerate(concept.terms):
                    for variant, key in enumerate(keys(term.text)):
                        rank = 4 * (variant > 0) + 2 * term.ambiguous + (place > 0)
                        if key not in ranked or rank < ranked[key][0]:
                            ranked[key] = (rank, concept)
            self._by_key.update({key: concept for key, (_, concept) in ranked.items()})
        return self._by_key.get(text_key(text))

    @cached_property
    def _by_key(self) -> dict[tuple[str, ...], Concept]:
        return {}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over ids, kinds, terms and phrases: what a release says of the vocabulary it used."""
        sha = hashlib.sha256()
        for c in self.concepts:
            sha.update("\t".join((c.id, c.kind, *map(str, c.terms))).encode() + b"\n")
        sha.update("\t".join(self.phrases).encode())
        return sha.hexdigest()


def concept(id_: str, kind: str, texts: Iterable[str]) -> Concept:
    """A concept from the texts of its terms with their flags; repeats are dropped, the first is the name."""
    terms: dict[str, Term] = {}
    for text in texts:
        term = Term.parse(text)
        if term.text:
            terms.setdefault(term.text, term)
    return Concept(id_, kind, tuple(terms.values()))
