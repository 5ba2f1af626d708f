"""The verifier's own way of carrying out scope `groups`, against the oracle."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.censoring.frames import POPULATION
from tests.methods.censoring.test_properties import large_problem
from tests.oracles import censoring as oracle

from leeward.verify.censoring import classed

record = st.lists(st.sampled_from("abcd"), max_size=6)


def published(population, k):
    people = [tuple(sorted(Counter(codes).items())) for codes in population]
    found = classed.publish(people, k)
    return [[code for code, n in found[person] for _ in range(n)] for person in people]


@given(st.lists(record, min_size=1, max_size=30), st.data())
def test_any_population_is_published_as_the_oracle_says(population, data) -> None:
    k = data.draw(st.integers(1, len(population)))
    caps = Counter(code for codes in population for code in codes)
    assert published(population, k) == oracle.by_groups(population, k, caps)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_figure_1_and_a_larger_population(k) -> None:
    for population in (POPULATION, large_problem(300)[0]):
        caps = Counter(code for codes in population for code in codes)
        assert published(population, k) == oracle.by_groups(population, k, caps)
