"""The formats: for each its reader and the options that it takes. A new format is a row of `READERS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnMap, ColumnNames
from leeward.cohort.readers.fhir import read_fhir
from leeward.cohort.readers.files import find_files
from leeward.cohort.readers.i2b2 import read_i2b2
from leeward.cohort.readers.omop import read_omop
from leeward.cohort.readers.sql import Database, read_sql
from leeward.cohort.readers.stores import Store
from leeward.cohort.readers.synthea import read_synthea
from leeward.cohort.readers.tables import read_frame, read_tables
from leeward.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class Request:
    """What every reader is asked.

    path : a path, the URL of a database, or a frame. name : what messages call a frame.
    store : the tables, where the format has several or they are a
    database's. missing : texts that mean 'no code'.
    """

    path: str | Path | pl.DataFrame
    name: str
    store: Store | None
    columns: ColumnNames | None
    vocabulary: str | None
    missing: frozenset[str]
    date_format: str | None


@dataclass(frozen=True)
class NoOptions:
    """A format without options of its own."""


@dataclass(frozen=True)
class CellOptions:
    """`code_separator`: what stands between the codes of a cell."""

    code_separator: str | None = None


@dataclass(frozen=True)
class EventOptions(CellOptions):
    """`patients`: a further table of attributes, one row a patient."""

    patients: str | Path | None = None


@dataclass(frozen=True)
class TableOptions:
    """`drop`: columns to leave out. `domains`: permissible values by column."""

    drop: tuple[str, ...] = ()
    domains: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.domains is not None and not isinstance(self.domains, Mapping):
            raise BadInput("`domains` of a table is a mapping of columns to permissible values.")


@dataclass(frozen=True)
class DomainOptions:
    """`domains`: a list of the kinds of events to read."""

    domains: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.domains, Mapping):
            raise BadInput("`drop` and a mapping of `domains` belong to a source of the format `table`.")


@dataclass(frozen=True)
class OmopOptions(DomainOptions):
    """`concepts`: CONCEPT's code, with its vocabulary, in the place of concept ids."""

    concepts: bool = False


@dataclass(frozen=True)
class SqlOptions(CellOptions):
    """`query`: SELECT … or a table's name."""

    query: str | None = None


@dataclass(frozen=True)
class Reader:
    """A format's reader, and the class of its options."""

    read: Callable[[Request, Any], Cohort]
    options: type


def _events(asked: Request, options: EventOptions) -> Cohort:
    if isinstance(asked.path, pl.DataFrame):
        return read_frame(
            asked.path, asked.columns, asked.vocabulary, asked.missing, asked.name, asked.date_format,
            options.code_separator,
        )  # fmt: skip
    return read_tables(
        asked.path, asked.columns, asked.vocabulary, asked.missing, asked.date_format, options.patients,
        options.code_separator,
    )  # fmt: skip


def _table(asked: Request, options: TableOptions) -> Cohort:
    from leeward.cohort.readers.table import read_table

    return read_table(
        asked.path,
        name=asked.name,
        columns=asked.columns,
        missing=asked.missing,
        drop=options.drop,
        domains=options.domains,
        date_format=asked.date_format,
    )


def _lines(asked: Request, options: CellOptions) -> Cohort:
    from leeward.cohort.readers import lines

    path = _path(asked)
    collector = Collector(
        Path(path).name, ColumnMap(), asked.missing, unit="line", separator=options.code_separator
    )
    for file in find_files(path, lines.ENDINGS):
        collector.begin(file.name)
        for batch in lines.batches(file, collector.last_row):
            collector.add(batch, pl.Series(pl.from_arrow(batch.column("patient"))).cast(pl.UInt32).to_numpy())
    return collector.cohort(asked.vocabulary)


def _fhir(asked: Request, options: NoOptions) -> Cohort:
    return read_fhir(_path(asked), asked.columns, asked.vocabulary, asked.missing)


def _sql(asked: Request, options: SqlOptions) -> Cohort:
    assert isinstance(asked.store, Database)
    return read_sql(
        asked.store, asked.columns, asked.vocabulary, asked.missing, asked.date_format, options.query,
        options.code_separator,
    )  # fmt: skip


def _omop(asked: Request, options: OmopOptions) -> Cohort:
    return read_omop(*_of_store(asked, options), options.concepts)


def _synthea(asked: Request, options: DomainOptions) -> Cohort:
    return read_synthea(*_of_store(asked, options))


def _i2b2(asked: Request, options: DomainOptions) -> Cohort:
    return read_i2b2(*_of_store(asked, options))


def _of_store(
    asked: Request, options: DomainOptions
) -> tuple[Store, ColumnNames | None, str | None, frozenset[str], str | None, tuple[str, ...]]:
    assert asked.store is not None
    return (
        asked.store,
        asked.columns,
        asked.vocabulary,
        asked.missing,
        asked.date_format,
        tuple(options.domains),
    )


def _path(asked: Request) -> str | Path:
    if isinstance(asked.path, pl.DataFrame):
        raise BadInput("a frame is read as `events` or as a `table`; other formats are read from files.")
    return asked.path


READERS: dict[str, Reader] = {
    "events": Reader(_events, EventOptions),
    "table": Reader(_table, TableOptions),
    "lines": Reader(_lines, CellOptions),
    "omop": Reader(_omop, OmopOptions),
    "fhir": Reader(_fhir, NoOptions),
    "synthea": Reader(_synthea, DomainOptions),
    "i2b2": Reader(_i2b2, DomainOptions),
    "sql": Reader(_sql, SqlOptions),
}


def options_of(kind: str, given: Mapping[str, Any]) -> Any:
    """The options of a format from those that were given.

    Raises
    ------
    BadInput
        An option that the format does not take; the message names those that do.
    """
    known = {each.name for each in fields(READERS[kind].options)}
    for name, value in given.items():
        if name in known:
            continue
        if name == "drop" or (name == "domains" and isinstance(value, Mapping)):
            raise BadInput("`drop` and a mapping of `domains` belong to a source of the format `table`.")
        takers = [other for other, each in READERS.items() if name in {f.name for f in fields(each.options)}]
        if name == "domains":
            takers.remove("table")  # whose domains are another thing
        raise BadInput(f"`{name}` is for the format {' or '.join(takers)}; this is '{kind}'.")
    return READERS[kind].options(**given)
