"""Addresses and facilities (EID); ZIP codes, cities, counties, states and countries (QID)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from leeward.notes.annotators.rules.patterns import Rule, count_digits, find_all, is_free, mark
from leeward.notes.annotators.rules.words import (
    ABBREVIATIONS,
    CITIES,
    COUNTRIES,
    GIVEN,
    NO_NAME,
    REPORT_WORDS,
    STATES,
    WORDS_TOO,
    Capital,
    before,
    gap,
    words,
)
from leeward.notes.field_labels import Label, line_end
from leeward.notes.spans import Span

_ENDINGS = (
    "street st avenue ave road rd boulevard blvd lane ln drive dr court ct way place pl terrace ter circle cir "
    "highway hwy parkway pkwy square sq trail trl route rte turnpike alley crescent plaza loop row pike"
)
_STREET_WORDS = (
    *(ending.capitalize() for ending in _ENDINGS.split()),
    *(ending.upper() for ending in _ENDINGS.split() if len(ending) > 2),
)
STREET = re.compile(
    r"\d{1,6}[A-Za-z]?(?:-\d+)?\s+(?:[NSEW]\.?[NSEW]?\.?\s+|(?:North|South|East"
    r"|West)\s+)?(?:[A-Z0-9][\w.'’-]*\s+){1,4}?(?:"
    + "|".join(_STREET_WORDS)
    + r")\b\.?(?:\s*,?\s*(?:Apt|Apartment|Suite|Ste|Unit|Floor|Fl|Room|Rm|Bldg|Building|#)\.?\s*#?\s*[\w-]+)?"
)
_NEAR_STREET = re.compile(r"\d[A-Za-z]?\s+[A-Z0-9]")
BOX = re.compile(r"\b(?:P\.?\s?O\.?\s*Box|Post Office Box|PO Box)\s*#?\d+", re.IGNORECASE)
ZIP = re.compile(r"\d{5}(?:-\d{4})?(?![\d-])")
ZIP_SAID = re.compile(r"\bzip(?:\s*code)?(?:\s+(?:is|of|area))?[\s:#]*(\d{5}(?:-\d{4})?)\b")
UNIT = re.compile(r"\b(?:Apt|Apartment|Suite|Ste)\.?\s*#?\s*[A-Z]?\d+[A-Z]?\b")

TAILS = words(
    """presbyterian methodist baptist lutheran pediatrics orthopedics imaging dental home practice care living
    hospital hospitals hosp ctr med clinic clinics infirmary hospice hospices university college school
    elementary academy pharmacy laboratories laboratory labs institute sanatorium sanitarium church
    parish temple synagogue nursing rehab rehabilitation healthcare health center centre medical
    memorial manor corporation corp inc llc company factory prison jail penitentiary shelter library
    kindergarten daycare physicians associates partners group foundation plaza tower village gardens
    terrace"""
)
STRONG_TAILS = words(
    """presbyterian methodist baptist lutheran pediatrics hospital hospitals hosp ctr clinic clinics infirmary
    hospice university college school elementary academy pharmacy laboratories institute church memorial
    manor corporation corp inc llc healthcare center centre"""
)
GENERIC = (
    REPORT_WORDS
    | TAILS
    | words(
        """main local regional community children children's women's veterans va day night pain wound sleep heart
    cancer stroke trauma burn dialysis infusion urgent primary specialty allergy diabetes travel walk-in
    same high middle grade law graduate intensive ambulatory outpatient inpatient surgical skilled
    assisted living long-term private public state federal nearby another outside foot hand eye ent
    vascular weight spine coumadin anticoagulation memory oncology cardiology fertility transplant"""
    )
)
CALLED_SO = frozenset({"hospital", "hosp", "general", "memorial"})
BARE = frozenset(
    {"memorial", "county", "general", "university", "community", "regional", "children's", "veterans"}
)
_OF = re.compile(r"^ (?:of|the|for|&|of the|de|de la) $")
_SMALL_TAIL = re.compile(
    r"(?:['’]s)? (?:(?:medical|health|family|specialty|outpatient|regional|memorial|general|community) )?"
    r"(?:clinics?|hospital|hosp|office|branch|campus|center|centre|ward|lab|facility|pharmacy|school|university)\b"
)
_TREATED = words(
    """seen treated admitted evaluated operated hospitalized hospitalised followed transferred presented
    performed diagnosed discharged referred born worked works employed underwent surgery done procedure
    care visit appointment admission checkup check-up consultation tests scan lab labs up"""
)
_LIVES = re.compile(
    r"(?:\b(?:lives?|living|lived|resid(?:es|ed|ing|ent)|born|grew up|raised|native|moved|travel(?:ed|led|s"
    r"|ing)?|trip|"
    r"visit(?:ed|ing)?|vacation(?:ed|ing)?|flew|returned|returning|arrived|relocated|hails|originally|comes|came|"
    r"immigrated|emigrated|located|house|home|based)(?: \w+){0,2} (?:in|from|of|to|near|outside)"
    r"|city of|town of"
    r"|outside of|suburb of|state of|county of)(?: the| downtown| rural| nearby)? $"
)
_BEFORE_HOME = ("in ", "from ", "of ", "to ", "near ", "outside ", "the ", "downtown ", "rural ", "nearby ")
"""The last word of each match of `_LIVES`."""
_UNITS = words("icu micu sicu ccu nicu picu pacu snf ltac asc ems hospice ams bid tid qhs prn hob iop bmi")
_AFTER_PLACE = re.compile(r"\s*(?:\(|,|on\b|last\b|since\b|yesterday\b|today\b|in (?:19|20)\d\d)")
_BEFORE_PLACE = words("in from near to of at city town state resident native around outside")


RULES = (
    Rule("address", BOX, ("box",)),
    Rule("address", UNIT, ("apt", "apartment", "suite", "ste")),
    Rule("zip", ZIP_SAID, ("zip",), "QID", low=True),
)


def find(text: str, low: str, capitals: Sequence[Capital], fields: Sequence[Label]) -> Iterator[Span]:
    for field in fields:
        end = line_end(text, field.value, field.end)
        value = text[field.value : end].rstrip(" .,;")
        if value and field.meaning in _OF_FIELD:
            yield from _OF_FIELD[field.meaning](text, field.value, value)
    yield from _streets(text)
    yield from find_all(RULES, text, low)
    yield from _facilities(text, low, capitals)
    yield from _find_regions(text, low, capitals)


def _zip_field(text: str, start: int, value: str) -> Iterator[Span]:
    if found := ZIP.match(text, start):
        yield mark(*found.span(), "zip", "QID")


def _place_field(text: str, start: int, value: str) -> Iterator[Span]:
    cut = _AFTER_PLACE_FIELD.split(value, maxsplit=1)[0].rstrip(" ,")
    written = value[0].isalpha() and (value[0].isupper() or value.islower())
    if written and len(value) <= 40 and cut and cut.lower() not in GENERIC and len(cut.split()) <= 4:
        yield mark(start, start + len(cut), "place", "QID")


def _address_field(text: str, start: int, value: str) -> Iterator[Span]:
    """The street of an address field, the city after it, and ZIP codes."""
    end = start + len(value)
    comma = text.find(",", start, end)
    street_end = comma if comma >= 0 else end
    if len(value) > 120:
        return
    if count_digits(text[start:street_end]) or text[start].isupper():
        yield mark(start, street_end, "address")
    if city := _CITY_AFTER.match(text, street_end, end):
        yield mark(*city.span(1), "place", "QID")
    for code in ZIP.finditer(text, street_end, end):
        yield mark(*code.span(), "zip", "QID")


def _facility_field(text: str, start: int, value: str) -> Iterator[Span]:
    """The name of a facility, or the short code of a room."""
    cut = re.split(r"[.;(\n]\s|,", value, maxsplit=1)[0]
    end = start + len(cut.rstrip())
    words = re.findall(r"[\w'’.-]+", cut)
    if not 2 < len(value) <= 60 or not 0 < len(words) <= 7:
        return
    if len(words) == 1 and count_digits(cut) and len(cut) < 8:
        yield mark(start, end, "address")
    elif words[0][0].isupper() and any(w[0].isupper() and w.lower() not in GENERIC for w in words):
        yield mark(start, end, "facility")


_AFTER_PLACE_FIELD = re.compile(r"[.;(]|\d{5}|\b(?:is|was|the|with)\b")
_CITY_AFTER = re.compile(r",\s*([A-Z][A-Za-z.' -]+?)\s*(?:,|$|\d{5})")
_OF_FIELD = {"zip": _zip_field, "place": _place_field, "address": _address_field, "facility": _facility_field}
"""Meaning of a field -> the spans of its value, which begins at a place in the text."""


def _streets(text: str) -> Iterator[Span]:
    past = -1
    for near in _NEAR_STREET.finditer(text):
        start = near.start()
        while start and text[start - 1].isdigit():
            start -= 1
        if start < past or not is_free(text, start, ""):
            continue
        match = STREET.match(text, start)
        if match and "\n" not in match.group().rstrip():
            past = match.end()
            yield mark(start, past, "address")
            if code := _ZIP_AFTER.match(text, past, past + 70):
                yield mark(*code.span(1), "zip", "QID")


_ZIP_AFTER = re.compile(r"[^.;\n]{0,40}?\b(?:[A-Z]{2}|[A-Z][a-z]+)[,\s]+(\d{5}(?:-\d{4})?)(?!\d)")


def _runs(text: str, capitals: Sequence[Capital]) -> Iterator[tuple[int, int]]:
    """Runs of capitalised words, first and last (exclusive), joined by a blank or a small word such as `of`."""
    first = 0
    for i in range(1, len(capitals) + 1):
        if i < len(capitals):
            between = gap(text, capitals[i - 1], capitals[i])
            if between in (" ", ". ", " & ", "'s ", "’s ") and not (
                between == ". " and len(capitals[i - 1].low) > 3
            ):
                continue
            if len(between) < 9 and _OF.match(between):
                continue
        yield first, i
        first = i


def _facilities(text: str, low: str, capitals: Sequence[Capital]) -> Iterator[Span]:
    """Find hospitals, clinics, schools: the first matching rule decides for each run of capitalised words."""
    for first, last in _runs(text, capitals):
        words = [capital.low for capital in capitals[first:last]]
        tail = _SMALL_TAIL.match(low, capitals[last - 1].end)
        run = _Run(text, low, capitals, first, last, words, tail)
        found = next((place for rule in FACILITIES if (place := rule(run)) is not None), None)
        if found is None:
            continue
        end = capitals[found[1] - 1].end
        end += 2 if text[end : end + 2] in ("'s", "’s") else 0
        end = tail.end() if tail and found[1] == last else end
        yield mark(capitals[found[0]].start, end, "facility")


class _Run(NamedTuple):
    """Capitalised words `first` to `last` (exclusive), in lower case, and a following tail such as `clinic`."""

    text: str
    low: str
    capitals: Sequence[Capital]
    first: int
    last: int
    words: Sequence[str]
    tail: re.Match[str] | None


Place = tuple[int, int] | None
"""Indices of a facility's first and last (exclusive) capitalised word."""


