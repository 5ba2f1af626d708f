"""A lexicon from SNOMED CT in Release Format 2: the snapshot files of descriptions, concepts and relationships.

The files come under the licence of SNOMED International; Leeward ships none of them.
"""

from __future__ import annotations

import re
from pathlib import Path

from leeward.errors import BadInput
from leeward.notes.lexicon.concepts import Lexicon
from leeward.notes.lexicon.foreign import Entry, lexicon
from leeward.notes.lexicon.tables import rows

FULLY_SPECIFIED, SYNONYM = "900000000000003001", "900000000000013009"
IS_A = "116680003"

KINDS_OF_TAGS = {
    "disorder": "disease",
    "finding": "finding",
    "procedure": "procedure",
    "regime/therapy": "procedure",
    "substance": "drug",
    "product": "drug",
    "medicinal product": "drug",
    "medicinal product form": "drug",
    "clinical drug": "drug",
    "observable entity": "test",
}
"""Kinds by the tag in parentheses that ends a fully specified name."""

NARROWER = {"386053000": ("procedure", "test"), "418799008": ("finding", "symptom")}
"""Below "evaluation procedure" a procedure is a test; below "finding reported by subject" a finding is a symptom."""


def load(path: Path) -> Lexicon:
    """Read the folder `path` (searched through) or the folder of the file `path`; ids are concept ids.

    Active English descriptions of active concepts. The relationship file may be absent; then tests stay among
    the procedures and symptoms among the findings. Raises BadInput naming file, row and column.
    """
    folder = path if path.is_dir() else path.parent
    descriptions = _file(folder, "Description")
    concepts = _file(folder, "Concept")
    if descriptions is None or concepts is None:
        missing = "Description" if descriptions is None else "Concept"
        raise BadInput(f"{folder.name}: no sct2_{missing}_*.txt in this folder.")
    active = {id_ for row, (id_, on) in rows(concepts, ("id", "active")) if _is_active(concepts, row, on)}
    named: dict[str, Entry] = {}
    synonyms: dict[str, list[str]] = {}
    columns = ("conceptid", "active", "languagecode", "typeid", "term")
    for row, (id_, on, language, type_, term) in rows(descriptions, columns):
        if not _is_active(descriptions, row, on) or id_ not in active or language != "en" or not term:
            continue
        if type_ == FULLY_SPECIFIED:
            parts = re.fullmatch(r"(.+) \(([^()]+)\)", term)
            if parts and parts[2] in KINDS_OF_TAGS:
                named[id_] = Entry(KINDS_OF_TAGS[parts[2]], parts[1])
        elif type_ == SYNONYM:
            synonyms.setdefault(id_, []).append(term)
    relationships = _file(folder, "Relationship")
    if relationships is not None:
        _narrow(named, relationships)
    for id_, entry in named.items():
        entry.synonyms = [text for text in synonyms.get(id_, ()) if text != entry.name]
    return lexicon(descriptions.name, named)


def _narrow(entries: dict[str, Entry], relationships: Path) -> None:
    below: dict[str, list[str]] = {}
    columns = ("active", "sourceid", "destinationid", "typeid")
    for row, (on, child, parent, type_) in rows(relationships, columns):
        if _is_active(relationships, row, on) and type_ == IS_A:
            below.setdefault(parent, []).append(child)
    for root, (kind, narrower) in NARROWER.items():
        seen = {root}
        stack = [root]
        while stack:
            concept = stack.pop()
            if concept in entries and entries[concept].kind == kind:
                entries[concept].kind = narrower
            fresh = [c for c in below.get(concept, ()) if c not in seen]
            seen.update(fresh)
            stack += fresh


def _file(folder: Path, what: str) -> Path | None:
    """The snapshot of a component, or its only file."""
    found = sorted(folder.rglob(f"sct2_{what}_*.txt"))
    snapshots = [f for f in found if "Snapshot" in f.name]
    return next(iter(snapshots or found), None)


def _is_active(path: Path, row: int, text: str) -> bool:
    if text not in ("0", "1"):
        raise BadInput(f"{path.name}, row {row}: the column 'active' needs 0 or 1.")
    return text == "1"
