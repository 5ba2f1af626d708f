"""Answers from the synthetic twin: the real price, the real mechanism, made-up counts; nothing is charged."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from leeward.queries import ledger as books
from leeward.queries.answer.charged_query import Answer, noisy_values, price_of
from leeward.queries.answer.plan import Plan
from leeward.queries.answer.session import IndexSession
from leeward.queries.answer.synthetic_index import make_synthetic_index


def dry_run_answers(
    session: IndexSession, plans: Sequence[Plan], user: str, project: str | None = None
) -> list[Answer]:
    """As `answer_plans`, over the twin and without the books. `cost` is what the question would take."""
    left = books.left(session.ledger, session.index.meta.id, user, project).user
    with tempfile.TemporaryDirectory() as folder:
        index = make_synthetic_index(session.index, [plan.query for plan in plans], Path(folder) / "twin")
        values = noisy_values(index, plans)
    costs: dict[str, int] = {}
    for plan in plans:
        costs.setdefault(plan.key, price_of(session, [plan], user, project)[0])
    return [
        Answer.shown(plan, noisy, cost=costs.pop(plan.key, 0), remaining=left, terms=session.terms)
        for plan, noisy in zip(plans, values, strict=True)
    ]
