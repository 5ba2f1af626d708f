"""A lexicon from the UMLS Metathesaurus in Rich Release Format: `MRCONSO.RRF` and `MRSTY.RRF`.

The files come under the UMLS licence from the US National Library of Medicine; Leeward ships none of them.
"""

from __future__ import annotations

from pathlib import Path

from leeward.errors import BadInput
from leeward.notes.lexicon.concepts import Lexicon
from leeward.notes.lexicon.foreign import Entry, lexicon
from leeward.notes.lexicon.tables import plain_rows

KINDS_OF_TYPES = {
    "T184": "symptom",
    **dict.fromkeys(
        ("T019", "T020", "T037", "T046", "T047", "T048", "T049", "T050", "T190", "T191"), "disease"
    ),
    "T033": "finding",
    **dict.fromkeys(("T034", "T059", "T060", "T201"), "test"),
    **dict.fromkeys(("T109", "T121", "T125", "T127", "T129", "T195", "T200"), "drug"),
    **dict.fromkeys(("T058", "T061", "T074"), "procedure"),
}
"""Semantic types that occur in notes. A concept of several types has the kind that is first in `ORDER`."""

ORDER = ("symptom", "disease", "drug", "test", "procedure", "finding")

CONSO = {"CUI": 0, "LAT": 1, "TS": 2, "STT": 4, "ISPREF": 6, "STR": 14, "SUPPRESS": 16}


def load(path: Path) -> Lexicon:
    """Read both files from the folder `path` (or the folder of the file `path`); ids are CUIs.

    English terms that are not suppressed; the preferred name is the preferred form of the preferred term. Raises
    BadInput naming file, row and column.
    """
    folder = path if path.is_dir() else path.parent
    kinds = _kinds(_file(folder, "MRSTY.RRF"))
    entries: dict[str, Entry] = {}
    preferred: set[str] = set()
    file = _file(folder, "MRCONSO.RRF")
    for row, (cui, language, status, form, first, text, suppressed) in plain_rows(file, "|", 17, CONSO):
        if not (cui[:1] == "C" and cui[1:].isdecimal()):
            raise BadInput(f"{file.name}, row {row}: the column 'CUI' needs C and digits.")
        if language != "ENG" or suppressed != "N" or cui not in kinds or not text:
            continue
        entry = entries.setdefault(cui, Entry(kinds[cui], text))
        is_preferred = (status, form, first) == ("P", "PF", "Y") and cui not in preferred
        if is_preferred:
            preferred.add(cui)
            text, entry.name = entry.name, text
        if text != entry.name:
            entry.synonyms.append(text)
    return lexicon(file.name, entries)


def _kinds(file: Path) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for row, (cui, type_) in plain_rows(file, "|", 4, {"CUI": 0, "TUI": 1}):
        if not (type_[:1] == "T" and type_[1:].isdecimal()):
            raise BadInput(f"{file.name}, row {row}: the column 'TUI' needs T and digits.")
        kind = KINDS_OF_TYPES.get(type_)
        if kind and (cui not in kinds or ORDER.index(kind) < ORDER.index(kinds[cui])):
            kinds[cui] = kind
    return kinds


def _file(folder: Path, name: str) -> Path:
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise BadInput(f"{folder.name}: no {name} in this folder; UMLS needs MRCONSO.RRF and MRSTY.RRF.")
