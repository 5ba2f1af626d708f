"""The query language: one canonical form for every way to say the same, clear refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.errors import BadInput
from leeward.queries.language.query import Predicate, Query, parse, write_term


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
        ("fever | ", {}, "term on each side"),
        ("fever | cough & rash", {}, "by parentheses"),
        ("fev*", {}, "joins terms by &"),
        ("fever !cough", {}, "joins terms by &"),
        ("(fever | cough", {}, "not closed"),
        ("(fever) cough", {}, "begins with a parenthesis"),
        ("(fever | cough)) & rash", {}, "begins with a parenthesis"),
        ("(" * 21 + "fever" + ")" * 21, {}, "parentheses in each other"),
        ("!" * 3000, {}, "term on each side"),
        ("|".join(f"t{i}" for i in range(301)), {}, "at most 300 terms"),
        ("|".join(f"(a{i} & b{i})" for i in range(9)), {}, "more than 300 combinations"),
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fever | cough", "(cough)|fever"),
        ("!(fever | cough)", "!cough & !fever"),
        ("!(fever & cough)", "!cough | !fever"),
        ("!!fever", "fever"),
        ("fever & (fever | cough)", "fever"),
        ("(fever & cough) | (fever & rash)", "fever & (cough | rash)"),
        ('hepatitis (viral) & "a (b)"', 'a (b) & "hepatitis (viral)"'),
        ("(hepatitis (viral) | a)", 'a | "hepatitis (viral)"'),
    ],
)
def test_equal_formulas_have_one_form(one: str, other: str) -> None:
    assert parse(one).canonical() == parse(other).canonical()


def test_a_formula_is_written_so_that_it_is_read_again() -> None:
    query = parse('fever & (cough | "a | b") & !=x', age="0..17")
    assert query.canonical() == '"fever" & !="x" & ("a | b" | "cough"); age=0..17'
    assert parse(query.canonical().removesuffix("; age=0..17"), age="0..17") == query
    assert parse("fever & cough").canonical() == "cough & fever", "as in the ledgers of earlier versions"
    assert parse('"a | b"').canonical() == "a | b" != parse("a | b").canonical()


def test_a_query_without_terms_is_refused() -> None:
    with pytest.raises(BadInput, match="at least one health term"):
        Query(())


def test_names_with_signs_of_the_language_do_not_mix_up() -> None:
    assert parse('"nausea & vomiting"').terms == ("nausea & vomiting",)
    one, other = parse('"a & b"'), parse("a & b")
    assert one.canonical() != other.canonical()
    assert parse("a", {"x": "1; y=2"}).canonical() != parse("a", {"x": "1", "y": "2"}).canonical()


@given(st.text('ab &|!()"=@;*', max_size=40))
def test_any_text_is_a_query_or_refused(text: str) -> None:
    try:
        query = parse(text)
    except BadInput:
        return
    assert query.names
    # A name that begins with = is read as an exact term, in quotes too.
    if '"' not in text or "=" not in text:
        assert parse(query.terms_text(write_term)) == query


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
