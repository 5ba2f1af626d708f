"""Backup of a portal: consistent copies of what is on SQLite, while it runs. For PostgreSQL use pg_dump."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal.settings import Settings
from leeward.portal.store import FILE, Database, find_store, now, tables
from leeward.portal.store.rows import fetch_all
from leeward.queries.answer.plan import ledger_of
from leeward.queries.ledger.engines import parse_url, place_of
from leeward.queries.ledger.opening import EMBEDDED
from leeward.release.aside import own_file, written_aside

STAMP: Final = "last-backup.json"


def make_backup(settings: Settings, out: Path) -> tuple[list[str], list[str]]:
    """Copy the portal's database and then its ledgers, so that these have all that the portal shows, to the new folder
    `out`; what was copied, and a sentence for each server, which is not. Indexes and releases do not change, and the
    settings hold secrets: neither is copied."""
    if out.exists():
        raise BadInput(f"{out}: exists already; name another folder.")
    database = find_store(settings.folder, settings.database)
    copied: list[str] = []
    servers: dict[str, str] = {}
    with written_aside(out) as aside:
        for name, where in _databases(database, settings):
            if isinstance(where, str):
                when = "before a backup" if name == FILE else "after it"
                servers.setdefault(where, f"{where} is not copied: copy it by its own tool (pg_dump), {when}")
                continue
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            copy_database(where, aside / name)
            copied.append(name)
    stamp = own_file(settings.folder / STAMP)
    stamp.write_text(json.dumps({"time": now(), "files": len(copied)}), encoding="utf-8")
    return copied, list(servers.values())


def _databases(database: Database, settings: Settings) -> Iterator[tuple[str, Path | str]]:
    """The name of each copy, and its file or the place of its server: the portal's database, then each ledger."""
    yield FILE, settings.folder / FILE if settings.database is None else _place(settings.database)
    columns = tables.indexes.c
    for row in fetch_all(database, sa.select(columns.id, columns.folder, columns.ledger)):
        folder = Path(row["folder"])
        ledger = row["ledger"]
        if ledger is not None and "://" not in ledger:  # in an earlier version's database it is an address
            ledger = settings.ledger(ledger)
        yield f"ledgers/{row['id']}/{EMBEDDED}", _place(ledger or ledger_of(folder))


def _place(where: str | Path) -> Path | str:
    if isinstance(where, Path):
        return where / EMBEDDED
    url = parse_url(where)
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else place_of(url)


def copy_database(source: Path, target: Path) -> None:
    """Copy a SQLite database consistently, even while others write to it."""
    if not source.is_file():
        raise BadInput(f"{source}: there is no database here to copy.")
    before, after = sqlite3.connect(f"file:{source}?mode=ro", uri=True), sqlite3.connect(target)
    try:
        before.backup(after)
    finally:
        before.close()
        after.close()


def last_backup(folder: Path) -> str | None:
    try:
        found: str = json.loads((folder / STAMP).read_text(encoding="utf-8"))["time"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found
