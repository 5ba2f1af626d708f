"""Annotated notes in files: i2b2 XML, brat, CoNLL and JSON lines, with one entry point to all readers.

- i2b2/UTHealth 2014: one XML file a note, `TEXT` and `TAGS` with offsets.
- brat (standoff): `note.txt` beside `note.ann`.
- CoNLL: one token a row, its label last (BIO, BIOES or bare labels), an empty row after each sentence. A text is put
  together from its tokens: one blank between them, a line break between sentences. A row `-DOCSTART-` begins a note; a
  file without one is a note.
- JSON lines: `{"name": …, "text": …, "group": …, "spans": [{"start": …, "end": …, …}]}`. A span says what it is by
  `kind` and `category` (with `concept`, `asserted`, `source` where known) or by a `label` that the mapping knows.
  Offsets count characters (Unicode code points) from 0; `end` is exclusive.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from leeward.errors import BadInput
from leeward.notes.corpora.labels import Mapping, files_of, span_in, text_of
from leeward.notes.spans import AnnotatedNote, Span


def read_i2b2(path: Path, mapping: Mapping) -> list[AnnotatedNote]:
    """The notes of a file or a folder of `.xml` files. BadInput names file and tag."""
    return [_i2b2_note(file, mapping) for file in files_of(path, ".xml")]


def _i2b2_note(path: Path, mapping: Mapping) -> AnnotatedNote:
    content = text_of(path)
    # The challenge's files declare no document type; entities could expand a small file without limit.
    if "<!DOCTYPE" in content or "<!ENTITY" in content:
        raise BadInput(f"{path}: declares a document type, which files of this format do not; remove it.")
    try:
        root = ElementTree.fromstring(content.encode())
    except ElementTree.ParseError as error:
        row, column = error.position
        raise BadInput(f"{path}, row {row}, column {column + 1}: is no well-formed XML.") from None
    text = root.findtext("TEXT")
    if text is None:
        raise BadInput(f"{path}: has no element TEXT; the format is that of i2b2 2014.")
    tags = enumerate(root.iterfind("TAGS/*"), 1)
    spans = [_i2b2_span(tag, text, f"{path}, tag {number}", mapping) for number, tag in tags]
    return AnnotatedNote(path.stem, text, tuple(sorted(span for span in spans if span is not None)))


def _i2b2_span(tag: ElementTree.Element, text: str, where: str, mapping: Mapping) -> Span | None:
    start, end = (_offset(tag, name, where) for name in ("start", "end"))
    target = mapping.of(tag.get("TYPE") or tag.tag, where)
    if target is None:
        return None
    span = span_in(text, start, end, target, where)
    if tag.get("text") is not None and _plain(tag.get("text") or "") != _plain(text[start:end]):
        raise BadInput(f"{where}: its attribute `text` is not the text at {start}–{end}.")
    return span


def _offset(tag: ElementTree.Element, name: str, where: str) -> int:
    value = tag.get(name, "")
    if not value.isdecimal():
        raise BadInput(f"{where}, attribute `{name}`: must be a whole number.")
    return int(value)


def _plain(text: str) -> str:
    return " ".join(text.split())


NUMBER = re.compile(r"\d+")
DENIALS = frozenset(
    ("negation", "negated", "uncertain", "uncertainty", "family", "hypothetical", "historical", "notasserted")
)
"""Attributes that mark a term as not the patient's own now."""


def read_brat(path: Path, mapping: Mapping) -> list[AnnotatedNote]:
    """The notes of a folder, or of one `.ann` file with its `.txt` beside it. BadInput names file and row."""
    return [_brat_note(file, mapping) for file in files_of(path, ".ann")]


def _brat_note(path: Path, mapping: Mapping) -> AnnotatedNote:
    text_path = path.with_suffix(".txt")
    if not text_path.is_file():
        raise BadInput(f"{path}: its text {text_path.name} is not beside it.")
    # brat counts characters of the raw file, so line ends must be kept.
    text = text_of(text_path)
    rows = text_of(path).split("\n")
    if text_path.read_bytes().startswith(codecs.BOM_UTF8):
        rows = _without_mark(rows, text)
    denied = {row.split()[2] for row in rows if _denies(row)}
    spans: list[Span] = []
    for number, row in enumerate(rows, 1):
        if row.startswith("T"):
            spans += _brat_spans(row.rstrip("\r"), text, f"{path}, row {number}", mapping, denied)
    return AnnotatedNote(path.stem, text, tuple(sorted(spans)))


def _without_mark(rows: list[str], text: str) -> list[str]:
    """Return rows with offsets of `text`, corrected if they count a byte order mark; the spans' own words decide."""

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
    """Whether a row's own words are at its offsets, if it has one fragment."""
    parts = row.rstrip("\r").split("\t")
    numbers = NUMBER.findall(parts[1].partition(" ")[2]) if row.startswith("T") and len(parts) > 2 else ()
    return len(numbers) == 2 and parts[2].split() == text[int(numbers[0]) : int(numbers[1])].split()


def _denies(row: str) -> bool:
    parts = row.split()
    return row[:1] in ("A", "M") and len(parts) > 2 and parts[1].lower() in DENIALS


