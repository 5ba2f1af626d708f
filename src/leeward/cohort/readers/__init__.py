"""Readers: from files to a cohort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.cohort.readers.codes import SHARE_UNKNOWN, UNKNOWN_CODE
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnMap, ColumnNames, did_you_mean
from leeward.cohort.readers.detect import FORMATS, detected, require_options
from leeward.cohort.readers.fhir import read_fhir
from leeward.cohort.readers.files import find_files
from leeward.cohort.readers.i2b2 import read_i2b2
from leeward.cohort.readers.omop import read_omop
from leeward.cohort.readers.sql import Database, read_sql
from leeward.cohort.readers.synthea import read_synthea
from leeward.cohort.readers.tables import read_frame, read_tables
from leeward.errors import BadInput

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
    domains: Mapping[str, Any] | Sequence[str] | None = None,
    query: str | None = None,
    concepts: bool = False,
    accept_unknown: bool = False,
) -> Cohort:
    """Read a cohort.

    Parameters
    ----------
    path
        One file, a folder or a glob: CSV, TSV or Parquet, text also as `.gz`; the URL of a database; or a Polars
        frame.
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
        Texts that stand for 'missing', for example '?'; null and blank always do.
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
        What to read from a database: SELECT … or a table's name, which may also stand after the URL (`…#table`).
    concepts
        OMOP: CONCEPT's concept_code, with its vocabulary, in the place of concept ids.
    accept_unknown
        Keep codes that are not of the vocabulary as written however many they are; otherwise more than 5 % of the
        entries are an error.

    Raises
    ------
    BadInput
        Whatever cannot be read, with file, row and column; never with a patient's value.
    """
    cohort = _read(
        path,
        format,
        columns,
        vocabulary,
        missing,
        lines,
        patients,
        date_format,
        drop,
        domains,
        query,
        concepts,
    )
    if not accept_unknown:
        _refuse_unknown(cohort)
    return cohort


def _refuse_unknown(cohort: Cohort) -> None:
    for notice in cohort.notices:
        total = 0 if cohort.events is None else cohort.events.height
        if notice.kind == UNKNOWN_CODE and notice.count > SHARE_UNKNOWN * total:
            raise BadInput(
                f"{cohort.name}: {notice} ({100 * notice.count / total:.0f} % of {total:,} entries). Name another "
                f"vocabulary (--vocabulary; `none` keeps all codes as written), name the texts that mean 'no code' "
                f"(--missing), repair the codes, or accept them as they are (--accept-unknown)."
            )


def _read(
    path: str | Path | pl.DataFrame,
    format: str | None,  # noqa: A002
    columns: ColumnNames | None,
    vocabulary: str | Path | None,
    missing: Iterable[str],
    lines: bool,
    patients: str | Path | None,
    date_format: str | None,
    drop: Sequence[str],
    domains: Mapping[str, Any] | Sequence[str] | None,
    query: str | None,
    concepts: bool,
) -> Cohort:
    texts = frozenset(text.strip() for text in missing)
    named = str(vocabulary) if vocabulary is not None else None
    kind = format or ("lines" if lines else None)
    if kind is not None and kind not in FORMATS:
        raise BadInput(
            f"No reader for the format '{kind}'.{did_you_mean(kind, FORMATS)} Formats: {', '.join(FORMATS)}."
        )
    if kind == "table":
        from leeward.cohort.readers.table import read_table

        if domains is not None and not isinstance(domains, Mapping):
            raise BadInput("`domains` of a table is a mapping of columns to permissible values.")
        return read_table(path, columns=columns, missing=texts, drop=drop, domains=domains)
    if drop or isinstance(domains, Mapping):
        raise BadInput("`drop` and a mapping of `domains` belong to a source of the format `table`.")
    if isinstance(path, pl.DataFrame):
        return read_frame(path, columns, named, texts, "frame")
    kind, store = detected(path, kind, query=query is not None)
    with closing(store) if isinstance(store, Database) else nullcontext():
        require_options(
            kind,
            query=query is not None,
            domains=bool(domains),
            concepts=concepts,
            patients=patients is not None,
        )
        if kind == "lines":
            return _read_lines(path, named, texts)
        if kind == "fhir":
            return read_fhir(path, columns, named, texts)
        if isinstance(store, Database) and kind == "sql":
            return read_sql(store, columns, named, texts, date_format, query)
        if store is None:
            return read_tables(path, columns, named, texts, date_format, patients)
        asked = tuple(domains or ())
        if kind == "omop":
            return read_omop(store, columns, named, texts, date_format, asked, concepts)
        several = read_synthea if kind == "synthea" else read_i2b2
        return several(store, columns, named, texts, date_format, asked)


def _read_lines(path: str | Path, vocabulary: str | None, missing: frozenset[str]) -> Cohort:
    from leeward.cohort.readers import lines

    collector = Collector(Path(path).name, ColumnMap(), missing, unit="line")
    for file in find_files(path, lines.ENDINGS):
        collector.begin(file.name)
        for batch in lines.batches(file, collector.last_row):
            collector.add(batch, pl.Series(pl.from_arrow(batch.column("patient"))).cast(pl.UInt32).to_numpy())
    return collector.cohort(vocabulary)
