"""Where a ledger is: SQLite in the index's folder (WAL), or any database by URL, PostgreSQL above all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from leeward.errors import BadInput

EMBEDDED: Final = "ledger.db"
REVISION: Final = "0001"
"""The migration that this version of Leeward works with."""

BUSY_SECONDS: Final = 60


class LedgerUnreachable(BadInput):
    """The ledger cannot be asked; so nothing is answered."""


@dataclass(frozen=True)
class Ledger:
    """An open ledger; threads may share it."""

    engine: sa.Engine
    place: str
    """Where it is, as it may be shown: without a password."""


def open_ledger(where: str | Path) -> Ledger:
    """The ledger in an index's folder, or at a database's URL. It must exist: a budget is never made anew by asking.

    LedgerUnreachable where there is none or the database does not answer.
    """
    ledger = _connected(where, may_create=False)
    with _reached(ledger), ledger.engine.connect() as connection:
        found = _revision(connection)
        if found is None:
            raise LedgerUnreachable(
                f"{ledger.place}: there is no ledger of Leeward here. No answer was given. "
                "`leeward index` makes one together with the index."
            )
    _upgraded(ledger, found)
    return ledger


def make_ledger(where: str | Path) -> Ledger:
    """As `open_ledger`, and a new, empty ledger where there is none yet."""
    ledger = _connected(where, may_create=True)
    with _reached(ledger), ledger.engine.connect() as connection:
        found = _revision(connection)
    _upgraded(ledger, found)
    return ledger


@contextmanager
def reading(ledger: Ledger, *, snapshot: bool = False) -> Iterator[sa.Connection]:
    """A connection that only reads; LedgerUnreachable when the database fails.

    `snapshot`: all its statements see one moment, whoever writes meanwhile.
    """
    options: dict[str, Any] = {"isolation_level": "AUTOCOMMIT"}
    if snapshot:
        options = {"leeward_begin": "BEGIN"}
        if ledger.engine.dialect.name != "sqlite":
            options = {"isolation_level": "REPEATABLE READ"}
    with _reached(ledger), ledger.engine.connect().execution_options(**options) as connection:
        yield connection


@contextmanager
def writing(ledger: Ledger, *, durable: bool = True) -> Iterator[sa.Connection]:
    """A transaction that writes, committed at the end, rolled back on any error.

    `durable`: on the disk when it returns. Without it the transaction survives the death of this process, not a power
    failure; SQLite writes one file in order, so it reaches the disk before any later durable one.
    """
    with _reached(ledger), ledger.engine.connect() as plain:
        durability = "FULL" if durable else "NORMAL"
        connection = plain.execution_options(leeward_begin="BEGIN IMMEDIATE", leeward_durability=durability)
        with connection.begin():
            yield connection


@contextmanager
def _reached(ledger: Ledger) -> Iterator[None]:
    """A database's refusal as one sentence without the statement's values."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        cause = type(getattr(error, "orig", None) or error).__name__
        raise LedgerUnreachable(
            f"{ledger.place}: the ledger does not answer ({cause}). No answer was given. "
            "See that the database runs and may be written to, then ask again."
        ) from None


def _connected(where: str | Path, *, may_create: bool) -> Ledger:
    if isinstance(where, str) and "://" in where:
        return _by_url(where, may_create)
    folder = Path(where)
    file = folder / EMBEDDED
    if not file.is_file() and not (may_create and folder.is_dir()):
        raise LedgerUnreachable(
            f"{file}: the index has no ledger, so nothing is answered. It is made once, by `leeward index`; "
            "put the file back, or give the one that has the budget now with --ledger URL."
        )
    return Ledger(_engine(sa.URL.create("sqlite", database=str(file))), str(file))


def _by_url(text: str, may_create: bool) -> Ledger:
    try:
        url = sa.make_url(text)
        if url.drivername in {"postgresql", "postgres"}:
            url = url.set(drivername="postgresql+pg8000")
        if url.get_backend_name() == "sqlite" and not may_create and not Path(url.database or "").is_file():
            raise LedgerUnreachable(f"{url.database}: there is no ledger here. No answer was given.")
        return Ledger(_engine(url), url.render_as_string(hide_password=True))
    except sa.exc.ArgumentError:
        raise BadInput(
            "`--ledger` is no URL of a database; write for example postgresql://user@host/database."
        ) from None
    except sa.exc.NoSuchModuleError:
        raise BadInput(f"`--ledger`: {text.split(':')[0]} is no database that Leeward knows.") from None
    except ImportError as error:
        raise BadInput(
            f"`--ledger`: the driver {error.name} is not installed; pip install 'leeward[queries]'."
        ) from None


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        # A server takes a hundred connections by default, and the writers of a family wait for each other anyway.
        return sa.create_engine(url, pool_size=5, max_overflow=5, pool_timeout=BUSY_SECONDS)
    engine = sa.create_engine(
        url,
        pool_size=10,
        max_overflow=20,
        pool_timeout=BUSY_SECONDS,
        connect_args={"timeout": BUSY_SECONDS},
    )

    @sa.event.listens_for(engine, "connect")
    def ours_to_begin(connection: Any, record: Any) -> None:
        """SQLite's driver would begin where it likes; we say BEGIN IMMEDIATE, so that writers queue."""
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA foreign_keys=ON")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        options = connection.get_execution_options()
        if "leeward_durability" in options:
            connection.exec_driver_sql(f"PRAGMA synchronous={options['leeward_durability']}")
        if "leeward_begin" in options:
            connection.exec_driver_sql(options["leeward_begin"])

    return engine


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return None if found is None else str(found)


def _upgraded(ledger: Ledger, found: str | None) -> None:
    if found == REVISION:
        return
    if found is not None and found > REVISION:
        raise LedgerUnreachable(
            f"{ledger.place}: the ledger was made by a later version of Leeward (its schema is {found}, this version "
            f"knows {REVISION}). No answer was given. Install the later version."
        )
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with writing(ledger) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, REVISION)
