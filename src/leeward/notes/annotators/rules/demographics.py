"""Age, sex and race: phrases of running text, fields of the header, and their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from leeward.notes.annotators.rules.patterns import Rule, mark
from leeward.notes.annotators.rules.words import RELATIVE, RELATIVES, SEXES, words
from leeward.notes.field_labels import Label, line_end
from leeward.notes.spans import Span
from leeward.texts import list_words

OLDEST = 89
"""Ages above are explicit identifiers (45 CFR 164.514(b)(2)(i)(C))."""

_ONES = {
    word: number
    for number, word in enumerate(
        list_words(
            """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
            seventeen eighteen nineteen"""
        )
    )
}
_TENS = {
    word: 10 * number
    for number, word in enumerate(list_words("twenty thirty forty fifty sixty seventy eighty ninety"), 2)
}
_SPELLED = (
    r"(?:(?:"
    + "|".join(_TENS)
    + r")(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?|"
    + "|".join(w for w in _ONES if w != "zero")
    + r"|one hundred(?: and)?(?: (?:one|two|three|four|five))?)"
)

_UNITS = r"(?P<unit>years?|yrs?|yr|y|months?|mos?|m|weeks?|wks?|w|days?|d)"
AGE = re.compile(
    r"(?P<number>(?P<whole>\d\d{0,2})(?:\.5|\s?1/2)?)(?:"
    r"[\s-]{0,2}" + _UNITS + r"\.?[\s./-]{0,2}(?:old|o)\b\.?"
    r"|\s?(?P<short>yo|y/o|y\.o|yr/o|m/o|mo/o|d/o|w/o)\b\.?"
    r"|[\s-]?(?:years?|yrs?)[\s-]of[\s-]age\b)"
)
SPELLED = re.compile(r"\b(?P<words>" + _SPELLED + r")[\s-]" + _UNITS + r"[\s-](?:old|of age)\b")
AGED = re.compile(
    r"\b(?:aged?|ages|age of|age is|turned|turning)\s*(?:is|was|:|=|at)?\s*(?P<number>\d{1,3})\b(?!\s?(?:%"
    r"|mg|ml|cm|mm|/|-\d|\.\d|days|weeks|months))"
)
COMPACT = re.compile(
    r"(?P<number>\d(?<![\w.,/-].)(?:\d?|(?<=1)[01]\d))\s?(?:/|-)?\s?(?P<sex>[MF])(?![\w/'’-])"
)
PAIR = re.compile(r"\((?P<sex>[MF])\s?[,/]\s?(?P<number>\d{1,3})\)")
DECADE = re.compile(r"\b(?:in (?:his|her|their) (?:early |mid |mid-|late )?)(?P<number>\d0)['’]?s\b")
# What follows the age of a person: the sex, perhaps behind race and other words.
_AFTER_AGE = re.compile(
    r"[\s,-]{0,3}(?:(?:and|very|pleasant|well|developed|well-developed|nourished|well-nourished|healthy"
    r"|right|left|handed|"
    r"right-handed|left-handed|obese|morbidly|elderly|otherwise|previously|single|married|divorced|widowed|gravida|"
    r"white|black|caucasian|african|american|african-american|hispanic|latino|latina|asian|native"
    r"|non-hispanic|indian|"
    r"chinese|korean|japanese|filipino|vietnamese|mexican|middle-eastern|premenopausal|postmenopausal|retired|"
    r"ambulatory|thin|frail|diabetic|hypertensive|unfortunate|known|old|year|nulliparous|multiparous|pregnant|"
    r"\w+-\w+)[\s,/-]+){0,5}(?P<sex>male|female|man|woman|boy|girl|gentleman|lady|m|f|wm|wf|bm|bf|hm|hf|aam"
    r"|aaf)\b(?!['’.]\w)"
)
_SEX_WORDS = "male|female|man|woman|boy|girl|gentleman|lady"
_SEX = re.compile(rf"\b(?:{_SEX_WORDS})s?\b")
_DAUGHTER = re.compile(r"['’]s\s+(?:\w+\s+)?(?P<relative>" + RELATIVE + r")\b")
_SUBJECT = re.compile(
    r",?\s+(?:(?:is|was|who)\b|,?\s*(?:an?\s+)?\d{1,3}[\s-]*(?:y|yr|year|month|m/o)|presents?|presented"
    r"|visited|complain|"
    r"reports?|reported|came|has\b|had\b|having\b|admitted|seen\b|returns|denies|\()"
)
_PRONOUN = re.compile(r"\b(?:she|her|hers|herself|he|his|him|himself)\b")

RACES = {
    "White": "white,caucasian,european american,wm,wf",
    "Black": "black,african american,african-american,afro-american,afro-caribbean,bm,bf,aam,aaf",
    "Hispanic": "hispanic,latino,latina,latinx,hispanic or latino,mexican american,mexican-american,hm,hf",
    "Asian": """asian,asian american,asian-american,chinese,japanese,korean,vietnamese,filipino,filipina,asian indian,
        south asian,chinese american,korean american""",
    "Native American": "native american,american indian,alaska native,alaskan native",
    "Pacific Islander": "pacific islander,native hawaiian,samoan",
    "Other": "biracial,multiracial,mixed race,middle eastern,arab,other",
}
RACE_OF = {word.strip(): race for race, words in RACES.items() for word in words.replace("\n", "").split(",")}
_CERTAIN = sorted(
    set(RACE_OF)
    - words("white black other asian chinese japanese korean wm wf bm bf hm hf aam aaf")
    - {"hispanic or latino"},
    key=lambda word: (-len(word), word),
)
RACE = re.compile(
    r"\b(?:non[- ]?)?(?:" + "|".join(_CERTAIN) + r")s?\b(?!\s+(?:flu|encephalitis|medicine|food|restaurant))"
)
_RACE_WORDS = "white|black|asian|chinese|japanese|korean"
RACE_BY_PERSON = re.compile(
    rf"\b(?:{_RACE_WORDS})\b(?=[\s,-]+(?:\w+[\s,-]+){{0,2}}?(?:male|female"
    r"|man|woman|boy|girl|"
    r"gentleman|lady|patient|individual|american|infant|child|teenager|adult|race|non[- ]?hispanic)\b)"
)
_NO_RACE = re.compile(
    r"(?:white|black)[\s-](?:blood|cell|count|matter|stool|tarry|coat|head|eye|spot|patch|plaque|sputum|box)"
)


def find(text: str, low: str, fields: Sequence[Label]) -> Iterator[Span]:
    """Spans of ages, sex and race; `asserted` is False if they refer to another person or time."""
    yield from _in_fields(low, fields)
    for rule in AGES:
        for match in rule.matches(text, low):
            yield from _age(text, low, match)
    for match in _SEX.finditer(low):
        if not _NO_SEX.match(low, match.end()):
            yield mark(*match.span(), "sex", "QID", _is_of_patient(low, *match.span()))
    yield from _daughters(text, low)
    for rule in RACES_SAID:
        for match in rule.matches(text, low):
            if not _NO_RACE.match(low, match.start()):
                yield mark(*match.span(), "race", "QID", _is_of_patient(low, *match.span()))


def age_of(phrase: str) -> int | None:
    """Whole years in a phrase that the rules marked; below a year is 0."""
    low = phrase.lower()
    if spelled := SPELLED.search(low):
        return _years(_parse_number(spelled.group("words")), spelled.group("unit"))
    if match := AGE.search(low):
        number = int(match.group("whole"))
        return _years(number, match.group("unit") or (match.group("short") or "y")[0])
    if match := re.search(r"\d{1,3}", low):
        return int(match.group())
    return _parse_number(low) if any(w in _ONES or w in _TENS for w in re.split(r"[\s-]", low)) else None


def sex_of(phrase: str) -> str | None:
    """`female` or `male` of a phrase that the rules marked."""
    for word in re.findall(r"[a-z]+(?:-in-law)?", phrase.lower()):
        known = SEXES.get(word) or RELATIVES.get(word) or _LETTERS.get(word)
        if known:
            return known
    return None


_LETTERS = {
    **dict.fromkeys(("m", "wm", "bm", "hm", "aam"), "male"),
    **dict.fromkeys(("f", "wf", "bf", "hf", "aaf"), "female"),
}


def race_of(phrase: str) -> str | None:
    """Return the table's value for a race, or None if unknown."""
    low = " ".join(re.sub(r"[^a-z -]", " ", phrase.lower()).split())
    if low.startswith(("non-", "non ", "not ")):
        return None
    known = RACE_OF.get(low) or RACE_OF.get(low.removesuffix("s"))
    if known:
        return known
    parts = [RACE_OF[w] for w in re.split(r"[ ]", low) if w in RACE_OF]
    return parts[0] if parts else None


