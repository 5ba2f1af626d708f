"""The formats: for each its reader, the options that it takes and the tables by which it is known.

A new format is a row of `READERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from leeward.cohort.cohort import Cohort
from leeward.cohort.readers.databases import open_database, read_sql
from leeward.cohort.readers.fhir import is_ndjson, read_fhir
from leeward.cohort.readers.files import READABLE, suffix
from leeward.cohort.readers.i2b2 import read_i2b2
from leeward.cohort.readers.lines import read_lines
from leeward.cohort.readers.omop import read_omop
from leeward.cohort.readers.request import Request
from leeward.cohort.readers.stores import Folder, Store
from leeward.cohort.readers.synthea import read_synthea
from leeward.cohort.readers.table import read_table
from leeward.cohort.readers.tables import read_tables
from leeward.errors import BadInput
from leeward.paths import is_file, is_folder

DATABASES = {
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
}
"""Endings of the files of databases, and the beginnings of their URLs."""


@dataclass(frozen=True)
class Format:
    """A format's reader, the options of `Request` that it takes, and the tables by which a folder or (`in_database`) a
    database of it is known."""

    read: Callable[[Request], Cohort]
    options: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    in_database: bool = False


READERS = {
    "events": Format(read_tables, ("code_separator", "patients")),
    "table": Format(read_table, ("drop", "domains")),
    "lines": Format(read_lines, ("code_separator",)),
    "omop": Format(read_omop, ("domains", "concepts"), ("condition_occurrence",), in_database=True),
    "fhir": Format(read_fhir),
    "synthea": Format(read_synthea, ("domains",), ("conditions", "patients")),
    "i2b2": Format(read_i2b2, ("domains",), ("observation_fact",), in_database=True),
    "sql": Format(read_sql, ("code_separator", "query"), in_database=True),
}


TAKERS = {
    name: [kind for kind, each in READERS.items() if name in each.options and kind != "table"]
    for name in ("code_separator", "patients", "domains", "concepts", "query")
}
"""Each option with the formats that take it; a `table` takes `drop`, and `domains` of another kind."""

OF_ROWS = ("events", "table")
"""Formats of one table, whatever holds it."""


def check_options(kind: str, asked: Request) -> None:
    """BadInput for an option that the format does not take, naming those that do, or takes otherwise."""
    by_column = isinstance(asked.domains, Mapping)
    if (asked.drop or by_column) and kind != "table":
        raise BadInput("`drop` and a mapping of `domains` belong to a source of the format `table`.")
    if asked.domains and not by_column and kind == "table":
        raise BadInput("`domains` of a table is a mapping of columns to permissible values.")
    for name, takers in TAKERS.items():
        if name not in READERS[kind].options and getattr(asked, name) not in (None, (), False):
            raise BadInput(f"`{name}` is for the format {' or '.join(takers)}; this is '{kind}'.")


def detect_format(
    path: str | Path, kind: str | None, *, query: bool, table: str | None = None
) -> tuple[str, Store | None]:
    """The format, and the tables where it has several or comes from a database."""
    given = Path(path)
    url = _database_at(path, kind)
    if url is not None:
        return _in_database(f"{url}#{table}" if table else url, kind, query=query)
    if kind == "sql":
        raise BadInput(
            f"{given.name}: the format 'sql' needs the URL of a database, such as sqlite:///file.db#table."
        )
    if table is not None:
        raise BadInput(
            f"{given.name}: --table names a sheet of a workbook, a file in a .zip or a table of a database; this is "
            f"none of them."
        )
    kind = kind or _of_files(given)
    if not READERS[kind].tables:
        return kind, None
    if not is_folder(given):
        raise BadInput(f"{given.name}: the format '{kind}' needs the folder that holds its tables.")
    return kind, Folder(given)


def _database_at(path: str | Path, kind: str | None) -> str | None:
    """The URL of a database, also of one in a file; None for other paths."""
    if isinstance(path, str) and "://" in path:
        return path
    dialect = DATABASES.get(Path(path).suffix.lower())
    found = dialect and is_file(path) and (kind is None or READERS[kind].in_database)
    return f"{dialect}:///{Path(path)}" if found else None


def _in_database(url: str, kind: str | None, *, query: bool) -> tuple[str, Store | None]:
    if kind not in (None, *OF_ROWS) and not READERS[kind].in_database:
        raise BadInput(
            f"The format '{kind}' is read from files; give a file or folder, not the URL of a database."
        )
    database = open_database(url)
    if kind is not None:
        return kind if READERS[kind].tables else "sql", database
    of_tables = {} if query or database.table else READERS
    for name, each in of_tables.items():
        if each.in_database and each.tables and all(map(database.has, each.tables)):
            return name, database
    return "sql", database


def _of_files(path: Path) -> str:
    if not is_folder(path):
        return "fhir" if is_ndjson(path) else "events"
    files = list(path.iterdir())
    names = {file.name.split(".")[0].lower() for file in files if file.is_dir() or suffix(file) in READABLE}
    known = (kind for kind, each in READERS.items() if each.tables and names.issuperset(each.tables))
    return next(known, "fhir" if any(map(is_ndjson, files)) else "events")
