"""A lexicon by name, or from the file or folder of a public vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path

from leeward.errors import BadInput
from leeward.notes.lexicon.concepts import Lexicon
from leeward.notes.lexicon.tables import lines, read_concepts

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
    from leeward.notes.lexicon import obo, omop, snomed, umls

    return {"csv": _table, "omop": omop.load, "obo": obo.load, "umls": umls.load, "snomed": snomed.load}


def _guess(path: Path) -> str:
    """The layout by the name of the file, or of the files in the folder; a table is OMOP if it has concept_id."""
    names = [f.name.lower() for f in path.rglob("*")] if path.is_dir() else [path.name.lower()]
    for layout, ours in (
        ("umls", lambda n: n.startswith("mrconso.rrf")),
        ("snomed", lambda n: n.startswith("sct2_description_")),
        ("omop", lambda n: n in ("concept.csv", "concept.csv.gz")),
        ("obo", lambda n: n.endswith((".obo", ".obo.gz"))),
    ):
        if any(map(ours, names)):
            return layout
    if path.is_dir():
        raise BadInput(
            f"{path.name}: this folder holds no vocabulary that is known here; it needs CONCEPT.csv (OMOP), "
            "MRCONSO.RRF and MRSTY.RRF (UMLS), or sct2_Description_*.txt and sct2_Concept_*.txt (SNOMED CT)."
        )
    return "omop" if "concept_id" in next(lines(path), "").lower() else "csv"