def pronoun_sex(low: str) -> str | None:
    """Return the sex implied by a note's pronouns if nearly all agree, else None."""
    counts = {"female": 0, "male": 0}
    for match in _PRONOUN.finditer(low):
        counts["female" if match.group().startswith(("she", "her")) else "male"] += 1
    most = max(counts, key=lambda sex: counts[sex])
    other = sum(counts.values()) - counts[most]
    return most if counts[most] >= 2 and counts[most] >= 4 * other else None


def _in_fields(low: str, fields: Sequence[Label]) -> Iterator[Span]:
    for field in fields:
        start, meaning = field.value, field.meaning
        value = low[start : line_end(low, start, min(field.end, start + 40))]
        if meaning in ("age", "age_sex") and (age := _AGE_FIELD.search(value)):
            old = int(age["years"]) > OLDEST and age["unit"] is None
            yield mark(start + age.start(), start + age.end(), "age", "EID" if old else "QID")
        if meaning in ("sex", "age_sex") and (sex := _SEX_FIELD.search(value)):
            yield mark(start + sex.start(), start + sex.end(), "sex", "QID")
        if meaning == "race" and (race := _RACE_FIELD.match(value)) and race_of(race.group()) is not None:
            yield mark(start, start + race.end(), "race", "QID")


_AGE_FIELD = re.compile(r"(?P<years>\d{1,3})(?P<unit>\s*(?:months?|mos?|weeks?|days?)\b(?:\s+old)?)?")
_SEX_FIELD = re.compile(r"\b(?:female|male|woman|man|f|m)\b|(?<=\d)[mf]\b")
_RACE_FIELD = re.compile(r"[a-z][a-z /-]*[a-z]")


