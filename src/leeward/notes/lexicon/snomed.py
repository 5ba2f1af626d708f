"""A lexicon from SNOMED CT in Release Format 2: the snapshot files of descriptions, concepts and relationships.

The files come under the licence of SNOMED International; Leeward ships none of them.
"""

from __future__ import annotations

import re
from pathlib import Path

from leeward.notes.lexicon.concepts import Lexicon
from leeward.notes.lexicon.foreign import Entry, lexicon
from leeward.vocabulary.rf2 import FULLY_SPECIFIED, IS_A, SYNONYM, active_rows, component, require_file

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
    descriptions, concepts = require_file(folder, "Description"), require_file(folder, "Concept")
    active = {id_ for _, (id_,) in active_rows(concepts, ("id",))}
    named: dict[str, Entry] = {}
    synonyms: dict[str, list[str]] = {}
    columns = ("conceptid", "languagecode", "typeid", "term")
    for _, (id_, language, type_, term) in active_rows(descriptions, columns):
        if id_ not in active or language != "en" or not term:
            continue
        if type_ == FULLY_SPECIFIED:
            parts = re.fullmatch(r"(.+) \(([^()]+)\)", term)
            if parts and parts[2] in KINDS_OF_TAGS:
                named[id_] = Entry(KINDS_OF_TAGS[parts[2]], parts[1])
        elif type_ == SYNONYM:
            synonyms.setdefault(id_, []).append(term)
    relationships = component(folder, "Relationship")
    if relationships is not None:
        _narrow(named, relationships)
    for id_, entry in named.items():
        entry.synonyms = [text for text in synonyms.get(id_, ()) if text != entry.name]
    return lexicon(descriptions.name, named)


def _narrow(entries: dict[str, Entry], relationships: Path) -> None:
    below: dict[str, list[str]] = {}
    for _, (child, parent, type_) in active_rows(relationships, ("sourceid", "destinationid", "typeid")):
        if type_ == IS_A:
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
