"""Failed sign-ins, the key of the names' hashes, faults, an index of answers by time; counters go."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

from leeward.portal.store.tables import add_missing, key

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    add_missing(op.get_bind())
    op.execute("DROP TABLE IF EXISTS portal_counters")
    op.get_bind().execute(sa.insert(key).values(one=1, value=secrets.token_hex(32)))
