"""What all foreign vocabularies need before they can be looked for in notes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from leeward.errors import BadInput
from leeward.notes.lexicon.concepts import Concept, Lexicon, Term
from leeward.notes.lexicon.names import Names
from leeward.notes.lexicon.own import load_lexicon
from leeward.notes.lexicon.words import Key, text_key


@dataclass
class Entry:
    """A concept as a vocabulary gives it: one name, any number of synonyms; `rank` 0 comes before 1."""

    kind: str
    name: str
    synonyms: list[str] = field(default_factory=list)
    rank: int = 0


def lexicon(name: str, entries: dict[str, Entry]) -> Lexicon:
    """A lexicon of a foreign vocabulary's entries by id, its terms made safe for free text.

    Synonyms of fewer than three letters or digits are left out. An abbreviation in capitals counts in capitals
    only. A single word that is everyday English or a person's name counts only beside another health term,
    unless the project's own lexicon knows it as a plain term. Where concepts share a term it stays with the one
    that has it as its name, then with the lower rank, then with the smaller id. Raises BadInput if nothing is left.
    """
    if not entries:
        raise BadInput(f"{name}: no concept of a kind that notes speak of, or none that is active.")
    doubtful = _everyday_words()
    owner: dict[Key, tuple[int, int, str]] = {}
    for id_, entry in entries.items():
        for place, text in enumerate((entry.name, *entry.synonyms)):
            bid = (min(place, 1), entry.rank, id_)
            key = text_key(text)
            if key not in owner or bid < owner[key]:
                owner[key] = bid
    concepts = []
    for id_, entry in entries.items():
        terms = {entry.name: _guard(entry.name, doubtful)}
        if owner[text_key(entry.name)][2] != id_:
            terms[entry.name] = terms[entry.name]._replace(ambiguous=True)
        for text in entry.synonyms:
            key = text_key(text)
            if owner[key][2] == id_ and sum(map(len, key)) >= 3:
                terms.setdefault(text, _guard(text, doubtful))
        concepts.append(Concept(id_, entry.kind, tuple(terms.values())))
    return Lexicon(name, tuple(concepts))


def _guard(text: str, doubtful: frozenset[str]) -> Term:
    clean = " ".join(text.split())
    key = text_key(clean)
    exact = re.fullmatch(r"[A-Z]{2,5}", clean) is not None
    return Term(clean, exact=exact, ambiguous=not key or (len(key) == 1 and not exact and key[0] in doubtful))


def _everyday_words() -> frozenset[str]:
    names = Names.common()
    own = {
        key[0]
        for concept in load_lexicon().concepts
        for term in concept.terms
        if not term.ambiguous and not term.exact and len(key := text_key(term.text)) == 1
    }
    return (names.ordinary | names.first | names.last) - own
