"""The ledger: families, data sets, accounts, answers, and the log that nobody may change.

There is no way down: a downgrade would drop what was spent.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "families",
        sa.Column("family", sa.Text, primary_key=True),
        sa.Column("accounting", sa.Text, nullable=False),
        sa.Column("epsilon", sa.BigInteger, nullable=False),
        sa.Column("delta", sa.Float(53)),
        sa.Column("unit", sa.Text, nullable=False),
        sa.Column("entries", sa.BigInteger, nullable=False),
        sa.Column("head", sa.Text, nullable=False),
        sa.Column("moved", sa.Text),
        sa.Column("arrived", sa.Boolean, nullable=False),
    )
    op.create_table(
        "data_sets",
        sa.Column("data_set", sa.Text, primary_key=True),
        sa.Column("parent", sa.Text, sa.ForeignKey("data_sets.data_set")),
        sa.Column("family", sa.Text, sa.ForeignKey("families.family"), nullable=False),
        sa.Column("threshold", sa.BigInteger),
    )
    op.create_table(
        "accounts",
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("family", sa.Text, sa.ForeignKey("families.family"), nullable=False),
        sa.Column("most", sa.BigInteger, nullable=False),
        sa.Column("spent", sa.BigInteger, nullable=False),
        sa.CheckConstraint("spent >= 0 AND spent <= most", name="never_overspent"),
    )
    op.create_table(
        "answers",
        sa.Column("data_set", sa.Text, sa.ForeignKey("data_sets.data_set"), primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("epsilon", sa.BigInteger, nullable=False),
        sa.Column("cost", sa.BigInteger, nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("charged", sa.Text, nullable=False),
        sa.Column("payload", sa.Text),
    )
    op.create_table(
        "log",
        sa.Column("family", sa.Text, sa.ForeignKey("families.family"), primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("time", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    _only_append(op.get_bind().dialect.name)


def _only_append(dialect: str) -> None:
    if dialect == "postgresql":
        op.execute(
            "CREATE FUNCTION leeward_log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the log is append-only'; END $$"
        )
        op.execute(
            "CREATE TRIGGER log_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log "
            "FOR EACH STATEMENT EXECUTE FUNCTION leeward_log_is_append_only()"
        )
        return
    for change in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER log_no_{change.lower()} BEFORE {change} ON log "
            "BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END"
        )
