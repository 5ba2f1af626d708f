"""ConText: is what a note says of a health term so, now, and of the patient?

The rules of Harkema, Dowling, Thornblade, Chapman (J Biomed Inform 42, 2009), which extend NegEx (Chapman et al.
2001): a trigger before or after a term speaks for the terms up to the sentence's end, a terminating word, or the
next trigger of its own kind; a pseudo-trigger (`no increase`, `not only`) speaks for none. Beside them sections: a
disease of the section FAMILY HISTORY is not the patient's, whatever the sentence says.

Unlike ConText, a plain `history of` leaves a term asserted: somebody with a history of diabetes has it, and who
counts patients wants it counted. Past is what the text calls past: `remote`, `resolved`, `as a child`, `years ago`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from leeward.notes.context import sections, triggers
from leeward.notes.spans import Span

Status = Literal["negated", "uncertain", "family", "past"]

REACH = 10
"""Scope, in words, of an uncertainty or a negation after the term (the end of the sentence stops it earlier)."""

_Action = tuple[str, str]

_SENTENCE_END = re.compile(r"[.!?](?=[\s\"')]|$)|\n\s*\n|;|\n(?=\s*(?:[-*•\d]|[A-Z]))|\.\.\.")
_NO_END = frozenset(
    [
        "dr",
        "mr",
        "mrs",
        "ms",
        "st",
        "vs",
        "no",
        "pt",
        "approx",
        "e.g",
        "i.e",
        "etc",
        "jr",
        "sr",
        "q.d",
        "b.i.d",
        "t.i.d",
        "p.o",
    ]
)


@dataclass(frozen=True)
class Trigger:
    """A phrase at `start` to `end` (exclusive)."""

    start: int
    end: int
    says: str
    side: str


def judged(text: str, low: str, spans: Sequence[Span]) -> list[Span]:
    """The spans with health terms that are denied, doubted, past or somebody else's marked as not asserted."""
    terms = [i for i, span in enumerate(spans) if span.kind == "HMI" and span.asserted]
    if not terms:
        return list(spans)
    statuses = statuses_of(text, low, [spans[i] for i in terms])
    result = list(spans)
    for i, status in zip(terms, statuses, strict=True):
        if status:
            result[i] = spans[i]._replace(asserted=False)
    return result


def statuses_of(text: str, low: str, terms: Sequence[Span]) -> list[frozenset[str]]:
    """What the context says of each term (ascending): a set of `Status`, empty where it is plainly asserted."""
    parts = sections.find(text, low)
    starts = [part.start for part in parts]
    ends = _sentence_ends(text, [part.start for part in parts])
    said = _outside(find(low), terms)
    said_starts = [t.start for t in said]
    found = []
    for term in terms:
        i = bisect_right(ends, term.start)
        begin, end = (ends[i - 1] if i else 0), (ends[i] if i < len(ends) else len(text))
        near = said[bisect_left(said_starts, begin) : bisect_left(said_starts, end)]
        status = _said(low, term, near)
        topic = sections.topic_at(parts, starts, term.start)
        if topic == "family":
            status.add("family")
        elif topic == "allergies" and term.category == "drug":
            status.add("negated")
        found.append(frozenset(status))
    return found


def find(low: str) -> list[Trigger]:
    """The triggers of a text, ascending; of overlapping ones the longest, and all readings of it."""
    found: list[tuple[int, int, tuple[_Action, ...]]] = []
    for last, (length, actions) in _automaton().iter(low):
        start, end = last + 1 - length, last + 1
        if low[start] != "?" and not _whole(low, start, end):
            continue
        found.append((start, end, actions))
    found.sort(key=lambda t: (t[0] - t[1], t[0]))
    taken = bytearray(len(low))
    kept = []
    for start, end, actions in found:
        if not any(taken[start:end]):
            taken[start:end] = b"\1" * (end - start)
            kept += [Trigger(start, end, says, side) for says, side in actions if says != "pseudo"]
    return sorted(kept, key=lambda t: (t.start, t.says, t.side))


def _outside(found: Sequence[Trigger], terms: Sequence[Span]) -> list[Trigger]:
    """Triggers that are no part of a term, as in `migraine without aura`."""
    starts = [term.start for term in terms]
    outside = []
    for trigger in found:
        i = bisect_left(starts, trigger.end) - 1
        if i < 0 or terms[i].end <= trigger.start:
            outside.append(trigger)
    return outside


def _whole(low: str, start: int, end: int) -> bool:
    """Whether a phrase begins and ends with words, not inside of them."""
    if start and (low[start - 1].isalnum() or low[start - 1] in "-'"):
        return False
    after = low[end : end + 2]
    return not after[:1].isalnum() and (after[:1] not in ("-", "'") or after in ("'s", "- "))


