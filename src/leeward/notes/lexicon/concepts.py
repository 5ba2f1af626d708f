"""Words, terms and concepts of a health vocabulary.

A word is a run of letters and digits, with the apostrophes inside it. Blanks and single hyphens only separate words;
every other mark is a word itself, so that no term spans a comma or a full stop. A blank line and a dash between
blanks count as marks too. Words are compared folded: case, accents and a possessive `'s` make no difference. Folding
is done word by word, so that word indices keep their offsets in the original text.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from leeward.errors import BadInput

_JOINED = "\u0300-\u036f\u00ad"  # combining accents, soft hyphen: inside a word, though no letters

WORD = re.compile(
    rf"([^\W_]+(?:[{_JOINED}]+[^\W_]*)*(?:['’][^\W_]+)*"  # a word
    r"|\n[^\S\n]*\n"  # a blank line
    r"|(?<=\s)[-‐‑]+(?=\s)"  # a dash between blanks
    r"|[^\w\s‐‑-]|_|[-‐‑]{2,})"  # any other mark
)

_HYPHENED, _HYPHEN = re.compile(r"\w[-‐‑]\w"), re.compile(r"(?<=\w)[-‐‑](?=\w)")
_POSSESSED, _POSSESSIVE = re.compile(r"\w['’]s\b"), re.compile(r"['’]s\b")

Key = tuple[str, ...]
"""The folded words of a term."""


def fold(word: str) -> str:
    if word.isascii():
        folded = word.lower()
        return folded[:-2] if folded.endswith("'s") else folded
    plain = unicodedata.normalize("NFKD", word.replace("’", "'").replace("\u00ad", ""))
    folded = "".join(c for c in plain if not unicodedata.combining(c)).casefold()
    return folded[:-2] if folded.endswith("'s") else folded


def text_key(text: str) -> Key:
    if text.isascii() and "'" not in text:
        return tuple(WORD.findall(text.lower()))
    return tuple(fold(word) for word in WORD.findall(text))


def plural(word: str) -> str | None:
    """Return the regular plural of a folded word, or None if it would be another word."""
    if len(word) < 3 or not word.isalpha() or not word.isascii():
        return None
    if word.endswith(("sis", "xis")):
        return word[:-2] + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return None if word.endswith("s") and not word.endswith("ss") else word + "es"
    return word + "s"


@lru_cache(maxsize=4096)
def keys(text: str) -> tuple[Key, ...]:
    """Return spelling variants of a term: as written (first), hyphens closed up, possessive `s` without its apostrophe,
    last word in the plural."""
    forms = [text]
    if not text.isascii() or "-" in text or "'" in text:
        if _HYPHENED.search(text):
            forms.append(_HYPHEN.sub("", text))
        forms += [_POSSESSIVE.sub("s", form) for form in forms if _POSSESSED.search(form)]
    found = dict.fromkeys(key for form in forms if (key := text_key(form)))
    for key in list(found):
        many = f"{key[-1]}s" if text[-2:].isalpha() and text[-2:].isupper() else plural(key[-1])
        if many:
            found[(*key[:-1], many)] = None
    return tuple(found)


KINDS = ("symptom", "disease", "test", "drug", "procedure", "finding")
"""Kinds of concepts; `finding`: other concepts of foreign vocabularies (a state, a fact of the history)."""

SEPARATOR = "|"
EXACT, AMBIGUOUS, COMMON = "=", "~", "!"
"""Flags before a term in a lexicon file; see `Term`."""


class Term(NamedTuple):
    """A spelling of a concept. An `exact` one (`=MI`) counts in these capitals only, so that "mi" is no infarction. An
    `ambiguous` one (`~cold`) counts only beside another health term, or where the same text names the concept by a
    plain term. A `common` one (`!pain`) is everyday English or a name, was reviewed and always counts."""

    text: str
    exact: bool = False
    ambiguous: bool = False
    common: bool = False

    @classmethod
    def parse(cls, text: str) -> Term:
        """Parse a term with leading flags in any order: `~=MS`."""
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
    """A medical concept with a stable id; `terms` begins with the preferred name."""

    id: str
    kind: str
    terms: tuple[Term, ...]

    @property
    def name(self) -> str:
        return self.terms[0].text

    @property
    def synonyms(self) -> tuple[str, ...]:
        """All other terms, without flags."""
        return tuple(term.text for term in self.terms[1:])


@dataclass(frozen=True)
class Lexicon:
    """Concepts, ascending by id; BadInput when two share an id or one has no name. `phrases` are everyday ones around a
    word of a term ("nervous system"): no term inside one counts."""

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
        return {concept.id: concept for concept in self.concepts}

    def __len__(self) -> int:
        return len(self.concepts)

    def __contains__(self, concept: str) -> bool:
        return concept in self.by_id

    def __getitem__(self, concept: str) -> Concept:
        return self.by_id[concept]

    def find(self, text: str) -> Concept | None:
        """Return the concept of a term typed in a query, or None. Case, accents, hyphens and a plural `s` make no
        difference. A name comes before a synonym, a plain term before an ambiguous one."""
        return self._by_key.get(text_key(text))

    @cached_property
    def _by_key(self) -> dict[Key, Concept]:
        ranked: dict[Key, tuple[int, Concept]] = {}
        for concept in self.concepts:
            for place, term in enumerate(concept.terms):
                for variant, key in enumerate(keys(term.text)):
                    rank = 4 * (variant > 0) + 2 * term.ambiguous + (place > 0)
                    if key not in ranked or rank < ranked[key][0]:
                        ranked[key] = (rank, concept)
        return {key: concept for key, (_, concept) in ranked.items()}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over ids, kinds, terms and phrases; identifies the vocabulary in a release."""
        sha = hashlib.sha256()
        for c in self.concepts:
            sha.update("\t".join((c.id, c.kind, *map(str, c.terms))).encode() + b"\n")
        sha.update("\t".join(self.phrases).encode())
        return sha.hexdigest()


def concept(id_: str, kind: str, texts: Iterable[str]) -> Concept:
    """Build a concept from flagged terms; duplicates are dropped, the first is the name."""
    terms: dict[str, Term] = {}
    for text in texts:
        term = Term.parse(text)
        if term.text:
            terms.setdefault(term.text, term)
    return Concept(id_, kind, tuple(terms.values()))
