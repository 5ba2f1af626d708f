"""A charged query from its words to its answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.queries.made import TERMS, five_notes, question, session_of, table

from leeward.errors import BadInput
from leeward.queries.answer.charged_query import Answer, answer_all, charge, price_of
from leeward.queries.answer.dry_run import dry_run_answers
from leeward.queries.answer.plan import IndexSession, open_session, plan_query
from leeward.queries.index.counts import Index
from leeward.queries.ledger import auditing, budgets, opening, spending
from leeward.queries.ledger.opening import LedgerUnreachable
from leeward.queries.ledger.spending import BudgetSpent
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.accounting import micro

SORE = "sore throat & fever"


@pytest.fixture
def session(tmp_path: Path) -> IndexSession:
    return session_of(five_notes(), tmp_path / "index")


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No noise: tests alone may do that."""
    monkeypatch.setattr(mechanism, "draw", lambda noise, size: [0] * size)


def one(session: IndexSession, text: str = SORE, user: str = "ann", **options: Any) -> Answer:
    (found,) = answer_all(session, [question(text, **options)], user)
    return found


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"when": "2009-04", "age": "9", "gender": "F", "zip": "12301"}, 2),
        ({"when": "2009-04", "zip": "12301"}, 3),
        ({"when": "2009-04..2009-06", "zip": "1230*"}, 5),
    ],
)
def test_the_three_counts_of_the_paper(
    session: IndexSession, silent: None, conditions: dict[str, str], expected: int
) -> None:
    assert one(session, **conditions).values == (expected,)


def test_an_answer_says_what_it_is(session: IndexSession) -> None:
    found = one(session, when="2009-04..2009-06", zip="1230*").to_json()
    assert found["interval"] == [max(0, found["answer"] - 6), max(0, found["answer"] + 6)]
    assert {name: found[name] for name in ("epsilon", "unit", "counted", "sensitivity", "cost", "remaining")} == {
        "epsilon": 0.5, "unit": "patient", "counted": "patient", "sensitivity": 1, "cost": 0.5, "remaining": 4.5,
    }  # fmt: skip
    assert found["expected_error"] == pytest.approx(1.9190, abs=5e-5)
    assert not found["stored"]