_NOT_DONE = frozenset({"declined", "refused", "not done", "was not done", "not performed"})


def _said(low: str, term: Span, near: Sequence[Trigger]) -> set[str]:
    """What triggers of the term's sentence say of it."""
    said: set[str] = set()
    blocked = False
    for trigger in reversed([t for t in near if t.end <= term.start]):
        between = low[trigger.end : term.start]
        if trigger.says == "stop":
            blocked = True
        elif trigger.side == "after":
            continue
        elif trigger.says == "family":
            if _of_relative(low, trigger, between):
                said.add("family")
        elif not blocked and not _cut(trigger, between):
            said.add(trigger.says)
    for trigger in near:
        if trigger.start < term.end:
            continue
        if trigger.says == "stop":
            break
        # A test that "was negative" or "is pending" was done all the same.
        done = term.category in ("test", "procedure") and low[trigger.start : trigger.end] not in _NOT_DONE
        if trigger.side == "after" and not done and _joins(low[term.end : trigger.start], trigger):
            said.add(trigger.says)
    return said


# People who report on, bring or look after the patient are not ill by that.
_TELLS = re.compile(
    r"\b(?:patient|pt|he|she|but|however|today|child|infant|baby|reports?|reported|states?|stated|says?|said|notes?|noted|"
    r"noticed|denies|brought|brings|called|gives|gave|describes?|described|concerned|worried|feels?|felt|observed|"
    r"thinks|believes|accompanied|bedside|found (?:him|her)|requests?|asked|confirms?|helps?|lives)\b"
)
_HAS = re.compile(
    r"\W*(?:\w+\s){0,4}?(?:has|had|have|having|with|who|died|deceased|passed|is|was|were|diagnosed|suffers?|suffered|also|"
    r"takes?|took|on|of|positive|:|-)(?:\W|$)"
)
_BESIDE = frozenset({"by", "with", "per", "from", "to", "via"})
_NOT_OF_BLOOD = re.compile(
    r"(?:wife|husband|spouse|partner|roommate|coworker|boyfriend|girlfriend|classmate|neighbor|friends?|kids|children|"
    r"son|daughter|mom|dad|parents?)(?:'s)?$"
)


def _of_relative(low: str, trigger: Trigger, between: str) -> bool:
    """Whether the disease is the relative's: `mother had …`, `father: …`; not `mother reports …`, `with his wife`."""
    word = low[trigger.start : trigger.end]
    if "family" in word or word.startswith(("fhx", "fh ")):
        return not re.search(r"\b(?:patient|pt|he|she)\b", between)
    if _TELLS.search(between):
        return False
    before = re.findall(r"[\w']+", low[max(0, trigger.start - 24) : trigger.start])[-2:]
    beside = bool(_BESIDE.intersection(before))
    if beside or _NOT_OF_BLOOD.match(word):
        return bool(_HAS.match(between))
    return True


_RESUMES = re.compile(
    r",\s*(?:and\s+)?(?:with|has|had|is|was|positive|some|mild|moderate|severe|new|increased|occasional)\b"
)


def _cut(trigger: Trigger, between: str) -> bool:
    """Whether the scope of a trigger ends between it and the term."""
    if trigger.says == "negated":
        return _RESUMES.search(between) is not None
    if trigger.says == "past":
        return between.count(" ") > 6
    if trigger.says == "uncertain":
        return between.count(" ") > REACH + 4
    return False


def _joins(between: str, trigger: Trigger) -> bool:
    """Whether a trigger after a term is near enough to speak of it: few words, and no other clause between."""
    words = between.split()
    if trigger.says in ("family", "past"):
        return len(words) <= REACH
    return (len(words) <= 4 and "," not in between) or not words


@cache
def _automaton() -> Any:
    import ahocorasick

    actions: dict[str, list[_Action]] = {}
    for action, phrases in triggers.ACTIONS.items():
        for phrase in phrases:
            actions.setdefault(phrase, []).append(action)
    automaton = ahocorasick.Automaton()
    for phrase, meanings in actions.items():
        automaton.add_word(phrase, (len(phrase), tuple(meanings)))
    automaton.make_automaton()
    return automaton


def _sentence_ends(text: str, extra: Sequence[int]) -> list[int]:
    """Where sentences end (exclusive), ascending; sections begin sentences too."""
    ends = set(extra)
    for match in _SENTENCE_END.finditer(text):
        word = text[max(0, match.start() - 6) : match.start()].split()[-1:] if match.group() == "." else []
        if word and (word[0].lower() in _NO_END or (len(word[0]) == 1 and word[0].isupper())):
            continue
        ends.add(match.end())
    return sorted(ends)
