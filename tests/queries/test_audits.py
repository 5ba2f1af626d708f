"""Audits of the whole query path that can fail: each is shown to catch a planted bug.

Noise cannot be seeded, so an audit errs on a sound build with the probability that its significance says, one in a
million.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from scipy import stats
from tests.queries.made import DOMAINS, FIVE_NOTES, TERMS, five_notes, question, session_of, table

from leeward.errors import LeewardError
from leeward.queries.answer import charged_query as answering
from leeward.queries.answer import plan as planning
from leeward.queries.answer.charged_query import answer_all
from leeward.queries.answer.plan import IndexSession, Plan, Question, plan_query
from leeward.queries.index.counts import Index
from leeward.queries.language.query import Query
from leeward.queries.language.vocabulary import Terms
from leeward.queries.ledger import auditing, spending
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.accounting import micro

TREE = Path(__file__).resolve().parents[2]
ONE_IN_A_MILLION = 1e-6


# -- a targeted audit: two data sets that differ in one patient with four notes ----

EPSILON = 1.0
RUNS = 900
NOTES = 4
OTHERS = [(f"p{i}", f"2009-{i % 12 + 1:02d}", 30, "F", "12301", "fever, cough") for i in range(20)]
PATIENT = [("target", f"2009-{month:02d}", 9, "F", "12301", "fever") for month in range(1, NOTES + 1)]


def epsilon_bound(high: Sequence[float], low: Sequence[float], threshold: float) -> float:
    """A lower bound of ε, wrong once in a million: how much likelier an answer of at least `threshold` is with the
    patient than without, or one below it without than with (Clopper–Pearson for both rates)."""

    def bounds(hits: int, runs: int) -> tuple[float, float]:
        alpha = ONE_IN_A_MILLION / 4
        lower = float(stats.beta.ppf(alpha, hits, runs - hits + 1)) if hits else 0.0
        upper = float(stats.beta.ppf(1 - alpha, hits + 1, runs - hits)) if hits < runs else 1.0
        return lower, upper

    with_patient = sum(value >= threshold for value in high)
    without = sum(value >= threshold for value in low)
    ratios = [
        bounds(with_patient, len(high))[0] / bounds(without, len(low))[1],
        bounds(len(low) - without, len(low))[0] / bounds(len(high) - with_patient, len(high))[1],
    ]
    return math.log(max(*ratios, 1e-300))


@pytest.fixture
def asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A salt in every key: the same question is charged, drawn and counted each time, as if it had not been asked."""
    monkeypatch.setattr(planning, "digest", lambda text: os.urandom(16).hex())


def audited(folder: Path, **options: Any) -> float:
    """The bound for one kind of question, over the whole path: index, ledger, noise, count, store.

    Of a histogram the smallest of its four bins is looked at: the patient is in all of them.
    """
    values = []
    for name, rows in (("with", OTHERS + PATIENT), ("without", OTHERS)):
        session = session_of(table(rows), folder / name, epsilon=RUNS * EPSILON + 1, rows=NOTES)
        found = answer_all(session, [question("fever", EPSILON, **options)] * RUNS, "auditor")
        assert sum(each.cost for each in found) == RUNS * micro(EPSILON)
        values.append([float(min(value or 0 for value in each.values)) for each in found])
    least = (
        len(OTHERS) if "by" not in options else len(OTHERS) // 10
    )  # two of them in each of the four months
    return max(epsilon_bound(*values, threshold) for threshold in (least + 1, least + NOTES))


