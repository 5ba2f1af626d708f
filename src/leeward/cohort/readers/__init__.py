"""Readers: from files to a cohort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from leeward.cohort.cohort import Cohort
from leeward.cohort.notices import Notice
from leeward.cohort.readers.codes import FEW_JOINED, JOINED_CODES, SHARE_UNKNOWN, UNKNOWN_CODE
from leeward.cohort.readers.columns import ColumnNames, as_tuple
from leeward.cohort.readers.copies import copies, local
from leeward.cohort.readers.databases import Database
from leeward.cohort.readers.delimited import collect_encodings
from leeward.cohort.readers.files import WHOLE, suffix, unpack
from leeward.cohort.readers.formats import READERS, check_options, detect_format
from leeward.cohort.readers.request import Request
from leeward.cohort.readers.tables import as_frame
from leeward.cohort.readers.trees import add_concept_names
from leeward.errors import BadInput, did_you_mean
from leeward.paths import is_file

__all__ = ["FORMATS", "ColumnNames", "read"]

FORMATS = tuple(READERS)
"""The names of the formats."""


def read(
    path: Any,
    *,
    format: str | None = None,  # noqa: A002  # the spec's own word
    columns: ColumnNames | None = None,
    vocabulary: str | Path | None = None,
    missing: str | Iterable[str] = (),
    lines: bool = False,
    patients: str | Path | None = None,
    date_format: str | None = None,
    drop: Sequence[str] = (),
    domains: Mapping[str, Any] | Sequence[str] | None = None,
    query: str | None = None,
    table: str | None = None,
    concepts: bool = False,
    accept_unknown: bool = False,
    code_separator: str | None = None,
) -> Cohort:
    """Read a cohort. The page on specs describes every format and option.

    Parameters
    ----------
    path : str, Path or table
        A file, folder or pattern of CSV, TSV or Parquet (text also as `.gz`; UTF-8, and UTF-16 and Windows-1252 with a
        notice), or its address in a store (`s3://bucket/path`); an `.xlsx`, SAS, Stata or SPSS file; a `.zip` with one
        table; a Delta or Iceberg table; the URL or file of a database; or a
        table from Polars, pandas, pyarrow, DuckDB or anything with Arrow's C stream.
    format : str, optional
        Name of a format; by default, recognized from the names of files and tables.
    columns : mapping, optional
        Source columns of `patient`, `code` (several: wide form), `visit`, `date`, `age` (years), `birth` (gives the
        age, with `date`), `vocabulary` and `patients` (attributes). By default, the columns have these names.
    vocabulary : str or Path, optional
        `icd9`, `icd10`, `icd` (both), `none` or a hierarchy file (CSV `node,parent`). By default, ICD codes are
        recognized.
    missing : str or iterable of str, optional
        Texts that mean "missing", for example `?`. Null and blank always do.
    lines : bool, optional
        One record on each line, with codes separated by blanks or commas; the number of the line is the patient.
    patients : str or Path, optional
        A second table with attributes of the patients.
    date_format : str, optional
        Format of dates, for example `%d.%m.%Y`.
    drop : sequence of str, optional
        Columns to leave out of a table.
    domains : mapping or sequence of str, optional
        Permissible values of columns of a table.
    query : str, optional
        SQL query to run in a database.
    table : str, optional
        Sheet of a workbook, file in a `.zip` or table of a database, if there are several.
    concepts : bool, optional
        Use OMOP concept numbers as codes.
    accept_unknown : bool, optional
        Keep codes that are not in the vocabulary, however many. Otherwise more than 5 % of such entries are an error,
        as are more than a few cells with several codes.
    code_separator : str, optional
        Character between several codes in one cell.

    Returns
    -------
    Cohort
        The data, and notices of what was repaired or left out.

    Raises
    ------
    BadInput
        The source cannot be read. The message names file, row and column, never a patient's value.

    Examples
    --------
    >>> import leeward as lw
    >>> import polars as pl
    >>> rows = pl.DataFrame({"pid": [1, 1, 2], "icd": ["401.9", "250.00", "401.9"]})
    >>> lw.read(rows, columns={"patient": "pid", "code": "icd"})
    Cohort(frame: events 3; 1 notices)
    """
    asked = Request(
        source=path, columns=columns, vocabulary=None if vocabulary is None else str(vocabulary),
        missing=frozenset(text.strip() for text in ((missing,) if isinstance(missing, str) else missing)),
        date_format=date_format, patients=patients, drop=tuple(drop), domains=domains or (), query=query,
        concepts=concepts, code_separator=code_separator,
    )  # fmt: skip
    cohort = _read(asked, format or ("lines" if lines else None), table)
    if not accept_unknown:
        refuse_unknown(cohort, 0 if cohort.events is None else cohort.events.height)
    return add_concept_names(cohort)


def _read(asked: Request, kind: str | None, table: str | None) -> Cohort:
    if kind is not None and kind not in READERS:
        raise BadInput(
            f"No reader for the format '{kind}'.{did_you_mean(kind, READERS)} Formats: {', '.join(READERS)}."
        )
    frame, name, store, path = as_frame(asked.source), "frame", None, asked.source
    noticed: list[Notice] = []
    with ExitStack() as opened, collect_encodings() as told, copies():
        asked = replace(asked, patients=local(asked.patients))
        if frame is None:
            path = local(path)
            path, table = opened.enter_context(unpack(path, table))
            if suffix(Path(path)) in WHOLE and is_file(path):
                from leeward.cohort.readers.whole import read_whole

                codes = as_tuple((asked.columns or {}).get("code", "code"))
                frame, name, noticed = read_whole(Path(path), table, codes)
        if frame is not None:
            path, kind = frame, kind or "events"
        elif kind != "table" or table is not None:
            kind, store = detect_format(path, kind, query=asked.query is not None, table=table)
        if isinstance(store, Database):
            opened.enter_context(closing(store))
        check_options(kind, asked)
        cohort = READERS[kind].read(replace(asked, source=path, name=name, store=store))
    return cohort.with_notices(*noticed, *told)


def refuse_unknown(cohort: Cohort, total: int) -> None:
    """BadInput where too many of the `total` entries are not of the vocabulary, or cells hold several codes."""
    for notice, why in refusals_of(cohort, total):
        raise BadInput(f"{cohort.name}: {notice}. {why}")


def refusals_of(cohort: Cohort, total: int) -> list[tuple[Notice, str]]:
    """The notices for which commands that release the cohort refuse it, with why and what to do."""
    found = []
    for notice in cohort.notices:
        if notice.kind == JOINED_CODES and notice.count > FEW_JOINED:
            why = (
                f"More than {FEW_JOINED} such cells are refused: split them, or keep each as one code "
                "(--vocabulary none, --accept-unknown)."
            )
            found.append((notice, why))
        if notice.kind == UNKNOWN_CODE and notice.count > SHARE_UNKNOWN * total:
            why = (
                f"This is {100 * notice.count / total:.0f} % of {total:,} entries; more than "
                f"{100 * SHARE_UNKNOWN:.0f} % are refused: name another vocabulary (--vocabulary; `none` keeps all "
                "codes as written), name the texts that mean 'no code' (--missing), repair the codes, or accept them "
                "as they are (--accept-unknown)."
            )
            found.append((notice, why))
    return found
