"""Readers: from files to a cohort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnMap, ColumnNames, did_you_mean
from leeward.cohort.readers.files import find_files
from leeward.cohort.readers.tables import read_frame, read_tables
from leeward.errors import BadInput

FORMATS = ("events", "table", "lines")

__all__ = ["FORMATS", "ColumnNames", "read"]


def read(
    path: str | Path | pl.DataFrame,
    *,
    format: str | None = None,  # noqa: A002  # the spec's own word
    columns: ColumnNames | None = None,
    vocabulary: str | Path | None = None,
    missing: Iterable[str] = (),
    lines: bool = False,
    patients: str | Path | None = None,
    date_format: str | None = None,
    drop: Sequence[str] = (),
    domains: Mapping[str, Any] | None = None,
) -> Cohort:
    """Read a cohort.

    Parameters
    ----------
    path
        One file, a folder or a glob: CSV, TSV or Parquet, text also as `.gz`; or a Polars frame.
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
    drop, domains
        For the format 'table': columns to leave out, and permissible values (`readers.table`).

    Raises
    ------
    BadInput
        Whatever cannot be read, with file, row and column; never with a patient's value.
    """
    kind = format or ("lines" if lines else "events")
    texts = frozenset(text.strip() for text in missing)
    named = str(vocabulary) if vocabulary is not None else None
    if kind == "table":
        from leeward.cohort.readers.table import read_table

        return read_table(path, columns=columns, missing=texts, drop=drop, domains=domains)
    if drop or domains:
        raise BadInput("`drop` and `domains` belong to a source of the format `table`.")
    if isinstance(path, pl.DataFrame):
        return read_frame(path, columns, named, texts, "frame")
    if kind == "lines":
        return _read_lines(path, named, texts)
    if kind == "events":
        return read_tables(path, columns, named, texts, date_format, patients)
    raise BadInput(
        f"No reader for the format '{kind}'.{did_you_mean(kind, FORMATS)} Formats: {', '.join(FORMATS)}."
    )


def _read_lines(path: str | Path, vocabulary: str | None, missing: frozenset[str]) -> Cohort:
    from leeward.cohort.readers import lines

    collector = Collector(Path(path).name, ColumnMap(), missing, unit="line")
    for file in find_files(path, lines.ENDINGS):
        collector.begin(file.name)
        for batch in lines.batches(file, collector.last_row):
            collector.add(batch, pl.Series(pl.from_arrow(batch.column("patient"))).cast(pl.UInt32).to_numpy())
    return collector.cohort(vocabulary)
