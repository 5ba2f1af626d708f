"""The register's tables, and a log that nobody may change."""

from __future__ import annotations

from alembic import op

from leeward.queries.ledger.journal import append_only
from leeward.register.tables import log, metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=False)
    append_only(op.get_bind(), log)