AGES = (
    Rule("age", AGE, low=True),
    Rule("age", SPELLED, ("old", "age"), low=True),
    Rule("age", AGED, ("age", "turn"), low=True),
    Rule("age", DECADE, ("in his ", "in her ", "in their "), low=True),
    Rule("age", COMPACT),
    Rule("age", PAIR, ("(",)),
)


def _age(text: str, low: str, match: re.Match[str]) -> Iterator[Span]:
    """The spans of an age and of the sex with it, unless the match is a part of a number or too high."""
    worded = match.re in (AGE, SPELLED)
    start, end = match.span(0 if worded else "number")
    if match.re is AGE and start and low[start - 1] in ".0123456789":
        return
    if low[end - 1] == "." and "." not in low[start : end - 1]:
        end -= 1  # the sentence's point, not that of `y.o.`
    years = age_of(low[start:end])
    if years is None or years > 130:
        return
    own = _is_of_patient(low, match.start(), match.end()) and not _is_at_event(low, match, start)
    yield mark(start, end, "age", "EID" if years > OLDEST else "QID", own)
    sex = _sex_after(text, low, end) if worded else match.span("sex") if match.re in (COMPACT, PAIR) else None
    if sex:
        yield mark(*sex, "sex", "QID", own)


def _sex_after(text: str, low: str, end: int) -> tuple[int, int] | None:
    """Where a sex is named behind an age; a letter alone must be a capital."""
    sex = _AFTER_AGE.match(low, end)
    if sex is None or not (len(sex.group("sex")) > 1 or text[sex.start("sex")].isupper()):
        return None
    return sex.span("sex")