def _ends_in_tail(run: _Run) -> Place:
    """`Cedar Crest Hospital`, `University of Ohio Medical Center`: up to the run's last word of a facility."""
    words, first = run.words, run.first
    j = next((j for j in range(len(words) - 1, 0, -1) if words[j] in TAILS), 0)
    if not j:
        return None
    begin = next((b for b in range(j) if words[b] not in GENERIC or words[b] in ("va",)), j)
    if (
        begin > 0
        and words[begin - 1] in TAILS
        and " of " in run.text[run.capitals[first + begin - 1].end :][:8]
    ):
        begin -= 1
    own_name = begin < j and (words[j] in STRONG_TAILS or j - begin > 1)
    return (first + begin, first + j + 1) if own_name else None


def _begins_with_tail(run: _Run) -> Place:
    """`University of Ohio`."""
    words, capitals, first = run.words, run.capitals, run.first
    if words[0] not in TAILS or len(words) < 2:
        return None
    between = run.text[capitals[first].start : capitals[first + 1].start]
    return (first, run.last) if " of " in between else None


def _of_a_saint(run: _Run) -> Place:
    """`St Mary`, which is no town."""
    words = run.words
    if len(words) < 2 or words[0] not in ("st", "saint", "mt", "mount") or words[1] in NO_NAME:
        return None
    town = " ".join(words[:2]) in CITIES or f"{words[0]}. {words[1]}" in CITIES
    return None if town else (run.first, run.first + 2)


