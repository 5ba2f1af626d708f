"""Names of people by context: titles, signatures, fields, relatives, ages, given names."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from leeward.notes.annotators.rules.patterns import mark
from leeward.notes.annotators.rules.words import (
    CITIES,
    CREDENTIALS,
    GIVEN,
    NAME_TAILS,
    NO_NAME,
    PARTICLES,
    PLAIN,
    RELATIVES,
    REPORT_WORDS,
    SURNAMES_TOO,
    TITLES,
    WORDS_TOO,
    Capital,
    before,
    gap,
    words,
)
from leeward.notes.field_labels import Label, line_end
from leeward.notes.spans import Span

LONGEST = 4
"""Most words of a name."""

CALLED = words("named called dear hi hello")
CREDITED = CREDENTIALS | {c.replace(".", "") for c in CREDENTIALS}
TWO_LETTER_STATES = frozenset({"pa", "ma", "md", "dc", "or", "do", "od", "ms"})

_AGE_AFTER = re.compile(
    r",?\s*(?:(?:is|was)\s+)?(?:an?\s+|the\s+)?\(?(?:age[d]?\s+)?\d{1,3}[\s-]*(?:(?:y|yr|yrs|year|years"
    r"|month|months|mo"
    r"|week|weeks|day|days)\b|y/?o|m/?o|[mf]\b)|(?:,\s*|\s*\()(?:aged?\s+)?\d{1,3}[,)]",
    re.IGNORECASE,
)
_IDENTIFIED = re.compile(
    r",?\s*[(\[,]?\s*(?:mrn|dob|d\.o\.b|ssn|id\b|patient id|record|born|aka|a\.k\.a|unit no)", re.IGNORECASE
)
_ACTS = re.compile(
    r"\s+(?:is|was|has|had|presents?|presented|reports?|reported|denies|denied|states?|stated|complains?"
    r"|complained|"
    r"returns?|returned|came|underwent|lives|feels|felt|developed|appears|appeared|who|will|admits"
    r"|describes|described"
    r"|notes|noted|agrees|agreed|understands|continues|called|also|arrived|tolerated|says|said|did|does|would|takes"
    r"|took|needs|can|cannot|currently|works|worked|and (?:her|his|i))\b"
)
# Verbs of persons only: a sentence's beginning before one is a name.
_PERSON_ACTS = re.compile(
    r"\s+(?:c/o|denies|denied|reports|reported|states|stated|complains|complained|recalls|asks|asked"
    r"|requests|requested|"
    r"repositioned|ambulated|ambulates|verbali[sz]e[sd]|refuse[sd]|slept|up (?:in|to) (?:the )?chair"
    r"|resting|sleeping|"
    r"up ad lib|agrees|agreed|understands|understood|describes|admits|mentions|mentioned|remains|wants|says|"
    r"said|thinks|feels|felt|drank|ate|walked|voided|was (?:seen|brought|admitted|discharged|told|asked"
    r"|given|started))\b"
)
_TOLD = words(
    "asked tell told tells inform informed informs notified contacted reassured encouraged thank phoned texted"
)
_SIGNED = words(
    """transcribed dictated typed signed seen evaluated examined reviewed entered witnessed written prepared
    verified performed followed referred brought interviewed assisted attended cosigned accompanied"""
)
_SPOKEN = words("discussed spoke spoken talked conferred met consulted")
_TOWNS_BEGIN = words(
    "san santa santo los las el la st saint fort port new lake mount mt north south east west cape"
)

EPONYM = re.compile(
    r"(?:['’]s?)?[ -](?:sign|test|clamp|syndrome|disease|maneuver|manoeuvre|catheter|tube|retractor"
    r"|incision|position|"
    r"line|needle|stitch|flap|procedure|score|scale|criteria|drain|forceps|fracture|class|grade|type|stage|method|"
    r"technique|phenomenon|reflex|tumor|tumour|sarcoma|lymphoma|cyst|hernia|palsy|ulcer|esophagus|pouch|repair|rod|"
    r"nodule|node|duct|ring|formula|coma|stain|cell|cells|blood|count|matter|bodies|body|pratt|barre|willebrand|"
    r"speculum|prosthesis|plate|screw|brace|splint|approach|operation|bypass|index|questionnaire|scissors|blade|"
    r"dementia|chorea|thyroiditis|encephalopathy|anomaly|contracture|neuroma|ganglion)\b",
    re.IGNORECASE,
)
_LOWER_TITLE = re.compile(
    r"(?<![\w'])(?:mr|mrs|ms|dr)\b\.?[ ]+([a-z][a-z'’-]{2,})(?:[ ]+([a-z][a-z'’-]{2,}))?"
)
_NOT_AFTER_TITLE = words(
    """the and who was has had for with from this that says states should will would can could may and/or
    recommended advised said saw told office ordered his her their been are not notified aware contrast
    angiogram enterography elastography angiography imaging scan did called prescribed wants"""
)
_CLOSING = re.compile(
    r"(?:sincerely|regards|respectfully(?: yours| submitted)?|thank you|thanks|yours truly|best wishes|/s/|signed|"
    r"cordially|kindly)[,.:]?\s*"
)
_TYPED = re.compile(r"\b[A-Z]{2,3}[/:][a-z]{2,3}\b(?![\w/:])")
_CARET = re.compile(r"[A-Z][A-Za-z'-]+\^[A-Z][A-Za-z^ ]+")


def find(text: str, low: str, capitals: Sequence[Capital], fields: Sequence[Label]) -> list[Span]:
    """Spans of names; one for each run of words."""
    certain = [
        *(n for f in fields if f.meaning == "name" for n in _of_field(text, low, capitals, f)),
        *_closing(text, low, capitals),
        *_among(text, low, capitals),
    ]
    certain += [(capital,) for capital in _find_repeats(text, low, capitals, certain)]
    bounds = {(name[0].start, name[-1].end) for name in certain if name}
    bounds.update(_without_capitals(text, low, fields))
    bounds.update(m.span() for m in _TYPED.finditer(text, max(0, len(text) - 200)))
    bounds.update(m.span() for m in _CARET.finditer(text) if "^" in text)
    return [mark(start, end, "name") for start, end in _join(text, sorted(bounds))]


def _join(text: str, bounds: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge overlapping names, and those separated by one blank or point."""
    joined: list[tuple[int, int]] = []
    for start, end in bounds:
        between = text[joined[-1][1] : start] if joined else ""
        reversed_name = between == ", " and text[start:end].split()[0].rstrip(",.").lower() in GIVEN
        if joined and (start <= joined[-1][1] or between in (" ", ". ", ".", "-") or reversed_name):
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _among(text: str, low: str, capitals: Sequence[Capital]) -> Iterator[tuple[Capital, ...]]:
    past = -1
    for i, capital in enumerate(capitals):
        if i <= past:
            continue
        if capital.low in TITLES or (capital.low == "st" and text[capital.end : capital.end + 1] == ""):
            name = _from(text, capitals, i + 1, after_title=True)
            if name and (begun := _name_after_title(text, capital, name)):
                yield begun
                past = i + len(name)
            continue
        if capital.low in REPORT_WORDS and not capital.initial:
            continue
        name = _from(text, capitals, i)
        if name and _speaks(text, low, capitals, i, name):
            yield name
            past = i + len(name) - 1
        elif name and (credited := _name_before_credentials(text, capitals, i, name)):
            yield credited
            past = i + len(credited) - 1


