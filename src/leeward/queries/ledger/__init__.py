"""The ledger: what may be spent on a data set, what was, on what, and the answers that were paid."""

from __future__ import annotations

from importlib.util import find_spec

from leeward.errors import BadInput

if missing := [name for name in ("sqlalchemy", "alembic", "opendp") if find_spec(name) is None]:
    raise BadInput(f"Counts need {' and '.join(missing)}; install them with: pip install 'leeward[queries]'.")

from leeward.queries.ledger.auditing import Audit, Check, audit
from leeward.queries.ledger.budgets import (
    Allotment,
    DataSet,
    Terms,
    allot,
    allotments,
    known,
    named,
    register,
    terms_of,
)
from leeward.queries.ledger.moving import move
from leeward.queries.ledger.opening import EMBEDDED, Ledger, LedgerUnreachable, make_ledger, open_ledger
from leeward.queries.ledger.spending import BudgetSpent, Charge, Left, Paid, found, left, reserve, store

__all__ = [
    "EMBEDDED",
    "Allotment",
    "Audit",
    "BudgetSpent",
    "Charge",
    "Check",
    "DataSet",
    "Ledger",
    "LedgerUnreachable",
    "Left",
    "Paid",
    "Terms",
    "allot",
    "allotments",
    "audit",
    "found",
    "known",
    "left",
    "make_ledger",
    "move",
    "named",
    "open_ledger",
    "register",
    "reserve",
    "store",
    "terms_of",
]
