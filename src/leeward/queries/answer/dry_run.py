"""Answers from the synthetic twin: the real price, the real mechanism, made-up counts; nothing is charged."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from leeward.queries.answer.charged_query import Answer, noisy_values, price_of
from leeward.queries.answer.plan import IndexSession, Plan
from leeward.queries.index.build import index_table
from leeward.queries.index.counts import Index
from leeward.queries.index.store import Qid
from leeward.queries.language.query import EXACT, Predicate, Query
from leeward.queries.language.vocabulary import Terms, Vocabulary
from leeward.queries.ledger import spending
from leeward.randomness import Randomness


def dry_run_answers(
    session: IndexSession, plans: Sequence[Plan], user: str, project: str | None = None
) -> list[Answer]:
    """Like `answer_plans`, on the twin and without a charge. `cost` is the question's price."""
    left = spending.left(session.ledger, session.index.meta.id, user, project).user
    with tempfile.TemporaryDirectory() as folder:
        index = make_synthetic_index(session.index, [plan.query for plan in plans], Path(folder) / "twin")
        values = noisy_values(index, plans)
    costs: dict[str, int] = {}
    for plan in plans:
        costs.setdefault(plan.key, price_of(session, [plan], user, project)[0])
    return [
        Answer.from_noisy(plan, noisy, cost=costs.pop(plan.key, 0), remaining=left, terms=session.terms)
        for plan, noisy in zip(plans, values, strict=True)
    ]


PATIENTS: Final = 1000
NOTES: Final = 2
"""Notes of a patient, where patients have several."""
OTHER_TERMS: Final = 3
"""Terms of a note besides the queried ones."""
SEED: Final = 20090413


def make_synthetic_index(index: Index, queries: Sequence[Query], folder: Path) -> Index:
    """Write the twin of an index into `folder` (which must not exist) and open it."""
    notes = 1 if index.meta.max_rows_per_patient == 1 else NOTES
    rows = PATIENTS * notes
    stream = Randomness.of(SEED).stream("twin")
    terms = _terms(index.terms, queries, stream, rows)
    columns = [pl.Series("patient", np.arange(rows) // notes), pl.Series("terms", terms, pl.List(pl.String))]
    conditions = [condition for query in queries for condition in query.predicates]
    for qid in index.meta.qids:
        values = _values(index, qid, conditions)
        column = pl.Series(qid.name, values)[stream.integers(0, len(values), rows)]
        if qid.kind == "month":
            column = (column + "-01").str.to_date()
        columns.append(column.cast(pl.Int64) if qid.kind == "integer" else column)
    domains = {qid.name: qid.domain for qid in index.meta.qids if qid.domain is not None}
    return index_table(
        pl.DataFrame(columns), folder, terms=index.terms, domains=domains, synthetic=True
    ).index


def _terms(
    vocabulary: Vocabulary, queries: Sequence[Query], stream: np.random.Generator, rows: int
) -> list[list[str]]:
    """Each note's terms: those of the vocabulary's list, the first ones more often, and in half of the notes one that a
    query's name stands for."""
    pool = vocabulary.terms if isinstance(vocabulary, Terms) else ()
    drawn = (stream.random((rows, OTHER_TERMS if pool else 0)) ** 3 * len(pool)).astype(np.int64)
    found = [[pool[i] for i in row] for row in drawn.tolist()]
    for name in sorted({name for query in queries for name in query.names}):
        member = min(vocabulary.expand(name, pool), default=name.removeprefix(EXACT))
        for row in np.flatnonzero(stream.random(rows) < 0.5).tolist():
            found[row].append(member)
    return found


def _values(index: Index, qid: Qid, conditions: Sequence[Predicate]) -> tuple[str, ...]:
    """Values that the index admits: its public domain, or a few plausible values and the queried ones."""
    domain = index.domain(qid.name)
    if domain is not None:
        return domain
    own = [each for each in conditions if each.qid == qid.name]
    asked = tuple(end for each in own for end in (each.low, each.high) if end)
    if qid.kind == "text":
        return (*asked, "a", "b", "c")
    numbers = range(12 * 2020, 12 * 2021) if qid.kind == "month" else range(0, 100, 5)
    return (*asked, *map(qid.text_of, numbers))