def test_the_order_that_protects(session: IndexSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reserved, drawn, read, stored: in no other order."""
    happened: list[str] = []

    def noted(module: Any, name: str) -> None:
        true: Callable[..., Any] = getattr(module, name)

        def spy(*args: Any, **kwargs: Any) -> Any:
            happened.append(name)
            return true(*args, **kwargs)

        monkeypatch.setattr(module, name, spy)

    for module, name in ((spending, "reserve"), (mechanism, "draw"), (Index, "count"), (spending, "store")):
        noted(module, name)
    answer_all(session, [question(SORE), question("fever")], "ann")
    assert happened == ["reserve", "draw", "draw", "count", "count", "store"]


def test_what_fails_on_the_way_is_charged_and_taken_up_later(
    session: IndexSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Index, "count", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            one(session)
    assert spending.left(session.ledger, session.index.meta.id, "ann").anybody == micro(4.5)
    again = one(session)
    assert (again.cost, again.remaining) == (0, micro(4.5))


def test_a_refused_query_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(five_notes(), tmp_path / "index", epsilon=0.1)
    monkeypatch.setattr(Index, "count", lambda *args: pytest.fail("the data were read"))
    monkeypatch.setattr(mechanism, "draw", lambda *args: pytest.fail("noise was drawn"))
    with pytest.raises(BudgetSpent):
        one(session)


def test_without_its_ledger_nothing_is_answered(
    session: IndexSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Index, "count", lambda *args: pytest.fail("the data were read"))
    folder = Path(session.index.path)
    session.ledger.engine.dispose()
    for file in folder.glob("ledger.db*"):
        file.unlink()
    with pytest.raises(LedgerUnreachable):
        open_session(folder)
    with pytest.raises(LedgerUnreachable):  # the one that was open when it went away
        one(session)


@pytest.mark.parametrize(
    ("options", "change", "price"),
    [
        ({}, 1, 0.5),
        ({"counted": "note"}, 4, 0.5),
        ({"unit": "note"}, 1, 2.0),
        ({"unit": "note", "counted": "patient"}, 1, 2.0),
        ({"by": "when", "when": "2009-04..2009-06"}, 3, 0.5),
        ({"by": "when", "when": "2009"}, 4, 0.5),
        ({"by": "when", "when": "2009", "most": 2}, 2, 0.5),
        ({"by": "when", "when": "2009", "counted": "note"}, 4, 0.5),
        ({"by": "when", "when": "2009", "counted": "note", "most": 1}, 1, 0.5),
        ({"by": "gender", "unit": "note"}, 2, 2.0),
    ],
)
def test_sensitivity_and_price(
    session: IndexSession, options: dict[str, Any], change: int, price: float
) -> None:
    """Four notes a patient are kept; the budget protects patients, so a note's protection costs four times."""
    plan = plan_query(session, question(SORE, **options))
    assert (plan.noise.sensitivity, plan.price) == (change, micro(price))


def test_a_budget_for_notes_charges_a_note_once(tmp_path: Path) -> None:
    session = session_of(five_notes(), tmp_path / "index", unit="note")
    assert plan_query(session, question(SORE, unit="note")).price == micro(0.5)
    assert plan_query(session, question(SORE)).price == micro(0.5)


def test_notes_of_unbounded_patients_are_not_counted(tmp_path: Path) -> None:
    session = session_of(five_notes(), tmp_path / "index", rows=None)
    assert plan_query(session, question(SORE)).noise.sensitivity == 1
    for options in ({"unit": "note"}, {"counted": "note"}):
        with pytest.raises(BadInput, match="does not bound how many rows"):
            plan_query(session, question(SORE, **options))


# -- histograms ----


def test_a_histogram_for_one_price(session: IndexSession, silent: None) -> None:
    found = one(session, by="when", when="2009-03..2009-06")
    assert found.to_json()["answer"] == {"2009-03": 0, "2009-04": 3, "2009-05": 1, "2009-06": 1}
    assert found.cost == micro(0.5)
    assert found.half_width < found.half_width_of_all
    assert found.total is not None and found.total[0] == 5
    assert found.total[1] == [0, 5 + mechanism.half_width_of_sum(found.plan.noise, 4)]


def test_bins_come_from_what_is_public(session: IndexSession) -> None:
    assert plan_query(session, question(SORE, by="when")).bins == tuple(
        f"2009-{month:02d}" for month in range(1, 13)
    )
    assert plan_query(session, question(SORE, by="gender")).bins == ("f", "m")
    assert plan_query(session, question(SORE, by="age", age="80..89")).bins == tuple(map(str, range(80, 90)))
    assert plan_query(session, question(SORE, by="zip", zip="12301")).bins == ("12301",)
    for options in ({"by": "zip"}, {"by": "zip", "zip": "1230*"}):
        with pytest.raises(BadInput, match="not public"):
            plan_query(session, question(SORE, **options))
    with pytest.raises(BadInput, match="no quasi-identifier"):
        plan_query(session, question(SORE, by="hospital"))


def test_a_patient_of_a_histogram_is_bounded(tmp_path: Path, silent: None) -> None:
    notes = table([("p", f"2009-{month:02d}", 9, "F", "12301", "fever") for month in (1, 2, 3, 4)])
    session = session_of(notes, tmp_path / "index")
    whole = one(session, "fever", by="when", when="2009-01..2009-04")
    assert whole.values == (1, 1, 1, 1)
    bounded = one(session, "fever", by="when", when="2009-01..2009-04", most=2)
    assert (bounded.values, bounded.plan.noise.sensitivity) == ((1, 1, 0, 0), 2)


def test_a_patients_own_attribute_is_one_bin(tmp_path: Path) -> None:
    """From a cohort: the sex of a patient is one value by construction, so a histogram over it has sensitivity 1."""
    from leeward.cohort import Cohort
    from leeward.queries.index.build import index_cohort
    from leeward.queries.ledger.budgets import DataSet
    from leeward.queries.privacy.accounting import Budget

    events = pl.DataFrame({"patient": ["a", "a", "b"], "code": ["401", "250", "401"], "visit": [1, 2, 3]})
    patients = pl.DataFrame({"patient": ["a", "b"], "sex": ["f", "m"]})
    cohort = Cohort(
        events=events.with_columns(pl.col("code").cast(pl.Enum(["250", "401"]))), patients=patients
    )
    index = index_cohort(
        cohort, tmp_path / "index", domains={"sex": ("f", "m")}, max_rows_per_patient=5
    ).index
    ledger = opening.make_ledger(tmp_path / "index")
    budgets.register(ledger, DataSet(id=index.meta.id, budget=Budget(epsilon=micro(1))))
    session = open_session(tmp_path / "index")
    assert plan_query(session, question("401", by="sex")).noise.sensitivity == 1
    assert plan_query(session, question("401", by="sex", counted="note")).noise.sensitivity == 5


# -- hidden values ----


def test_no_two_questions_share_an_answer(session: IndexSession, tmp_path: Path) -> None:
    """Whatever changes what is counted, for whom, or how exactly, is another question with a price of its own."""
    asked = [
        {}, {"epsilon": 0.6}, {"counted": "note"}, {"unit": "note"}, {"unit": "note", "counted": "patient"},
        {"mechanism": "laplace"}, {"when": "2009-04"}, {"when": "2009-05"}, {"age": "9"}, {"by": "gender"},
        {"by": "when"}, {"by": "when", "most": 1}, {"by": "when", "most": 2}, {"by": "when", "when": "2009"},
    ]  # fmt: skip
    keys = [plan_query(session, question(SORE, **{"epsilon": 0.5, **each})).key for each in asked]
    keys.append(plan_query(session, question("fever")).key)
    fewer = session_of(five_notes(), tmp_path / "fewer", rows=2)
    keys.append(plan_query(fewer, question(SORE)).key)
    assert len(set(keys)) == len(asked) + 2


def test_answers_have_the_noise_that_they_say_they_have(tmp_path: Path) -> None:
    """Questions of nobody: what is answered is the noise itself. It is centred on 0 and goes below it, so that a count
    is no larger on average than it is, and its interval is the right one."""
    session = session_of(five_notes(), tmp_path / "index", epsilon=1000)
    asked = [question("cough", 0.5, by="age", when=f"2009-{month:02d}") for month in range(1, 13)]
    found = answer_all(session, asked, "ann")
    values = [value for answer in found for value in answer.values]
    assert len(values) == 1200 and {answer.plan.noise for answer in found} == {found[0].plan.noise}
    noise = found[0].plan.noise
    variance = mechanism.variance(noise)
    sd_of_mean = (variance / len(values)) ** 0.5
    assert abs(sum(values) / len(values)) < 5 * sd_of_mean
    aside = noise.alpha / (1 + noise.alpha)  # P(noise > 0)
    for side in (-1, 1):
        share = sum(value * side > 0 for value in values) / len(values)
        assert share == pytest.approx(aside, abs=5 * (aside * (1 - aside) / len(values)) ** 0.5)
    inside = sum(abs(value) <= found[0].half_width for value in values) / len(values)
    assert inside > mechanism.CONFIDENCE - 5 * (0.05 * 0.95 / len(values)) ** 0.5
    assert sum(value**2 for value in values) / len(values) == pytest.approx(variance, rel=0.5)


def test_values_are_hidden_after_the_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(five_notes(), tmp_path / "index", threshold=4)
    monkeypatch.setattr(mechanism, "draw", lambda noise, size: [-2] * size)
    hidden = one(session).to_json()  # 5 − 2 lies below the threshold, 5 does not
    assert (hidden["answer"], hidden["interval"], hidden["threshold"]) == (None, None, 4)
    monkeypatch.setattr(mechanism, "draw", lambda noise, size: [4] * size)
    assert one(session, "cough").values == (4,)  # no note has it, and it is shown
    assert one(session).values == (None,)  # stored, and still hidden


# -- batches ----


def test_a_batch(session: IndexSession) -> None:
    first = one(session)
    found = answer_all(session, [question(SORE), question("fever"), question("fever")], "bob")
    assert [each.cost for each in found] == [0, micro(0.5), 0]
    assert found[0].values == first.values
    assert found[1].values == found[2].values
    with pytest.raises(BudgetSpent):
        answer_all(session, [question("cough", 3), question("chills", 3)], "bob")
    assert spending.left(session.ledger, session.index.meta.id, "bob").user == micro(4)


def test_the_price_is_told_before(session: IndexSession) -> None:
    plans = [plan_query(session, question(text)) for text in (SORE, "fever", "fever")]
    assert price_of(session, plans, "ann") == (micro(1), micro(5))
    one(session)
    assert price_of(session, plans, "ann") == (micro(0.5), micro(4.5))


# -- dry runs ----


def test_a_dry_run_reads_nothing_and_charges_nothing(
    session: IndexSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = [
        plan_query(session, question(SORE, when="2009-04")),
        plan_query(session, question(SORE, by="gender")),
    ]
    true = Index.matching

    def only_the_twin(index: Index, query: Any) -> Any:
        assert index.meta.synthetic
        return true(index, query)

    monkeypatch.setattr(Index, "matching", only_the_twin)
    found = dry_run_answers(session, plans, "ann")
    assert [each.cost for each in found] == [micro(0.5), micro(0.5)]
    assert [each.remaining for each in found] == [micro(5), micro(5)]
    assert all(value is not None and value > 20 for value in found[1].values)
    assert spending.left(session.ledger, session.index.meta.id, "ann").user == micro(5)
    assert spending.find_answer(session.ledger, session.index.meta.id, plans[0].key) is None


def test_the_twin_is_the_same_whatever_the_data(tmp_path: Path, silent: None) -> None:
    """Two indexes of different patients and the same public side have one twin."""
    found = []
    for name, notes in (("all", five_notes()), ("one", five_notes()[:1])):
        session = session_of(notes, tmp_path / name)
        plans = [plan_query(session, question(SORE, when="2009-04", zip="1230*"))]
        found.append([each.values for each in dry_run_answers(session, plans, "ann")])
    assert found[0] == found[1]


# -- other releases through the same books ----


def test_another_release_is_paid_computed_and_stored_once(session: IndexSession) -> None:
    calls: list[int] = []

    def compute() -> dict[str, Any]:
        calls.append(1)
        return {"itemsets": [["fever"]], "counts": [5]}

    asked = {"catalogue": "itemsets", "threshold": 3}
    for user in ("ann", "bob"):
        assert charge(session, asked, micro(1), user, compute) == {"itemsets": [["fever"]], "counts": [5]}
    assert calls == [1]
    assert spending.left(session.ledger, session.index.meta.id, "ann").user == micro(4)
    with pytest.raises(BudgetSpent):
        charge(session, asked | {"threshold": 4}, micro(4.5), "ann", compute)
    assert calls == [1]
    assert auditing.audit(session.ledger, session.index.meta.id).passed


# -- refusals ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "paper"}, "replication study alone"),
        ({"mode": "fast"}, "`mode` must be private"),
        ({"unit": "family"}, "patient or note"),
        ({"mechanism": "gauss"}, "geometric or laplace"),
        ({"most": 2}, "bounds the bins"),
        ({"by": "when", "most": 0}, "at least 1"),
    ],
)
def test_questions_that_are_none(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        question(SORE, **options)


def test_an_unknown_term_offers_the_nearest(session: IndexSession) -> None:
    with pytest.raises(BadInput, match=r"no term 'fevr'.*'fever'"):
        one(session, "fevr")
    assert spending.left(session.ledger, session.index.meta.id, "ann").user == micro(5)


def test_laplace_for_replication(session: IndexSession) -> None:
    found = one(session, mechanism="laplace").to_json()
    assert isinstance(found["answer"], float)
    ends = [max(0, found["answer"] + each) for each in (-5.9915, 5.9915)]
    assert found["interval"] == pytest.approx(ends, abs=1e-3)
    assert one(session).values != (found["answer"],)  # another mechanism is another question
    assert one(session, mechanism="laplace").to_json()["stored"]


# -- nothing of a patient is kept ----


def test_no_identifier_and_no_count_in_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(five_notes(), tmp_path / "index")
    monkeypatch.setattr(mechanism, "draw", lambda noise, size: [7000] * size)
    one(session)
    one(session, by="gender")
    session.ledger.engine.dispose()
    kept = b"".join(path.read_bytes() for path in sorted((tmp_path / "index").glob("ledger.db*")))
    assert b"canary" not in kept
    assert b"7005" in kept
    with opening.reading(session.ledger) as connection:
        rows = [dict(row) for row in connection.exec_driver_sql("SELECT * FROM answers").mappings()]
    assert all(set(json.loads(row["payload"])) == {"values"} for row in rows)
    assert all(value > 6000 for row in rows for value in json.loads(row["payload"])["values"])


def test_the_vocabulary_of_the_tests_has_a_term_in_no_note(session: IndexSession) -> None:
    assert session.index.count(plan_query(session, question("cough")).query) == 0
    assert "cough" in TERMS.terms


# -- the library ----


def test_the_librarys_one_call(tmp_path: Path, silent: None) -> None:
    import leeward as lw

    folder = tmp_path / "index"
    session_of(five_notes(), folder)
    found = lw.query(folder, SORE, epsilon=0.5, user="ann", when="2009-04..2009-06", zip="1230*")
    assert repr(found) == (
        "<Answer fever & sore throat; when=2009-04..2009-06; zip=1230*: 5, 95 % within ± 6; epsilon 0.5 a patient; "
        "remaining 4.5>"
    )
    assert found.to_polars().rows() == [(None, 5.0, 0.0, 11.0)]
    assert "table" in found._repr_html_()
    bins = lw.query(folder, SORE, epsilon="0.5", by="gender").to_polars()
    assert bins["bin"].to_list() == ["f", "m"]
    with pytest.raises(lw.GuaranteeUnreachable):
        lw.query(folder, "cough", epsilon=5)


def test_a_vocabulary_of_the_data_is_told(tmp_path: Path) -> None:
    assert one(session_of(five_notes(), tmp_path / "index")).to_json()["vocabulary_public"]
    assert not one(session_of(five_notes(), tmp_path / "other", terms=None)).to_json()["vocabulary_public"]


def test_a_system_that_knows_no_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import getpass

    import leeward as lw

    session_of(five_notes(), tmp_path / "index")
    monkeypatch.setattr(getpass, "getuser", lambda: {}["nobody"])
    with pytest.raises(BadInput, match="--user"):
        lw.query(tmp_path / "index", SORE, epsilon=0.5)


def test_an_exact_term_without_a_vocabulary_is_the_term(tmp_path: Path) -> None:
    """`=fever` names `fever` alone, and where no list of terms is known `fever` is that already."""
    session = session_of(five_notes(), tmp_path / "open", terms=None)
    exact, plain = (plan_query(session, question(text)) for text in ("=fever", "fever"))
    assert exact.key == plain.key, "one question, one price"
    assert session.index.count(exact.query) == session.index.count(question("==fever").query) == 5
    with pytest.raises(BadInput, match="term"):
        plan_query(session, question("=="))
