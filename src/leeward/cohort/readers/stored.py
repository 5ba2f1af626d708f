"""From a table of events to a cohort on the disk, a block of rows at a time: for tables larger than memory.

Rows go to as many files as it takes for each to be small, by a hash of the patient; then each file is made distinct and
put in order by itself. Only the distinct texts of codes are held.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from leeward.arrays import Int64s, UInt32s
from leeward.cohort.cohort import Cohort
from leeward.cohort.notices import Notice
from leeward.cohort.readers import refuse_unknown
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnNames
from leeward.cohort.readers.delimited import collect_encodings
from leeward.cohort.readers.files import PARQUET, READABLE, is_gzip, suffix
from leeward.cohort.readers.formats import detect_format
from leeward.cohort.readers.stores import reader_of
from leeward.cohort.readers.tables import map_files
from leeward.cohort.readers.values import same_type
from leeward.cohort.stored import StoredCohort
from leeward.paths import is_folder

VOCABULARIES = (None, "icd9", "icd10", "icd", "none")
"""What codes are read as without a further file."""

ROWS_A_FILE = 2_000_000
BYTES_A_ROW = 8
"""Of a text file, at least."""

MOST_FILES = 400
"""All are open at once."""


def can_store(path: str | Path | None, kind: str | None, vocabulary: str | None) -> bool:
    """Whether the source is a table of events in files that are read block by block."""
    if path is None or "://" in str(path) or kind not in (None, "events") or vocabulary not in VOCABULARIES:
        return False
    given = Path(path)
    if not is_folder(given) and suffix(given) not in READABLE:
        return False
    return kind is not None or detect_format(path, None, query=False)[0] == "events"


def store(
    path: str | Path,
    folder: Path,
    columns: ColumnNames | None = None,
    vocabulary: str | None = None,
    missing: frozenset[str] = frozenset(),
    *,
    accept_unknown: bool = False,
    code_separator: str | None = None,
) -> StoredCohort | None:
    """The patients and codes of a table, in files below `folder`; None where rows name the vocabulary of their code.
    Parameters, codes, notices (with the first row of each text) and errors are those of `readers.read`; identifiers
    that differ in blanks or zeros alone are not looked for."""
    with collect_encodings() as told:
        files, mapped = map_files(path, columns)
        if mapped.vocabulary is not None:
            return None
        mapped = replace(mapped, visit=None, date=None, age=None, birth=None, patients=())
        collector = Collector(Path(path).name, mapped, missing, separator=code_separator)
        spread = _Spread(folder, min(MOST_FILES, max(1, -(-sum(map(_rows, files)) // ROWS_A_FILE))))
        with spread.files:
            for file in files:
                collector.begin(file.name)
                for batch in reader_of(file).batches(
                    file, mapped.columns_to_read(), mapped.columns_of_codes()
                ):
                    collector.add(batch)
                    for part in collector.take():
                        spread.add(part)
    normalised, notices = collector.normalise_texts(
        vocabulary, spread.entries, spread.first_row, spread.all_patients
    )
    notices += told
    if spread.is_text:
        message = "identifiers that differ only in blanks, leading zeros or '.0' were not looked for"
        notices.append(Notice("identifiers alike", message, 0))
    head = Cohort(notices=tuple(notices), name=collector.name, vocabulary=normalised.vocabulary)
    events = int(spread.entries.sum())
    if not accept_unknown:
        refuse_unknown(head, events)
    code_of = normalised.as_enum(np.arange(len(normalised.codes), dtype=np.int32))
    return spread.put_in_order(head, code_of, events)


def _rows(file: Path) -> int:
    if suffix(file) in PARQUET:
        return int(pq.read_metadata(file).num_rows)
    return file.stat().st_size * (10 if is_gzip(file) else 1) // BYTES_A_ROW


class _Spread:
    """Rows on their way to the file of their patient; whole numbers and texts apart, since they may turn out alike."""

    def __init__(self, folder: Path, parts: int) -> None:
        self.folder, self.parts, self.files = folder, parts, ExitStack()
        self.entries: Int64s = np.zeros(0, np.int64)
        self.first_row: UInt32s = np.zeros(0, np.uint32)
        self._writers: dict[Path, pq.ParquetWriter] = {}

    @property
    def is_text(self) -> bool:
        """Whether some identifier is no whole number: then all are texts."""
        return any("text" in file.name for file in self._writers)

    def add(self, events: pl.DataFrame) -> None:
        """Write some events (`patient`, `row`, the number of the `code`), and count their texts."""
        patient, numbers = events["patient"], events["code"].to_numpy()
        new = max(0, int(numbers.max(initial=-1)) + 1 - len(self.entries))
        self.entries = np.append(self.entries, np.zeros(new, np.int64))
        self.first_row = np.append(self.first_row, np.full(new, np.iinfo(np.uint32).max, np.uint32))
        self.entries += np.bincount(numbers, minlength=len(self.entries))
        np.minimum.at(self.first_row, numbers, events["row"].to_numpy())
        kind = "numbers" if patient.dtype.is_integer() else "text"
        frame = events.select("patient", number="code")
        part = patient.cast(pl.String).hash(1, 2, 3, 4) % self.parts
        for (number,), group in frame.group_by(part.alias("part")):
            file = self.folder / f"{kind}-{number}.parquet"
            table = group.to_arrow()
            if file not in self._writers:
                writer = pq.ParquetWriter(file, table.schema, compression="zstd")
                self._writers[file] = self.files.enter_context(writer)
            self._writers[file].write_table(table)

    def all_patients(self) -> pl.Series:
        found = [pl.read_parquet(file, columns=["patient"])["patient"].unique() for file in self._writers]
        return same_type(found)

    def put_in_order(self, head: Cohort, code_of: pl.Series, events: int) -> StoredCohort:
        """Each file made distinct and put in order, with the codes of its texts."""
        kind = code_of.dtype
        assert isinstance(kind, pl.Enum)
        codes: tuple[str, ...] = tuple(kind.categories.to_list())
        supports = np.zeros(len(codes), np.int64)
        patients = longest = 0
        files = []
        for part in range(self.parts):
            named = [self.folder / f"{kind}-{part}.parquet" for kind in ("numbers", "text")]
            frames = [pl.read_parquet(file) for file in named if file in self._writers]
            if not frames:
                continue
            rows = pl.concat(f.cast({"patient": pl.String}) if self.is_text else f for f in frames)
            rows = (
                rows.select("patient", code=code_of.gather(rows["number"])).unique().sort("patient", "code")
            )
            files.append(self.folder / f"sets-{part}.parquet")
            rows.write_parquet(files[-1])
            supports += np.bincount(rows["code"].to_physical().to_numpy(), minlength=len(codes))
            lengths = rows["patient"].rle().struct.field("len")
            patients, longest = patients + len(lengths), max(longest, int(lengths.to_numpy().max()))
            for file in named:
                file.unlink(missing_ok=True)
        return StoredCohort(head, tuple(files), codes, supports, patients, events, longest)
