"""The largest price of one answer, and saved sets of codes. A new database has them by 0001, which makes all tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from leeward.portal.store.tables import sets

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    sets.create(op.get_bind(), checkfirst=True)
    columns = sa.inspect(op.get_bind()).get_columns("portal_allotments")
    if not any(column["name"] == "most_an_answer" for column in columns):
        op.add_column("portal_allotments", sa.Column("most_an_answer", sa.BigInteger))