_AT_AGE = re.compile(r"\bat (?:the )?(?:age )?(?:of )?$")


def _is_at_event(low: str, match: re.Match[str], start: int) -> bool:
    """Whether an age is that at an event, not now: `at age 40`, `the age of 40`, `turned 40`."""
    named = match.re is AGED and re.match(r"(?:age of|turn)", match.group())
    return bool(named or _AT_AGE.search(low[max(0, start - 16) : start]))


_NO_SEX = re.compile(r"\s+(?:pattern|condom|genitalia|catheter|partner|hormone|external|urethra|breast)")


def _daughters(text: str, low: str) -> Iterator[Span]:
    if "'s " in low or "’s " in low:
        for match in _DAUGHTER.finditer(low):
            # "Mr. Brown's daughter is 9 year old": the patient is the daughter.
            if _SUBJECT.match(low, match.end()) and _possessor(text, match.start()):
                yield mark(*match.span("relative"), "sex", "QID")


def _possessor(text: str, end: int) -> bool:
    """Whether the possessive belongs to a name that begins a sentence, not to `the patient's` or `his wife's`."""
    piece = text[max(0, end - 50) : end]
    return bool(
        re.search(
            r"(?:^|[.\n;,]\s*|\bis\s|\bThis is\s)(?:(?:Mr|Mrs|Ms|Miss|Dr)\.?\s+)?(?:[A-Z][\w'’-]+\s?){1,3}$",
            piece,
        )
    )


_HAS = re.compile(
    r"\b(?:has|have|had|with|his|her|their|a|an|one|two|and|lives with|of)\s+(?:\w+[\s-]+){0,2}$"
)
_FAMILY = re.compile(r"\b(?:" + RELATIVE + r")s?\b")


def _is_of_patient(low: str, start: int, end: int) -> bool:
    """Whether a phrase is about the patient, not about a relative in the same sentence."""
    begin = max(low.rfind(sign, 0, start) for sign in ("\n", ";")) + 1
    stop = low.rfind(". ", begin, start)
    while stop >= 0 and low[max(0, stop - 3) : stop] in (" mr", "mrs", " ms", " dr"):
        stop = low.rfind(". ", begin, stop)
    begin = max(begin, stop + 1, start - 90)
    before = low[begin:start]
    relative = next(reversed(list(_FAMILY.finditer(before))), None)
    if relative is not None:
        subject = before[max(0, relative.start() - 3) : relative.start()] in ("'s ", "’s ")
        switched = re.search(r"\b(?:patient|pt|he|she|this|who)\b", before[relative.end() :])
        if not subject and switched is None:
            return False
    after = _FAMILY.match(low, end + 1) if end < len(low) else None
    return after is None or not _HAS.search(before)


RACES_SAID = (
    Rule("race", RACE, tuple({max(re.split("[ -]", race), key=len) for race in _CERTAIN}), "QID", low=True),
    Rule("race", RACE_BY_PERSON, tuple(_RACE_WORDS.split("|")), "QID", low=True),
)


def _years(number: int, unit: str) -> int:
    return {"m": number // 12, "w": number // 52, "d": number // 365}.get(unit[0], number)


def _parse_number(words: str) -> int:
    total = 0
    for word in re.split(r"[\s-]+", words):
        total += _ONES.get(word, 0) + _TENS.get(word, 0) + (99 if word == "hundred" else 0)
    return total
