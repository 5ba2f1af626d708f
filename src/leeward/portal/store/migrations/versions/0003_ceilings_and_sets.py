"""The largest price of one answer, and saved sets of terms."""

from __future__ import annotations

from alembic import op

from leeward.portal.store.tables import add_missing

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    add_missing(op.get_bind())
