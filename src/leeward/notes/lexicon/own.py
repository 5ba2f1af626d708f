"""The project's own lexicon, from the files in `data/`."""

from __future__ import annotations

from functools import cache
from importlib import resources

from leeward.notes.lexicon.concepts import Lexicon
from leeward.notes.lexicon.tables import read_concepts

OWN_FILES = {
    "symptoms": "symptom",
    "diseases": "disease",
    "tests": "test",
    "drugs": "drug",
    "procedures": "procedure",
}
"""The files of the project's lexicon, and the kind of their terms."""


@cache
def load_lexicon() -> Lexicon:
    """The project's lexicon, read once in a process."""
    folder = resources.files("leeward.notes.lexicon").joinpath("data")
    concepts = []
    for file, kind in OWN_FILES.items():
        with resources.as_file(folder.joinpath(f"{file}.tsv")) as path:
            concepts += read_concepts(path, kind)
    phrases = folder.joinpath("phrases.txt").read_text("utf-8").splitlines()
    return Lexicon("leeward", tuple(concepts), tuple(p for p in phrases if p and not p.startswith("#")))
