"""Alembic's entry: migrations run on the connection that `leeward.portal.store` hands over."""

from __future__ import annotations

from alembic import context

from leeward.portal.store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, version_table="portal_version")
with context.begin_transaction():
    context.run_migrations()
