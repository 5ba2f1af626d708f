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
    """Count patients with some health terms. Noise protects each patient, and the index's budget pays.

    Parameters
    ----------
    index : str or Path
        Folder of the index.
    terms : str
        Terms joined by `&`, `|`, `!` and parentheses, for example `fever & (cough | chills) & !rash`.
    epsilon : float or str
        Cost of the answer; a larger one means less noise. The same question again is free.
    user : str, optional
        Who asks; by default, the login name.
    project : str, optional
        Project that is charged as well as the user.
    ledger : str, optional
        URL of the database with the budget; by default, the ledger in the index's folder.
    unit, counted : {'patient', 'note'}, optional
        What is protected, and what is counted.
    by : str, optional
        Quasi-identifier to count by.
    most : int, optional
        Largest number of values of `by` for which one patient is counted.
    mechanism : {'geometric', 'laplace'}, optional
        Distribution of the noise.
    **conditions : str
        Quasi-identifiers, each with a value, a range `a..b` or a prefix `a*`: `when="2009-04..2009-06", zip="1230*"`.

    Returns
    -------
    Answer
        Noisy count with its interval, cost and remaining budget.

    Raises
    ------
    BadInput
        The question, the index or the ledger is wrong; nothing was answered.
    BudgetSpent
        The budget does not suffice; nothing was charged.

    Examples
    --------
    >>> import leeward as lw
    >>> import polars as pl
    >>> terms = [["fever"], ["cough"], ["fever"], ["cough"]]
    >>> notes = pl.DataFrame({"patient": [1, 1, 2, 3], "terms": terms})
    >>> made = lw.index(notes, "counts", epsilon_total=5, about_patients=3)
    >>> lw.query("counts", "fever", epsilon=1)
    <Answer LW0001: ..., 95 % within ± 3; epsilon 1 a patient; remaining 4>
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
    """Return the budget of an index and what was spent; change allotments.

    Parameters
    ----------
    index : str or Path
        Folder of the index.
    allot, allot_project : mapping of str to float, optional
        Largest epsilon that each user, or project, may spend: below the cap of all, and not below what was spent.
    move_to : str, optional
        URL of a database to which the budget is moved first, with everything that was spent.
    accept_restored : str, optional
        Reason to continue with an older copy of the ledger; the log keeps it.
    ledger : str, optional
        URL of the database with the budget; by default, the ledger in the index's folder.

    Returns
    -------
    dict
        `total`, `spent`, `remaining`, `allotments` …, as `leeward budget --json` prints them.

    Raises
    ------
    BadInput
        The ledger cannot be reached, or an allotment is wrong.

    Examples
    --------
    >>> import leeward as lw
    >>> import polars as pl
    >>> terms = [["fever"], ["cough"], ["fever"], ["cough"]]
    >>> notes = pl.DataFrame({"patient": [1, 1, 2, 3], "terms": terms})
    >>> made = lw.index(notes, "counts", epsilon_total=5, about_patients=3)
    >>> found = lw.budget("counts", allot={"ann": 1})
    >>> found["total"], found["spent"], found["remaining"]
    (5.0, 0.0, 5.0)
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
    """Check the ledger of an index: its chain of hashes, accounts, caps and stored answers.

    Parameters
    ----------
    index : str or Path
        Folder of the index.
    expect : str, optional
        Hash that an earlier audit printed as `head`.
    ledger : str, optional
        URL of the database with the budget; by default, the ledger in the index's folder.

    Returns
    -------
    Audit
        Every check. A failed check is not an error: see `passed`.

    Raises
    ------
    BadInput
        The index or its ledger cannot be read.

    Examples
    --------
    >>> import leeward as lw
    >>> import polars as pl
    >>> terms = [["fever"], ["cough"], ["fever"], ["cough"]]
    >>> notes = pl.DataFrame({"patient": [1, 1, 2, 3], "terms": terms})
    >>> made = lw.index(notes, "counts", epsilon_total=5, about_patients=3)
    >>> lw.audit("counts").passed
    True
    """
    session = open_session(index, ledger, checked=False)
    return auditing.audit(session.ledger, session.index.meta.id, expect)


def login_name() -> str:
    """Login name of the current user; BadInput if the system does not know it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise BadInput("The system does not say who asks; give a name with --user.") from None
