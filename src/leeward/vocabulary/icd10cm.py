"""ICD-10-CM: a category of three characters (letter, digit, digit or letter) with up to four more (S72.001A).

Normalisation gives `S72.001A` from dotted or undotted text in any case, blanks removed; a trailing dot,
dash (`A00.-`) or ICD-10 mark (dagger, asterisk) is dropped. Codes have a letter first, so no leading zero
can have been lost. WHO ICD-10 codes have the same form and mostly the same categories: those that ICD-10-CM
lacks count as unknown but find their section and chapter by range.
"""

from __future__ import annotations

import re

from leeward.vocabulary._tables import tables_of
from leeward.vocabulary.classification import Classification

_CODE = re.compile(r"([A-Z][0-9][0-9A-Z])(?:\.?([0-9A-Z]{1,4}))?")
_MARKS = ".-*†+!#"


def clean(code: str) -> tuple[str | None, bool]:
    """The canonical form of a text (None if it has not the form of a code); zeros are never put back."""
    found = _CODE.fullmatch("".join(code.split()).upper().rstrip(_MARKS))
    if found is None:
        return None, False
    category, tail = found.groups()
    return (f"{category}.{tail}" if tail else category), False


def category_of(code: str) -> str:
    """The category of a canonical code: its first three characters."""
    return code[:3]


_TABLES = tables_of("icd10cm")

ICD10CM = Classification(
    name="ICD-10-CM",
    clean=clean,
    category_of=category_of,
    chapters=_TABLES.chapters,
    sections=_TABLES.sections,
    gaps=_TABLES.gaps,
    placed=_TABLES.placed,
    digits=("7-character", "6-character", "5-character", "4-character", "3-character"),
)
