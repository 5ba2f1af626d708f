"""Notes annotated with brat: `note.txt` beside `note.ann` (standoff format)."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from leeward.errors import BadInput
from leeward.notes.corpora.files import files_of, span_in, text_of
from leeward.notes.corpora.labels import Mapping
from leeward.notes.spans import AnnotatedNote, Span

NUMBER = re.compile(r"\d+")
DENIALS = frozenset(
    ("negation", "negated", "uncertain", "uncertainty", "family", "hypothetical", "historical", "notasserted")
)
"""Attributes by which a term is not the patient's own now."""


def read(path: Path, mapping: Mapping) -> list[AnnotatedNote]:
    """The notes of a folder, or of one `.ann` file with its `.txt` beside it. BadInput names file and row."""
    return [_note(file, mapping) for file in files_of(path, ".ann")]


def _note(path: Path, mapping: Mapping) -> AnnotatedNote:
    text_path = path.with_suffix(".txt")
    if not text_path.is_file():
        raise BadInput(f"{path}: its text {text_path.name} is not beside it.")
    # brat counts characters of the file as it is, so ends of lines must stay.
    text = text_of(text_path)
    rows = text_of(path).split("\n")
    if text_path.read_bytes().startswith(codecs.BOM_UTF8):
        rows = _without_mark(rows, text)
    denied = {row.split()[2] for row in rows if _denies(row)}
    spans: list[Span] = []
    for number, row in enumerate(rows, 1):
        if row.startswith("T"):
            spans += _spans(row.rstrip("\r"), text, f"{path}, row {number}", mapping, denied)
    return AnnotatedNote(path.stem, text, tuple(sorted(spans)))


def _without_mark(rows: list[str], text: str) -> list[str]:
    """The rows with offsets of `text`, where the offsets count a byte order mark in front of it, and as they are where
    they do not: the spans' own words decide."""

    def shift(row: str, by: int) -> str:
        parts = row.split("\t")
        if not row.startswith("T") or len(parts) < 2:
            return row
        label, _, offsets = parts[1].partition(" ")
        moved = NUMBER.sub(lambda number: str(max(0, int(number.group()) + by)), offsets)
        return "\t".join((parts[0], f"{label} {moved}", *parts[2:]))

    def fitting(candidates: list[str]) -> int:
        return sum(map(partial(_fits, text), candidates))

    moved = [shift(row, -1) for row in rows]
    return moved if fitting(moved) > fitting(rows) else rows


def _fits(text: str, row: str) -> bool:
    """Whether a row's own words are at its offsets, where it has one fragment."""
    parts = row.rstrip("\r").split("\t")
    numbers = NUMBER.findall(parts[1].partition(" ")[2]) if row.startswith("T") and len(parts) > 2 else ()
    return len(numbers) == 2 and parts[2].split() == text[int(numbers[0]) : int(numbers[1])].split()


def _denies(row: str) -> bool:
    parts = row.split()
    return row[:1] in ("A", "M") and len(parts) > 2 and parts[1].lower() in DENIALS


def _spans(row: str, text: str, where: str, mapping: Mapping, denied: set[str]) -> list[Span]:
    parts = row.split("\t")
    if len(parts) < 2 or " " not in parts[1]:
        raise BadInput(f"{where}: must be an identifier, a label with offsets, and the text, between tabs.")
    label, _, offsets = parts[1].partition(" ")
    target = mapping.of(label, where)
    if target is None:
        return []
    spans = []
    for fragment in offsets.split(";"):
        numbers = fragment.split()
        if len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
            raise BadInput(f"{where}: offsets must be pairs of whole numbers.")
        spans.append(
            span_in(text, int(numbers[0]), int(numbers[1]), target, where, asserted=parts[0] not in denied)
        )
    if len(parts) > 2 and len(spans) == 1:
        there = text[spans[0].start : spans[0].end]
        if " ".join(parts[2].split()) != " ".join(there.split()):
            raise BadInput(f"{where}: the text given is not the text at the offsets.")
    return spans


def write(folder: Path, notes: Sequence[AnnotatedNote]) -> None:
    """Write notes for brat, to be seen and mended by hand; concepts become notes of the annotator."""
    folder.mkdir(parents=True, exist_ok=True)
    for note in notes:
        rows = []
        for number, span in enumerate(note.spans, 1):
            shown = note.text[span.start : span.end].replace("\n", " ")
            rows.append(f"T{number}\t{span.kind}_{span.category} {span.start} {span.end}\t{shown}\n")
            if not span.asserted:
                rows.append(f"A{number}\tNotAsserted T{number}\n")
            if span.concept:
                rows.append(f"#{number}\tAnnotatorNotes T{number}\t{span.concept}\n")
        (folder / f"{note.name}.txt").write_bytes(note.text.encode())
        (folder / f"{note.name}.ann").write_bytes("".join(rows).encode())
