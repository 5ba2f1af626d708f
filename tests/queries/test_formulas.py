"""Questions with or and not: counted as the oracle counts, moved by one patient by one, paid once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import chain, combinations
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.oracles import formulas as oracle
from tests.queries.made import TERMS, five_notes, question, session_of

from leeward.errors import BadInput
from leeward.queries.answer.charged_query import answer_all
from leeward.queries.answer.dry_run import dry_run_answers
from leeward.queries.answer.plan import plan_query
from leeward.queries.index.build import index_table
from leeward.queries.index.counts import Index
from leeward.queries.language.formula import normal_form
from leeward.queries.language.query import Query, parse
from leeward.queries.language.vocabulary import Terms
from leeward.queries.ledger import spending
from leeward.queries.privacy.mechanism import Unit

NAMES = ("a", "b", "c", "d", "e")
BELOW = {"ab": ("a", "b"), "abc": ("a", "b", "c"), "de": ("d", "e")}
KNOWN = Terms(NAMES, parents={"a": "ab", "b": "ab", "ab": "abc", "c": "abc", "d": "de", "e": "de"})
SUBSETS = [
    frozenset(each)
    for each in chain.from_iterable(combinations(NAMES, size) for size in range(len(NAMES) + 1))
]

trees = st.recursive(
    st.sampled_from([*NAMES, *BELOW]),
    lambda inner: st.one_of(
        st.tuples(st.just("!"), inner),
        st.tuples(st.sampled_from("&|"), st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=8,
)
rows_of_notes = st.lists(
    st.fixed_dictionaries(
        {"patient": st.integers(0, 5), "terms": st.lists(st.sampled_from(NAMES), max_size=4)}
    ),
    min_size=1,
    max_size=20,
)
SCHEMA = {"patient": pl.Int64, "terms": pl.List(pl.String)}


@pytest.fixture(scope="module", name="empty")
def index_of_one_row(tmp_path_factory: pytest.TempPathFactory) -> Index:
    table = pl.DataFrame({"patient": [1], "terms": [["a"]]}, schema=SCHEMA)
    return index_table(table, tmp_path_factory.mktemp("one") / "index", terms=KNOWN).index


def meant_by(tree: oracle.Tree) -> list[bool]:
    """For each set of terms that a row may have, whether it is meant."""
    return [oracle.holds(tree, terms, BELOW) for terms in SUBSETS]


def resolved(index: Index, tree: oracle.Tree) -> Query | None:
    """The canonical query; None where it holds for every row or for none."""
    try:
        return index.resolve(parse(oracle.written(tree)))
    except BadInput as error:
        assert "holds for" in str(error)
        return None


@settings(deadline=None, max_examples=60)
@given(rows=rows_of_notes, asked=st.lists(trees, min_size=1, max_size=6))
def test_every_formula_is_counted_as_the_oracle_counts(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], asked: list[oracle.Tree]
) -> None:
    index = index_table(
        pl.DataFrame(rows, schema=SCHEMA), tmp_path_factory.mktemp("i") / "i", terms=KNOWN
    ).index
    for tree in asked:
        query = resolved(index, tree)
        if query is None:
            assert len(set(meant_by(tree))) == 1, "only what says nothing of the data is refused"
            continue
        for unit in ("patient", "note"):
            assert index.count(query, unit) == oracle.count(rows, tree, BELOW, unit)


@settings(deadline=None, max_examples=60)
@given(
    rows=rows_of_notes, tree=trees, who=st.integers(0, 5), most=st.integers(1, 3),
    counted=st.sampled_from(["patient", "note"]),
)  # fmt: skip
def test_one_patient_moves_a_count_by_no_more_than_the_sensitivity(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Any],
    tree: oracle.Tree,
    who: int,
    most: int,
    counted: Unit,
) -> None:
    """Two data sets that differ in a patient: a count of patients moves by 1, one of rows by the rows that are kept,
    a histogram by the bins in which the patient may count."""
    others = [row for row in rows if row["patient"] != who]
    assume(others)
    folder = tmp_path_factory.mktemp("i")
    counts, bins = [], []
    for name, part in (("all", rows), ("others", others)):
        table = pl.DataFrame(part, schema=SCHEMA).with_columns(when=pl.lit("2025-01"))
        table = table.with_columns(when=pl.format("2025-0{}", pl.int_range(pl.len()).over("patient") % 3 + 1))
        # of a patient with more rows only so many are kept, here the first ones
        table = table.filter(pl.int_range(pl.len()).over("patient") < 2)
        index = index_table(table, folder / name, terms=KNOWN, max_rows_per_patient=2).index
        query = resolved(index, tree)
        if query is None:
            return
        counts.append(index.count(query, counted))
        bins.append(index.count_by(query, "when", ["2025-01", "2025-02", "2025-03"], counted, most))
    assert 0 <= counts[0] - counts[1] <= (1 if counted == "patient" else 2)
    assert np.abs(bins[0] - bins[1]).sum() <= min(most, 2)


@settings(max_examples=300, deadline=None)
@given(tree=trees, order=st.randoms(use_true_random=False))
def test_the_form_says_the_same_and_knows_no_order(empty: Index, tree: oracle.Tree, order: Any) -> None:
    query = resolved(empty, tree)
    if query is None:
        return
    again = empty.resolve(parse(query.terms_text(str)))
    assert again == query, "the form is its own form"
    assert resolved(empty, shuffled(tree, order)) == query
    assert resolved(empty, ("!", opposite(tree))) == query
    for terms, meant in zip(SUBSETS, meant_by(tree), strict=True):
        by_clauses = all(
            any(oracle.holds(one.name, terms, BELOW) == one.holds for one in clause)
            for clause in query.to_formula()
        )
        assert by_clauses == meant


def shuffled(tree: oracle.Tree, order: Any) -> oracle.Tree:
    """The same with its parts in another order, and each twice."""
    if isinstance(tree, str):
        return tree
    sign, parts = tree
    if sign == "!":
        return (sign, shuffled(parts, order))
    twice = [shuffled(part, order) for part in parts] * 2
    order.shuffle(twice)
    return (sign, twice)


def opposite(tree: oracle.Tree) -> oracle.Tree:
    """The opposite by De Morgan's laws."""
    if isinstance(tree, str):
        return ("!", tree)
    sign, parts = tree
    if sign == "!":
        return parts
    return ("|" if sign == "&" else "&", [opposite(part) for part in parts])


