"""Where a ledger is: SQLite in the index's folder (WAL), or any database by URL, PostgreSQL above all.

A process has two engines a database, one that only reads and one that writes, whoever opens it and however often. A
server that is silent, out of connections or gone ends in one sentence, never in waiting for ever; what waits for its
turn waits `BUSY_SECONDS` at most.
"""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock, Semaphore
from typing import Any, Final

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.paths import exists, is_file, is_folder
from leeward.postgres import fault_of_tls
from leeward.queries.ledger.engines import (
    BUSY_SECONDS,
    UNKNOWN_ANSWER,
    begin_in_turn,
    make_engine,
    parse_url,
    place_of,
    state_of,
)

EMBEDDED: Final = "ledger.db"
DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""SQLite's error codes for a file that is no longer a database."""
REVISION: Final = "0003"
"""The migration that this version of Leeward works with."""

CONNECTION_SECONDS: Final = 300
"""Time to wait for a connection while a server reports that all of its connections are in use."""
SAID_SECONDS: Final = 30
"""Interval between messages about waiting for a connection."""
FAILURES: Final = (sa.exc.SQLAlchemyError, sqlite3.Error, OSError, EOFError, struct.error)
"""Errors of a failing database: SQLAlchemy's, or those of `begin_in_turn` and the socket."""
LOGGER: Final = logging.getLogger("leeward.ledger")

TOO_MANY: Final = "53300"
"""SQLSTATE: too many connections."""
FULL: Final = frozenset({TOO_MANY, "57P03"})
"""SQLSTATE: too many connections; cannot connect now (the server is starting or stopping)."""
LOCKED: Final = frozenset({"55P03", "40P01", "40001"})
"""SQLSTATE: lock not available, deadlock, serialization failure: tried again."""
CANCELED: Final = "57014"
"""SQLSTATE: a statement took too long. Several locks in turn, each had in time, can take that long together."""


class LedgerUnreachable(BadInput):
    """The ledger cannot be reached; nothing is answered."""


@dataclass(frozen=True)
class Words:
    """How a failing database is spoken of."""

    name: str = "ledger"
    outcome: str = "No answer was given."
    again: str = "; you will not be charged twice"
    restore: str = "`leeward budget` says how to go on with an older one."


@dataclass(frozen=True)
class Ledger:
    """An open ledger; threads may share it."""

    engine: sa.Engine
    reader: sa.Engine
    """For single statements that read, each a transaction of its own; SQLite's is the same."""
    place: str
    """Location that is safe to show: without a password."""
    key: str
    """Key of this database within the process."""
    beside: Path | None = None
    """The index's folder, where the last head is remembered; None for a database that was opened by itself."""
    words: Words = Words()


def open_ledger(where: str | Path, beside: Path | None = None) -> Ledger:
    """The ledger in an index's folder, or at a database's URL; asking never makes a new one. LedgerUnreachable where
    there is none or the database does not answer."""
    return _open(where, beside, may_create=False)


def make_ledger(where: str | Path, beside: Path | None = None) -> Ledger:
    """As `open_ledger`, and a new, empty ledger where there is none yet."""
    return _open(where, beside, may_create=True)


def open_database(url: str, words: Words = Words()) -> Ledger:
    """Another database of this program (the portal's), with the same engine, waits and refusals as a ledger."""
    return replace(_by_url(url, may_create=True, beside=None), words=words)


@contextmanager
def reading(ledger: Ledger, *, snapshot: bool = False) -> Iterator[sa.Connection]:
    """A connection that only reads; LedgerUnreachable when the database fails. `snapshot`: all statements see one
    moment."""
    engine = ledger.engine if snapshot else ledger.reader
    with _translate_errors(ledger), _connect(ledger, engine) as connection:
        # which begins nothing by itself, see `ours_to_begin`
        if snapshot and engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN")
        elif snapshot:
            connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


@contextmanager
def writing(ledger: Ledger, *, durable: bool = True, family: str = "") -> Iterator[sa.Connection]:
    """A transaction that writes, committed at the end, rolled back on any error.

    `durable`: on the disk when it returns. Without it the transaction survives the death of this process, not a power
    failure; a database's log is written in order, so it reaches the disk before any later durable one. `family`: the
    one that it locks, if it locks one that others ask for too (see `_turn`).
    """
    kind = ledger.engine.dialect.name
    with (
        _translate_errors(ledger),
        _turn(ledger, family),
        _connect(ledger, ledger.engine) as connection,
        connection.begin(),
    ):
        if kind == "sqlite":
            begin_in_turn(connection.connection.driver_connection, durable)
        elif kind == "postgresql" and not durable:
            connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
        yield connection


