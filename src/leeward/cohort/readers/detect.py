"""Which format a path has, unless the caller says: by the tables of a database and the names of files."""

from __future__ import annotations

from pathlib import Path

from leeward.cohort.readers.fhir import has_resources, is_ndjson
from leeward.cohort.readers.files import READABLE, suffix
from leeward.cohort.readers.sql import Database, is_url
from leeward.cohort.readers.stores import Folder, Store
from leeward.errors import BadInput
from leeward.paths import is_file, is_folder

SQLITE = (".sqlite", ".sqlite3", ".db")
"""Endings of the files of SQLite."""

DUCKDB = (".duckdb", ".ddb")
"""Endings of the files of DuckDB."""

TELLING = {
    "omop": ("condition_occurrence",),
    "i2b2": ("observation_fact",),
    "synthea": ("conditions", "patients"),
}
"""Formats of several tables, and the tables by which they are known."""


def detect_format(
    path: str | Path, kind: str | None, *, query: bool, table: str | None = None
) -> tuple[str, Store | None]:
    """The format, and the tables where it has several or comes from a database."""
    place = f"#{table}" if table else ""
    if is_url(path):
        return _in_database(f"{path}{place}", kind, query=query)
    given = Path(path)
    if kind in (None, "sql", "omop", "i2b2") and is_file(given):
        for dialect, endings in (("sqlite", SQLITE), ("duckdb", DUCKDB)):
            if given.suffix.lower() in endings:
                return _in_database(f"{dialect}:///{given}{place}", kind, query=query)
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
    if kind not in TELLING:
        return kind, None
    if not is_folder(given):
        raise BadInput(f"{given.name}: the format '{kind}' needs the folder that holds its tables.")
    return kind, Folder(given)


def _in_database(url: str, kind: str | None, *, query: bool) -> tuple[str, Store | None]:
    if kind in ("lines", "fhir", "synthea"):
        raise BadInput(
            f"The format '{kind}' is read from files; give a file or folder, not the URL of a database."
        )
    database = _open_database(url)
    if kind in TELLING:
        return kind, database
    if kind is None and not query and not database.table:
        for name in ("omop", "i2b2"):
            if all(database.has(table) for table in TELLING[name]):
                return name, database
    return "sql", database


def _open_database(url: str) -> Database:
    if not url.startswith("duckdb:///"):
        return Database(url)
    from leeward.cohort.readers.duck import DuckDatabase

    file, _, place = url.removeprefix("duckdb:///").partition("#")
    return DuckDatabase(Path(file), place)


def _of_files(path: Path) -> str:
    if not is_folder(path):
        return "fhir" if is_ndjson(path) else "events"
    names = {
        file.name.split(".")[0].lower()
        for file in path.iterdir()
        if file.is_dir() or suffix(file) in READABLE
    }
    for kind, tables in TELLING.items():
        if names.issuperset(tables):
            return kind
    return "fhir" if has_resources(path) else "events"
