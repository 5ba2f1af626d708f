"""ConText: whether a health term is affirmed, current and about the patient.

The rules of Harkema, Dowling, Thornblade, Chapman (J Biomed Inform 42, 2009), which extend NegEx (Chapman et al.
2001): a trigger before or after a term speaks for the terms up to the sentence's end, a terminating word, or the
next trigger of its own kind; a pseudo-trigger (`no increase`, `not only`) speaks for none. Beside them sections: a
disease of the section FAMILY HISTORY is not the patient's, whatever the sentence says.

Some phrases frame a clause wherever they are in it: `as a child`, `at age six`, `the risks and benefits`. They hold up
to a word of the present (`now`, `has`) or a `but`. A stop that a doubt governs (`may be due to`, `suspect that she
has`) stops nothing.

Unlike ConText, a plain `history of` leaves a term asserted: a patient with a history of diabetes has it and should be
counted. Only terms that the text calls past are past: `remote`, `resolved`, `as a child`, `years ago`.

The triggers are in `notes/data/triggers.txt`: there `{a|b|}` is a choice and `{NAME}` a choice that `[words]` defines,
so that one line gives the forms of a kind of phrase ("at age six", "when she was in grade school").
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from leeward.notes.context import sections
from leeward.notes.spans import Span, Status
from leeward.texts import list_words, read_parts

REACH = 10
"""Scope, in words, of an uncertainty or a negation after the term (the end of the sentence stops it earlier)."""

_Action = tuple[str, str]

_SENTENCE_END = re.compile(r"[.!?](?=[\s\"')]|,\S|$)|\n\s*\n|;|\n(?=\s*(?:[-*•\d]|[A-Z]))|\.\.\.")
_NO_END = frozenset(list_words("dr mr mrs ms st vs no pt approx e.g i.e etc jr sr q.d b.i.d t.i.d p.o"))


class Trigger(NamedTuple):
    """A phrase at `start` to `end` (exclusive)."""

    start: int
    end: int
    says: Any
    side: str


def judge(text: str, low: str, spans: Sequence[Span]) -> list[Span]:
    """Mark health terms that are denied, doubted, past or somebody else's as not asserted."""
    terms = [i for i, span in enumerate(spans) if span.kind == "HMI" and span.asserted]
    if not terms:
        return list(spans)
    statuses = statuses_of(text, low, [spans[i] for i in terms])
    result = list(spans)
    for i, status in zip(terms, statuses, strict=True):
        if status:
            result[i] = spans[i]._replace(asserted=False)
    return result


def statuses_of(text: str, low: str, terms: Sequence[Span]) -> list[frozenset[Status]]:
    """Return each term's (ascending) set of `Status`, empty if plainly asserted."""
    parts = sections.find(text, low, terms)
    starts = [part.start for part in parts]
    ends = _sentence_ends(text, starts)
    said = _outside(find(low), terms)
    said_starts = [t.start for t in said]
    denied = [m.span(1) for m in _DENIED_LIST.finditer(low)] if ":\n" in low else []
    found: list[set[Status]] = []
    shared: list[set[Status]] = []
    for term in terms:
        i = bisect_right(ends, term.start)
        begin, end = (ends[i - 1] if i else 0), (ends[i] if i < len(ends) else len(text))
        near = said[bisect_left(said_starts, begin) : bisect_left(said_starts, end)]
        status, plural = _assess(low, term, near) if near else (set(), set())
        if _NO_VALUE.match(low, term.end) or any(first <= term.start < last for first, last in denied):
            status.add("negated")
        if low.startswith("?", term.end) or (
            term.category in ("symptom", "disease")
            and _AS_NEEDED.search(low, max(0, term.start - 24), term.start)
        ):
            status.add("uncertain")
        found.append(status | sections.says(parts, bisect_right(starts, term.start) - 1, term))
        shared.append(plural)
    _spread(low, terms, found, shared)
    return [frozenset(status) for status in found]


_NO_VALUE = re.compile(
    r"\s?(?::|=|-| -),?\s*(?:none|no|denie[sd]|negative|neg|nil|absent|n/a|not present|never|unremarkable)"
    r"(?=\s*(?:[.,;)\n]|$))"
)
"""`Chest pain: no.`, `FEVER - denied`."""
_AS_NEEDED = re.compile(r"(?:\bp\.?r\.?n\b\.?|\bas needed)[ ,]+(?:for )?(?:\w+ )?$")
"""`Tylenol p.r.n. headache`: the complaint may come, the drug is taken."""
_POSSIBLE_DEED = re.compile(r"(?:may|might|could|would|can)\b")
_DENIED_LIST = re.compile(
    r"\b(?:denie[sd]|negatives?|negative for|no|none of(?: the following)?|without|absent|not present)\b[^\n:.]{0,30}:"
    r"[^\S\n]*\n((?:[^\S\n]*(?:[-*•]|\d+[.)])[^\n]*(?:\n|$))+)"
)
"""The items below `Denies:`."""
_AND = re.compile(r"\s*,?\s*(?:and|or|and/or|as well as)\s+(?:an?\s|the\s)?")
_COMMA = re.compile(r"\s*,\s*(?:an?\s|the\s)?")
_PLURAL = re.compile(
    r"(?:are|were|have|cannot|can't|can not|could|must|should|remain|seem|appear|come|need|would|might|may)\b"
)


