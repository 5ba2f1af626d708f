"""CSV, TSV and other delimited text as a stream of Arrow batches, strict about every row.

pyarrow reads: unlike more lenient readers it refuses a row with too few fields instead of filling it up. When
it refuses, the file is walked again slowly to name the row.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import IO, NoReturn, cast

import pyarrow as pa
import pyarrow.csv as pacsv

from leeward.cohort.notices import Notice
from leeward.cohort.readers.files import is_gzip, suffix
from leeward.errors import BadInput

BLOCK_BYTES = 8 << 20
SEPARATORS = (",", "\t", ";", "|")


NAMES = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "utf-32": "UTF-32", "cp1252": "Windows-1252"}
"""What messages call the encodings."""

MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""The first bytes of a text in wide characters; the first mark that fits counts."""

_told: ContextVar[dict[Notice, None] | None] = ContextVar("encodings", default=None)


@contextmanager
def collect_encodings() -> Iterator[dict[Notice, None]]:
    """Collects a notice of every file that is read inside in another encoding than UTF-8."""
    told: dict[Notice, None] = {}
    token = _told.set(told)
    try:
        yield told
    finally:
        _told.reset(token)


def encoding_of(file: Path) -> str:
    """`utf-8-sig`, or what the bytes look like instead: `utf-16` or `utf-32` by their mark, or `cp1252`.

    The latter where text is not UTF-8 but has no sign that UTF-8 writes in several bytes, and every byte is one of
    Windows-1252: a file that mixes the two is damaged and stays an error.
    """
    stat = file.stat()
    found = _encoding(file, stat.st_size, stat.st_mtime_ns)
    told = _told.get()
    if found != "utf-8-sig" and told is not None:
        message = f"{file.name} is not UTF-8: read as {NAMES[found]} (save it as UTF-8 to be sure)"
        told[Notice("encoding", message, 1)] = None
    return found


@lru_cache(maxsize=256)
def _encoding(file: Path, size: int, changed: int) -> str:
    try:
        # Read by Arrow, beside other threads: Python's gzip takes their lock for each of many small pieces.
        with pa.input_stream(str(file), compression="gzip" if is_gzip(file) else None) as stream:
            first = stream.read(LOOK_BYTES)
            wide = next((name for mark, name in MARKS.items() if first.startswith(mark)), None)
            pieces = itertools.chain([first], iter(lambda: stream.read(LOOK_BYTES), b""))
            return wide or ("cp1252" if _is_legacy(pieces) else "utf-8-sig")
    except (pa.ArrowException, OSError):
        return "utf-8-sig"  # the reader itself says what is wrong


def _is_legacy(pieces: Iterable[bytes]) -> bool:
    """Whether bytes are text in Windows-1252 and not in UTF-8, nor a mixture of both."""
    decoder, utf8 = codecs.getincrementaldecoder("utf-8")(), True
    for piece in pieces:
        if piece.isascii():
            continue
        if UNDEFINED.search(piece):
            return False
        if utf8:
            try:
                decoder.decode(piece)
            except UnicodeDecodeError:
                utf8 = False
            else:
                if not piece.removeprefix(codecs.BOM_UTF8).isascii():
                    return False
        if not utf8 and MANY_BYTES.search(piece):
            return False
    return not utf8


LOOK_BYTES = 4 << 20

MANY_BYTES = re.compile(rb"[\xc3-\xdf][\x80-\xbf](?![\x80-\xbf])|[\xe0-\xef][\x80-\xbf]{2}")
"""Signs that UTF-8 writes in two or three bytes."""

UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d\x00]")
"""Bytes that no text in Windows-1252 has."""


def header(file: Path) -> list[str]:
    return _header(file)[0]


def types(file: Path, columns: Sequence[str]) -> list[pa.DataType]:
    return [pa.string()] * len(columns)


