"""What an answer costs people, in words: from the ε that was paid, never a fixed sentence."""

from __future__ import annotations

import math

from leeward.queries.answer.plan import IndexSession, Plan, drowned
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.accounting import MICRO, to_epsilon


def times(micros: int) -> str:
    """e^ε as people say it: `at most 1.17 times as likely`."""
    factor = mechanism.likelihood(micros)
    return "more than a million times as likely" if factor > 1e6 else f"at most {factor:,.5g} times as likely"


def certainty(micros: int) -> str:
    """What a chance of a half grows to at most: odds grow by e^ε."""
    percent = math.ceil(100 / (1 + math.exp(-micros / MICRO)))
    return "as good as certain" if percent >= 100 else f"at most {percent} % sure"


def of_answer(epsilon: int, unit: str) -> str:
    """What one answer at `epsilon` (micro-ε) says about one patient, or note."""
    return (
        f"This answer is {times(epsilon)} with any one {unit} in the data as without, and the reverse, whatever else "
        f"its reader knows. Who held it for as likely as not that a certain {unit} is in the data can be "
        f"{certainty(epsilon)} after it."
    )


def of_project(epsilon: int, unit: str, delta: float | None) -> str:
    """The same of all that a project paid for an index."""
    but = "" if delta is None else f", but for a chance of {delta:g}"
    return (
        f"All that this project paid for here, ε {to_epsilon(epsilon):g}, is together {times(epsilon)} with any one "
        f"{unit} as without{but}: {certainty(epsilon)}. Stored answers that it got for nothing come on top."
    )


def warning_of(session: IndexSession, plan: Plan) -> str:
    """What to think of before this is paid; empty where there is nothing."""
    width = mechanism.half_width(plan.noise)
    if drowned(session, plan):
        return (
            f"The noise, ± {width:,.4g}, is larger than what it may measure: such an answer says nothing. Ask for a "
            "smaller ±, or do not ask."
        )
    if width < 1:
        return (
            "This is the exact count in 95 of 100 cases, and exact counts betray people: the answer is "
            f"{times(plan.noise.epsilon)} with any one {plan.unit} as without. Ask for ± 5 if that is enough."
        )
    return ""
