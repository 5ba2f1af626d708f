"""Load a lexicon by name, or from the file or folder of a public vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from leeward.errors import BadInput
from leeward.notes.lexicon import foreign
from leeward.notes.lexicon.concepts import Lexicon
from leeward.notes.lexicon.tables import load_lexicon, read_concepts
from leeward.vocabulary._text import lines


class Layout(NamedTuple):
    """A storage format: its reader, and whether a file name (lower case) indicates it."""

    load: Callable[[Path], Lexicon]
    shown_by: Callable[[str], bool]


def _table(path: Path) -> Lexicon:
    return Lexicon(path.name, tuple(read_concepts(path)))


LAYOUTS: Final[dict[str, Layout]] = {
    "umls": Layout(foreign.load_umls, lambda name: name.startswith("mrconso.rrf")),
    "snomed": Layout(foreign.load_snomed, lambda name: name.startswith("sct2_description_")),
    "omop": Layout(foreign.load_omop, lambda name: name in ("concept.csv", "concept.csv.gz")),
    "obo": Layout(foreign.load_obo, lambda name: name.endswith((".obo", ".obo.gz"))),
    "csv": Layout(_table, lambda name: False),
}
"""Formats in the order tried; a table without a known name is recognized by its header."""


def load(source: str | Path = "leeward", layout: str | None = None) -> Lexicon:
    """Load `leeward` (the project's own) or a lexicon from `source`: a CSV or TSV table, OMOP `CONCEPT.csv`, an OBO
    file, or a folder of OMOP, UMLS (RRF) or SNOMED CT (RF2) files. `layout` is a key of `LAYOUTS`; by default it
    follows from file names and the header. Raises BadInput."""
    if str(source) == "leeward":
        return load_lexicon()
    path = Path(source)
    if not path.exists():
        raise BadInput(f"lexicon {path.name!r} is neither 'leeward' nor a file or folder.")
    chosen = layout or _layout_of(path)
    if chosen not in LAYOUTS:
        raise BadInput(f"lexicon layout {chosen!r} is unknown; give one of {', '.join(LAYOUTS)}.")
    return LAYOUTS[chosen].load(path)


def _layout_of(path: Path) -> str:
    """Detect the layout from the names of the file or the folder's files; a table is OMOP if it has concept_id."""
    names = [f.name.lower() for f in path.rglob("*")] if path.is_dir() else [path.name.lower()]
    for name, layout in LAYOUTS.items():
        if any(map(layout.shown_by, names)):
            return name
    if path.is_dir():
        raise BadInput(
            f"{path.name}: this folder holds no vocabulary that is known here; it needs CONCEPT.csv (OMOP), "
            "MRCONSO.RRF and MRSTY.RRF (UMLS), or sct2_Description_*.txt and sct2_Concept_*.txt (SNOMED CT)."
        )
    return "omop" if "concept_id" in next(lines(path), "").lower() else "csv"
