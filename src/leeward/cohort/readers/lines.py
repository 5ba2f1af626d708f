"""One record a line, codes separated by blanks or commas: the format of transaction-anonymization tools."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.cohort.cohort import Cohort
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnMap
from leeward.cohort.readers.delimited import not_utf8, open_bytes
from leeward.cohort.readers.files import find_files
from leeward.cohort.readers.request import Request
from leeward.errors import BadInput

ENDINGS = (".txt", ".csv", ".dat", ".data", ".lines")
BLOCK_BYTES = 32 << 20
CODE = r'[^\s,"]+'


def read_lines(asked: Request) -> Cohort:
    """A cohort of the files; a patient is the number of the line, counted through all of them."""
    collector = Collector(
        Path(asked.path).name, ColumnMap(), asked.missing, unit="line", separator=asked.code_separator
    )
    for file in find_files(asked.path, ENDINGS):
        collector.begin(file.name)
        for batch in batches(file, collector.last_row):
            collector.add(batch, batch.column("patient").to_numpy().astype(np.uint32))
    return replace(collector.cohort(asked.vocabulary), identified=False)


def batches(file: Path, before: int = 0) -> Iterator[pa.RecordBatch]:
    """(line, code) pairs: `patient` is the line's number from `before` + 1; a blank line has a blank code."""
    if file.stat().st_size == 0:
        raise BadInput(f"{file.name}: the file is empty.")
    first = before + 1
    for block in _blocks(file):
        try:
            lines = block.decode("utf-8").removesuffix("\n").split("\n")
        except UnicodeDecodeError as error:
            at = first - before + block.count(b"\n", 0, error.start)
            raise not_utf8(file, f"line {at}") from None
        frame = pl.DataFrame({"patient": np.arange(first, first + len(lines)), "code": lines})
        codes = frame.with_columns(pl.col("code").str.extract_all(CODE)).explode("code", empty_as_null=True)
        yield codes.rechunk().to_arrow().combine_chunks().to_batches()[0]
        first += len(lines)


def _blocks(file: Path) -> Iterator[bytes]:
    with open_bytes(file) as stream:
        start = stream.read(len(codecs.BOM_UTF8))
        rest = b"" if start == codecs.BOM_UTF8 else start
        while piece := stream.read(BLOCK_BYTES):
            whole, newline, last = piece.rpartition(b"\n")
            if newline:
                yield rest + whole + newline
                rest = last
            else:
                rest += piece
    if rest:
        yield rest