def lock_row(connection: sa.Connection, asked: sa.Select[Any], given: Mapping[str, Any] | None = None) -> Any:
    """The row of a statement that locks it, before anything is written; None without one. A lock that others hold is
    asked for again, in a transaction begun anew."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return connection.execute(asked, given).first()
        except sa.exc.DBAPIError as error:
            if state_of(error) not in {*LOCKED, CANCELED} or time.monotonic() > until:
                raise
            connection.connection.rollback()


def release(ledger: Ledger) -> None:
    """Give idle connections back to a server, which has few; a file's stay open, as closing them costs a flush."""
    if ledger.engine.dialect.name != "sqlite":
        ledger.engine.dispose()
        ledger.reader.dispose()


def close_engine(ledger: Ledger) -> None:
    """Close every connection; the next opening makes a new engine."""
    with _lock:
        for key in [key for key, engines in _engines.items() if ledger.engine in engines]:
            del _engines[key]
    ledger.engine.dispose()
    ledger.reader.dispose()


@contextmanager
def _turn(ledger: Ledger, family: str) -> Iterator[None]:
    """Writers of one process queue here. SQLite has no queue: it lets those of one file sleep and try again. At a
    server each writer that waits for the lock of its `family` holds one of this process's few connections, and what
    only reads would wait for those; so there are two: one writes, and the next one has begun."""
    if ledger.engine.dialect.name == "sqlite":
        family = ""
    elif not family:
        yield
        return
    with _lock:
        turn = _turns.setdefault((ledger.key, family), Semaphore(2 if family else 1))
    if not turn.acquire(timeout=BUSY_SECONDS):
        raise _unreachable(ledger, f"others held its lock for {BUSY_SECONDS} seconds")
    try:
        yield
    finally:
        turn.release()


@contextmanager
def _translate_errors(ledger: Ledger) -> Iterator[None]:
    """Translate a database's error into one sentence without the statement's values."""
    try:
        yield
    except FAILURES as error:
        refused = getattr(error, "orig", None) or error
        if getattr(refused, "sqlite_errorcode", None) in DAMAGED:
            raise LedgerUnreachable(
                f"{ledger.place}: the {ledger.words.name}'s file is damaged. {ledger.words.outcome} Put its newest "
                f"copy back; {ledger.words.restore}"
            ) from None
        cause = fault_of_tls(refused) or type(refused).__name__
        if state_of(error) in {*LOCKED, CANCELED}:
            cause = f"others held its lock for {BUSY_SECONDS} seconds"
        raise _unreachable(ledger, cause) from None


def _unreachable(ledger: Ledger, cause: str) -> LedgerUnreachable:
    return LedgerUnreachable(
        f"{ledger.place}: cannot reach the {ledger.words.name} ({cause}). {ledger.words.outcome} Check that the "
        f"database is running and writable, then retry{ledger.words.again}."
    )


def _connect(ledger: Ledger, engine: sa.Engine) -> sa.Connection:
    """A connection; a server that takes no more of them is asked again, at random moments.

    While it says that all of its connections are in use it is waited for `CONNECTION_SECONDS`, and that is said; where
    it only closes, `BUSY_SECONDS`. Nobody queues at a server, so waits are short enough for every client to have had
    its turn, and long enough for a hundred that ask to leave it time to answer.
    """
    begun = time.monotonic()
    until, said, wait = begun + BUSY_SECONDS, begun, 0.05
    while True:
        try:
            return engine.connect()
        except FAILURES as error:
            if not _takes_no_connection(error):
                raise
            now = time.monotonic()
            if state_of(error) == TOO_MANY:
                until = min(begun + CONNECTION_SECONDS, now + BUSY_SECONDS)
            if now > until:
                waited = f"the server took no further connection for {now - begun:.0f} seconds"
                raise _unreachable(ledger, waited) from None
            if now - said > (SAID_SECONDS if said > begun else SAID_SECONDS / 6):
                LOGGER.warning(f"{ledger.place}: waiting for a free connection ({now - begun:.0f} s)")
                said = now
        except LookupError:  # what pg8000 raises where a server that is killed answers half
            raise _unreachable(ledger, UNKNOWN_ANSWER) from None
        time.sleep(wait * (0.5 + secrets.randbelow(1000) / 1000))
        wait = min(2 * wait, 1.0)


