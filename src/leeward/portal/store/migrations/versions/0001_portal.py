"""The portal's tables, and a journal that nobody may change."""

from __future__ import annotations

from alembic import op

from leeward.portal.store.tables import metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=False)
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION leeward_journal_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the journal is append-only'; END $$"
        )
        op.execute(
            "CREATE TRIGGER journal_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON portal_journal "
            "FOR EACH STATEMENT EXECUTE FUNCTION leeward_journal_is_append_only()"
        )
        return
    for change in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER journal_no_{change.lower()} BEFORE {change} ON portal_journal "
            "BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END"
        )
