"""What a name without an allotment may spend: `all` in ledgers that were made before, which had no other way."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("families", sa.Column("default_allotment", sa.Text, nullable=False, server_default="all"))
