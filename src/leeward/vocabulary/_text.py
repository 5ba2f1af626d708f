"""Small text tables of a vocabulary: strict reading (complaints name file and row), plain writing."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from leeward.errors import BadInput


@dataclass(frozen=True)
class TextTable:
    """A delimited file: header names as written, cells stripped of outer blanks, `rows` the line each cell row began
    on."""

    path: Path
    header: tuple[str, ...]
    cells: list[list[str]]
    rows: list[int]

    def find(self, *names: str) -> int | None:
        """The position of the first of `names` in the header, whatever the case; None if none is there."""
        lowered = [h.lower() for h in self.header]
        return next((lowered.index(n.lower()) for n in names if n.lower() in lowered), None)

    def column(self, *names: str) -> list[str]:
        """The cells of the column called one of `names`; BadInput if there is none."""
        place = self.find(*names)
        if place is None:
            raise BadInput(
                f"{self.path.name}, row 1: no column {' or '.join(repr(n) for n in names)}; "
                f"the header has {', '.join(repr(h) for h in self.header[:12])}."
            )
        return [row[place] for row in self.cells]


def read_text(path: Path) -> str:
    """The text of a UTF-8 file (`.gz` too), without a byte-order mark."""
    try:
        raw = path.read_bytes()
    except OSError as problem:
        raise BadInput(f"{path.name}: cannot be read ({problem.strerror or problem}).") from None
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error):
            raise BadInput(
                f"{path.name}: the gzip data are damaged or cut short; copy the file again."
            ) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        row = raw.count(b"\n", 0, problem.start) + 1
        raise BadInput(f"{path.name}, row {row}: not UTF-8 text; save the file as UTF-8.") from None


def lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file (`.gz` too) without a byte-order mark, one after the other."""
    try:
        with path.open("rb") as peek:
            packed = peek.read(2) == b"\x1f\x8b"
        row = 0
        with gzip.open(path) if packed else path.open("rb") as file:
            for row, raw in enumerate(file, start=1):
                yield raw.decode("utf-8-sig" if row == 1 else "utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"{path.name}, row {row}: not UTF-8 text; save the file as UTF-8.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise BadInput(f"{path.name}: the gzip data are damaged or cut short; copy the file again.") from None
    except OSError as problem:
        raise BadInput(f"{path.name}: cannot be read ({problem.strerror or problem}).") from None


def read_table(path: Path, delimiter: str = ",") -> TextTable:
    """Read a delimited file with a header; blank lines are skipped, row numbers count lines from 1."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter, strict=True)
    header: tuple[str, ...] = ()
    cells: list[list[str]] = []
    rows: list[int] = []
    start = 1
    try:
        for row in reader:
            line, start = start, reader.line_num + 1
            stripped = [cell.strip() for cell in row]
            if not any(stripped):
                continue
            if not header:
                header = tuple(stripped)
                continue
            if len(stripped) != len(header):
                raise BadInput(
                    f"{path.name}, row {line}: {len(stripped)} cells where the header has {len(header)}; "
                    "a comma inside a value needs quotes."
                )
            cells.append(stripped)
            rows.append(line)
    except csv.Error:
        raise BadInput(f"{path.name}, row {start}: the quotes do not match; correct this row.") from None
    if not header:
        raise BadInput(f"{path.name}: the file is empty; it needs a header and rows.")
    return TextTable(path, header, cells, rows)


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a CSV in UTF-8 with one line feed a row."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
