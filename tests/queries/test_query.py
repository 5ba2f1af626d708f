"""The query language: one canonical form for every way to say the same, clear refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.errors import BadInput
from leeward.queries.language.query import Predicate, Query, parse


def test_the_query_of_the_paper() -> None:
    query = parse("sore throat & fever", when="2009-04..2009-06", zip="1230*")
    assert query.terms == ("fever", "sore throat")
    assert query.predicates == (
        Predicate("when", "range", "2009-04", "2009-06"),
        Predicate("zip", "prefix", "1230"),
    )
    assert query.canonical() == "fever & sore throat; when=2009-04..2009-06; zip=1230*"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("fever & cough", {}), ("cough&fever & Cough", {})),
        (("sore  throat", {}), ('"Sore Throat"', {})),
        (("fever", {"when": "2009-04..2009-04"}), ("fever", {"when": "2009-4"})),
        (("fever", {"when": "2009"}), ("fever", {"when": "2009-01..2009-12"})),
        (("fever", {"when": "2009-*"}), ("fever", {"when": "2009*"})),
        (("fever", {"when": "2009-0*"}), ("fever", {"when": "2009-01..2009-09"})),
        (("fever", {"when": "2009..2010"}), ("fever", {"When": "2009-01 .. 2010-12"})),
        (("fever", {"age": "9..9"}), ("fever", {"age": " 9 "})),
        (("fever", {"zip": "*"}), ("fever", {})),
        (("fever", {"sex": "F", "zip": "1"}), ("fever", {"zip": "1", "sex": "f"})),
    ],
)
def test_equivalent_texts_have_one_form(
    one: tuple[str, dict[str, str]], other: tuple[str, dict[str, str]]
) -> None:
    assert parse(*one) == parse(*other)
    assert parse(*one).canonical() == parse(*other).canonical()


@pytest.mark.parametrize(
    ("text", "conditions", "message"),
    [
        ("", {}, "term on each side"),
        ("fever & ", {}, "term on each side"),
        ("fever && cough", {}, "term on each side"),
        ("fever | cough", {}, "joins terms by & only"),
        ("fev*", {}, "joins terms by & only"),
        ('"fever', {}, "without its partner"),
        ('a "fever" b', {}, "whole term"),
        ("fever", {"zip": "12*01"}, "only be the last character"),
        ("fever", {"zip": "*1"}, "only be the last character"),
        ("fever", {"zip": ""}, "the condition is empty"),
        ("fever", {"age": "9.."}, "malformed range"),
        ("fever", {"age": "..9"}, "malformed range"),
        ("fever", {"age": "1..2..3"}, "malformed range"),
        ("fever", {"age": "1...3"}, "malformed range"),
        ("fever", {"age": "1..3*"}, "malformed range"),
        ("fever", {"when": "2009-06..2009-04"}, "backwards"),
        ("fever", {"when": "2009-13"}, "YYYY-MM"),
        ("fever", {"when": "April"}, "YYYY-MM"),
        ("fever", {"when": "200*"}, "at least the year"),
        ("fever", {"zip": "1", "ZIP": "2"}, "two conditions"),
    ],
)
def test_what_is_malformed_is_refused(text: str, conditions: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse(text, conditions)


def test_a_query_without_terms_is_refused() -> None:
    with pytest.raises(BadInput, match="at least one health term"):
        Query(())


def test_names_with_signs_of_the_language_do_not_mix_up() -> None:
    assert parse('"nausea & vomiting"').terms == ("nausea & vomiting",)
    one, other = parse('"a & b"'), parse("a & b")
    assert one.canonical() != other.canonical()
    assert parse("a", {"x": "1; y=2"}).canonical() != parse("a", {"x": "1", "y": "2"}).canonical()


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)


@given(st.lists(words, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_form_knows_no_order(terms: list[str], order: object) -> None:
    shuffled = list(terms)
    order.shuffle(shuffled)  # type: ignore[attr-defined]  # a Random
    assert Query(tuple(terms)).canonical() == Query(tuple(shuffled)).canonical()


@given(st.lists(words, min_size=1, max_size=3), st.lists(words, min_size=1, max_size=3))
def test_different_sets_of_terms_have_different_forms(one: list[str], other: list[str]) -> None:
    same = set(one) == set(other)
    assert (Query(tuple(one)).canonical() == Query(tuple(other)).canonical()) == same
