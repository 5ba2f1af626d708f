"""One call for one question, as the library offers it: `lw.query`."""

from __future__ import annotations

import getpass
from pathlib import Path

from leeward.errors import BadInput
from leeward.queries.answer.charged_query import Answer, Question, answered, open_desk
from leeward.queries.language.query import parse
from leeward.queries.privacy.accounting import micro
from leeward.queries.privacy.mechanism import Kind, Unit


def query(
    index: str | Path,
    terms: str,
    /,
    *,
    epsilon: float | str,
    user: str | None = None,
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

    Parameters
    ----------
    epsilon
        The price: the larger, the less noise. The same question asked again costs nothing.
    user
        Who asks; the login name by default.
    ledger
        URL of the database with the budget; by default the ledger in the index's folder.
    unit, counted
        What is protected, and what is counted: 'patient' or 'note'.
    by, most
        A quasi-identifier for a histogram, and in how many of its bins one patient may count.
    conditions
        Quasi-identifier -> a value, a range `a..b` or a beginning `a*`.

    Raises
    ------
    BadInput
        The question, the index or the ledger is wrong; nothing was answered.
    BudgetSpent
        The budget does not pay for it; nothing was charged.
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
    (found,) = answered(open_desk(index, ledger), [asked], user if user is not None else login_name())
    return found


def login_name() -> str:
    """Who is logged in; BadInput where the system does not know."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise BadInput("The system does not say who asks; give a name with --user.") from None
