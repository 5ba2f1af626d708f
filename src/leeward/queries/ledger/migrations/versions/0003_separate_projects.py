"""Whether each project pays for itself; in ledgers made before, an answer that anybody paid is free to all."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    column = sa.Column("separately", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("families", column)