def _name_after_title(text: str, title: Capital, name: tuple[Capital, ...]) -> tuple[Capital, ...]:
    """The name after a title, with particles before it (`Mrs. van der Berg`); empty where it is too far away."""
    between = gap(text, title, name[0])
    words = between.strip(" .").split()
    if "\n" in between or len(between) > 16 or not all(word in PARTICLES for word in words):
        return ()
    if not words:
        return name if len(between) < 4 else ()
    start = title.end + between.index(words[0])
    whole = text[start : name[0].end]
    return (Capital(start, name[0].end, whole, name[0].low), *name[1:])


def _from(
    text: str, capitals: Sequence[Capital], i: int, *, after_title: bool = False
) -> tuple[Capital, ...]:
    """The name that begins at word `i`: words side by side that may be parts of a name."""
    name: list[Capital] = []
    while i < len(capitals) and len(name) < LONGEST:
        capital = capitals[i]
        if name:
            between = gap(text, name[-1], capital)
            if between != " " and not (between == "" and name[-1].initial):
                words = between.strip().lower().split()
                if "\n" in between or not words or not all(word in PARTICLES for word in words):
                    break
        if _is_credential(capital) and not (after_title and not name):
            break
        if capital.low in TITLES or not (capital.initial or _may_be_part(capital, name, after_title)):
            break
        name.append(capital)
        i += 1
    return tuple(name)


def _may_be_part(capital: Capital, name: Sequence[Capital], after_title: bool) -> bool:
    """Whether a word may continue a name: a note word only after a title, or as a last name after a given name."""
    if capital.low not in NO_NAME:  # "seen by Dr. X. Today …": a sentence begins
        return not (name and name[-1].initial and capital.low in REPORT_WORDS)
    if not name:
        return after_title and (capital.low in SURNAMES_TOO or capital.low not in PLAIN)
    return capital.low in SURNAMES_TOO and (name[-1].low in GIVEN or name[-1].initial)


