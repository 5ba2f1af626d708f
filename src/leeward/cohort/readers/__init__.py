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
    """Read a cohort (docs/spec.md has every format and option).

    Parameters
    ----------
    path
        A file, a folder or a glob: CSV, TSV or Parquet, text also as `.gz` (UTF-8; UTF-16 and Windows-1252 are
        recognised, with a notice); an `.xlsx`, SAS, Stata or SPSS file, or a `.zip` with one table in it; the URL or
        the file of a database; or a frame: Polars, pandas, pyarrow, DuckDB, anything with Arrow's C stream.
    format
        One of `FORMATS`; None looks at the tables of a database and the names of the files of a folder.
    columns
        The source columns of `patient`, `code` (several: wide form), `visit`, `date`, `age`, `birth` (with `date` it
        gives the age), `vocabulary` and `patients` (payload). None: the columns have these very names.
    vocabulary
        'icd9', 'icd10', 'icd' (both), 'none', a hierarchy file (CSV `node,parent`), or None to recognise ICD codes.
    missing
        Texts that mean 'missing', for example '?'; null and blank always do.
    lines
        The format 'lines': one record a line, codes separated by blanks or commas; the patient is the line's number.
    date_format, patients, drop, domains, query, concepts, code_separator
        See `request.Request`; all but the first are options of some formats.
    table
        The sheet of a workbook, the file in a `.zip` or the table of a database, where there are several.
    accept_unknown
        Keep codes that are not of the vocabulary as written however many they are; otherwise more than 5 % of the
        entries are an error, and so are more than a few cells that hold several codes each.

    Raises BadInput for whatever cannot be read, with file, row and column; never with a patient's value.
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
    with ExitStack() as opened, collect_encodings() as told:
        if frame is None:
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
    for notice in cohort.notices:
        if notice.kind == JOINED_CODES and notice.count > FEW_JOINED:
            raise BadInput(
                f"{cohort.name}: {notice}; or keep such cells as one code each (--vocabulary none, --accept-unknown)."
            )
        if notice.kind == UNKNOWN_CODE and notice.count > SHARE_UNKNOWN * total:
            raise BadInput(
                f"{cohort.name}: {notice} ({100 * notice.count / total:.0f} % of {total:,} entries). Name another "
                f"vocabulary (--vocabulary; `none` keeps all codes as written), name the texts that mean 'no code' "
                f"(--missing), repair the codes, or accept them as they are (--accept-unknown)."
            )
