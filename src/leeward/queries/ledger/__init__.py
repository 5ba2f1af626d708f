"""The ledger: budgets of data sets, what was spent on which questions, and the paid answers."""

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
    check_user,
    has_budget,
    register,
    terms_of,
)
from leeward.queries.ledger.families import check_opening, close
from leeward.queries.ledger.moving import accept_restored, move
from leeward.queries.ledger.opening import (
    EMBEDDED,
    Ledger,
    LedgerUnreachable,
    make_ledger,
    open_ledger,
    release,
)
from leeward.queries.ledger.replay import LedgerInconsistent
from leeward.queries.ledger.spending import (
    BudgetSpent,
    Charge,
    Left,
    NotAllotted,
    Paid,
    answers,
    find_answer,
    find_answers,
    left,
    paid_by,
    reserve,
    store,
)

__all__ = [
    "EMBEDDED",
    "Allotment",
    "Audit",
    "BudgetSpent",
    "Charge",
    "Check",
    "DataSet",
    "Ledger",
    "LedgerInconsistent",
    "LedgerUnreachable",
    "Left",
    "NotAllotted",
    "Paid",
    "Terms",
    "accept_restored",
    "allot",
    "allotments",
    "answers",
    "audit",
    "check_opening",
    "check_user",
    "close",
    "find_answer",
    "find_answers",
    "has_budget",
    "left",
    "make_ledger",
    "move",
    "open_ledger",
    "paid_by",
    "register",
    "release",
    "reserve",
    "store",
    "terms_of",
]
