"""Averaging, differencing and asking on: no better than epsilon allows at the product's desk, right at a weak one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.attacks.queries import Ask, averaging, differencing, until_refused
from tests.queries.made import question, session_of

from leeward.queries.answer.charged_query import answer_all
from leeward.queries.answer.plan import IndexSession
from leeward.queries.language.vocabulary import Terms
from leeward.queries.ledger.spending import BudgetSpent

TARGETS = 40
EPSILON = 0.5
TERMS = Terms(("cough", "fever", *(f"term {n}" for n in range(12))))


def notes() -> pl.DataFrame:
    """A zip code for each target, with two other patients; every second target is there."""
    rows = []
    for target in range(TARGETS):
        zip_code = f"{10000 + target}"
        here = [("x", "f"), ("y", "m"), *([("target", "f")] if target % 2 else [])]
        rows += [(f"{who}-{target}", "2009-04", 30, gender, zip_code) for who, gender in here]
    columns = ["patient", "visit_month", "age", "gender", "zip"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return frame.with_columns(terms=pl.lit(["cough", "fever"]), note=pl.int_range(pl.len()))


def desk(session: IndexSession) -> Ask:
    def ask(text: str, conditions: Mapping[str, str]) -> float | None:
        try:
            (found,) = answer_all(session, [question(text.lower(), EPSILON, **conditions)], "ann")
        except BudgetSpent:
            return None
        return float(found.values[0])

    return ask


def weak(seed: int) -> Ask:
    """Fresh noise for each question, nothing charged."""
    draw = np.random.Generator(np.random.Philox(seed))
    p = 1 - math.exp(-EPSILON)

    def ask(text: str, conditions: Mapping[str, str]) -> float | None:
        target = int(conditions["zip"]) - 10000
        there = 2 + target % 2
        of_gender = {"f": 1 + target % 2, "m": 1}
        true = of_gender[conditions["gender"]] if "gender" in conditions else there
        return float(true + draw.geometric(p) - draw.geometric(p))

    return ask


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> IndexSession:
    return session_of(notes(), tmp_path_factory.mktemp("desk") / "index", epsilon=1_000, terms=TERMS, rows=1)


def right(guesses: list[bool]) -> float:
    return sum(guess == bool(target % 2) for target, guess in enumerate(guesses)) / TARGETS


def allowed(epsilon: float) -> float:
    """How often a guess at one bit can be right."""
    return math.exp(epsilon) / (1 + math.exp(epsilon))


def bound(epsilon: float) -> float:
    """The most that epsilon allows, and three standard errors."""
    most = allowed(epsilon)
    return most + 3 * math.sqrt(most * (1 - most) / TARGETS)


def test_averaging_equivalent_questions_gains_nothing(session: IndexSession) -> None:
    def guesses(ask: Ask, times: int) -> list[bool]:
        return [
            averaging(ask, "cough", "fever", {"zip": f"{10000 + t}"}, times) > 2.5 for t in range(TARGETS)
        ]

    assert right(guesses(desk(session), 4)) <= bound(EPSILON)
    assert right(guesses(weak(1), 400)) == 1


def test_differencing_gains_no_more_than_what_was_paid(session: IndexSession) -> None:
    def guesses(ask: Ask) -> list[bool]:
        return [
            differencing(ask, "cough", {"zip": f"{10000 + t}"}, "gender", ("f", "m"), 2)
            for t in range(TARGETS)
        ]

    assert right(guesses(desk(session))) <= bound(2 * EPSILON)  # the target is in the whole and in one part
    many = weak(2)
    averaged: Ask = lambda text, where: sum(many(text, where) or 0 for _ in range(400)) / 400  # noqa: E731
    assert right(guesses(averaged)) == 1


def test_the_budget_ends(tmp_path: Path) -> None:
    small = session_of(notes(), tmp_path / "index", epsilon=2, terms=TERMS, rows=1)
    asked = [f"term {n}" for n in range(12)]
    assert until_refused(desk(small), asked, {"zip": "10001"}) == 2 / EPSILON
    assert (
        until_refused(desk(small), asked[:4], {"zip": "10001"}) == 4
    )  # stored answers cost nothing, and say the same
