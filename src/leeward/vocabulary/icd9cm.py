"""ICD-9-CM: codes of three digits with up to two more (250.01), V codes (V10.1) and E codes (E812.0).

Normalisation gives `250.00`, `V10.1`, `E812.0` from dotted or undotted text in any case, blanks removed. An
undotted number of three to five digits is read as category plus subdivision (25000 → 250.00, 0381 → 038.1).

Spreadsheets and number columns drop leading zeros. They are put back where the text cannot be a code
otherwise: fewer than three digits before a dot (8.0 → 008.0, 38.1 → 038.1), or fewer than three digits and
no dot (8 → 008). An undotted text that lost zeros and still has three or more digits (381 for 0381) cannot
be told from a category and is read as one; so are procedure codes (38.1), which this vocabulary does not
hold: keep them in another column.
"""

from __future__ import annotations

import re

from leeward.vocabulary._tables import tables_of
from leeward.vocabulary.classification import Classification

_NUMERIC = re.compile(
    r"(?P<whole>\d{3})(?P<tail>\d{0,2})|(?P<short>\d{1,3})\.(?P<after>\d{0,2})|(?P<bare>\d{1,2})"
)
_V = re.compile(r"(V\d\d)\.?(\d{0,2})")
_E = re.compile(r"(E\d\d\d)\.?(\d?)")


def _add_dot(category: str, tail: str) -> str:
    return f"{category}.{tail}" if tail else category


def clean(code: str) -> tuple[str | None, bool]:
    """The canonical form of a text (None if it has not the form of a code), and whether zeros were put
    back.
    """
    text = "".join(code.split()).upper()
    if not text.isascii():
        return None, False
    supplementary = _V.fullmatch(text) or _E.fullmatch(text)
    if supplementary:
        return _add_dot(*supplementary.groups()), False
    found = _NUMERIC.fullmatch(text)
    if found is None:
        return None, False
    if found["whole"]:
        return _add_dot(found["whole"], found["tail"]), False
    short = found["short"] or found["bare"]
    return _add_dot(short.zfill(3), found["after"] or ""), len(short) < 3


def category_of(code: str) -> str:
    """The category of a canonical code: what is before the dot."""
    return code.partition(".")[0]


_TABLES = tables_of("icd9cm")

ICD9CM = Classification(
    name="ICD-9-CM",
    clean=clean,
    category_of=category_of,
    chapters=_TABLES.chapters,
    sections=_TABLES.sections,
    gaps=_TABLES.gaps,
)
