"""The table: one row a note, quasi-identifiers in columns, health terms as a set (Li & Qin, Figure 3).

For quasi-identifiers, registration data (metadata) take precedence over the text, and labelled fields over running
text, since entered data need no extraction. If two sources disagree, the note is flagged.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import polars as pl
import pyarrow as pa

from leeward.notes import field_labels as labels
from leeward.notes.annotators.rules import dates, demographics
from leeward.notes.annotators.rules.words import DOCTORS, FEMALE, FIELDS, MALE, RELATIVES, WORDS_TOO
from leeward.notes.spans import Span

Value = int | str | date

READ = ("age", "sex", "age_sex", "race", "zip", "place")
"""Fields that hold a quasi-identifier, other than dates."""

OLDEST = demographics.OLDEST + 1
"""Ages above 89 are 90 in the table."""

TABLE = labels.Labels(
    {label: meaning for label, meaning in FIELDS.items() if meaning in ("visit_date", "other_date", *READ)}
)
_CREDENTIALS = re.compile(r",?\s*(?:M\.?D|D\.?O|R\.?N|N\.?P|P\.?A|Ph\.?D|LPN|CRNA|PA-C|DDS)\b")
BIRTH = frozenset({"dob", "d.o.b", "date of birth", "birth date", "birthdate", "born"})


@dataclass(frozen=True)
class Found:
    """A value and where it was found: `metadata`, `section` (a labelled field of the note) or `text`."""

    value: Value
    source: str


def of_note(
    text: str, low: str, spans: Sequence[Span], known: Mapping[str, str | None]
) -> tuple[dict[str, Found], list[str]]:
    """Return a note's quasi-identifiers by name (`visit`, `age`, `sex`, `race`, `zip`, `place`), and the names of those
    on which its sources disagree. `low` is the text in lower case, character by character; `spans` are the ensemble's,
    ascending; `known` is metadata (`date`, `birth_date`, `age`, `sex`, `race`, `zip`, `place`), each text or None."""
    fields = labels.find(text, low, TABLE)
    registered = _read_metadata(known)
    written = _read_text(text, low, spans, fields, registered)
    told: dict[str, Found] = {}
    disagree: list[str] = []
    for name in ("visit", "age", "sex", "race", "zip", "place"):
        ours, theirs = registered.get(name), written.get(name)
        if ours is not None:
            told[name] = Found(ours, "metadata")
            if theirs is not None and not _agree(name, ours, theirs.value):
                disagree.append(name)
        elif theirs is not None:
            told[name] = theirs
    if "age" not in registered and (age := _age_at(registered.get("birth"), told.get("visit"))) is not None:
        if "age" in told and not _agree("age", age, told["age"].value):
            disagree.append("age")
        told["age"] = Found(age, "metadata")
    return told, disagree


def _read_metadata(known: Mapping[str, str | None]) -> dict[str, Value]:
    """Read the metadata as table values, leaving out unreadable ones."""
    given = defaultdict(str, {name: value for name, value in known.items() if value})
    read: dict[str, Value | None] = {}
    for name, column in (("visit", "date"), ("birth", "birth_date")):
        moment = dates.read(given[column])
        read[name] = moment.whole() if moment else None
    age = re.match(r"\d{1,3}", given["age"].strip())
    read["age"] = min(int(age.group()), OLDEST) if age else None
    race = given["race"].strip()
    read |= {
        "sex": demographics.sex_of(given["sex"]),
        "race": (demographics.race_of(race) or "Other") if race else None,
        "zip": _zip(given["zip"].strip()),
        "place": " ".join(given["place"].split()) or None,
    }
    return {name: value for name, value in read.items() if value is not None}


def _read_text(
    text: str,
    low: str,
    spans: Sequence[Span],
    fields: Sequence[labels.Label],
    registered: Mapping[str, Value],
) -> dict[str, Found]:
    """Read values from the text, preferring labelled fields, then the most frequent, then the first."""
    said: dict[str, list[tuple[Value, bool]]] = {}
    for span in spans:
        if span.asserted and (span.kind == "QID" or span.category == "age"):
            value = _value(span, text[span.start : span.end], registered.get("visit"))
            if value is not None:
                name = "visit" if span.category == "date" else span.category
                labelled = any(field.value <= span.start <= field.value + 12 for field in fields)
                said.setdefault(name, []).append((value, labelled))
    told = {name: _choose(name, statements) for name, statements in said.items()}
    if "sex" not in told and (sex := _infer_sex(text, low, spans)) is not None:
        told["sex"] = Found(sex, "text")
    if "age" not in told:
        visit = told["visit"].value if "visit" in told else registered.get("visit")
        age = _age_at(_birth(text, low, fields), Found(visit, "text") if visit is not None else None)
        if age is not None:
            told["age"] = Found(age, "section")
    return told


def _value(span: Span, words: str, visit: Value | None) -> Value | None:
    if span.category == "date":
        moment = dates.read(words)
        year = visit.year if isinstance(visit, date) else None
        if moment is None or (moment.year or year) is None:
            return None
        return date(moment.year or year or 0, moment.month, 1)
    return _READERS[span.category](words)


def _age(words: str) -> int | None:
    age = demographics.age_of(words)
    return None if age is None or age > 125 else min(age, OLDEST)


def _zip(words: str) -> str | None:
    digits = re.match(r"\d{5}", words)
    return digits.group() if digits else None


def _public_place(words: str) -> str | None:
    """Return the text's place only if it is in a public list, so that no other string of the data gets through."""
    from leeward.notes.lexicon.lists import Places

    parts = list(filter(None, map(str.strip, words.split(","))))
    return " ".join(words.split()) if parts and all(map(Places.common().knows, parts)) else None


