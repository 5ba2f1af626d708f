"""Annotated spans of a text, the data type shared by all of `notes`, and their categories.

EID follows the 18 categories of HIPAA's Safe Harbor (45 CFR 164.514(b)(2)); QID are columns of the table (Li & Qin,
Figure 3). If both are possible, the safer reading wins:

- the date of the visit, admission or discharge is a QID (`date`); every other date is an EID, a birth date first;
- an age up to 89 is a QID, above 89 an EID;
- street, post box and building are an EID (`address`); city, county, state and country a QID (`place`); a ZIP code a
  QID;
- a hospital, clinic, school or employer is an EID (`facility`): it locates the patient more closely than a city.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from leeward.texts import list_words

Kind = Literal["EID", "QID", "HMI"]
"""Explicit identifier, quasi-identifier, health information. Text outside all spans is OTHER (Li & Qin, §3.1)."""

Status = Literal["negated", "uncertain", "family", "past", "heading"]
"""Why a health term is not asserted; `heading`: it is a section's title, no statement about the patient."""

PRIORITY: dict[Kind, int] = {"EID": 0, "QID": 1, "HMI": 2}
"""Rank of kinds when annotators disagree: the most protective wins (Li & Qin, §3.2)."""


class Span(NamedTuple):
    """Characters `start` to `end` (exclusive) of a note.

    `category` is finer than the kind: for EID a HIPAA category such as `name`, `phone`, `record_number`; for QID a
    column of the table such as `date`, `age`, `zip`; for HMI `symptom`, `disease`, `test`, `drug`. `concept` is the id
    of an HMI in the lexicon, empty where an annotator only marked words. `source` is the annotator: `rules`,
    `dictionary`, `svm`, `crf`, or `gold`. `asserted` is False if the text denies or doubts the term, or refers to
    another person or time.
    """

    start: int
    end: int
    kind: Kind
    category: str
    concept: str = ""
    source: str = ""
    asserted: bool = True


@dataclass(frozen=True)
class AnnotatedNote:
    """A text with its spans, as in a corpus. `group`: its document type, if known."""

    name: str
    text: str
    spans: tuple[Span, ...] = field(default=())
    group: str = ""


class Annotator(Protocol):
    """A span finder. Annotators are built once and must be thread-safe."""

    @property
    def name(self) -> str: ...

    def annotate(self, text: str) -> Sequence[Span]:
        """Return the spans of a text, ascending by start, without overlaps."""
        ...


EID = list_words(
    """name address facility date age phone fax email ssn record_number plan_number account_number licence_number
    vehicle device url ip biometric photo other_id"""
)
"""Explicit identifiers; `address` and `facility` are HIPAA's locations, `date` and `age` its dates."""

QID = ("date", "age", "sex", "race", "zip", "place")
"""Quasi-identifiers, each a column of the table (the date gives two)."""

HMI = ("symptom", "disease", "test", "drug")
"""Health information."""

SAFE_HARBOR_QID = frozenset({"date", "zip", "place"})
"""Quasi-identifiers that Safe Harbor also removes from a released text."""
