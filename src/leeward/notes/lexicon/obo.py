"""A lexicon from an ontology in OBO format 1.2 or 1.4 (Human Phenotype, Disease Ontology, MONDO ...)."""

from __future__ import annotations

import re
from pathlib import Path

from leeward.errors import BadInput
from leeward.notes.lexicon.concepts import Lexicon
from leeward.notes.lexicon.foreign import Entry, lexicon
from leeward.vocabulary._text import lines

KINDS_OF_PREFIXES = {
    **dict.fromkeys(("HP", "SYMP"), "symptom"),
    **dict.fromkeys(("DOID", "MONDO", "ORPHANET"), "disease"),
    **dict.fromkeys(("CHEBI", "DRON"), "drug"),
    **dict.fromkeys(("CMO", "LOINC"), "test"),
    "MAXO": "procedure",
}
"""Kinds by the part of an id before the colon; `finding` for any other."""

SYNONYM = re.compile(r'"((?:[^"\\]|\\.)*)"\s+(EXACT|BROAD|NARROW|RELATED)\b')


def load(path: Path) -> Lexicon:
    """Read the terms that are not obsolete, with their exact synonyms. Raises BadInput naming file and row."""
    entries: dict[str, Entry] = {}
    stanza: dict[str, list[str]] = {}
    began = 0
    row = 0
    for row, raw in enumerate(lines(path), start=1):
        line = raw.strip()
        if line.startswith("["):
            _close(path, began, stanza, entries)
            began, stanza = row, {"kind": [line]}
        elif began and line and not line.startswith("!"):
            tag, colon, value = line.partition(":")
            if not colon:
                raise BadInput(f"{path.name}, row {row}: a line of an OBO file needs `tag: value`.")
            stanza.setdefault(tag, []).append(value.strip())
            if tag == "synonym" and not SYNONYM.match(value.strip()):
                raise BadInput(f"{path.name}, row {row}: a synonym needs its text in quotes and its scope.")
    _close(path, began, stanza, entries)
    if not began:
        raise BadInput(f"{path.name}: no [Term] in this file; is it in OBO format?")
    return lexicon(path.name, entries)


def _close(path: Path, row: int, stanza: dict[str, list[str]], entries: dict[str, Entry]) -> None:
    """Take what a stanza said into the entries."""
    if stanza.get("kind") != ["[Term]"] or stanza.get("is_obsolete") == ["true"]:
        return
    for tag in ("id", "name"):
        if not stanza.get(tag, [""])[0]:
            raise BadInput(f"{path.name}, row {row}: the term that begins here has no {tag!r}.")
    id_ = stanza["id"][0].split(" !")[0]
    kind = KINDS_OF_PREFIXES.get(id_.partition(":")[0].upper(), "finding")
    found = [SYNONYM.match(text) for text in stanza.get("synonym", ())]
    exact = [re.sub(r"\\(.)", r"\1", m[1]) for m in found if m and m[2] == "EXACT"]
    entries[id_] = Entry(kind, stanza["name"][0], exact)
