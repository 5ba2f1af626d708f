"""Find terms and codes of an index's public vocabulary, by words, by code and along its tree. Holds no count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from leeward.errors import BadInput
from leeward.queries.language.query import fold, write_term
from leeward.queries.language.vocabulary import Terms, Vocabulary

MOST: Final = 20
"""Names found at once."""
MOST_BELOW: Final = 200
"""Names of one step of the tree."""
EXAMPLES: Final = (("250", "401", "585"), ("E11", "I10", "N18"), ("sore throat", "fever", "cough"))


@dataclass(frozen=True)
class Found:
    """A term, code or node as it is asked for, and how a person calls it."""

    name: str
    label: str
    asked: str
    """As it is written in a question: in quotation marks where it holds a sign of the language."""
    synonym: str | None
    """The other name of it that matched, where neither name nor label did."""
    above: str | None
    """The node above it in the tree."""
    below: int
    """How many names of the vocabulary are directly below it."""


def search(terms: Vocabulary, text: str, most: int = MOST) -> list[Found]:
    """What is called by the words of `text`, best first: names and codes that begin with it, then labels, then
    synonyms, then what holds it somewhere. A code needs no dot. Nothing where the vocabulary is no public one."""
    wanted = fold(text)
    if not wanted or not terms.public:
        return []
    plain = wanted.replace(".", "")
    best: dict[str, tuple[int, str]] = {}
    for known, name in terms.texts:
        own = known == fold(name)
        if plain in (known.replace(".", "") if own else known) or wanted.split()[0] in known:
            rank = _rank(wanted, known, own, known == fold(terms.title_of(name)))
            best[name] = min(best.get(name, (NONE, "")), (rank, known))
    code = terms.term_of(text)
    if code is not None:  # one that a classification knows by its form
        best.setdefault(code, (-1, fold(code)))
    ranked = sorted((rank, known, name) for name, (rank, known) in best.items() if rank < NONE)
    return [
        _describe(terms, name, known if rank in SYNONYMS else None) for rank, known, name in ranked[:most]
    ]


NONE: Final = 9
SYNONYMS: Final = (4, 5, 7)


def _rank(wanted: str, known: str, own: bool, label: bool) -> int:
    """How well a text matches: 0 is best, `NONE` not at all."""
    if own and known.replace(".", "").startswith(wanted.replace(".", "")):
        return 0
    kind = 0 if own or label else 1
    if known.startswith(wanted):
        return (1, 4)[kind]
    if all(f" {word}" in f" {known}" for word in wanted.split()):
        return (2, 5)[kind]
    return (6, 7)[kind] if len(wanted) > 1 and wanted in known else NONE


def browse(terms: Vocabulary, name: str) -> list[Found]:
    """The names directly below one (below nothing where it is empty), at most `MOST_BELOW`, by name; none where the
    vocabulary is no public one. BadInput for a name that it lacks."""
    if name and not terms.children_of(name) and name not in terms.parents and terms.term_of(name) is None:
        raise BadInput("the vocabulary has no such name.")
    below = terms.children_of(name)
    if isinstance(terms, Terms):  # a node without a term cannot be asked for
        below = sorted((each for each in below if terms.members(each)), key=terms.title_of)
    return [_describe(terms, each, None) for each in below[:MOST_BELOW]]


def place_of(terms: Vocabulary, name: str) -> list[Found]:
    """The nodes above a name, the highest first, and it."""
    path = [name] if name else []
    while path and (above := terms.parent_of(path[0])) is not None:
        path.insert(0, above)
    return [_describe(terms, each, None) for each in path]


TOP: Final = "*"
"""In the place of a name to look below: the top of the tree."""


@dataclass(frozen=True)
class Listed:
    """What is shown under "Find a term": names found, or those below a place in the tree."""

    names: list[Found]
    place: list[Found]
    browsed: bool


def look_up(terms: Vocabulary, find: str, below: str) -> Listed | None:
    """The names below a place where one is named, else those that were searched for; None where nothing is asked."""
    if below:
        name = below.removeprefix(TOP)
        return Listed(browse(terms, name), place_of(terms, name), True)
    return Listed(search(terms, find), [], False) if find else None


def _describe(terms: Vocabulary, name: str, synonym: str | None) -> Found:
    return Found(
        name, terms.title_of(name), _term_in_query(terms, name), synonym, terms.parent_of(name),
        len(terms.children_of(name)),
    )  # fmt: skip


def _term_in_query(terms: Vocabulary, name: str) -> str:
    """A term as a question writes it: a list's by its label, where that names this term and no other."""
    label = terms.label_of(name)
    by_label = isinstance(terms, Terms) and terms.names.get(fold(label)) == name
    return write_term(label if by_label else name)


def example_of(terms: Vocabulary) -> str:
    """A question that shows how terms are joined, with names that this vocabulary has."""
    known: Iterable[tuple[str, ...]] = (
        each for each in EXAMPLES if terms.public and all(terms.term_of(name) for name in each)
    )
    a, b, c = next(iter(known), (terms.sample() * 3)[:3] or ("A", "B", "C"))
    return f"{write_term(a)} & ({write_term(b)} | {write_term(c)})"
