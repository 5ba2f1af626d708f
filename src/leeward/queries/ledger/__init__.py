"""The ledger: budgets of data sets, what was spent on which questions, and the paid answers."""

from __future__ import annotations

from importlib.util import find_spec

from leeward.errors import BadInput

if missing := [name for name in ("sqlalchemy", "alembic", "opendp") if find_spec(name) is None]:
    raise BadInput(f"Counts need {' and '.join(missing)}; install them with: pip install 'leeward[queries]'.")