@settings(max_examples=300, deadline=None)
@given(one=trees, other=trees)
def test_questions_with_one_form_mean_the_same(empty: Index, one: oracle.Tree, other: oracle.Tree) -> None:
    a, b = resolved(empty, one), resolved(empty, other)
    if a is not None and b is not None and a.canonical() == b.canonical():
        assert meant_by(one) == meant_by(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("abc & (ab | d)", "(d & abc) | ab"),
        ("a | ab", "ab"),
        ("a & !ab", None),
        ("a | !a", None),
        ("!ab & !a", "!ab"),
        ("!(a | b | abc)", "!abc"),
        ("a & (!a | d)", "a & d"),
        ("!abc & (a | d)", "!abc & d"),
    ],
)
def test_what_the_vocabulary_implies_is_seen(empty: Index, one: str, other: str | None) -> None:
    if other is None:
        with pytest.raises(BadInput, match="whatever the data"):
            empty.resolve(parse(one))
    else:
        assert empty.resolve(parse(one)) == empty.resolve(parse(other))


def test_a_question_with_or_and_not_is_paid_once_whatever_its_spelling(tmp_path: Path) -> None:
    session = session_of(five_notes(), tmp_path / "index", terms=TERMS)
    (first,) = answer_all(session, [question("fever & (cough | nausea) & !chills")], "ann")
    (again,) = answer_all(session, [question("!chills & !(!cough & !nausea) & fever & fever")], "ann")
    (other,) = answer_all(session, [question("fever & (cough | nausea)")], "ann")
    assert (first.cost, again.cost, other.cost) == (500_000, 0, 500_000)
    assert first.values == again.values
    assert spending.left(session.ledger, session.index.meta.id, "ann").user == 4_000_000
    assert dry_run_answers(session, [first.plan], "ann")[0].values[0] is not None


def test_questions_of_earlier_versions_keep_their_key(tmp_path: Path) -> None:
    """Keys as version 0.2.0 made them: ledgers have them, and what was paid is free."""
    session = session_of(five_notes(), tmp_path / "index", terms=None)
    keys = {
        "sore throat & fever": "4b8b2a98d121bd9e85b2996ea60a65d22b1fca98f75a938f7779cb08e02070fa",
        "hepatitis (viral)": "4017ce4ee863f191b8853a278c203a3bc47a3f6840b7dfc1cd03711f199b834c",
        '"a | b" & "!c"': "bd0877832164ad66d970fbbb6e41332271c7da47c61b4797dd8143174bfbf019",
    }
    for text, key in keys.items():
        assert plan_query(session, question(text, 0.5, when="2009-04")).key == key


def test_a_question_of_three_hundred_terms_is_planned_at_once() -> None:
    """Its form is found before anything is paid, so its steps, counted here, may not grow with its combinations."""
    names = [f"t{number}" for number in range(300)]
    known = Terms(tuple(names), parents=dict.fromkeys(names, "all"))
    pairs = zip(names[:150], names[150:], strict=True)
    for text in (
        " | ".join(names),
        " & ".join(f"!{name}" for name in names),
        "&".join(f"({a}|!{b})" for a, b in pairs),
    ):
        formula = parse(text).to_formula()
        assert steps_of(lambda formula=formula: normal_form(formula, known.covers)) < 500_000


def steps_of(call: Callable[[], object]) -> int:
    """The Python and C functions that a call enters: the same on every machine, at every load."""
    entered = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal entered
        entered += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered
