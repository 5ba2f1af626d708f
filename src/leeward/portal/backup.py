"""Backup of a portal on SQLite: consistent copies while it runs. For PostgreSQL use pg_dump."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal.settings import FILE as SETTINGS
from leeward.portal.settings import Settings
from leeward.portal.store import FILE, fetch_all, now, open_store, tables
from leeward.queries.ledger.opening import EMBEDDED
from leeward.release.aside import own_file, written_aside

STAMP: Final = "last-backup.json"


def make_backup(settings: Settings, out: Path) -> list[str]:
    """Copy the portal's database and then every index's ledger, so that these have all that the portal shows, to the
    new folder `out`; returns what was copied. Indexes and releases do not change and are not copied."""
    if settings.database is not None:
        raise BadInput(
            "the portal's database is a server; back it up with its own tool, for example pg_dump."
        )
    if out.exists():
        raise BadInput(f"{out}: exists already; name another folder.")
    database = open_store(settings.folder)
    with written_aside(out) as aside:
        copy_database(settings.folder / FILE, aside / FILE)
        copied = [FILE]
        for row in fetch_all(database, sa.select(tables.indexes)):
            ledger = Path(row["folder"]) / EMBEDDED
            if row["ledger"] is None and ledger.is_file():
                (aside / "ledgers" / row["id"]).mkdir(parents=True)
                copy_database(ledger, aside / "ledgers" / row["id"] / EMBEDDED)
                copied.append(f"ledgers/{row['id']}/{EMBEDDED}")
        if (settings.folder / SETTINGS).is_file():
            shutil.copy2(settings.folder / SETTINGS, aside / SETTINGS)
            copied.append(SETTINGS)
    stamp = own_file(settings.folder / STAMP)
    stamp.write_text(json.dumps({"time": now(), "files": len(copied)}), encoding="utf-8")
    return copied


def copy_database(source: Path, target: Path) -> None:
    """Copy a SQLite database consistently, even while others write to it."""
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