def _brat_spans(row: str, text: str, where: str, mapping: Mapping, denied: set[str]) -> list[Span]:
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


START = "-DOCSTART-"
OUTSIDE = "O"


def read_conll(path: Path, mapping: Mapping) -> list[AnnotatedNote]:
    """The notes of a file, or of a folder's `.conll` files. BadInput names file and row."""
    return [note for file in files_of(path, ".conll") for note in _conll_notes(file, mapping)]


def _conll_notes(path: Path, mapping: Mapping) -> list[AnnotatedNote]:
    notes: list[AnnotatedNote] = []
    building = _Building(path, mapping)
    for number, row in enumerate(text_of(path).splitlines(), 1):
        columns = row.split("\t") if "\t" in row else row.split()
        if columns and columns[0] == START:
            notes += building.note(len(notes) + 1)
            building = _Building(path, mapping)
        elif not row.strip():
            building.sentence_ends()
        elif len(columns) < 2:
            raise BadInput(
                f"{path}, row {number}: a token and its label are expected, between tabs or blanks."
            )
        else:
            building.add(columns[0], columns[-1].strip(), number)
    return [*notes, *building.note(len(notes) + 1)]


class _Building:
    def __init__(self, path: Path, mapping: Mapping) -> None:
        self.path, self.mapping = path, mapping
        self.pieces: list[str] = []
        self.length = 0
        self.open: tuple[str, int, int, int] | None = None  # label, start, end, row
        self.spans: list[Span] = []
        self.gap = ""

    def add(self, token: str, label: str, row: int) -> None:
        start = self.length + len(self.gap)
        self.pieces += (self.gap, token)
        self.length = end = start + len(token)
        self.gap = " "
        if label == OUTSIDE:
            self.close()
            return
        mark, _, name = label.partition("-")
        if len(mark) != 1 or not name:
            mark, name = "I", label
        if mark not in "BIESLU":
            raise BadInput(f"{self.path}, row {row}: the label must begin with B-, I-, E- or S-, or be O.")
        if self.open is None or mark in "BSU" or self.open[0] != name:
            self.close()
            self.open = (name, start, end, row)
        else:
            self.open = (name, self.open[1], end, self.open[3])
        if mark in "ESLU":
            self.close()

    def close(self) -> None:
        if self.open is not None:
            label, start, end, row = self.open
            where = f"{self.path}, row {row}"
            target = self.mapping.of(label, where)
            if target is not None:
                self.spans.append(span_in("".join(self.pieces), start, end, target, where))
            self.open = None

    def sentence_ends(self) -> None:
        self.close()
        if self.pieces:
            self.gap = "\n"

    def note(self, number: int) -> list[AnnotatedNote]:
        self.close()
        if not self.pieces:
            return []
        return [AnnotatedNote(f"{self.path.stem}-{number}", "".join(self.pieces), tuple(self.spans))]


def read_jsonl(path: Path, mapping: Mapping) -> list[AnnotatedNote]:
    """The notes of a file, or of a folder's `.jsonl` files. BadInput names file and row."""
    return [
        _jsonl_note(row, f"{file}, row {number}", f"{file.stem}-{number}", mapping)
        for file in files_of(path, ".jsonl")
        for number, row in enumerate(text_of(file).split("\n"), 1)
        if row.strip()
    ]


def _jsonl_note(row: str, where: str, name: str, mapping: Mapping) -> AnnotatedNote:
    try:
        value = json.loads(row)
    except json.JSONDecodeError as error:
        raise BadInput(f"{where}, column {error.colno}: is no JSON.") from None
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise BadInput(f"{where}, field `text`: must be a string.")
    spans = value.get("spans", [])
    if not isinstance(spans, list):
        raise BadInput(f"{where}, field `spans`: must be a list.")
    made = [
        _jsonl_span(span, value["text"], f"{where}, span {i}", mapping) for i, span in enumerate(spans, 1)
    ]
    kept = tuple(sorted(span for span in made if span is not None))
    return AnnotatedNote(str(value.get("name", name)), value["text"], kept, str(value.get("group", "")))


def _jsonl_span(span: Any, text: str, where: str, mapping: Mapping) -> Span | None:
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
    asserted = span.get("asserted", True)
    if not isinstance(asserted, bool):
        raise BadInput(f"{where}, field `asserted`: must be true or false.")
    made = span_in(text, span["start"], span["end"], target, where, asserted=asserted)
    return made._replace(concept=str(span.get("concept", "")), source=str(span.get("source", "gold")))


def row_of(note: AnnotatedNote) -> str:
    spans = [span._asdict() for span in note.spans]
    row = {"name": note.name, "group": note.group, "text": note.text, "spans": spans}
    return json.dumps(row, ensure_ascii=False) + "\n"


def write_jsonl(path: Path, notes: Iterable[AnnotatedNote]) -> None:
    path.write_bytes("".join(map(row_of, notes)).encode())


FORMATS: dict[str, Callable[[Path, Mapping], list[AnnotatedNote]]] = {
    "i2b2": read_i2b2,
    "brat": read_brat,
    "conll": read_conll,
    "jsonl": read_jsonl,
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
    """The annotated notes of a file or folder, in one of `FORMATS` (default: by the files' endings). Raises BadInput
    naming file, row and column, never a text."""
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