_READERS: dict[str, Callable[[str], Value | None]] = {
    "age": _age,
    "sex": demographics.sex_of,
    "race": demographics.race_of,
    "zip": _zip,
    "place": _public_place,
}
"""Category -> function that reads the words of a span."""


def _choose(name: str, statements: Sequence[tuple[Value, bool]]) -> Found:
    labelled = [value for value, is_labelled in statements if is_labelled]
    values = labelled or [value for value, _ in statements]
    # Of most the first is the patient's, later ones may refer to the past; of sex and race the most frequent.
    best = Counter(values).most_common(1)[0][0] if name in ("sex", "race") else values[0]
    return Found(best, "section" if labelled else "text")


def _infer_sex(text: str, low: str, spans: Sequence[Span]) -> str | None:
    """Infer the sex from pronouns, a title before the first name, or a given name."""
    implied = demographics.pronoun_sex(low)
    if implied is not None:
        return implied
    for span in spans:
        if span.kind != "EID" or span.category != "name":
            continue
        before = re.findall(r"[a-z]+", low[max(0, span.start - 14) : span.start])
        title = before[-1] if before else ""
        words = re.findall(r"[\w'’-]+", low[span.start : span.end])
        if title in DOCTORS or title == "by" or text[span.end : span.end + 2] in ("'s", "’s"):
            continue
        if not RELATIVES.keys().isdisjoint(before[-2:]) or _CREDENTIALS.match(text, span.end):
            continue  # the patient's wife, the nurse
        if title in ("mr", "sir") or title in ("mrs", "ms", "miss"):
            return "male" if title in ("mr", "sir") else "female"
        if words and (words[0] in FEMALE) != (words[0] in MALE) and words[0] not in WORDS_TOO:
            return "female" if words[0] in FEMALE else "male"
    return None


def _birth(text: str, low: str, fields: Sequence[labels.Label]) -> date | None:
    for field in fields:
        label = low[field.start : field.value].strip(" :\t*")
        if field.meaning == "other_date" and label in BIRTH:
            moment = dates.read(text[field.value : field.value + 30])
            if moment is not None:
                return moment.whole()
    return None


