"""Engines of databases: SQLite (WAL, writers in turn), or a server, PostgreSQL above all.

A server's certificate is checked as `leeward.postgres` says, and a connection is asked whether it is alive before it is
used again (SQLAlchemy's `pool_pre_ping`).

URLs are read without a word about passwords in any message, and shown without them.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import sqlite3
import stat
import time
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.postgres import with_tls

BUSY_SECONDS: Final = 60
"""Time to wait for a lock that others hold."""
SILENT_SECONDS: Final = 20
"""How long a server may be silent."""
LOCK_SECONDS: Final = 10
"""Time that one statement waits for another's lock before it is tried again."""
STATEMENT_SECONDS: Final = 15
"""How long a server works on one statement: less than `SILENT_SECONDS`, so that its error arrives."""
UNKNOWN_ANSWER: Final = "an answer that the driver cannot read"
POOL_LOGGER: Final = "leeward-ledger"


def state_of(error: BaseException) -> str | None:
    """The SQLSTATE of a database's error, where it has one."""
    original = getattr(error, "orig", None) or error
    details = original.args[0] if getattr(original, "args", ()) else None
    code = details.get("C") if isinstance(details, dict) else getattr(original, "sqlstate", None)
    return None if code is None else str(code)


def make_engine(url: sa.URL, **given: Any) -> sa.Engine:
    """The engine of a database. What SQLAlchemy would log of a dead connection is pages of traceback; the caller is
    told in a sentence."""
    logging.getLogger(f"sqlalchemy.pool.impl.QueuePool.{POOL_LOGGER}").setLevel(logging.CRITICAL + 1)
    options = {
        "pool_timeout": BUSY_SECONDS,
        "pool_logging_name": POOL_LOGGER,
        "hide_parameters": True,
        **given,
    }
    if url.get_backend_name() != "sqlite":
        return _server_engine(url, options)
    engine = sa.create_engine(
        url, pool_size=10, max_overflow=20, connect_args={"timeout": BUSY_SECONDS}, **options
    )

    @sa.event.listens_for(engine, "connect")
    def ours_to_begin(connection: Any, record: Any) -> None:
        """SQLite's driver would begin where it likes; `opening` says BEGIN IMMEDIATE, so that writers queue."""
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA foreign_keys=ON")

    return engine


def begin_in_turn(connection: Any, durable: bool) -> None:
    """Begin to write, on SQLite's own connection, as soon as another process has ended. SQLite's own waiting sleeps up
    to 100 ms at a time, and with several processes that is most of what a writer waits for."""
    connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
    connection.execute("PRAGMA busy_timeout=0")
    until = time.monotonic() + BUSY_SECONDS
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            time.sleep(0.0005 + secrets.randbelow(1000) / 1e6)
    finally:
        connection.execute(f"PRAGMA busy_timeout={1000 * BUSY_SECONDS}")


def _server_engine(url: sa.URL, options: dict[str, Any]) -> sa.Engine:
    """A server takes a hundred connections by default, each process has two engines, and the writers of a family wait
    for each other anyway."""
    arguments: dict[str, Any] = {}
    if url.get_driver_name() == "pg8000":
        url, arguments = with_tls(url)
        arguments["timeout"] = SILENT_SECONDS
    engine = sa.create_engine(
        url, pool_size=3, max_overflow=2, pool_pre_ping=True, connect_args=arguments, **options
    )

    @sa.event.listens_for(engine, "handle_error", retval=True)
    def never_again(context: sa.engine.ExceptionContext) -> BaseException | None:
        """What fails at a ping is dead, whatever the server said last. What is no error of the driver's own (the
        socket's, in the middle of an answer) leaves a connection of which nobody knows what comes next: SQLAlchemy
        would roll back on it and read the rest as another answer."""
        if context.is_pre_ping or context.sqlalchemy_exception is None:
            context.is_disconnect = True
        unread = context.sqlalchemy_exception is None and isinstance(context.original_exception, LookupError)
        return ConnectionError(UNKNOWN_ANSWER) if unread else None

    if url.get_backend_name() == "postgresql":

        @sa.event.listens_for(engine, "connect")
        def never_for_ever(connection: Any, record: Any) -> None:
            """No statement and no lock is waited for longer than the socket is."""
            limits = (
                ("lock_timeout", LOCK_SECONDS),
                ("statement_timeout", STATEMENT_SECONDS),
                ("idle_in_transaction_session_timeout", SILENT_SECONDS),
            )
            cursor = connection.cursor()
            cursor.execute(
                "SELECT "
                + ", ".join(f"set_config('{setting}', '{seconds}s', false)" for setting, seconds in limits)
            )
            cursor.close()
            connection.commit()

    return engine


PASSWORDS: Final = frozenset({"password", "passwd", "pwd", "sslpassword"})
SHOWN: Final = frozenset({"unix_sock", "host", "port"})
"""Options of a URL that are shown; any other one may be a secret."""


def parse_url(text: str) -> sa.URL:
    """A database's URL with its password (written in it, PGPASSWORD, or PostgreSQL's passfile); BadInput, without
    repeating it, for what is no URL."""
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        raise BadInput(
            "`--ledger` is no URL of a database; write for example postgresql://user@host/database. Signs such as @, : "
            "and / in a name or password are written %40, %3A and %2F, and a port is a number."
        ) from None
    if url.drivername in {"postgresql", "postgres"}:
        url = url.set(drivername="postgresql+pg8000")
    for name in PASSWORDS & set(url.query) - {"sslpassword"}:
        value = url.query[name]
        url = url.difference_update_query([name])
        if url.password is None:
            url = url.set(password=value if isinstance(value, str) else value[0])
    if url.get_backend_name() == "postgresql":
        if url.username is None and os.environ.get("PGUSER"):
            url = url.set(username=os.environ["PGUSER"])
        if url.password is None and (password := _password_of(url)) is not None:
            url = url.set(password=password)
    return url


def place_of(url: sa.URL) -> str:
    """A URL safe to show, log and keep: without its password and without options that may hold one."""
    query = {name: value for name, value in url.query.items() if name in SHOWN}
    return url.set(query=query).render_as_string(hide_password=True)


def _password_of(url: sa.URL) -> str | None:
    """PGPASSWORD, or the first line of the passfile (PGPASSFILE, `~/.pgpass`) that matches, as libpq does."""
    if (given := os.environ.get("PGPASSWORD")) is not None:
        return given
    wanted = (
        url.host or "localhost",
        str(url.port or 5432),
        url.database or url.username or "",
        url.username or "",
    )
    for *place, password in _read_passfile():
        if all(field in ("*", value) for field, value in zip(place, wanted, strict=True)):
            return password
    return None


def _read_passfile() -> list[list[str]]:
    """The fields of the passfile's lines; none where others can read it, as libpq does, or where it cannot be read."""
    try:
        path = Path(os.environ.get("PGPASSFILE") or Path.home() / ".pgpass")
        if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            return []
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, RuntimeError, UnicodeDecodeError):
        return []
    fields = [re.split(r"(?<!\\):", line) for line in lines if not line.startswith("#")]
    return [[re.sub(r"\\(.)", r"\1", field) for field in each] for each in fields if len(each) == 5]
