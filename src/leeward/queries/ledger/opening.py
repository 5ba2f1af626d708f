"""Where a ledger is: SQLite in the index's folder (WAL), or any database by URL, PostgreSQL above all.

A process has one engine a database, whoever opens it and however often. A server that is silent, out of connections or
gone ends in one sentence, never in waiting for ever; what waits for its turn waits `BUSY_SECONDS` at most.
"""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.queries.ledger.urls import parse_url, place_of

EMBEDDED: Final = "ledger.db"
REVISION: Final = "0002"
"""The migration that this version of Leeward works with."""

BUSY_SECONDS: Final = 60
"""How long a ledger is waited for that others use."""
SILENT_SECONDS: Final = 20
"""How long a server may be silent."""
LOCK_SECONDS: Final = 10
"""How long one statement waits for another's lock, before it is tried again."""
STATEMENT_SECONDS: Final = 15
"""How long a server works on one statement: less than `SILENT_SECONDS`, so that its error arrives."""
WRITE: Final = "BEGIN IMMEDIATE"
LOGGER: Final = "leeward-ledger"

FULL: Final = frozenset({"53300", "57P03"})
"""SQLSTATE: too many connections; cannot connect now (the server is starting or stopping)."""
LOCKED: Final = frozenset({"55P03", "40P01", "40001"})
"""SQLSTATE: lock not available, deadlock, serialization failure: tried again."""
UNKNOWN_ANSWER: Final = "an answer that the driver cannot read"
CANCELED: Final = "57014"
"""SQLSTATE: a statement took too long. Several locks in turn, each had in time, can take that long together."""


class LedgerUnreachable(BadInput):
    """The ledger cannot be asked; so nothing is answered."""


@dataclass(frozen=True)
class Ledger:
    """An open ledger; threads may share it."""

    engine: sa.Engine
    place: str
    """Where it is, as it may be shown: without a password."""
    key: str
    """What tells this database from others in this process."""
    beside: Path | None = None
    """The index's folder, where the last head is remembered; None for a database that was opened by itself."""


def open_ledger(where: str | Path, beside: Path | None = None) -> Ledger:
    """The ledger in an index's folder, or at a database's URL. It must exist: a budget is never made anew by asking.

    LedgerUnreachable where there is none or the database does not answer.
    """
    ledger = _connected(where, may_create=False, beside=beside)
    with _reached(ledger), _connect(ledger) as connection:
        found = _revision(connection)
        if found is None:
            raise LedgerUnreachable(
                f"{ledger.place}: there is no ledger of Leeward here. No answer was given. "
                "`leeward index` makes one together with the index."
            )
    _upgraded(ledger, found)
    return ledger


def make_ledger(where: str | Path, beside: Path | None = None) -> Ledger:
    """As `open_ledger`, and a new, empty ledger where there is none yet."""
    ledger = _connected(where, may_create=True, beside=beside)
    with _reached(ledger), _connect(ledger) as connection:
        found = _revision(connection)
    _upgraded(ledger, found)
    return ledger


def open_database(url: str) -> Ledger:
    """Another database of this program (the portal's), with the same engine, waits and refusals as a ledger."""
    return _by_url(url, may_create=True, beside=None)


@contextmanager
def reading(ledger: Ledger, *, snapshot: bool = False) -> Iterator[sa.Connection]:
    """A connection that only reads; LedgerUnreachable when the database fails.

    `snapshot`: all its statements see one moment, whoever writes meanwhile.
    """
    options: dict[str, Any] = {"leeward_begin": "BEGIN"} if snapshot else {}
    if ledger.engine.dialect.name != "sqlite":  # which begins nothing by itself, see `ours_to_begin`
        options = {"isolation_level": "REPEATABLE READ" if snapshot else "AUTOCOMMIT"}
    with _reached(ledger), _connect(ledger) as connection:
        yield connection.execution_options(**options) if options else connection


@contextmanager
def writing(ledger: Ledger, *, durable: bool = True) -> Iterator[sa.Connection]:
    """A transaction that writes, committed at the end, rolled back on any error.

    `durable`: on the disk when it returns. Without it the transaction survives the death of this process, not a power
    failure; SQLite writes one file in order, so it reaches the disk before any later durable one.
    """
    with _reached(ledger), _turn(ledger), _connect(ledger) as plain:
        durability = "FULL" if durable else "NORMAL"
        connection = plain.execution_options(leeward_begin=WRITE, leeward_durability=durability)
        with connection.begin():
            yield connection


def release(ledger: Ledger) -> None:
    """Give idle connections back to a server, which has few; a file's stay open, as closing them costs a flush."""
    if ledger.engine.dialect.name != "sqlite":
        ledger.engine.dispose()


