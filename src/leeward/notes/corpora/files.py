"""What the readers of corpora share: text out of files, and spans that lie in their text."""

from __future__ import annotations

from pathlib import Path

from leeward.errors import BadInput
from leeward.notes.spans import Kind, Span

OLD = 89
"""Ages above are explicit identifiers, whatever a corpus calls them."""


def text_of(path: Path) -> str:
    """A file's text (UTF-8, with or without byte order mark). BadInput for a missing, binary or otherwise encoded
    file, with the row where it stops being UTF-8.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder; a file is expected.") from None
    if b"\0" in data:
        raise BadInput(f"{path}: is a binary file; annotated notes are text in UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path}, row {row}: is not UTF-8; convert the file first.") from None


def files_of(path: Path, ending: str) -> list[Path]:
    """The file itself, or the files of a folder with this ending, by name. BadInput where there is none."""
    if path.is_dir():
        found = sorted(path.glob(f"*{ending}"))
        if not found:
            raise BadInput(f"{path}: no file *{ending} in this folder.")
        return found
    return [path]


def span_in(
    text: str,
    start: int,
    end: int,
    target: tuple[Kind, str],
    where: str,
    *,
    concept: str = "",
    asserted: bool = True,
    source: str = "gold",
) -> Span:
    """A span of the text; BadInput where it does not lie in it. An age above 89 becomes an EID."""
    if not 0 <= start < end <= len(text):
        raise BadInput(f"{where}: the span {start}–{end} does not lie in its text of {len(text)} characters.")
    kind, category = target
    if category == "age" and any(int(number) > OLD for number in _numbers(text[start:end])):
        kind = "EID"
    return Span(start, end, kind, category, concept, source, asserted)


def _numbers(text: str) -> list[str]:
    return "".join(sign if sign in "0123456789" else " " for sign in text).split()
