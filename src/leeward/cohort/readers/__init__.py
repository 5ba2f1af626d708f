"""Readers: from files to a cohort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from leeward.cohort.cohort import Cohort
from leeward.cohort.notices import Notice
from leeward.cohort.readers.codes import FEW_JOINED, JOINED_CODES, SHARE_UNKNOWN, UNKNOWN_CODE
from leeward.cohort.readers.columns import ColumnNames
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
    """Read a cohort.

    Parameters
    ----------
    path
        One file, a folder or a glob: CSV, TSV or Parquet, text also as `.gz` (UTF-8; UTF-16 and Windows-1252 are
        recognised, with a notice); one file: `.xlsx`, SAS, Stata or SPSS, `.zip` with one of these in it; the URL or
        the file of a database (SQLite, DuckDB); or a frame: Polars (lazy too), pandas, pyarrow, DuckDB, anything with
        Arrow's C stream.
    format
        'events' (a table of events), 'table' (one row a patient), 'lines' (one record a line), 'omop', 'fhir',
        'synthea', 'i2b2' or 'sql' (a table or query). None looks: at the tables of a database, at the names of
        the files of a folder.
    columns
        The source columns of `patient`, `code` (several: wide form), `visit`, `date`, `age`, `birth` (a date of
        birth: with `date` it gives the age), `vocabulary` and `patients` (payload). None: the columns have these
        very names. OMOP, FHIR, Synthea and i2b2 have columns of their own: only `patients` and, for OMOP and
        Synthea, `code` can be said.
    vocabulary
        'icd9', 'icd10', 'icd' (both, code by code), 'none', a hierarchy file (CSV `node,parent`), or None to recognise
        ICD codes by themselves.
    missing
        Texts that mean 'missing', for example '?'; null and blank always do.
    lines
        One record a line, codes separated by blanks or commas, no header; the patient is the line's number.
    patients
        A further table of attributes, one row a patient, under the same patient column.
    date_format
        How dates are written (strptime); None is ISO 8601.
    drop
        For the format 'table': columns to leave out.
    domains
        For the format 'table' permissible values (`readers.table`). For others a list of the events to read: OMOP
        'condition' (alone, unless asked), 'drug', 'procedure', 'observation', 'measurement'; Synthea 'condition',
        'drug', 'procedure', 'allergy'; i2b2 the prefixes of its concepts.
    query
        What to read from a database: SELECT … or a table's name, which may also follow the URL (`…#table`).
    table
        The sheet of a workbook, the file in a `.zip` or the table of a database, where there are several.
    concepts
        OMOP: CONCEPT's concept_code, with its vocabulary, in the place of concept ids.
    accept_unknown
        Keep codes that are not of the vocabulary as written however many they are; otherwise more than 5 % of the
        entries are an error, and so are more than a few cells that hold several codes each.
    code_separator
        What stands between the codes where a cell holds several, for example ','.

    Raises
    ------
    BadInput
        Whatever cannot be read, with file, row and column; never with a patient's value.
    """
    kind = format or ("lines" if lines else None)
    if kind is not None and kind not in READERS:
        raise BadInput(
            f"No reader for the format '{kind}'.{did_you_mean(kind, READERS)} Formats: {', '.join(READERS)}."
        )
    given: dict[str, Any] = {
        "patients": patients, "drop": tuple(drop), "domains": domains, "query": query, "concepts": concepts,
        "code_separator": code_separator,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value not in (None, (), [], {}, False)}
    frame, name, store = as_frame(path), "frame", None
    noticed: list[Notice] = []
    with ExitStack() as opened, collect_encodings() as told:
        if frame is None:
            path, table = opened.enter_context(unpack(path, table))
            if suffix(Path(path)) in WHOLE and is_file(path):
                from leeward.cohort.readers.whole import read_whole

                frame, name, noticed = read_whole(Path(path), table, _codes(columns))
        if frame is not None:
            kind = kind or "events"
        elif kind != "table" or table is not None:
            kind, store = detect_format(path, kind, query=query is not None, table=table)
        if isinstance(store, Database):
            opened.enter_context(closing(store))
        check_options(kind, given)
        asked = Request(
            source=path if frame is None else frame,
            name=name,
            store=store,
            columns=columns,
            vocabulary=None if vocabulary is None else str(vocabulary),
            missing=frozenset(text.strip() for text in ((missing,) if isinstance(missing, str) else missing)),
            date_format=date_format,
            **given,
        )
        cohort = READERS[kind].read(asked)
    cohort = cohort.with_notices(
        *noticed, *(Notice("encoding", message, 1) for message in dict.fromkeys(told))
    )
    if not accept_unknown:
        refuse_unknown(cohort, 0 if cohort.events is None else cohort.events.height)
    return add_concept_names(cohort)


def _codes(columns: ColumnNames | None) -> tuple[str, ...]:
    """The columns of codes."""
    named = (columns or {}).get("code", "code")
    return (named,) if isinstance(named, str) else tuple(named)


def refuse_unknown(cohort: Cohort, total: int) -> None:
    """BadInput where more of the `total` entries than may be are not of the vocabulary, or cells hold several codes, as
    the notices say."""
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