def _takes_no_connection(error: BaseException) -> bool:
    """Whether a running server took no connection: it reports so, or closes the connection before it is open.

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


def _open(where: str | Path, beside: Path | None, *, may_create: bool) -> Ledger:
    if isinstance(where, str) and "://" in where:
        ledger = _by_url(where, may_create, beside)
    else:
        file = Path(where) / EMBEDDED
        if not is_file(file) and not (may_create and is_folder(where)):
            raise LedgerUnreachable(
                f"{file}: the index has no ledger, so nothing is answered. It is made once, by `leeward index`; "
                "put the file back, or give the one that has the budget now with --ledger URL."
            )
        ledger = _ledger(sa.URL.create("sqlite", database=str(file)), str(file), beside or Path(where))
    with reading(ledger) as connection:
        found = _revision(connection)
    if found is None and not may_create:
        raise LedgerUnreachable(
            f"{ledger.place}: there is no ledger of Leeward here. No answer was given. "
            "`leeward index` makes one together with the index."
        )
    if found != REVISION:
        _upgrade(ledger, found)
    return ledger


def _by_url(text: str, may_create: bool, beside: Path | None) -> Ledger:
    url = parse_url(text)
    if url.get_backend_name() == "sqlite" and not may_create and not is_file(url.database or ""):
        raise LedgerUnreachable(f"{url.database}: there is no ledger here. No answer was given.")
    try:
        return _ledger(url, place_of(url), beside)
    except sa.exc.NoSuchModuleError:
        raise BadInput(f"`--ledger`: {url.get_backend_name()} is no database that Leeward knows.") from None
    except ImportError as error:
        raise BadInput(
            f"`--ledger`: the driver {error.name} is not installed; pip install 'leeward[queries]'."
        ) from None


_engines: dict[str, tuple[sa.Engine, sa.Engine]] = {}
_turns: dict[tuple[str, str], Semaphore] = {}
_lock = Lock()


def _ledger(url: sa.URL, place: str, beside: Path | None) -> Ledger:
    """The engines of a database in this process. A file that was put in another's place is another database."""
    key = f"{os.getpid()} {url.render_as_string(hide_password=False)}"
    if url.get_backend_name() == "sqlite" and url.database:
        file = Path(url.database)
        if not exists(file):
            with suppress(OSError):  # the driver says what is wrong with the place
                os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
        if exists(file):
            status = file.stat()
            key = f"{os.getpid()} {file.resolve()} {status.st_dev} {status.st_ino}"
    with _lock:
        if key not in _engines:
            engine = make_engine(url)
            sqlite = engine.dialect.name == "sqlite"
            _engines[key] = engine, engine if sqlite else make_engine(url, isolation_level="AUTOCOMMIT")
        return Ledger(*_engines[key], place, key, beside)


def _revision(connection: sa.Connection) -> str | None:
    asked = "SELECT version_num FROM alembic_version"
    try:
        found = connection.exec_driver_sql(asked).scalar()
    except sa.exc.DBAPIError:
        connection.rollback()
        if sa.inspect(connection).has_table("alembic_version"):
            raise
        return None
    return None if found is None else str(found)


def _upgrade(ledger: Ledger, found: str | None) -> None:
    if found is not None and found > REVISION:
        raise LedgerUnreachable(
            f"{ledger.place}: the ledger was made by a later version of Leeward (its schema is {found}, this version "
            f"knows {REVISION}). No answer was given. Install the later version."
        )
    if found is not None:
        LOGGER.warning(f"{ledger.place}: the ledger goes from schema {found} to {REVISION}")
    with writing(ledger) as connection:
        migrate(connection, Path(__file__).parent / "migrations", REVISION)


def migrate(connection: sa.Connection, scripts: Path, revision: str) -> None:
    """Bring a database to a revision of Alembic's scripts in a folder."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
