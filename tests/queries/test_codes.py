"""Vocabularies of codes known by their form: what is answered never depends on which codes the data hold."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.errors import BadInput
from leeward.queries.index.build import index_table
from leeward.queries.language.query import parse
from leeward.queries.language.vocabulary import Codes, Terms, nearest

FORM = r"(\d{3})\.?(\d{0,2})"
SMALL = Codes(
    FORM,
    parents={
        "250": "249-259",
        "251": "249-259",
        "401": "401-405",
        "249-259": "240-279",
        "401-405": "390-459",
    },
    labels={"249-259": "Other endocrine glands", "390-459": "Circulation"},
    name="small",
)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("25000", "250.00"),
        ("250.0", "250.0"),
        ("=250.00", "250.00"),
        ("=250.0", "=250.0"),
        ("=250", "=250"),
        ("249-259", "249-259"),
        ("other ENDOCRINE glands", "249-259"),
        ("240-279", "249-259"),
        ("390-459", "401"),
    ],
)
def test_names_have_one_form(asked: str, name: str) -> None:
    """A code that cannot go on is itself; a chapter of one section, and a section of one category, is that."""
    assert SMALL.resolve(asked) == name


@pytest.mark.parametrize("asked", ["999", "250.000", "abc", "=249-259", ""])
def test_what_the_classification_lacks_is_refused(asked: str) -> None:
    with pytest.raises(BadInput, match="'small' has no"):
        SMALL.resolve(asked)


codes = st.builds(
    lambda category, tail: f"{category}.{tail}" if tail else category,
    st.sampled_from(["250", "251", "401"]),
    st.text("012", max_size=2),
)
names = st.one_of(codes, codes.map("={}".format), st.sampled_from(["249-259", "401-405"])).map(SMALL.resolve)


@given(outer=names, inner=names, held=st.sets(codes))
def test_covering_is_what_the_codes_say(outer: str, inner: str, held: set[str]) -> None:
    if SMALL.covers(outer, inner):
        assert set(SMALL.expand(inner, held)) <= set(SMALL.expand(outer, held))
    everything = [f"{c}{t}" for c in ("250", "251", "401") for t in ("", *(f".{x}" for x in all_tails()))]
    below = set(SMALL.expand(inner, everything)) <= set(SMALL.expand(outer, everything))
    assert SMALL.covers(outer, inner) == below


def all_tails() -> list[str]:
    return [f"{i}" for i in range(10)] + [f"{i:02d}" for i in range(100)]


@given(code=codes, node=names)
def test_a_code_is_counted_where_its_beginning_says(code: str, node: str) -> None:
    counted = code in SMALL.expand(node, [code])
    if node.startswith("="):
        assert counted == (node[1:] == code)
    elif node == "249-259":
        assert counted == (code[:3] in ("250", "251"))
    else:
        assert counted == (code.replace(".", "").startswith(node.replace(".", "")))


def test_codes_that_nobody_has_are_answered(tmp_path: Path) -> None:
    table = pl.DataFrame({"patient": [1, 2, 3], "terms": [["250.00"], ["25001", "401"], ["V99"]]})
    built = index_table(table, tmp_path / "index", terms=SMALL)
    index = built.index
    assert index.count(parse("250")) == 2
    assert index.count(parse("401.1")) == index.count(parse("251")) == 0
    assert index.count(parse("250 & 401")) == 1
    assert index.resolve(parse("250 & 250.0 & 249-259")).canonical() == "250.0"
    assert built.left_out == {"terms that the vocabulary lacks": 1}
    assert index.terms.sample() == ("250", "251", "401")


# -- lists ----


def test_a_list_with_a_cycle_is_refused() -> None:
    with pytest.raises(BadInput, match="above itself"):
        Terms(("a",), parents={"a": "b", "b": "c", "c": "b"})
    with pytest.raises(BadInput, match="no term"):
        Terms(())
    with pytest.raises(BadInput, match="empty term"):
        Terms(("a", " "))


def test_nodes_without_terms_are_not_known() -> None:
    terms = Terms(("a",), parents={"a": "top", "left out": "side"})
    assert terms.resolve("TOP") == "a", "a node of one term is that term"
    with pytest.raises(BadInput):
        terms.resolve("side")


def test_the_nearest_names_come_first() -> None:
    assert nearest("sore thraot", ["fever", "sore throat", "throat", "sores"], 2)[0] == "sore throat"
    assert nearest("xyz", ["fever"]) == []
