"""The dictionary annotator: health terms of a lexicon, people's names and places of lists.

One pass over the words of a text finds all three. A name that is a word as well ("White", "Will", "Parkinson")
counts only in capitals and in company: after a title, before a degree, or beside another name. A place that is a
word or a name counts after a preposition or before a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import ClassVar

from leeward.notes.annotators.rules.names import EPONYM
from leeward.notes.annotators.rules.words import words
from leeward.notes.lexicon.concepts import Key, Lexicon
from leeward.notes.lexicon.lists import Names, Places
from leeward.notes.lexicon.loaders import load as load_lexicon
from leeward.notes.lexicon.matching import Match, TermMatcher, Words
from leeward.notes.spans import Span

TITLES = words("mr mrs ms miss mx dr drs doctor prof professor rev reverend sr sra senor senora")
DEGREES = words(
    """md do rn np pa phd dds dmd dpm lpn cnp crnp fnp aprn pharmd mbbs facc facs faap pt ot jr sr"""
)
BEFORE_PLACES = words(
    """in from to at near of outside around via toward towards visited visiting through downtown"""
)
NO_FIRST_NAMES = words("april august grant hope june mark may will")
"""First names that begin sentences or are parts of dates: beside a surname that is a word too they name nobody."""

MAX_NAME = 5
"""Most words of a name, including initials."""

MAX_INITIALS = 4
"""Most initials before a surname."""


class Dictionary:
    """Finds HMI spans with their concept, EID `name` spans and QID `place` spans. Built once; keeps no state."""

    name: ClassVar[str] = "dictionary"

    def __init__(
        self,
        lexicon: Lexicon,
        *,
        names: Names | None = None,
        places: Places | None = None,
    ) -> None:
        """`names` and `places` are the common ones if not given; empty ones (`Names()`) leave them out."""
        self.lexicon = lexicon
        self._matcher = TermMatcher(lexicon)
        self._names = Names.common() if names is None else names
        self._places = Places.common() if places is None else places
        self._listed = self._names.first | self._names.last
        words = {w for c in lexicon.concepts for t in c.terms if len(w := t.text.casefold()) and " " not in w}
        self._ordinary = self._names.ordinary | words
        self._place_starts: dict[str, list[Key]] = {}
        for key in self._places.names | self._places.doubtful:
            self._place_starts.setdefault(key[0], []).append(key)
        for keys in self._place_starts.values():
            keys.sort(key=len, reverse=True)

    @cached_property
    def plain_words(self) -> frozenset[str]:
        """Words of the lexicon's terms that are no name."""
        return self._matcher.vocabulary - self._names.first - self._names.last

    def annotate(self, text: str) -> Sequence[Span]:
        """The spans of a text, ascending, without overlaps. A titled name wins over everything; of the others the
        longest wins, among equals the most protective."""
        words = Words.of(text)
        terms = self._matcher.matches(words)
        found = [(0, t.first, t.last, self._health(words, t)) for t in terms]
        if self._listed or self._place_starts:
            capital = words.capitals()
            found += [
                (s, a, b, _span(words, a, b, "EID", "name")) for s, a, b in self._find_names(words, capital)
            ]
            found += [
                (0, a, b, _span(words, a, b, "QID", "place")) for a, b in self._find_places(words, capital)
            ]
        return _resolve(found)

    def _health(self, words: Words, match: Match) -> Span:
        concept = self.lexicon.concepts[match.concept]
        return Span(
            words.starts[match.first], words.end(match.last), "HMI", concept.kind, concept.id, self.name
        )

    def _find_names(self, words: Words, capital: list[int]) -> list[tuple[int, int, int]]:
        """Certainty (1: titled, 0: by the lists), first and last word of each name."""
        found = []
        past = 0
        for place in capital:
            if place < past or not (words.folded[place] in self._listed or len(words.raw[place]) == 1):
                continue
            first, last = _initials_before(words, place, past), self._end_of_name(words, place)
            titled = _has_title(words, first)
            if len(words.raw[place]) == 1:
                if not titled:
                    continue
                last = max(last, _last_initial(words, place))
            if titled or self._counts(words, first, last):
                found.append((int(titled), first, last))
                past = last + 1
        return found

    def _end_of_name(self, words: Words, first: int) -> int:
        """Return the last word of the name that begins at a listed word."""
        last = first
        at = first
        while at + 1 < len(words.raw) and at + 1 - first < MAX_NAME:
            at += 1
            word = words.raw[at]
            if "\n" in words.gap(at - 1):
                break
            if word == "," and last == first:
                after = at + 1
                is_last = words.folded[first] in self._names.last
                if (
                    is_last
                    and after < len(words.raw)
                    and words.raw[after][0].isupper()
                    and words.folded[after] in self._names.first
                    and "\n" not in words.gap(at)
                ):
                    last = after
                    at = after
                    continue
                break
            if len(word) == 1 and word.isupper():
                if self._surname_follows(words, at):
                    continue
                break
            if word == ".":
                if len(words.raw[at - 1]) == 1 and words.gap(at - 1) == "":
                    continue
                break
            if word[0].isupper() and (
                words.folded[at] in self._listed or self._is_unlisted_surname(words, last, at)
            ):
                last = at
                continue
            break
        return last

    def _surname_follows(self, words: Words, initial: int) -> bool:
        after = initial + 1
        if after < len(words.raw) and words.raw[after] == ".":
            after += 1
        return (
            after < len(words.raw) and words.raw[after][0].isupper() and words.folded[after] in self._listed
        )

    def _is_unlisted_surname(self, words: Words, before: int, at: int) -> bool:
        """Whether an unlisted capitalised word follows a first name that is only a name."""
        first, word = words.folded[before], words.folded[at]
        return (
            first in self._names.first
            and first not in self._ordinary
            and words.raw[at].isalpha()
            and words.raw[at].istitle()
            and word not in self._ordinary
            and word not in self._matcher.vocabulary
        )

    def _counts(self, words: Words, first: int, last: int) -> bool:
        """Whether a run of listed words without a title is a name."""
        run = [i for i in range(first, last + 1) if len(words.raw[i]) > 1]
        plain = [i for i in run if words.folded[i] not in self._ordinary]
        if len(run) > 1:
            given, family = words.folded[run[0]], words.folded[run[-1]]
            fits = given in self._names.first and given not in NO_FIRST_NAMES and family in self._names.last
            return bool(plain) or _has_degree(words, last) or (fits and words.raw[run[0]].istitle())
        alone = plain and not words.raw[run[0]].isupper() and not EPONYM.match(words.text, words.end(last))
        return bool(alone) or _has_degree(words, last)

    def _find_places(self, words: Words, capital: list[int]) -> list[tuple[int, int]]:
        found = []
        past = 0
        for place in capital:
            if place < past:
                continue
            for key in self._place_starts.get(words.folded[place], ()):
                last = place + len(key) - 1
                if tuple(words.folded[place : last + 1]) == key and self._is_place(words, place, last, key):
                    last = self._with_state(words, last)
                    found.append((place, last))
                    past = last + 1
                    break
        return found

    def _is_place(self, words: Words, first: int, last: int, key: Key) -> bool:
        if key in self._places.names:
            return True
        after_preposition = first > 0 and words.folded[first - 1] in BEFORE_PLACES
        return (after_preposition and not words.shouts(first)) or self._with_state(words, last) > last

    def _with_state(self, words: Words, last: int) -> int:
        at = last + 1
        if at < len(words.raw) and words.raw[at] == ",":
            at += 1
        if at >= len(words.raw) or "\n" in words.text[words.end(last) : words.starts[at]]:
            return last
        if words.raw[at] in self._places.states:
            return at
        for key in self._place_starts.get(words.folded[at], ()):
            end = at + len(key)
            if at > last + 1 and words.raw[at][0].isupper() and tuple(words.folded[at:end]) == key:
                return end - 1
        return last


