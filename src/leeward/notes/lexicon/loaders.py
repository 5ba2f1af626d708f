"""A lexicon by name, or from the file or folder of a public vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path

from leeward.errors import BadInput
from leeward.notes.lexicon.concepts import Lexicon
from leeward.notes.lexicon.tables import read_concepts

OWN_FILES = {
    "symptoms": "symptom",
    "diseases": "disease",
    "tests": "test",
    "drugs": "drug",
    "procedures": "procedure",
}
"""The files of the project's lexicon, and the kind of what stands in them."""


def load(source: str | Path, layout: str | None = None) -> Lexicon:
    """`leeward`, or a lexicon read from `source`: a CSV or TSV table, OMOP `CONCEPT.csv`, an OBO file, or a folder
    of OMOP, UMLS (RRF) or SNOMED CT (RF2) files.

    `layout` (`csv`, `omop`, `obo`, `umls`, `snomed`) is told from the name and the header if it is not given.
    Raises BadInput.
    """
    if str(source) == "leeward":
        return _own()
    path = Path(source)
    if not path.exists():
        raise BadInput(f"lexicon {path.name!r} is neither 'leeward' nor a file or folder.")
    known = _formats()
    chosen = layout or _guess(path)
    if chosen not in known:
        raise BadInput(f"lexicon layout {chosen!r} is unknown; give one of {', '.join(known)}.")
    return known[chosen](path)


@cache
def _own() -> Lexicon:
    folder = resources.files("leeward.notes.lexicon").joinpath("data")
    concepts = []
    for file, kind in OWN_FILES.items():
        with resources.as_file(folder.joinpath(f"{file}.tsv")) as path:
            concepts += read_concepts(path, kind)
    phrases = folder.joinpath("phrases.txt").read_text("utf-8").splitlines()
    return Lexicon("leeward", tuple(concepts), tuple(p for p in phrases if p and not p.startswith("#")))


def _table(path: Path) -> Lexicon:
    return Lexicon(path.name, tuple(read_concepts(path)))


def _formats() -> dict[str, Callable[[Path], Lexicon]]:
    return {"csv": _table}


def _guess(path: Path) -> str:
    return "csv"
