"""One door to all readers of annotated notes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from leeward.errors import BadInput
from leeward.notes.corpora import brat, conll, i2b2, jsonl
from leeward.notes.corpora.labels import Mapping
from leeward.notes.spans import AnnotatedNote

FORMATS: dict[str, Callable[[Path, Mapping], list[AnnotatedNote]]] = {
    "i2b2": i2b2.read,
    "brat": brat.read,
    "conll": conll.read,
    "jsonl": jsonl.read,
}
ENDINGS = {
    ".xml": "i2b2",
    ".ann": "brat",
    ".conll": "conll",
    ".bio": "conll",
    ".iob": "conll",
    ".jsonl": "jsonl",
}


def read(path: str | Path, format: str | None = None, mapping: Mapping | None = None) -> list[AnnotatedNote]:  # noqa: A002  # the word of the command line
    """The annotated notes of a file or folder.

    Parameters
    ----------
    format
        One of `FORMATS`; left out, the files' endings tell.
    mapping
        What the labels mean; see `labels.mapping_of`.

    Raises BadInput naming file, row and column, never a text.
    """
    path = Path(path)
    if not path.exists():
        raise BadInput(f"{path}: no such file or folder.")
    name = format or _format_of(path)
    if name not in FORMATS:
        raise BadInput(f"the format {name!r} is unknown; there are {', '.join(FORMATS)}.")
    notes = FORMATS[name](path, mapping or Mapping())
    if not notes:
        raise BadInput(f"{path}: holds no note.")
    return notes


def _format_of(path: Path) -> str:
    endings = {file.suffix for file in path.iterdir()} if path.is_dir() else {path.suffix}
    found = sorted({ENDINGS[ending] for ending in endings if ending in ENDINGS})
    if len(found) != 1:
        what = "files of several formats" if found else "no file whose ending names a format"
        raise BadInput(f"{path}: {what}; say which with --format {'|'.join(FORMATS)}.")
    return found[0]