@cache
def load(lexicon: str) -> Dictionary:
    """The dictionary of a lexicon that `loaders.load` reads; built once in a process."""
    return Dictionary(load_lexicon(lexicon))


def _is_initial(words: Words, place: int) -> bool:
    return len(words.raw[place]) == 1 and words.raw[place].isupper()


def _initials_before(words: Words, place: int, past: int) -> int:
    """The first of the initials, each with a full stop, that precede a surname; the surname if there is none. No more
    than `MAX_INITIALS`: a note that is all initials would otherwise be walked back to its start from each."""
    first = place
    past = max(past, place - 2 * MAX_INITIALS)
    while first - 2 >= past and words.raw[first - 1] == "." and _is_initial(words, first - 2):
        if "\n" in words.gap(first - 1) or words.gap(first - 2):
            break
        first -= 2
    return first


def _last_initial(words: Words, place: int) -> int:
    """The last of the initials that begin here: of "L. C." the second."""
    last = place
    while last + 2 < len(words.raw) and words.raw[last + 1] == "." and _is_initial(words, last + 2):
        if words.gap(last + 1) not in ("", " ") or words.raw[last + 2] == "I":
            break  # a new sentence, rather
        last += 2
    return last


def _has_title(words: Words, first: int) -> bool:
    before = first - 1
    if before >= 0 and words.raw[before] == ".":
        before -= 1
    return before >= 0 and words.folded[before] in TITLES and words.raw[before][0].isupper()


def _has_degree(words: Words, last: int) -> bool:
    """Whether a comma and a degree follow: "White, M.D."."""
    if last + 2 >= len(words.raw) or words.raw[last + 1] != ",":
        return False
    degree = ""
    for at in range(last + 2, min(last + 8, len(words.raw))):
        if not (words.raw[at] == "." or words.raw[at].isupper()) or "\n" in words.gap(at - 1):
            break
        degree += words.raw[at].replace(".", "").lower()
        if degree in DEGREES:
            return True
    return False


def _span(words: Words, first: int, last: int, kind: str, category: str) -> Span:
    start, end = words.starts[first], words.end(last)
    if words.raw[last].endswith(("'s", "’s")):
        end -= 2
    return Span(start, end, "EID" if kind == "EID" else "QID", category, source=Dictionary.name)


_RANK = {"EID": 0, "QID": 1, "HMI": 2}


def _resolve(found: list[tuple[int, int, int, Span]]) -> list[Span]:
    taken: set[int] = set()
    chosen = []
    for _, first, last, span in sorted(found, key=lambda f: (-f[0], f[1] - f[2], _RANK[f[3].kind], f[1])):
        places = range(first, last + 1)
        if taken.isdisjoint(places):
            taken.update(places)
            chosen.append(span)
    return sorted(chosen)