def _header(file: Path) -> tuple[list[str], str]:
    with open_text(file) as text:
        first = text.readline()
    if not first:
        raise BadInput(f"{file.name}: the file is empty.")
    if _undecodable(first):
        raise not_utf8(file, "the header")
    if not first.strip():
        raise BadInput(f"{file.name}: the first row is blank; it must hold the column names.")
    separator = "\t" if suffix(file) in (".tsv", ".tab") else max(SEPARATORS, key=first.count)
    try:
        return next(csv.reader([first], delimiter=separator)), separator
    except csv.Error:
        raise BadInput(f"{file.name}: the header cannot be read as delimited text.") from None


def batches(file: Path, columns: Sequence[str], dictionary: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
    """The asked columns as text, a block of rows at a time; those in `dictionary` dictionary-encoded."""
    _, separator = _header(file)
    encoding = encoding_of(file)
    encoded = pa.dictionary(pa.int32(), pa.string())
    try:
        with pa.input_stream(str(file), compression="gzip" if is_gzip(file) else None) as stream:
            yield from pacsv.open_csv(
                stream,
                read_options=pacsv.ReadOptions(
                    block_size=BLOCK_BYTES, encoding="utf8" if encoding == "utf-8-sig" else encoding
                ),
                parse_options=pacsv.ParseOptions(delimiter=separator, newlines_in_values=True),
                convert_options=pacsv.ConvertOptions(
                    include_columns=list(columns),
                    column_types={name: encoded if name in dictionary else pa.string() for name in columns},
                    null_values=[],
                    strings_can_be_null=False,
                ),
            )
    except MemoryError:  # Arrow's is an ArrowException too
        raise
    except (pa.ArrowException, OSError, ValueError):
        _refuse(file, separator)


def _refuse(file: Path, separator: str) -> NoReturn:
    """Raise the error of the first row that breaks the rules, found by walking the file again."""
    with open_text(file) as text:
        reader = csv.reader(text, delimiter=separator)
        row = 0
        try:
            width = len(next(reader))
            for fields in reader:
                if not fields:
                    continue
                row += 1
                if any(_undecodable(field) for field in fields):
                    raise not_utf8(file, f"row {row}")
                if len(fields) != width:
                    fields_found = f"{len(fields)} field{'s' if len(fields) != 1 else ''}"
                    raise BadInput(
                        f"{file.name}: row {row} has {fields_found} where the header has {width}; "
                        f"quote values that hold the separator, or repair the row."
                    )
        except csv.Error:
            raise BadInput(f"{file.name}: row {row + 1} cannot be read as delimited text.") from None
    raise BadInput(
        f"{file.name}: the file cannot be read as delimited text; check its quotes and separators."
    )


@contextmanager
def open_bytes(file: Path) -> Iterator[IO[bytes]]:
    """The file's bytes, unpacked. BadInput where it is no whole gzip."""
    try:
        with cast("IO[bytes]", gzip.GzipFile(file, "rb")) if is_gzip(file) else file.open("rb") as stream:
            yield stream
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{file.name}: this is not a complete gzip file; copy it again.") from error


@contextmanager
def open_text(file: Path) -> Iterator[io.TextIOWrapper]:
    """The file as text; bytes that are not UTF-8 become lone surrogates, so that their row can be named. BadInput
    where the file is no whole gzip, or no text of the encoding that its mark says."""
    encoding = encoding_of(file)
    try:
        with (
            open_bytes(file) as raw,
            io.TextIOWrapper(raw, encoding=encoding, errors="surrogateescape", newline="") as text,
        ):
            yield text
    except UnicodeError:
        raise BadInput(
            f"{file.name}: starts as {NAMES[encoding]} but continues in another encoding; save the file as UTF-8."
        ) from None


def _undecodable(text: str) -> bool:
    return any("\udc80" <= sign <= "\udcff" for sign in text) if not text.isascii() else False


def not_utf8(file: Path, where: str) -> BadInput:
    return BadInput(f"{file.name}: {where} is not UTF-8 text; save the file as UTF-8.")