def close_engine(ledger: Ledger) -> None:
    """Close every connection; the next opening makes a new engine."""
    with _lock:
        for key in [key for key, engine in _engines.items() if engine is ledger.engine]:
            del _engines[key]
    ledger.engine.dispose()


@contextmanager
def _turn(ledger: Ledger) -> Iterator[None]:
    """Writers of one file in one process queue here: SQLite has no queue, it lets them sleep and try again."""
    if ledger.engine.dialect.name != "sqlite":
        yield
        return
    with _lock:
        turn = _turns.setdefault(ledger.key, Lock())
    if not turn.acquire(timeout=BUSY_SECONDS):
        raise _unreachable(ledger, f"others held its lock for {BUSY_SECONDS} seconds")
    try:
        yield
    finally:
        turn.release()


@contextmanager
def _reached(ledger: Ledger) -> Iterator[None]:
    """A database's refusal as one sentence without the statement's values."""
    try:
        yield
    except _failures() as error:
        cause = type(getattr(error, "orig", None) or error).__name__
        if state_of(error) in {*LOCKED, CANCELED}:
            cause = f"others held its lock for {BUSY_SECONDS} seconds"
        raise _unreachable(ledger, cause) from None


def _unreachable(ledger: Ledger, cause: str) -> LedgerUnreachable:
    return LedgerUnreachable(
        f"{ledger.place}: cannot reach the ledger ({cause}). No answer was given. Check that the database is "
        "running and writable, then retry; what was paid is not paid again."
    )


def state_of(error: BaseException) -> str | None:
    """The SQLSTATE of a database's error, where it has one."""
    original = getattr(error, "orig", None) or error
    details = original.args[0] if getattr(original, "args", ()) else None
    code = details.get("C") if isinstance(details, dict) else getattr(original, "sqlstate", None)
    return None if code is None else str(code)


def _failures() -> tuple[type[Exception], ...]:
    """What a database that fails raises: through SQLAlchemy, or past it from the driver or the socket."""
    found: tuple[type[Exception], ...] = (sa.exc.SQLAlchemyError, OSError, EOFError, struct.error)
    try:
        from pg8000.exceptions import Error
    except ImportError:
        return found
    return (*found, Error)


def _connect(ledger: Ledger) -> sa.Connection:
    """A connection; a server that takes no more of them is asked again, at random moments, for `BUSY_SECONDS`."""
    until, wait = time.monotonic() + BUSY_SECONDS, 0.02
    while True:
        try:
            return ledger.engine.connect()
        except _failures() as error:
            if not _turned_away(error):
                raise
            if time.monotonic() > until:
                raise _unreachable(
                    ledger, f"the server took no further connection for {BUSY_SECONDS} seconds"
                ) from None
        except LookupError:  # what pg8000 raises where a server that is killed answers half
            raise _unreachable(ledger, UNKNOWN_ANSWER) from None
        time.sleep(wait * (0.5 + secrets.randbelow(1000) / 1000))
        wait = min(2 * wait, 1.0)


def _turned_away(error: BaseException) -> bool:
    """Whether a server that is there took no connection: it says so, or closes the connection before it is open.

    A full PostgreSQL may close before it reads the client's first message. The driver then fails as it writes, and its
    error has no SQLSTATE: "network error", caused by the socket's error or, at the end of the stream, by nothing. A
    full queue of a Unix socket is a BlockingIOError. Silence (TimeoutError) and a refusal, where no server listens,
    are not asked again.
    """
    if (state := state_of(error)) is not None:
        return state in FULL
    found: BaseException | None = getattr(error, "orig", None) or error
    closed = str(found) == "network error"
    while found is not None and not isinstance(found, OSError):
        found = found.__cause__
    if found is None:
        return closed
    return isinstance(
        found, BrokenPipeError | ConnectionResetError | ConnectionAbortedError | BlockingIOError
    )


def _connected(where: str | Path, *, may_create: bool, beside: Path | None) -> Ledger:
    if isinstance(where, str) and "://" in where:
        return _by_url(where, may_create, beside)
    folder = Path(where)
    file = folder / EMBEDDED
    if not file.is_file() and not (may_create and folder.is_dir()):
        raise LedgerUnreachable(
            f"{file}: the index has no ledger, so nothing is answered. It is made once, by `leeward index`; "
            "put the file back, or give the one that has the budget now with --ledger URL."
        )
    return _ledger(sa.URL.create("sqlite", database=str(file)), str(file), beside or folder)


