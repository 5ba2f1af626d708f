"""Find, read and rewrite dates in all usual forms.

Numbers are read in American order, month first, unless the first is above 12. A lone year is kept, since Safe Harbor
does not remove it.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from leeward.notes.annotators.rules.patterns import Rule
from leeward.notes.annotators.rules.words import MONTHS

_NAMES = "|".join(sorted(MONTHS, key=len, reverse=True))
_MONTH = rf"(?P<n>(?:{_NAMES}))(?![^\W\d_])\.?"
_TIME = r"(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"

# Cheap first checks: both begin with a character class, which the engine skips to.
_NEAR_NUMERIC = re.compile(r"\d\d{0,3}\s?[-/.]\s?\d")
_NEAR_MONTH = re.compile("(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)")

NUMERIC = re.compile(
    r"(?<![\d./-])(?:"
    r"(?P<y>(?:19|20)\d\d)(?P<s>[-/.])(?P<m>\d\d?)(?P=s)(?P<d>\d\d?)" + _TIME + "|"
    r"(?P<a>\d\d?)(?P<t>\s?[-/.]\s?)(?P<b>\d\d?)(?P=t)(?P<z>(?:19|20)\d\d|'?\d\d)|"
    r"(?P<m2>\d\d?)[/-](?P<y2>(?:19|20)\d\d)"
    r")(?![\d/-]|\.\d)"
)
WRITTEN = re.compile(
    r"(?:\b(?P<d>\d{1,2})(?:st|nd|rd|th)?(?:\s+of)?[\s-]*|\b)(?:"
    + _MONTH
    + r"(?:[\s,-]*(?:of\s+)?(?P<y>(?:19|20)\d\d\b|'\d\d\b)"
    r"|[\s-]*(?P<e>\d{1,2})(?:st|nd|rd|th)?\b(?![:/.]\d|\s*%)(?:[\s,-]+(?:of\s+)?(?P<z>(?:19|20)\d\d)\b|[,\s]+'(?P<w>\d\d)\b|-(?P<v>\d\d)\b)?)?"
    r")",
    re.IGNORECASE,
)
SHORT = re.compile(
    r"(?P<m>[0-9](?:(?<=0)[1-9]|(?<=1)[0-2]|(?<!0)))/(?P<d>0?[1-9]|[12]\d|3[01])(?![\d/%]|\.\d|\s*(?:strength|mm|mg|ml|cm|pain"
    r"|scale|systolic|murmur|in\b|on\b|with\b))"
)
_WHOLE_BEFORE = re.compile(r"(?<![\d/.-])\d{1,3}-$")
"""The whole number before a fraction: `7-1/2 inches`."""
BEFORE_SHORT = re.compile(
    r"(?:\b(?:on|in|since|until|till|through|thru|from|dated|by|for|of|before|after|date|seen|visit)|[-–:]|\bto)\s*$",
    re.IGNORECASE,
)
NAMED = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?(?: (?:morning|afternoon|evening|night))?"
    r"|christmas(?: eve| day)?|thanksgiving(?: day)?|new year(?:['’]s)?(?: eve| day)|halloween"
    r"|easter(?: sunday| monday)?|(?:valentine|mother|father)(?:['’]s)? day"
    r"|(?:independence|labor|memorial|veterans) day|hanukkah|passover|ramadan|yom kippur"
    r"|rosh hashanah|diwali|boxing day|good friday|mardi gras"
    r"|\d{1,2}(?:st|nd|rd|th)(?: day)? of (?:the |this |last |next |that )?month"
    r"|(?:the )?(?:early |late |mid[- ]?)?(?:summer|winter|spring|autumn|fall) (?:of |in )?(?:19|20)\d\d)\b"
)
"""Days by their name, in lower case: weekdays, holidays, days of a month that is not named, seasons of a year."""
WEEKDAY = re.compile(
    r"(?:m(?<!\w.)on|t(?<!\w.)(?:ues?|hurs?)|w(?<!\w.)ed|f(?<!\w.)ri|s(?<!\w.)(?:at|un))(?=,? \d{1,2}[/.: -])"
)
"""A weekday's short name before a number, in lower case."""
_DAY_PARTS = (
    "day new kippur christmas thanksgiving halloween easter hanukkah passover ramadan hashanah diwali mardi month "
    "summer winter spring autumn fall"
)
DAYS = (
    Rule("date", NAMED, tuple(_DAY_PARTS.split()), low=True),
    Rule("date", WEEKDAY, low=True),
)


@dataclass(frozen=True)
class Written:
    """A date in a text; `year` and `day` are None if missing. Each of `fields` gives its part (`y`, `m`, `d` as
    numbers, `n` a month's name) and its characters, counted from `start`."""

    start: int
    end: int
    year: int | None
    month: int
    day: int | None
    fields: tuple[tuple[str, int, int], ...] = ()

    def whole(self) -> date | None:
        if self.year is None or self.day is None:
            return None
        return date(self.year, self.month, self.day)


def find(text: str, low: str | None = None) -> list[Written]:
    """The dates of a text, ascending, without overlaps; `low` is the text in lower case."""
    kept: list[Written] = []
    found = _find_overlapping(text, lower(text) if low is None else low)
    for each in sorted(found, key=lambda d: (d.start, -d.end)):
        if not kept or each.start >= kept[-1].end:
            kept.append(each)
    return kept


