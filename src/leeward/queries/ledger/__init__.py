"""The ledger: budgets of data sets, what was spent on which questions, and the paid answers."""

from __future__ import annotations

from leeward.errors import require_extra

require_extra("An index of counts", "queries", "sqlalchemy", "alembic", "opendp")
