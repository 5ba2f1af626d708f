"""Public library calls: `lw.query`, `lw.budget`, `lw.audit`."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leeward.errors import BadInput
from leeward.queries.answer.charged_query import Answer, answer_all
from leeward.queries.answer.plan import Question, ledger_of, open_session
from leeward.queries.index.counts import Index
from leeward.queries.language.query import parse
from leeward.queries.ledger import auditing, budgets, moving, opening, spending
from leeward.queries.ledger.auditing import Audit
from leeward.queries.privacy.accounting import micro, to_epsilon
from leeward.queries.privacy.mechanism import Kind, Unit


def query(
    index: str | Path,
    terms: str,
    /,
    *,
    epsilon: float | str,
    user: str | None = None,
    project: str | None = None,
    ledger: str | None = None,
    unit: Unit = "patient",
    counted: Unit | None = None,
    by: str | None = None,
    most: int | None = None,
    mechanism: Kind = "geometric",
    **conditions: str,
) -> Answer:
    """Count patients whose notes hold all `terms`, with noise that protects each patient; paid from the index's budget.

    `lw.query("INDEX", "sore throat & fever", epsilon=0.5, when="2009-04..2009-06", zip="1230*")`

    epsilon : the price: the larger, the less noise; the same question asked again costs nothing
    user, project : who asks (default: the login name), and the project that pays beside the user
    ledger : URL of the database with the budget (default: the ledger in the index's folder)
    unit, counted : what is protected, and what is counted: 'patient' or 'note'
    by, most : a quasi-identifier for a histogram, and in how many of its bins one patient may count
    conditions : quasi-identifier -> a value, a range `a..b` or a beginning `a*`

    BadInput: the question, the index or the ledger is wrong; nothing was answered. BudgetSpent: nothing was charged.
    """
    asked = Question(
        query=parse(terms, conditions),
        epsilon=micro(epsilon),
        unit=unit,
        counted=counted,
        by=by,
        most=most,
        mechanism=mechanism,
    )
    session = open_session(index, ledger)
    try:
        (found,) = answer_all(session, [asked], user if user is not None else login_name(), project)
    finally:
        opening.release(session.ledger)
    return found


def budget(
    index: str | Path,
    /,
    *,
    allot: Mapping[str, float | str] | None = None,
    allot_project: Mapping[str, float | str] | None = None,
    move_to: str | None = None,
    accept_restored: str | None = None,
    ledger: str | None = None,
) -> dict[str, Any]:
    """Return the budget and spending of an index, as `leeward budget --json` prints them.

    `lw.budget("INDEX", allot={"ann": 1})`

    allot, allot_project : user, or project -> the most that may be spent: below the cap of all, at least what was spent
    accept_restored : reason for continuing with an older copy of the ledger, kept in the log (`ledger.moving`)
    move_to : URL of the database that the budget, with all that was spent, moves to first
    ledger : URL of the database with the budget (default: the ledger in the index's folder)

    BadInput: the ledger cannot be reached, or an allotment is wrong.
    """
    if move_to is not None:
        folder = Index(index).path
        old = opening.open_ledger(ledger or ledger_of(folder), folder)
        moving.move(old, opening.make_ledger(move_to, folder), Index(index).meta.id)
        ledger = move_to
    session = open_session(index, ledger, checked=accept_restored is None)
    data_set, terms = session.index.meta.id, session.terms
    if accept_restored is not None:
        moving.accept_restored(session.ledger, data_set, accept_restored)
    for names, project in ((allot, False), (allot_project, True)):
        for name, epsilon in (names or {}).items():
            budgets.allot(session.ledger, data_set, name, micro(epsilon, "allot"), project=project)
    left = spending.left(session.ledger, data_set, None)
    return {
        "ledger": session.ledger.place,
        "unit": terms.unit,
        "accounting": terms.accounting,
        "delta": terms.delta,
        "total": to_epsilon(terms.total),
        "spent": left.spent_epsilon,
        "remaining": to_epsilon(left.anybody),
        "threshold": terms.threshold,
        "default_allotment": terms.default_allotment,
        "charge_projects_separately": terms.charge_projects_separately,
        "allotments": [
            {
                "project" if each.project else "user": each.user,
                "most": to_epsilon(each.most),
                "left": to_epsilon(each.left),
            }
            for each in budgets.allotments(session.ledger, data_set)
        ],
    }


def audit(index: str | Path, /, *, expect: str | None = None, ledger: str | None = None) -> Audit:
    """Check the ledger of an index: its log's chain of hashes, accounts, caps and stored answers. `expect` is a head
    that an earlier audit printed. A failed check is no error: see `.passed`."""
    session = open_session(index, ledger, checked=False)
    return auditing.audit(session.ledger, session.index.meta.id, expect)


def login_name() -> str:
    """Login name of the current user; BadInput if the system does not know it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise BadInput("The system does not say who asks; give a name with --user.") from None
