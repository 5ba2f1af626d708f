"""Notes as JSON lines: `{"name": …, "text": …, "group": …, "spans": [{"start": …, "end": …, …}]}`.

A span says what it is by `kind` and `category` (with `concept`, `asserted`, `source` where known) or by a `label` that
the mapping knows. Offsets count characters (Unicode code points) from 0; `end` is exclusive.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from leeward.errors import BadInput
from leeward.notes.corpora.files import files_of, span_in, text_of
from leeward.notes.corpora.labels import Mapping
from leeward.notes.spans import AnnotatedNote, Span


def read(path: Path, mapping: Mapping) -> list[AnnotatedNote]:
    """The notes of a file, or of a folder's `.jsonl` files. BadInput names file and row."""
    notes = []
    for file in files_of(path, ".jsonl"):
        for number, row in enumerate(text_of(file).split("\n"), 1):
            if row.strip():
                notes.append(_note(row, f"{file}, row {number}", f"{file.stem}-{number}", mapping))
    return notes


def _note(row: str, where: str, name: str, mapping: Mapping) -> AnnotatedNote:
    try:
        value = json.loads(row)
    except json.JSONDecodeError as error:
        raise BadInput(f"{where}, column {error.colno}: is no JSON.") from None
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise BadInput(f"{where}, field `text`: must be a string.")
    spans = value.get("spans", [])
    if not isinstance(spans, list):
        raise BadInput(f"{where}, field `spans`: must be a list.")
    made = [_span(span, value["text"], f"{where}, span {i}", mapping) for i, span in enumerate(spans, 1)]
    kept = tuple(sorted(span for span in made if span is not None))
    return AnnotatedNote(str(value.get("name", name)), value["text"], kept, str(value.get("group", "")))


def _span(span: Any, text: str, where: str, mapping: Mapping) -> Span | None:
    if not isinstance(span, dict):
        raise BadInput(f"{where}: must be an object.")
    for name in ("start", "end"):
        if type(span.get(name)) is not int:
            raise BadInput(f"{where}, field `{name}`: must be a whole number.")
    label = f"{span['kind']}:{span.get('category', '')}" if "kind" in span else span.get("label")
    if not isinstance(label, str):
        raise BadInput(f"{where}: needs `kind` and `category`, or a `label`.")
    target = mapping.of(label, where)
    if target is None:
        return None
    asserted, concept, source = (
        span.get("asserted", True),
        span.get("concept", ""),
        span.get("source", "gold"),
    )
    if not isinstance(asserted, bool):
        raise BadInput(f"{where}, field `asserted`: must be true or false.")
    return span_in(
        text,
        span["start"],
        span["end"],
        target,
        where,
        concept=str(concept),
        asserted=asserted,
        source=str(source),
    )


def row_of(note: AnnotatedNote) -> str:
    """A note as one row, with its line break."""
    spans = [span._asdict() for span in note.spans]
    row = {"name": note.name, "group": note.group, "text": note.text, "spans": spans}
    return json.dumps(row, ensure_ascii=False) + "\n"


def write(path: Path, notes: Iterable[AnnotatedNote]) -> None:
    """Write notes with their spans."""
    path.write_bytes("".join(map(row_of, notes)).encode())
