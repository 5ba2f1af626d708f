"""URLs of ledgers: read without a word about passwords in any message, and shown without them."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from leeward.errors import BadInput

PASSWORDS: Final = frozenset({"password", "passwd", "pwd", "sslpassword"})
SHOWN: Final = frozenset({"unix_sock", "host", "port"})
"""Options of a URL that are shown; any other one may be a secret."""


def parse_url(text: str) -> sa.URL:
    """A database's URL with its password: the one written in it, PGPASSWORD, or that of PostgreSQL's passfile.

    BadInput for what is no URL, without repeating it.
    """
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
    """A URL as it may be shown, logged and kept: without its password and without options that may hold one."""
    query = {name: value for name, value in url.query.items() if name in SHOWN}
    return url.set(query=query).render_as_string(hide_password=True)


def _password_of(url: sa.URL) -> str | None:
    """PGPASSWORD, or the first line of the passfile (PGPASSFILE, `~/.pgpass`) that matches, as libpq does."""
    if (given := os.environ.get("PGPASSWORD")) is not None:
        return given
    try:
        path = Path(os.environ.get("PGPASSFILE") or Path.home() / ".pgpass")
        if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            return None  # libpq does not read one that others can read
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, RuntimeError, UnicodeDecodeError):
        return None
    wanted = (
        url.host or "localhost",
        str(url.port or 5432),
        url.database or url.username or "",
        url.username or "",
    )
    for line in lines:
        fields = [re.sub(r"\\(.)", r"\1", field) for field in re.split(r"(?<!\\):", line)]
        fits = all(field in ("*", value) for field, value in zip(fields, wanted, strict=False))
        if len(fields) == 5 and not line.startswith("#") and fits:
            return fields[4]
    return None
