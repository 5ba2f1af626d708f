"""From a table of events to a cohort on the disk, a block of rows at a time: for tables larger than memory.

Rows go to a file as they come, then to the file of their range of patients: as many ranges as it takes for each to be
small, cut by a sample. Only the distinct texts of codes and the sample are held.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from leeward.arrays import Int64s, UInt32s
from leeward.cohort.cohort import Cohort
from leeward.cohort.notices import Notice
from leeward.cohort.readers import refuse_unknown
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnNames
from leeward.cohort.readers.copies import local
from leeward.cohort.readers.delimited import collect_encodings
from leeward.cohort.readers.files import PARQUET, READABLE, find_files, is_gzip, suffix
from leeward.cohort.readers.formats import detect_format
from leeward.cohort.readers.stores import reader_of
from leeward.cohort.readers.tables import map_files
from leeward.cohort.readers.values import same_type
from leeward.paths import is_folder

VOCABULARIES = (None, "icd9", "icd10", "icd", "none")
"""What codes are read as without a further file."""

ROWS_A_FILE = 500_000
"""About; a file of a patient with more rows is larger."""

BYTES_A_ROW = 8
"""Of a text file, at least."""

BATCH_ROWS = 1 << 20

SAMPLED = 64
"""One row in this many is sampled to cut the patients into ranges."""

MOST_FILES = 400
"""All are open at once."""


def can_store(path: str | Path | None, kind: str | None, vocabulary: str | None) -> bool:
    """Whether the source is a table of events in files that are read block by block."""
    if kind not in (None, "events") or vocabulary not in VOCABULARIES:
        return False
    path = local(path)
    if path is None or "://" in str(path):
        return False
    given = Path(path)
    if not is_folder(given) and suffix(given) not in READABLE:
        return False
    return kind is not None or detect_format(path, None, query=False)[0] == "events"


def estimate_rows(path: str | Path) -> int:
    """How many rows a table has: as Parquet files say, or at most by the size of others."""
    return sum(map(_rows, find_files(local(path))))


def _rows(file: Path) -> int:
    if suffix(file) in PARQUET:
        return int(pq.read_metadata(file).num_rows)
    return file.stat().st_size * (10 if is_gzip(file) else 1) // BYTES_A_ROW


def store(
    path: str | Path,
    folder: Path,
    columns: ColumnNames | None = None,
    vocabulary: str | None = None,
    missing: frozenset[str] = frozenset(),
    *,
    date_format: str | None = None,
    accept_unknown: bool = False,
    code_separator: str | None = None,
) -> Cohort | None:
    """The events of a table, in files below `folder`; None where a row names the vocabulary of its code or the date of
    a birth. Parameters, codes, notices (with the first row of each text) and errors are those of `readers.read`;
    columns of the patients are not read, and identifiers that differ in blanks or zeros alone are not looked for."""
    path = local(path)
    with collect_encodings() as told:
        files, mapped = map_files(path, columns)
        if mapped.vocabulary is not None or mapped.birth is not None:
            return None
        mapped = replace(mapped, patients=())
        collector = Collector(Path(path).name, mapped, missing, date_format, separator=code_separator)
        rows = _Rows(folder)
        with rows.writers:
            for file in files:
                collector.begin(file.name)
                for batch in reader_of(file).batches(
                    file, mapped.columns_to_read(), mapped.columns_of_codes()
                ):
                    collector.add(batch)
                    for part in collector.take():
                        rows.add(part)
    normalised, notices = collector.normalise_texts(
        vocabulary, rows.entries, rows.first_row, rows.all_patients
    )
    notices += told
    if rows.types.get("patient") == pl.String:
        message = "identifiers that differ only in blanks, leading zeros or '.0' were not looked for"
        notices.append(Notice("identifiers alike", message, 0))
    head = Cohort(notices=tuple(notices), name=collector.name, vocabulary=normalised.vocabulary)
    if not accept_unknown:
        refuse_unknown(head, int(rows.entries.sum()))
    code_of = normalised.as_enum(np.arange(len(normalised.codes), dtype=np.int32))
    return replace(head, files=rows.by_patient(code_of))


class _Rows:
    """Rows as they come, in a file for each set of types: identifiers may be whole numbers first and texts later, and
    all are texts then."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.writers = folder, ExitStack()
        self.entries: Int64s = np.zeros(0, np.int64)
        self.first_row: UInt32s = np.zeros(0, np.uint32)
        self._files: dict[tuple[pl.DataType, ...], tuple[Path, pq.ParquetWriter]] = {}
        self._sample: list[pl.Series] = []

    def add(self, events: pl.DataFrame) -> None:
        """Write some events (`patient`, `row`, the number of the `code`, and others), and count their texts."""
        numbers = events["code"].to_numpy()
        new = max(0, int(numbers.max(initial=-1)) + 1 - len(self.entries))
        self.entries = np.append(self.entries, np.zeros(new, np.int64))
        self.first_row = np.append(self.first_row, np.full(new, np.iinfo(np.uint32).max, np.uint32))
        self.entries += np.bincount(numbers, minlength=len(self.entries))
        np.minimum.at(self.first_row, numbers, events["row"].to_numpy())
        self._sample.append(events["patient"].gather_every(SAMPLED))
        table, types = events.to_arrow(), tuple(events.dtypes)
        if types not in self._files:
            file = self.folder / f"rows-{len(self._files)}.parquet"
            self._files[types] = file, self.writers.enter_context(_writer(file, table.schema))
        self._files[types][1].write_table(table)

    @property
    def types(self) -> pl.Schema:
        """The type of each column in all files: text where it is one in some."""
        found: dict[str, pl.DataType] = {}
        for file, _ in self._files.values():
            schema = pl.read_parquet_schema(file)
            found |= {name: kind for name, kind in schema.items() if found.get(name) != pl.String}
        return pl.Schema(found)

    def all_patients(self) -> pl.Series:
        files = [pl.scan_parquet(file).select("patient").unique() for file, _ in self._files.values()]
        return same_type([each.collect(engine="streaming")["patient"] for each in files])

    def by_patient(self, code_of: pl.Series) -> tuple[Path, ...]:
        """The events with the codes of their texts, in a file for each range of patients; the order of rows stays."""
        types, sample = self.types, same_type(self._sample).sort()
        parts = min(MOST_FILES, max(1, -(-int(self.entries.sum()) // ROWS_A_FILE)))
        bounds = sample.gather(np.arange(1, parts) * len(sample) // parts).unique(maintain_order=True)
        found: dict[int, tuple[Path, pq.ParquetWriter]] = {}
        with ExitStack() as opened:
            for file, _ in self._files.values():
                for batch in pq.ParquetFile(file).iter_batches(BATCH_ROWS):
                    rows = pl.DataFrame(pl.from_arrow(batch)).cast(types)
                    rows = rows.with_columns(code=code_of.gather(rows["code"]))
                    part = bounds.search_sorted(rows["patient"], side="right")
                    for (number,), group in rows.group_by(part.alias("part"), maintain_order=True):
                        table = group.to_arrow()
                        if number not in found:
                            own = self.folder / f"events-{number}.parquet"
                            found[number] = own, opened.enter_context(_writer(own, table.schema))
                        found[number][1].write_table(table)
                file.unlink()
        files = tuple(found[number][0] for number in sorted(found))
        for own in files if len(self._files) > 1 else ():  # rows of one file each came together
            pl.read_parquet(own).sort("row", maintain_order=True).write_parquet(own)
        return files


def _writer(file: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(file, schema, compression="zstd")