def _generic_place(run: _Run) -> Place:
    """`Mercy General`; `Memorial Hospital`, `County General`: generic, but a place all the same."""
    words = run.words
    if len(words) < 2:
        return None
    general = words[-1] == "general" and words[-2] not in GENERIC
    bare = words[-1] in CALLED_SO and words[-2] in BARE
    return (run.last - 2, run.last) if general or bare else None


def _place_of_treatment(run: _Run) -> Place:
    """`seen at Cedar Crest`, `admitted to Lakeside`: a proper name where somebody was treated."""
    low, start = run.low, run.capitals[run.first].start
    if not low[max(0, start - 40) : start].rstrip().endswith(("at", "to", "from", "@", "the")):
        return None
    words = before(low, start, 40)
    if not words or (words[-1] not in ("at", "to", "from", "@") and words[-2:] != ["at", "the"]):
        return None
    names = run.capitals[run.first : run.last]
    if any(c.low in GENERIC or c.low in STATES or c.low in CITIES for c in names):
        return None
    if words[-1] in ("to", "from", "@") and not _TREATED.intersection(words[-3:-1]):
        return None
    acronym = len(names) == 1 and names[0].word.isupper()
    if acronym and not _TREATED.intersection(words[-4:-1]):
        follows = _AFTER_PLACE.match(low, names[0].end)
        if words[-1] != "at" or follows is None or names[0].low in _UNITS:
            return None
    if acronym and len(names[0].word) < 3:
        return None
    if len(names) == 1 and not acronym and not _TREATED.intersection(words[-5:-1]):
        return None
    return run.first, run.last