def _spread(
    low: str, terms: Sequence[Span], found: Sequence[set[Status]], shared: Sequence[set[Status]]
) -> None:
    """What a verb after the last of several terms says holds for all (`gout, lupus and sepsis cannot be excluded`)."""
    chain: set[Status] = set()
    for i in range(len(terms) - 2, -1, -1):
        between = low[terms[i].end : terms[i + 1].start]
        if shared[i + 1] and _AND.fullmatch(between):
            chain = shared[i + 1]
        elif not (chain and (_COMMA.fullmatch(between) or _AND.fullmatch(between))):
            chain = set()
        found[i].update(chain)


def find(low: str) -> list[Trigger]:
    """The triggers of a text, ascending; of overlapping ones the longest, and all readings of it."""
    found = [(last + 1 - length, last + 1, actions) for last, (length, actions) in _automaton().iter(low)]
    found = [each for each in found if low[each[0]] == "?" or _whole(low, each[0], each[1])]
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
    # term that begins before the trigger's end
    last = [bisect_left(starts, trigger.end) - 1 for trigger in found]
    return [trigger for trigger, i in zip(found, last, strict=True) if i < 0 or terms[i].end <= trigger.start]


def _whole(low: str, start: int, end: int) -> bool:
    """Whether a phrase begins and ends at word boundaries."""
    if start and (low[start - 1].isalnum() or low[start - 1] in "-'"):
        return False
    after = low[end : end + 2]
    return not after[:1].isalnum() and (after[:1] not in ("-", "'") or after in ("'s", "- "))


_NOT_DONE = frozenset({"declined", "refused", "not done", "was not done", "not performed"})


_CONDITIONS = frozenset({"if", "unless", "whether", "in case of", "in the event of"})
_OFFERED = frozenset({"drug", "procedure"})
"""Categories that may be discussed before they happen; a discussed disease is present."""


_CLAUSE = re.compile(r"\s*(?:that|whether|if|which|,)?\s*")
_PRESENT = re.compile(
    r"\b(?:now|today|currently|presently|at present|nowadays|still|has|is|are|takes|suffers|presents|complains|but"
    r"|however|since then|ever since|continues?|persists?|this (?:morning|week|month|year))\b"
)
_NEW_VERB = re.compile(
    r"(?:\band|\bbut|,)\s+(?:(?:he|she|they|the patient|pt)\s+)?(?:has|had|was|is|takes|took)\b|\bbut\b"
)
_JOINED = re.compile(r"\s*(?:,|and\b|or\b)")
_ONSET = re.compile(r"\b(?:since|diagnos\w+|onset|began|started|has had)\b")


def _assess(low: str, term: Span, near: Sequence[Trigger]) -> tuple[set[Status], set[Status]]:
    """Statuses of a term from triggers in its sentence, and those of a plural verb after it."""
    said = _assess_before(low, term, [t for t in near if t.end <= term.start])
    after = [t for t in near if t.start >= term.end]
    said |= {t.says for t in after if t.side == "around" and _frames_after(low, term, t)}
    speaking = list(_triggers_after(low, term, after))
    plural = {trigger.says for trigger in speaking if _PLURAL.match(low, trigger.start)}
    return said | {trigger.says for trigger in speaking}, plural


def _assess_before(low: str, term: Span, before: Sequence[Trigger]) -> set[Status]:
    said: set[Status] = set()
    blocked: set[str] = set()  # what a stop before the term ends
    for i in range(len(before) - 1, -1, -1):
        trigger = before[i]
        if trigger.says == "stop":
            if not _is_governed(low, before[i - 1] if i else None, trigger):
                causes = low[trigger.start : trigger.end] in _CAUSES
                blocked |= {"negated", "past"} if causes else {"negated", "past", "uncertain"}
        elif trigger.side != "after" and _reaches(low, trigger, term, blocked):
            said.add("uncertain" if trigger.says == "option" else trigger.says)
    return said


def _reaches(low: str, trigger: Trigger, term: Span, blocked: set[str]) -> bool:
    between = low[trigger.end : term.start]
    if trigger.side == "around":
        return _frames_before(low, trigger, term, between)
    if trigger.says == "family":
        return _of_relative(low, trigger, between)
    if trigger.says == "option":
        return term.category in _OFFERED and "uncertain" not in blocked and between.count(" ") <= REACH
    return trigger.says not in blocked and not _cut(trigger, between)


