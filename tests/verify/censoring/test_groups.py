"""The verifier's own way of carrying out scope `groups`, against the oracle."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.censoring.frames import POPULATION
from tests.methods.censoring.test_properties import large_problem
from tests.oracles import censoring as oracle

from leeward.verify.censoring import records

record = st.lists(st.sampled_from("abcd"), max_size=6)


def published(population, k):
    codes = sorted({code for person in population for code in person})
    entries = [
        (r, codes.index(code), n)
        for r, person in enumerate(population)
        for code, n in Counter(person).items()
    ]
    columns = np.array(entries, np.int64).reshape(-1, 3).T
    shown, group = records.publish(records.Records.of(*columns, len(population)), k)
    bounds = list(pairwise(shown.offsets.tolist()))
    each = [
        [codes[c] for e in range(*bounds[own]) for c in [shown.code[e]] * int(shown.count[e])]
        for own in group.tolist()
    ]
    return each


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


def plain(released, sample, people, labels, fits, k, caps):
    """The three checks from their definitions: how many people or records violate each. A record is a tuple of codes,
    somebody (exact values, record); labels are those of everybody in the population, None for nobody's."""
    shown = {label for label, _ in released}
    alike: dict = {}
    wrong = sum(alike.setdefault(person, own) != own for person, own in zip(people, labels, strict=True))
    wrong += sum(
        not fits[values][own] for (values, _), own in zip(people, labels, strict=True) if own in shown
    )
    rule, owners = {}, Counter()
    for label in shown - {None}:
        inside = [
            oracle.capped(record, caps)
            for (_, record), own in zip(people, labels, strict=True)
            if own == label
        ]
        found = oracle.by_groups(inside, k, caps) if len(inside) >= k else inside
        for record, published_as in zip(inside, found, strict=True):
            rule[label, tuple(record)] = tuple(published_as)
            owners[label, tuple(published_as)] += 1
    expected: Counter = Counter()
    for values, record in sample:
        label = alike.get((values, record))
        if label is not None:
            expected[label, rule.get((label, tuple(oracle.capped(record, caps))), ())] += 1
    return wrong, sum(owners[each] < k for each in released), sum((Counter(released) - expected).values())


def numbered(lists) -> records.Records:
    entries = [(r, "abc".index(code), n) for r, own in enumerate(lists) for code, n in Counter(own).items()]
    return records.Records.of(*np.array(entries, np.int64).reshape(-1, 3).T, len(lists))


short = st.lists(st.sampled_from("abc"), max_size=3).map(lambda codes: tuple(sorted(codes)))
somebody = st.tuples(st.integers(0, 2), short)


@given(
    st.lists(st.tuples(st.integers(0, 1), short), min_size=1, max_size=8),
    st.lists(somebody, max_size=8),
    st.lists(st.tuples(somebody, st.sampled_from([None, 0, 0, 1])), min_size=1, max_size=14),
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=3, max_size=3),
    st.integers(2, 4),
    st.sampled_from([None, 1, 2]),
)
def test_any_files_are_judged_as_by_the_plain_version(released, sample, everyone, fits, k, cap) -> None:
    people, labels = [person for person, _ in everyone], [own for _, own in everyone]
    known = records.Known(
        *(np.array([each for each, _ in own], np.int64) for own in (released, sample, people)),
        np.array([-1 if own is None else own for own in labels], np.int64),
        np.array(fits, np.bool_),
    )
    caps = dict.fromkeys("abc", 9 if cap is None else cap)
    found = records.by_groups(
        *(numbered([record for _, record in own]) for own in (released, sample, people)),
        known, k, records.limits_of("abc", {} if cap is None else {"cap": cap}),
    )  # fmt: skip
    expected = plain(released, sample, people, labels, fits, k, caps)
    assert tuple(check.figures["violations"] for check in found) == expected


def test_without_demographics_a_record_of_nobody_is_expected_to_show_what_its_capped_one_does() -> None:
    """Everybody has one label, also somebody of the sample with a record that nobody of the population has."""
    people, sample = numbered(["ab", "ab", "b"]), numbered(["aab", "c"])
    nothing = records.Known.nothing(2, 2, 3)
    limits = records.limits_of("abc", {"cap": 1})
    right, wrong = (
        records.by_groups(numbered(own), sample, people, nothing, 2, limits)
        for own in (["b", ""], ["b", "b"])
    )
    assert [check.passed for check in right] == [True, False, True]  # of nobody is the empty record
    assert [check.passed for check in wrong] == [True, True, False]