def _age_at(birth: Value | None, visit: Found | None) -> int | None:
    """Whole years from birth to the visit (to its first day where only the month is known)."""
    if not isinstance(birth, date) or visit is None or not isinstance(visit.value, date):
        return None
    day = visit.value
    years = day.year - birth.year - ((day.month, max(day.day, 1)) < (birth.month, birth.day))
    return min(years, OLDEST) if 0 <= years <= 125 else None


def _agree(name: str, ours: Value, theirs: Value) -> bool:
    if isinstance(ours, date) and isinstance(theirs, date):
        return (ours.year, ours.month) == (theirs.year, theirs.month)
    if isinstance(ours, int) and isinstance(theirs, int):
        return abs(ours - theirs) <= 1
    if name == "place":
        return str(theirs).split(",")[0].casefold() in str(ours).casefold()
    return str(ours).casefold() == str(theirs).casefold()


QUASI = ("age", "sex", "race", "zip", "place")

ROW = pa.schema(
    [
        ("row", pa.int64()),
        ("patient", pa.string()),
        ("visit_month", pa.int32()),
        ("visit_year", pa.int32()),
        ("age", pa.int32()),
        ("sex", pa.string()),
        ("race", pa.string()),
        ("zip", pa.string()),
        ("place", pa.string()),
        *((f"{name}_source", pa.string()) for name in ("visit", *QUASI)),
        ("terms", pa.list_(pa.string())),
        ("disagrees", pa.list_(pa.string())),
    ]
)
"""A row of the table. `row` numbers the input; what is written numbers the notes anew, in an order that says nothing.

`visit_month` 1 to 12, `visit_year`, `age` in years (90: above 89), `sex` `female` or `male`, `race` as in
`rules.demographics.RACES`, `zip` five digits, `place` a place that a public list knows; each null where nothing was
found, with `_source` `metadata`, `section` (a labelled field of the note) or `text`. `terms`: ids of the lexicon's
concepts that the note asserts of the patient, now; ascending. `disagrees`: columns on which the note's sources, or
the patient's notes among each other, disagree.
"""


def row_of(
    number: int, patient: str, told: dict[str, Found], disagrees: Sequence[str], spans: Sequence[Span]
) -> dict[str, Any]:
    visit = told.get("visit")
    when = visit.value if visit is not None and isinstance(visit.value, date) else None
    row: dict[str, Any] = {
        "row": number,
        "patient": patient,
        "visit_month": when.month if when else None,
        "visit_year": when.year if when else None,
        "visit_source": visit.source if visit else None,
        "terms": terms_of(spans),
        "disagrees": sorted(disagrees),
    }
    for name in QUASI:
        found = told.get(name)
        row[name] = found.value if found else None
        row[f"{name}_source"] = found.source if found else None
    return row


def terms_of(spans: Sequence[Span]) -> list[str]:
    """Return the lexicon concepts that a note asserts of its patient; never a string of the text."""
    return sorted({s.concept for s in spans if s.kind == "HMI" and s.concept and s.asserted})


def with_disagreements(table: pl.DataFrame) -> pl.DataFrame:
    """Add columns on which a patient's notes disagree to `disagrees`: sex and race must be the same in all of them,
    visit year less age must not differ by more than a year, ZIP code and place may change."""
    by = pl.col("patient")
    born = pl.col("visit_year") - pl.col("age")
    told = (pl.col("age") < 90) & born.is_not_null()
    differs = {
        "sex": pl.col("sex").drop_nulls().n_unique().over(by) > 1,
        "race": pl.col("race").drop_nulls().n_unique().over(by) > 1,
        "age": (born.filter(told).max() - born.filter(told).min()).over(by) > 1,
    }
    found = [pl.when(condition).then(pl.lit(name)) for name, condition in differs.items()]
    noted = pl.col("disagrees").cast(pl.List(pl.String)).fill_null([])
    both = pl.concat_list(noted, pl.concat_list(found).list.drop_nulls())
    return table.with_columns(both.list.unique().list.sort().alias("disagrees"))
