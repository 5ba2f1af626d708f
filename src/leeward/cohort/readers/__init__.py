"""Readers: from files to a cohort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.cohort.cohort import Cohort
from leeward.cohort.readers import delimited, lines, parquet
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnMap, ColumnNames, did_you_mean, require_columns
from leeward.cohort.readers.files import DELIMITED, PARQUET, find_files, suffix
from leeward.cohort.readers.patients import one_row_each
from leeward.cohort.readers.values import identifiers, plain, same_type
from leeward.errors import BadInput

FORMATS = ("events", "lines")

__all__ = ["FORMATS", "ColumnNames", "read"]


def read(
    path: str | Path,
    *,
    format: str | None = None,
    columns: ColumnNames | None = None,
    vocabulary: str | Path | None = None,
    missing: Iterable[str] = (),
    lines: bool = False,
    patients: str | Path | None = None,
    date_format: str | None = None,
) -> Cohort:
    """Read a cohort.

    Parameters
    ----------
    path
        One file, a folder or a glob: CSV, TSV or Parquet, text also as `.gz`.
    format
        'events' (a table) or 'lines' (one record a line); None follows `lines`.
    columns
        The source columns of `patient`, `code` (several: wide form), `visit`, `date`, `age`, `vocabulary` and
        `patients` (payload). None: the columns have these very names.
    vocabulary
        'icd9', 'icd10', a hierarchy file (CSV `node,parent`), or None to recognise ICD codes by themselves.
    missing
        Texts that stand for 'missing', for example '?'; null and blank always do.
    lines
        One record a line, codes separated by blanks or commas, no header; the patient is the line's number.
    patients
        A further table of attributes, one row a patient, under the same patient column.
    date_format
        How dates are written (strptime); None is ISO 8601.

    Raises
    ------
    BadInput
        Whatever cannot be read, with file, row and column; never with a patient's value.
    """
    kind = format or ("lines" if lines else "events")
    texts = frozenset(text.strip() for text in missing)
    named = str(vocabulary) if vocabulary is not None else None
    if kind == "lines":
        return _read_lines(path, named, texts)
    if kind == "events":
        return _read_events(path, columns, named, texts, date_format, patients)
    raise BadInput(f"No reader for the format '{kind}'.{did_you_mean(kind, FORMATS)} Formats: {', '.join(FORMATS)}.")


class _Reader(Protocol):
    """What a module for a tabular format offers."""

    def header(self, file: Path) -> list[str]: ...

    def batches(
        self, file: Path, columns: Sequence[str], dictionary: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]: ...


def _read_events(
    path: str | Path,
    columns: ColumnNames | None,
    vocabulary: str | None,
    missing: frozenset[str],
    date_format: str | None,
    attributes: str | Path | None,
) -> Cohort:
    files = find_files(path)
    headers = [_reader(file).header(file) for file in files]
    mapped = ColumnMap.of(columns, headers[0])
    if attributes is not None:
        payload, mapped = mapped.patients, replace(mapped, patients=())
    needed = mapped.needed()
    require_columns(files[0].name, needed, headers[0])
    for file, header in zip(files[1:], headers[1:], strict=True):
        _require_same_columns(files[0], headers[0], file, header)
    collector = Collector(Path(path).name, mapped, missing, date_format)
    for file in files:
        for batch in _reader(file).batches(file, needed, mapped.encoded()):
            collector.add(batch)
    cohort = collector.cohort(vocabulary)
    if attributes is None:
        return cohort
    return _with_attributes(cohort, attributes, mapped.patient, payload, missing)


def _with_attributes(
    cohort: Cohort, path: str | Path, patient: str, payload: Sequence[str], missing: frozenset[str]
) -> Cohort:
    """The cohort with the patients frame of a further table; without `payload`, all its columns."""
    tables = []
    for file in find_files(path):
        header = _reader(file).header(file)
        names = list(payload) or [name for name in header if name != patient]
        require_columns(file.name, [patient, *names], header)
        for batch in _reader(file).batches(file, [patient, *names]):
            series = {name: plain(batch.column(name)) for name in names}
            tables.append(pl.DataFrame({"patient": identifiers(batch.column(patient), file.name, patient), **series}))
    if not tables:
        raise BadInput(f"{Path(path).name}: the file has a header but no rows.")
    gathered = pl.DataFrame({name: same_type([t[name] for t in tables]) for name in tables[0].columns})
    patients, notices = one_row_each(gathered, cohort.require_events()["patient"], missing)
    return replace(cohort, patients=patients).with_notices(*notices)


def _require_same_columns(first: Path, expected: list[str], file: Path, header: list[str]) -> None:
    lacking = [column for column in expected if column not in header]
    further = [column for column in header if column not in expected]
    if lacking or further:
        parts = [f"lacks {len(lacking)} of them"] if lacking else []
        parts += [f"has {len(further)} others"] if further else []
        raise BadInput(
            f"{file.name}: its columns differ from those of {first.name} ({' and '.join(parts)}); "
            f"files that are read together must have the same columns."
        )


def _read_lines(path: str | Path, vocabulary: str | None, missing: frozenset[str]) -> Cohort:
    collector = Collector(Path(path).name, ColumnMap(), missing, unit="line")
    for file in find_files(path, lines.ENDINGS):
        for batch in lines.batches(file, collector.last_row):
            collector.add(batch, batch.column("patient").to_numpy().astype(np.uint32))
    return collector.cohort(vocabulary)


def _reader(file: Path) -> _Reader:
    if suffix(file) in PARQUET:
        return parquet
    if suffix(file) in DELIMITED:
        return delimited
    raise BadInput(f"{file.name}: this ending is not known; files end in {', '.join(DELIMITED + PARQUET)} (text also .gz).")