def _speaks(text: str, low: str, capitals: Sequence[Capital], i: int, name: tuple[Capital, ...]) -> bool:
    """Whether the context shows a name, by the first kind of evidence that decides."""
    words = before(low, name[0].start)
    around = _Around(text, low[name[-1].end : name[-1].end + 40], words, name)
    if EPONYM.match(around.tail) or _is_town(text, capitals, i, name):
        return False
    if around.previous in CALLED or (around.previous == "is" and "name" in words[-4:]):
        return True
    if around.several and all(part.initial for part in name):
        return False
    if _in_a_sentence(around) or _of_a_person(around):
        return True
    aged = _AGE_AFTER.match(around.tail) and not name[0].initial
    if aged and (around.known or around.several or around.begins):
        return name[0].word.isalpha() or around.several
    if _IDENTIFIED.match(around.tail) and (around.known or around.several):
        return True
    if around.several and (decided := _of_several_words(around)) is not None:
        return decided
    if around.given and _comma_first(text, capitals, i):
        return True
    return around.known and (not name[0].word.isupper() or bool(_ACTS.match(around.tail)))


class _Around(NamedTuple):
    """A name with its context: the words before, and the text after (lower case)."""

    text: str
    tail: str
    words: Sequence[str]
    name: tuple[Capital, ...]

    @property
    def previous(self) -> str:
        return self.words[-1] if self.words else ""

    @property
    def several(self) -> bool:
        return len(self.name) > 1

    @property
    def given(self) -> bool:
        return self.name[0].low in GIVEN

    @property
    def known(self) -> bool:
        """Whether it starts with a given name that is no other word, or that continues."""
        return self.given and (self.several or self.name[0].low not in WORDS_TOO)

    @property
    def begins(self) -> bool:
        return _begins(self.text, self.name[0].start)


def _in_a_sentence(around: _Around) -> bool:
    """`told X`, `according to X`, `signed by X`, `spoke with X`, `X denies …`."""
    first, previous, words = around.name[0], around.previous, around.words
    if len(first.word) < 3 or first.word.isupper() or first.low in RELATIVES:
        return False
    return (
        previous in _TOLD
        or words[-2:] == ["according", "to"]
        or (previous == "by" and not _SIGNED.isdisjoint(words))
        or (previous in ("with", "/", "to") and not _SPOKEN.isdisjoint(words[-3:]))
        or (around.begins and bool(_PERSON_ACTS.match(around.tail)))
    )


def _of_a_person(around: _Around) -> bool:
    """`his wife X`, `wife, X`."""
    first, previous, words = around.name[0], around.previous, around.words
    relative = previous in RELATIVES or (previous in (",", "(") and len(words) > 1 and words[-2] in RELATIVES)
    longer = around.known or around.several or len(first.word) > 3
    return relative and first.low not in RELATIVES and longer


def _of_several_words(around: _Around) -> bool | None:
    """Evidence from two or more words: a given name and another, initials, `patient X Y`; None: undecided."""
    name, previous = around.name, around.previous
    first, last = name[0], name[-1]
    if around.known:
        return True
    if not first.initial and (last.word.endswith(".") or any(part.initial for part in name[1:-1])):
        return previous not in ("type", "vitamin", "hepatitis", "grade") and first.word[1:].islower()
    if first.initial and name[1].word[1:].islower() and len(name[1].word) > 2:
        return previous in ("by", "with", "from", "to", "and", "of", ",", "", ".", ":", "for")
    if previous in ("patient", "pt", "client", "mother", "by", "for") and not first.word.isupper():
        return True
    if around.begins and _ACTS.match(around.tail) and all(part.word[1:].islower() for part in name):
        return True
    return None


def _is_town(text: str, capitals: Sequence[Capital], i: int, name: tuple[Capital, ...]) -> bool:
    """Whether the words are a town's, or its second word (San Antonio)."""
    if " ".join(n.low for n in name) in CITIES and len(name) > 1:
        return True
    return (
        i > 0
        and capitals[i - 1].low in _TOWNS_BEGIN
        and gap(text, capitals[i - 1], capitals[i]) in (" ", ". ")
    )


def _begins(text: str, start: int) -> bool:
    """Whether a sentence, line or item begins here."""
    return text[max(0, start - 2) : start].strip()[-1:] in ("", *".-,?!:(")


def _comma_first(text: str, capitals: Sequence[Capital], i: int) -> bool:
    """`Smith, John`: the given name after the last name and a comma."""
    if i == 0:
        return False
    last = capitals[i - 1]
    return gap(text, last, capitals[i]) == ", " and last.low not in NO_NAME and last.low not in CITIES


