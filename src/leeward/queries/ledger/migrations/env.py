"""Alembic's entry: migrations run on the connection that `leeward.queries.ledger` hands over."""

from __future__ import annotations

from alembic import context

from leeward.queries.ledger.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