def _find_overlapping(text: str, low: str) -> Iterator[Written]:
    for near in _NEAR_NUMERIC.finditer(text):
        match = NUMERIC.match(text, near.start())
        if match and (numeric := _numeric(match)):
            yield numeric
    for near in _NEAR_MONTH.finditer(low):
        match = WRITTEN.search(text, max(0, near.start() - 11), near.start() + 30)
        if match and match.start("n") == near.start() and (written := _parse_match(match)):
            yield written
    if "/" in text:
        yield from _short(text)


def lower(text: str) -> str:
    """The text in lower case, each character in its place."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def read(text: str) -> Written | None:
    """Read the first date of a short text, such as a span or a cell."""
    found = find(text)
    if found:
        return found[0]
    short = SHORT.search(text)
    return _check_calendar(short, _MONTH_DAY) if short else None


def shift(text: str, days: int, year: int = 2001) -> str | None:
    """Shift a text's date by `days`, keeping its format; None if the text has no date. `year` is used if the text has
    none. A date without a day is moved from its middle."""
    written = read(text)
    if written is None:
        return None
    moved = _move(written, days, year)
    pieces, past = [], 0
    for part, start, end in sorted(written.fields, key=lambda f: f[1]):
        old = text[written.start + start : written.start + end]
        pieces += [text[past : written.start + start], _as(part, moved, old)]
        past = written.start + end
        if part == "d" and text[past : past + 2].lower() in ("st", "nd", "rd", "th"):
            pieces.append(
                "th" if 10 < moved.day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(moved.day % 10, "th")
            )
            past += 2
    return "".join([*pieces, text[past:]])


def _move(written: Written, days: int, year: int) -> date:
    known = written.year or year
    last = monthrange(known, written.month)[1]
    first = date(known, written.month, min(written.day or 15, last))
    return first + timedelta(days=days)


def _as(part: str, moved: date, old: str) -> str:
    if part == "n":
        new = moved.strftime("%B" if len(old) > 4 or (len(old) == 4 and old.lower() != "sept") else "%b")
        return new.upper() if old.isupper() else new.lower() if old.islower() else new
    if part == "y":
        digits = f"{moved.year:04d}" if len(old) >= 4 else f"{moved.year % 100:02d}"
        return ("'" if old.startswith("'") else "") + digits
    number = moved.month if part == "m" else moved.day
    return f"{number:02d}" if old.startswith("0") else str(number)


def _numeric(found: re.Match[str]) -> Written | None:
    groups = found.groupdict()
    if groups["y"]:
        return _check_calendar(found, [("y", "y"), ("m", "m"), ("d", "d")])
    if groups["m2"]:
        return _check_calendar(found, [("m", "m2"), ("y", "y2")])
    american = int(groups["a"]) <= 12
    two_digits = len(groups["z"]) == 2
    if two_digits and "." in groups["t"]:  # 1.2.05 is as often a section or a version
        return None
    return _check_calendar(
        found, [("m", "a"), ("d", "b"), ("y", "z")] if american else [("d", "a"), ("m", "b"), ("y", "z")]
    )


def _parse_match(found: re.Match[str]) -> Written | None:
    groups = found.groupdict()
    day = "d" if groups["d"] else "e" if groups["e"] else None
    year = next((name for name in ("y", "z", "w", "v") if groups[name]), None)
    if day is None and year is None:
        return None
    if year is None and groups["d"] and groups["e"] and "-" in found.group():  # 13-Jan-21
        year, day = "e", "d"
    name = groups["n"].lower()
    doubtful = groups["n"][0].islower() and name in ("may", "mar", "dec", "sep", "march")
    if doubtful and (day is None or year is None):  # "may 2 …", "march 3 miles" are words
        return None
    parts = [("n", "n")] + ([("d", day)] if day else []) + ([("y", year)] if year else [])
    return _check_calendar(found, parts)


def _short(text: str) -> Iterator[Written]:
    for found in SHORT.finditer(text):
        before = text[max(0, found.start() - 12) : found.start()]
        if (
            before[-1:] not in set("0123456789/.")
            and not _WHOLE_BEFORE.search(before)
            and BEFORE_SHORT.search(before)
            and (made := _check_calendar(found, _MONTH_DAY))
        ):
            yield made


_MONTH_DAY = [("m", "m"), ("d", "d")]


def _check_calendar(found: re.Match[str], parts: list[tuple[str, str]]) -> Written | None:
    """Return a match's date, or None if the calendar has no such day."""
    values: dict[str, int] = {}
    fields = []
    for part, group in parts:
        text = found.group(group)
        fields.append((part, found.start(group) - found.start(), found.end(group) - found.start()))
        values["m" if part == "n" else part] = MONTHS[text.lower()] if part == "n" else int(text.lstrip("'"))
    year, day, month = values.get("y"), values.get("d"), values["m"]
    if year is not None and year < 100:
        year += 2000 if year < 50 else 1900
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= monthrange(year or 2000, month)[1]):
        return None
    return Written(found.start(), found.end(), year, month, day, tuple(fields))