def _name_before_credentials(
    text: str, capitals: Sequence[Capital], i: int, begun: tuple[Capital, ...]
) -> tuple[Capital, ...]:
    """A name before its credentials: `Jane Roe, M.D.`, `Roe, Jane A., RN`."""
    name = list(begun)
    following = i + len(name)
    if following < len(capitals) and gap(text, capitals[following - 1], capitals[following]) == ", ":
        more = _from(text, capitals, following)
        if more and len(name) == 1 and not _is_credential(more[0]):
            name += more
            following += len(more)
    if following >= len(capitals) or not name or len(name) > LONGEST + 1:
        return ()
    credential = capitals[following]
    if gap(text, name[-1], credential) not in (", ", " ", ",") or not _is_credential(credential):
        return ()
    if credential.low in TWO_LETTER_STATES and len(name) == 1 and credential.low not in ("md", "do"):
        return ()
    if any(n.low in CITIES for n in name) and credential.low in TWO_LETTER_STATES:
        return ()
    return tuple(name) if any(not n.initial and n.low not in NO_NAME for n in name) else ()


def _is_credential(capital: Capital) -> bool:
    return capital.low in CREDITED and (
        capital.word.replace(".", "").replace("-", "").isupper() or capital.word == "PhD"
    )


def _find_repeats(
    text: str, low: str, capitals: Sequence[Capital], names: Sequence[tuple[Capital, ...]]
) -> Iterator[Capital]:
    """Find repeats of a name elsewhere in the note, where it may lack a title."""
    parts = {
        c.low
        for name in names
        for c in name
        if len(c.low) > 2 and (c.low in SURNAMES_TOO or c.low not in NO_NAME) and c.low not in NAME_TAILS
    }
    for i, capital in enumerate(capitals) if parts else ():
        if capital.low in parts and not EPONYM.match(text, capital.end):
            in_town = capital.low in CITIES and before(low, capital.start, 8)[-1:] in (
                ["in"],
                ["from"],
                ["near"],
            )
            if not in_town and not _is_town(text, capitals, i, (capital,)):
                yield capital


def _of_field(
    text: str, low: str, capitals: Sequence[Capital], field: Label
) -> Iterator[tuple[Capital, ...]]:
    end = min(line_end(text, field.value, field.end), field.value + 80)
    certain = "name" in low[field.start : field.value] or low.startswith("by", field.value - 4)
    i = bisect_left(capitals, field.value, key=attrgetter("start"))
    if i >= len(capitals) or capitals[i].start > field.value + 6:
        return
    while i < len(capitals) and capitals[i].start < end:
        name = _from(text, capitals, i)
        if len(name) == 1 and name[0].low in REPORT_WORDS:
            return
        if not name:
            if capitals[i].low not in TITLES and not _is_credential(capitals[i]):
                return
            i += 1
            continue
        known = any(n.low in GIVEN for n in name) or len(name) > 1 or certain
        following = capitals[i + len(name)] if i + len(name) < len(capitals) else None
        comma = following is not None and gap(text, name[-1], following) == ", "
        if known or comma or not text[name[-1].end : end].strip(" .,;"):  # nothing but the name
            yield name
        if re.search(r"[.;(]\s|\b(?:is|was|has|the)\b", text[name[-1].end : name[-1].end + 8]):
            return
        i += len(name)


def _closing(text: str, low: str, capitals: Sequence[Capital]) -> Iterator[tuple[Capital, ...]]:
    for match in _CLOSING.finditer(low, max(0, len(text) - 600)):
        for i, capital in enumerate(capitals):
            if match.end() <= capital.start <= match.end() + 3:
                name = _from(text, capitals, i)
                if name and not text[name[-1].end : name[-1].end + 1].isalnum():
                    yield name


def _without_capitals(text: str, low: str, fields: Sequence[Label]) -> Iterator[tuple[int, int]]:
    """Find lower-case names: after a title, or in a name field."""
    for match in _LOWER_TITLE.finditer(text):
        word, more = match.groups()
        if word not in _NOT_AFTER_TITLE and word not in NO_NAME:
            yield match.span(1)
            if more and (word in GIVEN or more in GIVEN):
                yield match.span(2)
    for field in fields:
        if field.meaning == "name" and "name" in low[field.start : field.value]:
            value = text[field.value : line_end(text, field.value, field.end)].rstrip()
            if _LOWER_NAME.fullmatch(value):
                yield field.value, field.value + len(value)


_LOWER_NAME = re.compile(r"[a-z][a-z'’-]+,? [a-z][a-z'’-]+(?: [a-z][a-z'’-]+)?")
