"""Alembic's entry: migrations run on the connection that `leeward.register.store` hands over."""

from __future__ import annotations

from alembic import context

from leeward.register.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, version_table="register_version")
with context.begin_transaction():
    context.run_migrations()