def _before_small_tail(run: _Run) -> Place:
    """`Lakeside clinic`."""
    words, alone = run.words, run.last - run.first == 1
    if not run.tail or words[-1] in GENERIC or (alone and words[0] in NO_NAME):
        return None
    return next(b for b in range(run.first, run.last) if run.capitals[b].low not in GENERIC), run.last


FACILITIES = (
    _ends_in_tail,
    _begins_with_tail,
    _of_a_saint,
    _generic_place,
    _place_of_treatment,
    _before_small_tail,
)
"""The rules of `_facilities`, in the order in which they are tried."""


def _find_regions(text: str, low: str, capitals: Sequence[Capital]) -> Iterator[Span]:
    i = 0
    # None of these words follows a city that is known only by its state.
    states = {k for k, c in enumerate(capitals) if c.word in ABBREVIATIONS or c.low in STATES}
    while i < len(capitals):
        count, certain = _match_place(text, capitals, i)
        state = None
        if states and not states.isdisjoint(range(i + 1, i + 5)):
            state = _state_after(text, capitals, i + max(count, 1) - 1)
            if not count and state is None:
                state, more = _city_before_state(text, capitals, i)
                count = more if state is not None else 0
            elif state is not None and not count:
                count = 1
        if count and capitals[i].low in NO_NAME and not certain:
            i += 1
            continue
        start, end = (capitals[i].start, capitals[i + count - 1].end) if count else (0, 0)
        named = certain or state is not None or not _BEFORE_PLACE.isdisjoint(before(low, start, 16)[-1:])
        if count and named:
            yield mark(start, end, "place", "QID")
        if count and state is not None:
            at = capitals[state].end
            yield mark(capitals[state].start, at, "place", "QID")
            if code := _ZIP_OF_STATE.match(text, at, at + 16):
                yield mark(*code.span(1), "zip", "QID")
            i = state + 1
            continue
        if not count:
            count = 1
            last = _match_residence(text, low, capitals, i)
            if last is not None:
                yield mark(capitals[i].start, capitals[last].end, "place", "QID")
                count = last - i + 1
        i += count


_ZIP_OF_STATE = re.compile(r"[,\s]+(\d{5}(?:-\d{4})?)(?!\d)")


