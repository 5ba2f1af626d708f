"""Indexes with their ledgers, for the tests of answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from leeward.queries.answer.plan import IndexSession, Question, open_session
from leeward.queries.index.build import index_table
from leeward.queries.language.query import parse
from leeward.queries.language.vocabulary import Terms
from leeward.queries.ledger import budgets, opening
from leeward.queries.ledger.budgets import DataSet
from leeward.queries.privacy.accounting import Budget, micro

FIVE_NOTES = [
    ("2009-04", 24, "M", "12301", "sore throat, fever, headache, fatigue"),
    ("2009-04", 9, "F", "12301", "runny nose, sore throat, fever, headache"),
    ("2009-04", 9, "F", "12301", "runny nose, sore throat, diarrhea, fever"),
    ("2009-05", 17, "F", "12302", "fever, joint pain, nausea, sore throat"),
    ("2009-06", 88, "M", "12302", "chills, body pain, sore throat, fatigue, fever"),
]
"""Figure 3 of Li & Qin 2017."""

TERMS = Terms(tuple(sorted({term for *_, text in FIVE_NOTES for term in text.split(", ")} | {"cough"})))
"""A public vocabulary: what is in the notes, and a term that is in none."""

DOMAINS = {"when": ("2009-01", "2009-12"), "age": ("0", "99"), "gender": ("f", "m")}


def table(rows: list[tuple[str, str, int, str, str, str]]) -> pl.DataFrame:
    """A table of notes from (patient, month, age, gender, zip, terms)."""
    columns = ("patient", "visit_month", "age", "gender", "zip", "terms")
    data: dict[str, Any] = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    data["terms"] = [text.split(", ") for text in data["terms"]]
    return pl.DataFrame({"note": list(range(len(rows))), **data})


def five_notes() -> pl.DataFrame:
    return table([(f"canary-{i}", *note) for i, note in enumerate(FIVE_NOTES)])


def session_of(
    notes: pl.DataFrame,
    folder: Path,
    *,
    epsilon: float = 5,
    rows: int | None = 4,
    url: str | None = None,
    terms: Terms | None = TERMS,
    data_set: str | None = None,
    about: int | None = None,
    **budget: Any,
) -> IndexSession:
    """Index a table, open its ledger and give it a budget."""
    index = index_table(
        notes, folder, terms=terms, domains=DOMAINS, max_rows_per_patient=rows, about_patients=about
    ).index
    ledger = opening.make_ledger(url or folder, folder)
    budget.setdefault("default_allotment", "all")
    own = {name: budget.pop(name) for name in ("accounting", "delta") if name in budget}
    budgets.register(
        ledger, DataSet(id=index.meta.id, budget=Budget(epsilon=micro(epsilon), **own), **budget)
    )
    return open_session(folder, url)


def question(text: str, epsilon: float | str = 0.5, **options: Any) -> Question:
    """A question; conditions are given as `when=`, `zip=`, ..."""
    own = {name: options.pop(name) for name in tuple(options) if name in Question.__dataclass_fields__}
    return Question(query=parse(text, options), epsilon=micro(epsilon), **own)
