"""Set-up links, second factors, who made an account, what was stopped, the directory and its requests."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

from leeward.portal.store.tables import add_missing, journal, people

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    add_missing(connection)
    for body in connection.scalars(sa.select(journal.c.body)).all():
        entry = json.loads(body)
        if (
            entry.get("event") == "password set" and "by" in entry
        ):  # so an administrator made an account before
            maker = sa.select(people.c.id).where(people.c.id == entry["by"]).scalar_subquery()
            connection.execute(people.update().where(people.c.id == entry["person"]).values(maker=maker))