def _match_place(text: str, capitals: Sequence[Capital], i: int) -> tuple[int, bool]:
    """Number of words from `i` that name a known place, and whether the name is unambiguous."""
    run = 1  # words side by side
    while run < 4 and i + run < len(capitals) and gap(text, capitals[i + run - 1], capitals[i + run]) == " ":
        run += 1
    for count in range(min(run, 3), 0, -1) if capitals[i].low in _FIRSTS else ():
        name = " ".join(c.low for c in capitals[i : i + count])
        dotted = name.replace("st ", "st. ", 1) if name.startswith("st ") else name
        if name in STATES or name in COUNTRIES or dotted in CITIES:
            if text[capitals[i + count - 1].end :].startswith(
                (" Coma", " coma", " score", " Outcome", " Scale")
            ):
                return 0, False  # Glasgow Coma Scale
            sure = count > 1 or (name not in GIVEN and name not in WORDS_TOO and name not in AMBIGUOUS)
            return count, sure
    for count in range(1, run):
        if capitals[i + count].low in ("county", "township", "parish") and capitals[i].low not in NO_NAME:
            return count + 1, True
    return 0, False


_FIRSTS = frozenset(name.split()[0].rstrip(".") for name in (*STATES, *COUNTRIES, *CITIES))
AMBIGUOUS = words(
    """mobile reading buffalo lincoln madison jackson washington houston lawrence salem concord gilbert
    chandler henderson garland irving irvine norfolk aurora augusta camden dover turkey china chile
    cambridge newark manchester troy boulder lowell columbus independence worcester richmond montgomery
    wilmington mesa reno flint erie helena cleveland marshall bangor orlando phoenix paris london durham
    berlin duluth davenport alexandria peru plano macon concord temple tyler warren hartford springfield"""
)
"""Places named like a person, thing or product, which need a word such as `in` before them."""


def _state_after(text: str, capitals: Sequence[Capital], i: int) -> int | None:
    """The index of a state's name or abbreviation after a comma."""
    if i + 1 >= len(capitals):
        return None
    state = capitals[i + 1]
    between = gap(text, capitals[i], state)
    if (
        between == " "
        and state.word in ABBREVIATIONS
        and re.match(r" \d{5}\b", text[state.end : state.end + 7])
    ):
        return i + 1  # "Bakersfield CA 91048"
    if not re.fullmatch(r",\s+", between):
        return None
    if state.word in ABBREVIATIONS and capitals[i].low not in NO_NAME:
        followed = text[state.end : state.end + 1]
        zipped = re.match(r",?\s+\d{5}\b", text[state.end : state.end + 9])
        doubtful = state.word in ("MD", "PA", "MA", "DO", "OR", "IN", "ME", "HI", "OK", "CT", "MS")
        if doubtful and not zipped and capitals[i].low not in CITIES:
            return None
        return i + 1 if not followed.isalnum() else None
    return i + 1 if state.low in STATES and capitals[i].low in CITIES else None


def _city_before_state(text: str, capitals: Sequence[Capital], i: int) -> tuple[int | None, int]:
    """`Cedar Falls, IA`: a city of up to three words that no list has, known by its state."""
    for count in (3, 2, 1):
        if i + count > len(capitals) or any(
            gap(text, capitals[k], capitals[k + 1]) != " " for k in range(i, i + count - 1)
        ):
            continue
        state = _state_after(text, capitals, i + count - 1)
        if state is not None and not any(c.low in NO_NAME or c.low in GIVEN for c in capitals[i : i + count]):
            return state, count
    return None, 0


def _match_residence(text: str, low: str, capitals: Sequence[Capital], i: int) -> int | None:
    capital = capitals[i]
    if (
        capital.low in GENERIC
        or capital.initial
        or not low.endswith(_BEFORE_HOME, 0, capital.start)
        or not _LIVES.search(low[max(0, capital.start - 48) : capital.start])
    ):
        return None
    last = i
    while last + 1 < len(capitals) and last - i < 2 and gap(text, capitals[last], capitals[last + 1]) == " ":
        if capitals[last + 1].low in GENERIC:
            break
        last += 1
    return last
