"""The register's tables. They hold no identifier of a patient: a sketch has keyed hashes, and the key is elsewhere."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from leeward.queries.ledger.journal import Journal

metadata = sa.MetaData()

log = sa.Table(
    "register_log", metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("time", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
)  # fmt: skip
"""What happened to which release. Append-only, each hash covers the one before."""

end = sa.Table(
    "register_end", metadata,
    sa.Column("one", sa.Integer, primary_key=True),
    sa.Column("entries", sa.BigInteger, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
)  # fmt: skip
"""Whoever enters a release locks its one row first."""

sketches = sa.Table(
    "register_sketches", metadata,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("hashes", sa.LargeBinary, nullable=False),
)  # fmt: skip
"""The patients of a release (`sketch`), by the SHA-256 of the bytes: once for releases of the same patients."""

JOURNAL: Final = Journal(log, end)
