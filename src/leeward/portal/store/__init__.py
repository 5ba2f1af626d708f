"""The portal's own database: people, sessions, projects, proposals, releases, and a journal that nobody changes."""

from __future__ import annotations

from leeward.portal.store.opening import Database, open_store, reading, writing
from leeward.portal.store.rows import fetch_all, fetch_one, new_id, now

__all__ = [
    "Database",
    "fetch_all",
    "fetch_one",
    "new_id",
    "now",
    "open_store",
    "reading",
    "writing",
]