PATHS: dict[str, dict[str, Any]] = {
    "patients": {},
    "notes of protected patients": {"counted": "note"},
    "patients by month": {"by": "when", "when": "2009-01..2009-04"},
    "Laplace": {"mechanism": "laplace"},
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.usefixtures("asked_anew")
def test_the_targeted_audit_finds_no_more_than_was_paid(tmp_path: Path, path: str) -> None:
    bound = audited(tmp_path, **PATHS[path])
    assert bound <= EPSILON
    if path == "patients":
        assert bound > EPSILON / 3  # the audit sees the mechanism at all


@pytest.mark.parametrize("path", ["notes of protected patients", "patients by month"])
@pytest.mark.usefixtures("asked_anew")
def test_the_targeted_audit_catches_sensitivity_by_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Planted: sensitivity 1 whatever is counted, as in the paper, where a record is a document."""
    monkeypatch.setattr(mechanism, "sensitivity", lambda **asked: 1)
    assert audited(tmp_path, **PATHS[path]) > EPSILON


@pytest.mark.usefixtures("asked_anew")
def test_the_targeted_audit_catches_counts_of_notes_sold_as_patients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = Index.count
    monkeypatch.setattr(Index, "count", lambda index, query, unit: true(index, query, "note"))
    assert audited(tmp_path) > EPSILON


@pytest.mark.usefixtures("asked_anew")
def test_the_targeted_audit_catches_half_the_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true = mechanism.draw
    monkeypatch.setattr(
        mechanism, "draw", lambda noise, size: true(replace(noise, epsilon=4 * noise.epsilon), size)
    )
    assert audited(tmp_path) > EPSILON


# -- averaging gains nothing ----

EQUIVALENT: list[tuple[str, dict[str, str]]] = [
    ("sore throat & fever", {"when": "2009-04..2009-06", "zip": "1230*"}),
    ("fever & sore throat", {"zip": "1230*", "when": "2009-04..2009-06"}),
    ("  Fever&SORE   throat & fever", {"when": "2009-4 .. 2009-06", "zip": " 1230* "}),
    ("fever & sore throat", {"when": "2009-04..2009-06", "zip": "1230*", "age": "*"}),
]


def distinct(session: IndexSession, questions: Sequence[Question]) -> int:
    """How many different answers somebody gets who asks all of them, one after the other."""
    return len({answer_all(session, [each], f"user {i % 3}")[0].values for i, each in enumerate(questions)})


def test_repeats_and_other_words_gain_nothing(tmp_path: Path) -> None:
    session = session_of(five_notes(), tmp_path / "index")
    asked = [question(text, 0.01, **conditions) for text, conditions in EQUIVALENT * 5]
    assert distinct(session, asked) == 1
    assert spending.left(session.ledger, session.index.meta.id, "ann").user == micro(5) - micro(0.01)


@pytest.mark.parametrize(
    "ways",
    [
        [{"when": "2009"}, {"when": "2009-01..2009-12"}, {"when": "2009-*"}, {"when": "2008-06..2010-02"}],
        [{"age": "0..99"}, {"age": "0..500"}],  # not the same as no condition: a note may have no age
        [{"gender": "F"}, {"gender": " f "}, {"gender": "f*"}],
        [{"when": "2009-04"}, {"when": "2009-4..2009-04"}],
    ],
)
def test_equivalent_conditions_gain_nothing(tmp_path: Path, ways: list[dict[str, str]]) -> None:
    session = session_of(five_notes(), tmp_path / "index")
    assert distinct(session, [question("fever", 0.01, **way) for way in ways * 2]) == 1
    assert spending.left(session.ledger, session.index.meta.id, "ann").user == micro(5) - micro(0.01)


def test_another_answer_is_another_charge(tmp_path: Path) -> None:
    """Questions that only happen to have the same count are paid each: never more answers than charges."""
    session = session_of(five_notes(), tmp_path / "index")
    asked = [question(text, 0.01) for text in ("fever", "sore throat", "fever & sore throat")]
    asked += [
        question("fever", 0.01, age="0..99"),
        question("fever", 0.02),
        question("fever", 0.01, unit="note"),
    ]
    costs = [answer_all(session, [each], "ann")[0].cost for each in asked]
    assert costs == [micro(price) for price in (0.01, 0.01, 0.01, 0.01, 0.02, 0.04)]


def salted(value: dict[str, Any]) -> str:
    return json.dumps(value) + (os.urandom(8).hex() if "query" in value else "")


PLANTED: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "no canonical form": (Query, "canonical", lambda query: repr(query) + os.urandom(8).hex()),
    "a key that is never found again": (planning, "digest", lambda text: os.urandom(8).hex()),
    "a question that is never the same": (planning, "text_of", salted),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_the_repeats_catch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    session = session_of(five_notes(), tmp_path / "index")
    monkeypatch.setattr(*PLANTED[bug])
    asked = [question(text, 0.01, **conditions) for text, conditions in EQUIVALENT * 2]
    assert distinct(session, asked) > 1


def test_one_question_of_many_clients_at_once_has_one_answer(tmp_path: Path) -> None:
    session = session_of(five_notes(), tmp_path / "index")

    def client(number: int) -> tuple[Any, ...]:
        text, conditions = EQUIVALENT[number % len(EQUIVALENT)]
        return answer_all(session, [question(text, 0.01, **conditions)], f"user {number}")[0].values

    with ThreadPoolExecutor(30) as threads:
        assert len(set(threads.map(client, range(60)))) == 1
    assert spending.left(session.ledger, session.index.meta.id, "ann").user == micro(5) - micro(0.01)
    assert auditing.audit(session.ledger, session.index.meta.id).passed


# -- refusals do not depend on the data ----

ASKED: list[tuple[str, dict[str, Any]]] = [
    ("fever", {}),
    ("joint pain", {}),
    ("cough & chills", {"when": "2009-11"}),
    ("plague", {}),
    ("fever", {"age": "88"}),
    ("fever", {"age": "101"}),
    ("fever", {"zip": "99999"}),
    ("fever", {"gender": "x"}),
    ("fever", {"hospital": "a"}),
    ("fever", {"by": "when"}),
    ("fever", {"by": "age", "age": "85..90"}),
    ("fever", {"by": "zip"}),
    ("fever", {"when": "2009-13"}),
    ("fever", {"when": "2009-05..2009-04"}),
    ("fever", {"zip": "1*1"}),
    ("fever", {"epsilon": 4.5}),
    ("chills", {"counted": "note"}),
]


def reactions(session: IndexSession) -> list[str]:
    """What somebody sees who looks only at whether and how a question is refused."""
    seen = []
    for text, options in ASKED:
        try:
            (found,) = answer_all(session, [question(text, **{"epsilon": 0.1, **options})], "ann")
            seen.append(f"{len(found.values)} values")
        except LeewardError as refusal:
            seen.append(f"{type(refusal).__name__}: {refusal}".replace(str(session.index.path), "INDEX"))
    return seen


NEIGHBOURS = {
    "all": five_notes(),
    "without the man of 88": five_notes()[:4],
    "without the joint pain": five_notes().filter(pl.col("note") != 3),
    "one note": five_notes()[:1],
}


def test_refusals_do_not_depend_on_the_data(tmp_path: Path) -> None:
    found = {name: reactions(session_of(notes, tmp_path / name)) for name, notes in NEIGHBOURS.items()}
    first = found["all"]
    assert all(each == first for each in found.values())
    assert sum(": " in reaction for reaction in first) == 8
    assert first[1] == first[0] == "1 values"


def test_refusals_catch_a_vocabulary_from_the_data(tmp_path: Path) -> None:
    """Planted: terms are what the notes hold."""
    held = {
        name: Terms(tuple({t for row in notes["terms"] for t in row})) for name, notes in NEIGHBOURS.items()
    }
    found = [reactions(session_of(n, tmp_path / name, terms=held[name])) for name, n in NEIGHBOURS.items()]
    assert found[0] != found[1]


def test_refusals_do_not_depend_on_the_data_without_a_vocabulary_either(tmp_path: Path) -> None:
    found = [reactions(session_of(notes, tmp_path / name, terms=None)) for name, notes in NEIGHBOURS.items()]
    assert all(each == found[0] for each in found)


def test_refusals_catch_the_papers_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: answer only what passes an exact minimum support."""
    true = plan_query

    def gated(session: IndexSession, asked: Question) -> Plan:
        plan = true(session, asked)
        if session.index.count(plan.query) < 2:
            raise LeewardError("below the minimum support")
        return plan

    monkeypatch.setattr(answering, "plan_query", gated)
    found = [reactions(session_of(notes, tmp_path / name)) for name, notes in NEIGHBOURS.items()]
    assert any(each != found[0] for each in found[1:])


# -- kill −9 ----


def shown_and_kept(folder: Path, kills: int, *planted: str) -> tuple[list[str], IndexSession]:
    """What of the answers that were shown is not in the ledger as it was shown; and the session, opened again."""
    session = session_of(five_notes(), folder / "index", epsilon=1000, terms=TERMS)
    shown = folder / "shown.jsonl"
    program = str(Path(__file__).with_name("killed.py"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TREE), str(TREE / "src")])}
    session.ledger.engine.dispose()
    subprocess.run(
        [sys.executable, program, str(session.index.path), str(kills), str(shown), *planted],
        check=True,
        env=environment,
        timeout=300,
    )
    faults = []
    lines = shown.read_text(encoding="utf-8").splitlines()
    assert len(lines) > 10
    for line in lines:
        key, values = json.loads(line)
        payload = spending.find_answer(session.ledger, session.index.meta.id, key)
        if payload is None:
            faults.append("shown, not stored")
        elif json.loads(payload)["values"] != values:
            faults.append("shown, and another answer stored")
    return faults, session


def test_killed_anywhere_nothing_is_shown_that_was_not_charged(tmp_path: Path) -> None:
    faults, session = shown_and_kept(tmp_path, 40)
    assert faults == []
    found = auditing.audit(session.ledger, session.index.meta.id)
    assert found.passed, found
    waiting = [check.detail for check in found.checks if check.name == "answers"]
    assert "; 0 paid and not answered" not in waiting[0]  # some died between charge and answer
    assert answer_all(session, [question("fever", 0.001)], "ann")  # and the ledger goes on


def test_the_kills_catch_an_answer_shown_before_it_is_stored(tmp_path: Path) -> None:
    faults, _ = shown_and_kept(tmp_path, 24, "planted")
    assert faults


def test_the_domains_of_these_tests_are_declared() -> None:
    assert set(DOMAINS) == {"when", "age", "gender"}
    assert len(FIVE_NOTES) == 5
