"""The figures of evaluation, by hand."""

from __future__ import annotations

import json
import math

import pytest

from leeward.notes.corpora.evaluation import Counts, Evaluation, count, evaluate
from leeward.notes.spans import AnnotatedNote, Kind, Span

TEXT = "Mary Ann Poe of Troy, 4/5/2009: cough; denies fever; mother had asthma; MRN 77 12."


def span(
    words: str, kind: Kind, category: str, concept: str = "", source: str = "gold", asserted: bool = True
) -> Span:
    start = TEXT.index(words)
    return Span(start, start + len(words), kind, category, concept, source, asserted)


GOLD = AnnotatedNote(
    "one",
    TEXT,
    (
        span("Mary Ann Poe", "EID", "name"),
        span("Troy", "QID", "place"),
        span("4/5/2009", "QID", "date"),
        span("cough", "HMI", "symptom", "S1"),
        span("fever", "HMI", "symptom", "S2", "gold:negated", False),
        span("asthma", "HMI", "disease", "D1", "gold:family", False),
        span("77 12", "EID", "record_number"),
    ),
)
ANSWER = (
    span("Mary Ann", "EID", "name", source="rules"),  # in part
    span("Troy", "EID", "facility", source="rules"),  # protected, of another kind
    span("cough", "HMI", "symptom", "S1", "dictionary"),
    span("denies", "HMI", "symptom", "S9", "dictionary"),  # nothing there
    span("fever", "HMI", "symptom", "S2", "dictionary", False),
    span("asthma", "HMI", "disease", "D1", "dictionary"),  # wrongly kept
    span("77", "EID", "phone", source="svm"),  # another category, in part
)


@pytest.fixture
def result() -> Evaluation:
    evaluation = Evaluation("by hand")
    count(evaluation, GOLD, ANSWER)
    return evaluation


def test_spans_by_hand(result: Evaluation) -> None:
    # Name and number are touched by EID spans; of the three EID spans set, the one on Troy is wrong.
    assert result.spans["EID"] == Counts(gold=2, found=2, predicted=3, right=2)
    assert result.spans["EID:record_number"] == Counts(gold=1, found=1)
    assert result.spans["EID:phone"] == Counts(predicted=1, right=1)
    assert result.spans["QID"] == Counts(gold=2)
    assert result.spans["HMI"] == Counts(gold=3, found=3, predicted=4, right=3)
    assert result.spans["HMI"].f == pytest.approx(2 * 0.75 / 1.75)
    # Troy and the date count with the identities; the date is not found.
    assert result.spans["protected"] == Counts(gold=4, found=3, predicted=3, right=3)


def test_words_by_hand(result: Evaluation) -> None:
    # Gold words: Mary, Ann, Poe, 77, 12. Covered: Mary, Ann, 77. Troy is covered without being one.
    assert result.tokens["EID"] == Counts(gold=5, found=3, predicted=4, right=3)
    # With Troy, 4, 5 and 2009: nine, of which four.
    assert result.tokens["protected"] == Counts(gold=9, found=4, predicted=4, right=4)


def test_contexts_and_terms_by_hand(result: Evaluation) -> None:
    assert {why: (kept.gold, kept.kept) for why, kept in result.contexts.items()} == {
        "negated": (1, 0),
        "family": (1, 1),
        "all": (2, 1),
    }
    # Asserted gold: S1. Asserted answer: S1, S9, D1.
    assert result.terms == Counts(gold=1, found=1, predicted=3, right=1)
    assert result.terms.f == pytest.approx(0.5)


def test_what_is_not_defined_is_nan_and_null(result: Evaluation) -> None:
    assert math.isnan(Counts().recall) and math.isnan(Counts().precision) and math.isnan(Counts().f)
    assert Counts(gold=1, predicted=1).f == 0.0
    figures = json.loads(json.dumps(result.as_json()))
    assert figures["spans"]["QID"]["precision"] is None
    assert figures["spans"]["EID"]["recall"] == 1.0
    assert figures["wrongly_kept"]["all"]["share"] == 0.5


def test_a_perfect_and_an_empty_annotator() -> None:
    perfect = evaluate("gold", [GOLD], lambda text: GOLD.spans)
    assert {perfect.spans[kind].f for kind in ("EID", "QID", "HMI", "protected")} == {1.0}
    assert perfect.contexts["all"].kept == 0 and perfect.terms.f == 1.0
    nothing = evaluate("nothing", [GOLD], lambda text: ())
    assert nothing.spans["EID"].recall == 0.0 and nothing.tokens["protected"].recall == 0.0


def test_an_empty_note_counts_for_nothing() -> None:
    result = evaluate("gold", [AnnotatedNote("empty", "")], lambda text: ())
    assert result.notes == 1 and result.tokens["EID"] == Counts()