def _by_url(text: str, may_create: bool, beside: Path | None) -> Ledger:
    url = parse_url(text)
    if url.get_backend_name() == "sqlite" and not may_create and not Path(url.database or "").is_file():
        raise LedgerUnreachable(f"{url.database}: there is no ledger here. No answer was given.")
    try:
        return _ledger(url, place_of(url), beside)
    except sa.exc.NoSuchModuleError:
        raise BadInput(f"`--ledger`: {url.get_backend_name()} is no database that Leeward knows.") from None
    except ImportError as error:
        raise BadInput(
            f"`--ledger`: the driver {error.name} is not installed; pip install 'leeward[queries]'."
        ) from None


_engines: dict[str, sa.Engine] = {}
_turns: dict[str, Lock] = {}
_lock = Lock()


def _ledger(url: sa.URL, place: str, beside: Path | None) -> Ledger:
    """The one engine of a database in this process. A file that was put in another's place is another database."""
    key = f"{os.getpid()} {url.render_as_string(hide_password=False)}"
    if url.get_backend_name() == "sqlite" and url.database:
        file = Path(url.database)
        if not file.exists():
            with suppress(OSError):  # the driver says what is wrong with the place
                os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
        if file.exists():
            status = file.stat()
            key = f"{os.getpid()} {file.resolve()} {status.st_dev} {status.st_ino}"
    with _lock:
        if key not in _engines:
            _engines[key] = _engine(url)
        return Ledger(_engines[key], place, key, beside)


def _engine(url: sa.URL) -> sa.Engine:
    # What the pool logs of a dead connection is pages of traceback; the caller is told in a sentence.
    logging.getLogger(f"sqlalchemy.pool.impl.QueuePool.{LOGGER}").setLevel(logging.CRITICAL + 1)
    if url.get_backend_name() != "sqlite":
        return _server_engine(url)
    engine = sa.create_engine(
        url,
        pool_size=10,
        max_overflow=20,
        pool_timeout=BUSY_SECONDS,
        pool_logging_name=LOGGER,
        hide_parameters=True,
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
        if options.get("leeward_begin") == WRITE:
            _begin_in_turn(connection)
        elif "leeward_begin" in options:
            connection.exec_driver_sql(options["leeward_begin"])

    return engine


def _begin_in_turn(connection: sa.Connection) -> None:
    """Begin to write as soon as another process has ended. SQLite's own waiting sleeps up to 100 ms at a time, and with
    several processes that is most of what a writer waits for."""
    connection.exec_driver_sql("PRAGMA busy_timeout=0")
    until = time.monotonic() + BUSY_SECONDS
    try:
        while True:
            try:
                connection.exec_driver_sql(WRITE)
                return
            except sa.exc.OperationalError as error:
                code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
                if code != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            time.sleep(0.0005 + secrets.randbelow(1000) / 1e6)
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={1000 * BUSY_SECONDS}")


def _server_engine(url: sa.URL) -> sa.Engine:
    """A server takes a hundred connections by default, and the writers of a family wait for each other anyway."""
    pg8000 = url.get_driver_name() == "pg8000"
    timeout = {"timeout": SILENT_SECONDS} if pg8000 and "timeout" not in url.query else {}
    engine = sa.create_engine(
        url,
        pool_size=5,
        max_overflow=5,
        pool_timeout=BUSY_SECONDS,
        pool_pre_ping=True,
        pool_logging_name=LOGGER,
        hide_parameters=True,
        connect_args=timeout,
    )

    @sa.event.listens_for(engine, "handle_error", retval=True)
    def never_again(context: sa.engine.ExceptionContext) -> BaseException | None:
        """What is no error of the driver's own (the socket's, in the middle of an answer) leaves a connection of which
        nobody knows what comes next: SQLAlchemy would roll back on it and read the rest as another answer."""
        if context.sqlalchemy_exception is not None:
            return None
        context.is_disconnect = True
        unread = isinstance(context.original_exception, LookupError)
        return ConnectionError(UNKNOWN_ANSWER) if unread else None

    if url.get_backend_name() == "postgresql":

        @sa.event.listens_for(engine, "connect")
        def never_for_ever(connection: Any, record: Any) -> None:
            """No statement and no lock is waited for longer than the socket is."""
            cursor = connection.cursor()
            for setting, seconds in (
                ("lock_timeout", LOCK_SECONDS),
                ("statement_timeout", STATEMENT_SECONDS),
                ("idle_in_transaction_session_timeout", SILENT_SECONDS),
            ):
                cursor.execute(f"SET {setting} = '{seconds}s'")
            cursor.close()
            connection.commit()

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
