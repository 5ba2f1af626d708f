"""Notes annotated as in the i2b2/UTHealth 2014 challenge: one XML file a note, `TEXT` and `TAGS` with offsets."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from leeward.errors import BadInput
from leeward.notes.corpora.files import files_of, span_in, text_of
from leeward.notes.corpora.labels import Mapping
from leeward.notes.spans import AnnotatedNote, Span


def read(path: Path, mapping: Mapping) -> list[AnnotatedNote]:
    """The notes of a file or a folder of `.xml` files. BadInput names file and tag."""
    return [_note(file, mapping) for file in files_of(path, ".xml")]


def _note(path: Path, mapping: Mapping) -> AnnotatedNote:
    content = text_of(path)
    # The challenge's files declare no document type; entities could make a small file unfold without end.
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
    spans = []
    for number, tag in enumerate(root.iterfind("TAGS/*"), 1):
        span = _span(tag, text, f"{path}, tag {number}", mapping)
        if span is not None:
            spans.append(span)
    return AnnotatedNote(path.stem, text, tuple(sorted(spans)))


def _span(tag: ElementTree.Element, text: str, where: str, mapping: Mapping) -> Span | None:
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