def _triggers_after(low: str, term: Span, after: Sequence[Trigger]) -> Iterator[Trigger]:
    begin = term.end
    for i, trigger in enumerate(after):
        if trigger.says == "stop":
            follows = after[i + 1] if i + 1 < len(after) else None
            near_by = follows is not None and not low[trigger.end : follows.start].strip(" ,")
            if near_by and follows and follows.side == "after" and len(low[begin : trigger.start]) < 12:
                begin = trigger.end  # "which cannot be excluded", "though unlikely"
                continue
            break
        # A test that "was negative" or "is pending" was done all the same.
        done = (
            term.category in ("test", "procedure")
            and low[trigger.start : trigger.end] not in _NOT_DONE
            and not _POSSIBLE_DEED.match(low, trigger.start)
        )
        if trigger.side == "after" and not done and _joins(low, begin, trigger):
            yield trigger


def _is_governed(low: str, before: Trigger | None, stop: Trigger) -> bool:
    """Whether a stop is part of what the trigger before it denies or doubts: `may be due to`, `suspect she has`,
    `if the swab is positive for`."""
    if before is None or before.side != "before" or before.says not in ("uncertain", "negated"):
        return False
    gap = low[before.end : stop.start]
    if low[before.start : before.end] in _CONDITIONS:
        return "," not in gap
    return bool(_CLAUSE.fullmatch(gap)) and (bool(gap.strip()) or before.says == "uncertain")


def _frames_before(low: str, trigger: Trigger, term: Span, between: str) -> bool:
    """Whether a phrase before a term frames its clause: it begins the clause, and nothing returns to the present. In
    `appendectomy as a child and cholecystectomy in 2003` it ends one."""
    if trigger.says != "past":
        return True
    ends = low[max(0, trigger.start - 2) : trigger.start].strip()[-1:] not in ("", *",.:;-(")
    joined = _JOINED.match(between)
    return not (ends and joined) and not _PRESENT.search(between)


def _frames_after(low: str, term: Span, trigger: Trigger) -> bool:
    """Whether a phrase after a term frames its clause, and does not date the beginning of what lasts."""
    if trigger.says != "past":
        return False
    between = low[term.end : trigger.start]
    before = low[max(0, term.start - 30) : term.start]
    lasts = _ONSET.search(between) or _ONSET.search(before[before.rfind(".") + 1 :])
    return between.count(" ") <= REACH + 4 and not lasts and not _NEW_VERB.search(between)


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
    if trigger.says == "negated":
        return _RESUMES.search(between) is not None
    if trigger.says == "past":
        return between.count(" ") > 6
    if trigger.says == "uncertain":
        return between.count(" ") > REACH + 4
    return False


_VERB = re.compile(r"(?:is|was|seems?|appears?|remains?|comes?|has)\b|" + _PLURAL.pattern)
_ASIDE = re.compile(r",[^,;(]{3,40},\s*")
"""`gout, in our view, is possible`."""
_CAUSES = frozenset(
    {"due to", "because of", "because", "secondary to", "attributed to", "cause of", "causes of"}
)


def _joins(low: str, end: int, trigger: Trigger) -> bool:
    """Whether a trigger after a term that ends at `end` is near enough to speak of it: few words, no other clause."""
    between = low[end : trigger.start]
    words = between.split()
    if trigger.says in ("family", "past"):
        return len(words) <= REACH
    if trigger.says == "uncertain" and _ASIDE.fullmatch(between) and _VERB.match(low, trigger.start):
        return True
    return (len(words) <= 4 + 2 * (trigger.says == "uncertain") and "," not in between) or not words


@cache
def _automaton() -> Any:
    import ahocorasick

    actions: dict[str, list[_Action]] = {}
    for action, phrases in ACTIONS.items():
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


_CHOICE = re.compile(r"\{([^}]*)\}")


def phrases(text: str, words: Mapping[str, str]) -> tuple[str, ...]:
    """The phrases of a list parted by commas, choices written out."""
    written = (each for part in text.split(",") for each in _spellings(part, words))
    return tuple(dict.fromkeys(" ".join(each.split()) for each in written))


def _spellings(phrase: str, words: Mapping[str, str]) -> Iterator[str]:
    pieces = _CHOICE.split(phrase)  # text, choice, text, choice, …, text
    options = [[piece] if i % 2 == 0 else _options(piece, words) for i, piece in enumerate(pieces)]
    return map("".join, product(*options))


def _options(choice: str, words: Mapping[str, str]) -> list[str]:
    return [
        word + (" " if option.endswith(" ") else "")
        for option in choice.split("|")
        for word in words.get(option.strip(), option).split("|")
    ]


def _read_actions() -> dict[tuple[str, str], tuple[str, ...]]:
    parts = read_parts("leeward.notes", "triggers.txt")
    lines = (line.partition("=") for line in parts.pop("words").splitlines())
    words = {name.strip(): "".join(options.split()).replace("_", " ") for name, _, options in lines}
    found = {}
    for name, text in parts.items():
        says, _, side = name.partition("_")
        found[says, side] = phrases(text, words)
    return found


ACTIONS: dict[tuple[str, str], tuple[str, ...]] = _read_actions()
"""What phrases say, on which side of the term (`around`: anywhere in its clause), and the phrases. `stop` ends every
scope before and after itself; `option` doubts drugs and procedures alone."""
