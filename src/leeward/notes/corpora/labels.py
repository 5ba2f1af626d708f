"""Shared by the corpus readers: reading text files, mapping labels, and checking spans against their text.

Built in are our own labels (`EID:name`), those of the i2b2/UTHealth 2014 de-identification corpus (Stubbs & Uzuner
2015) and common names of the same things. A corpus's own are mapped by a CSV file `label,kind,category`; kind `OTHER`
says that a label means nothing here.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping as Dictionary
from dataclasses import dataclass, field
from pathlib import Path

from leeward.errors import BadInput
from leeward.notes import spans
from leeward.notes.spans import Kind, Span

OLD = 89
"""Ages above are explicit identifiers, whatever a corpus calls them."""


def text_of(path: Path) -> str:
    """A file's text (UTF-8, with or without byte order mark). BadInput for a missing or binary file, or one in another
    encoding, with the row where it stops being UTF-8."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder; a file is expected.") from None
    if b"\0" in data:
        raise BadInput(f"{path}: is a binary file; annotated notes are text in UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path}, row {row}: is not UTF-8; convert the file first.") from None


def files_of(path: Path, ending: str) -> list[Path]:
    """The file itself, or the files of a folder with this ending, by name. BadInput where there is none."""
    if path.is_dir():
        found = sorted(path.glob(f"*{ending}"))
        if not found:
            raise BadInput(f"{path}: no file *{ending} in this folder.")
        return found
    return [path]


def span_in(
    text: str,
    start: int,
    end: int,
    target: tuple[Kind, str],
    where: str,
    *,
    asserted: bool = True,
) -> Span:
    """A span of the text; BadInput where it does not lie in it. An age above 89 becomes an EID."""
    if not 0 <= start < end <= len(text):
        raise BadInput(f"{where}: the span {start}–{end} does not lie in its text of {len(text)} characters.")
    kind, category = target
    if category == "age" and any(int(number) > OLD for number in re.findall("[0-9]+", text[start:end])):
        kind = "EID"
    return Span(start, end, kind, category, "", "gold", asserted)


OTHER = "OTHER"
KINDS: dict[Kind, tuple[str, ...]] = {"EID": spans.EID, "QID": spans.QID, "HMI": spans.HMI}

_I2B2 = {
    "EID:name": "PATIENT DOCTOR USERNAME NAME PERSON",
    "EID:address": "STREET ADDRESS LOCATION-OTHER",
    "EID:facility": "HOSPITAL ORGANIZATION DEPARTMENT ROOM FACILITY",
    "EID:phone": "PHONE PHONE_NUMBER",
    "EID:fax": "FAX FAX_NUMBER",
    "EID:email": "EMAIL EMAIL_ADDRESS",
    "EID:url": "URL",
    "EID:ip": "IPADDR IPADDRESS IP_ADDRESS",
    "EID:ssn": "SSN",
    "EID:record_number": "MEDICALRECORD MRN",
    "EID:plan_number": "HEALTHPLAN",
    "EID:account_number": "ACCOUNT",
    "EID:licence_number": "LICENSE",
    "EID:vehicle": "VEHICLE",
    "EID:device": "DEVICE",
    "EID:biometric": "BIOID",
    "EID:other_id": "IDNUM ID",
    "QID:date": "DATE",
    "QID:age": "AGE",
    "QID:place": "CITY STATE COUNTRY LOCATION",
    "QID:zip": "ZIP",
    "HMI:disease": "PROBLEM DISEASE DISORDER DIAGNOSIS",
    "HMI:symptom": "SYMPTOM SIGN",
    "HMI:test": "TEST",
    "HMI:drug": "TREATMENT DRUG MEDICATION",
    "OTHER:": "PROFESSION OTHER",
}


def _built_in() -> dict[str, tuple[Kind, str] | None]:
    known: dict[str, tuple[Kind, str] | None] = {}
    for kind, names in KINDS.items():
        known.update({f"{kind}:{category}".upper(): (kind, category) for category in names})
        # CoNLL files cannot hold a colon in all tools' hands.
        known.update({f"{kind}_{category}".upper(): (kind, category) for category in names})
    for target, labels in _I2B2.items():
        kind_name, _, category = target.partition(":")
        for label in labels.split():
            known[label] = next(((kind, category) for kind in KINDS if kind == kind_name), None)
    return known


@dataclass(frozen=True)
class Mapping:
    """What labels mean: kind and category, or None for nothing. Case makes no difference."""

    labels: Dictionary[str, tuple[Kind, str] | None] = field(default_factory=_built_in)

    def of(self, label: str, where: str) -> tuple[Kind, str] | None:
        """A label's kind and category; BadInput for an unknown one. Its message has `where` (file and row) and not the
        label, which in a broken file may be text of a note."""
        try:
            return self.labels[label.upper()]
        except KeyError:
            raise BadInput(
                f"{where}: a label that is not known here; map it to a kind and category (or to OTHER) in a CSV file "
                "with the columns label,kind,category."
            ) from None


def mapping_of(path: str | Path | None = None) -> Mapping:
    """The built-in mapping, with that of a CSV file (`label,kind,category`) before it. BadInput names file and row."""
    if path is None:
        return Mapping()
    rows = csv.DictReader(text_of(Path(path)).splitlines())
    if rows.fieldnames is None or not {"label", "kind"} <= set(rows.fieldnames):
        raise BadInput(f"{path}, row 1: the columns must be label,kind,category.")
    known = _built_in()
    for number, row in enumerate(rows, 2):
        known[(row["label"] or "").strip().upper()] = _target(row, f"{path}, row {number}")
    return Mapping(known)


def _target(row: dict[str, str], where: str) -> tuple[Kind, str] | None:
    kind_name = (row["kind"] or "").strip().upper()
    category = (row.get("category") or "").strip().lower()
    if kind_name == OTHER:
        return None
    for kind, names in KINDS.items():
        if kind == kind_name:
            if category not in names:
                raise BadInput(f"{where}, column `category`: for {kind} one of {', '.join(names)}.")
            return kind, category
    raise BadInput(f"{where}, column `kind`: one of EID, QID, HMI, OTHER.")
