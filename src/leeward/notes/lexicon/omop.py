"""A lexicon from the OMOP vocabulary: `CONCEPT.csv`, and `CONCEPT_SYNONYM.csv` beside it, where there is one."""

from __future__ import annotations

from pathlib import Path

from leeward.errors import BadInput
from leeward.notes.lexicon.concepts import Lexicon
from leeward.notes.lexicon.foreign import Entry, lexicon
from leeward.notes.lexicon.tables import rows

KINDS_OF_DOMAINS = {
    "condition": "disease",
    "drug": "drug",
    "measurement": "test",
    "procedure": "procedure",
    "observation": "finding",
}
ENGLISH = "4180186"
"""OMOP's concept for the language."""


def load(path: Path) -> Lexicon:
    """Read the file, or the folder in which both files lie; ids are concept ids.

    Concepts that are no longer valid and those of other domains are left out; of two with the same term the
    standard one has it. Raises BadInput naming file, row and column.
    """
    file = next(iter(_find_files(path, "concept.csv")), None) if path.is_dir() else path
    if file is None:
        raise BadInput(f"{path.name}: no CONCEPT.csv in this folder.")
    entries: dict[str, Entry] = {}
    columns = ("concept_id", "concept_name", "domain_id", "standard_concept", "invalid_reason")
    for row, (id_, name, domain, standard, invalid) in rows(file, columns):
        kind = KINDS_OF_DOMAINS.get(domain.lower())
        if kind and name and invalid.upper() not in ("D", "U"):
            entries[_number(file, row, id_)] = Entry(kind, name, rank=int(standard.upper() != "S"))
    for beside in _find_files(file.parent, "concept_synonym.csv"):
        of_synonyms = ("concept_id", "concept_synonym_name", "language_concept_id")
        for row, (id_, name, language) in rows(beside, of_synonyms):
            entry = entries.get(_number(beside, row, id_))
            if entry and name and language in (ENGLISH, "0", ""):
                entry.synonyms.append(name)
    return lexicon(file.name, entries)


def _find_files(folder: Path, name: str) -> list[Path]:
    """The files of a folder with a name, whatever its case."""
    return sorted(f for f in folder.iterdir() if f.name.lower() in (name, name + ".gz"))


def _number(path: Path, row: int, text: str) -> str:
    if not text.isdecimal():
        raise BadInput(f"{path.name}, row {row}: the column 'concept_id' needs a whole number.")
    return text
