"""Apriori k^m over a hierarchy: docs/methods/constraints.md#worked-examples, and equality with brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.constraints.test_greedy import SIX, sets_of
from tests.oracles import constraints as oracle

from leeward.methods.constraints.apriori import Recoding, recode
from leeward.methods.constraints.weighted import count_records
from leeward.vocabulary.hierarchy import Hierarchy
from leeward.vocabulary.icd import ICD9CM

SIX_TREE = {"*": None, "A": "*", "C": "*", "a": "A", "b": "A", "c": "C", "d": "C"}


def solve(
    records: list[list[str]], parents: dict[str, str | None], k: int, m: int
) -> tuple[Recoding, dict[str, str]]:
    sets = sets_of(records)
    tree = Hierarchy.from_pairs(parents.items()).restrict(sets.codes)
    found = recode(count_records(sets), tree, k, m)
    return found, {c: tree.labels[n] for c, n in zip(sets.codes, found.node_of_code, strict=True)}


def test_the_cheapest_cut_of_the_six_records() -> None:
    found, labels = solve([list(r) for r in SIX], SIX_TREE, 3, 2)
    assert labels == {"a": "a", "b": "b", "c": "C", "d": "C"}
    assert found.ncp == Fraction(3, 14)


def test_k_of_all_records_ends_at_the_root() -> None:
    found, labels = solve([list(r) for r in SIX], SIX_TREE, 6, 2)
    assert set(labels.values()) == {"*"}
    assert found.ncp == 1


TREE = {
    "*": None,
    "A": "*",
    "B": "*",
    "A1": "A",
    "A2": "A",
    "a": "A1",
    "b": "A1",
    "c": "A2",
    "d": "A2",
    "e": "B",
    "f": "B",
}
datasets = st.lists(st.sets(st.sampled_from("abcdef"), min_size=1, max_size=5), min_size=4, max_size=25)


@settings(max_examples=200, deadline=None)
@given(datasets, st.integers(2, 4), st.integers(1, 4))
def test_fast_equals_oracle(records: list[set[str]], k: int, m: int) -> None:
    rows = [frozenset(r) for r in records]
    sets = sets_of([sorted(r) for r in records])
    tree = Hierarchy.from_pairs(TREE.items()).restrict(sets.codes)
    parents = {node: parent or None for node, parent in tree.to_pairs()}
    expected = oracle.apriori(rows, oracle.Tree(parents), k, m)
    _, labels = solve([sorted(r) for r in records], dict(TREE), k, m)
    assert labels == expected


@settings(max_examples=100, deadline=None)
@given(datasets, st.integers(2, 4), st.integers(1, 3))
def test_every_set_of_released_labels_is_absent_or_frequent(records: list[set[str]], k: int, m: int) -> None:
    _, labels = solve([sorted(r) for r in records], dict(TREE), k, m)
    released = [frozenset(labels[c] for c in r) for r in records]
    for size in range(1, m + 1):
        for itemset in combinations(sorted(set(labels.values())), size):
            support = sum(set(itemset) <= record for record in released)
            assert support == 0 or support >= k


def icd_records(n: int, seed: int) -> list[list[str]]:
    """Skewed draws from 60 codes of three chapters, about four a record."""
    codes = [f"{c}.{d}" for c in (250, 272, 278, 401, 414, 428, 486, 493, 496) for d in range(6)]
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, len(codes) + 1)
    weights /= weights.sum()
    sizes = rng.integers(1, 7, n)
    return [sorted({codes[i] for i in rng.choice(len(codes), s, p=weights)}) for s in sizes]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("k", [2, 5])
def test_a_thousand_records_release_the_labels_of_brute_force(seed: int, k: int) -> None:
    records = icd_records(1000, seed)
    sets = sets_of(records)
    tree = ICD9CM.hierarchy(sets.codes)
    found = recode(count_records(sets), tree, k, 2)
    parents = {node: parent or None for node, parent in tree.to_pairs()}
    expected = brute_force_pairs(records, parents, k)
    assert {tree.labels[n] for n in found.node_of_code} == expected
    label = {c: int(n) for c, n in zip(sets.codes, found.node_of_code, strict=True)}
    released = [{label[c] for c in record} for record in records]
    for pair in combinations(sorted(set(label.values())), 2):
        support = sum(set(pair) <= record for record in released)
        assert support == 0 or support >= k


def brute_force_pairs(records: list[list[str]], parents: dict[str, str | None], k: int) -> set[str]:
    """The cut of Apriori for m = 2 by counting with Python sets; shares nothing with the kernels or the
    oracle.
    """

    def line(node: str) -> list[str]:
        return [node, *line(parents[node])] if parents[node] is not None else [node]

    every = sorted({c for r in records for c in r})
    holders: dict[str, set[int]] = {}
    occurrences: dict[str, int] = {}
    leaves: dict[str, set[str]] = {}
    for r, record in enumerate(records):
        for code in record:
            for node in line(code):
                holders.setdefault(node, set()).add(r)
                occurrences[node] = occurrences.get(node, 0) + 1
                leaves.setdefault(node, set()).add(code)
    cut = {c: c for c in every}

    def price(node: str) -> int:
        return 0 if node in every else len(leaves[node]) * occurrences[node]

    def paid(node: str) -> int:
        return sum(0 if cut[c] in every else len(leaves[cut[c]]) * occurrences[c] for c in leaves[node])

    def mend(nodes: set[str]) -> None:
        options = [[]]
        for node in sorted(nodes):
            options = [[*chosen, above] for chosen in options for above in line(node)]
        best = None
        for chosen in options:
            top = {n for n in chosen if not any(n != other and other in line(n) for other in chosen)}
            if len(set.intersection(*(holders[n] for n in top))) < k:
                continue
            candidate = (sum(price(n) - paid(n) for n in top), sorted(top))
            best = candidate if best is None else min(best, candidate)
        assert best is not None
        for node in best[1]:
            cut.update(dict.fromkeys(leaves[node], node))

    for size in (1, 2):
        while True:
            labels = sorted(set(cut.values()))
            bad = [
                s
                for s in combinations(labels, size)
                if 0 < len(set.intersection(*(holders[n] for n in s))) < k
            ]
            if not bad:
                break
            for itemset in bad:
                now = {cut[min(leaves[n])] for n in itemset}
                if len(set.intersection(*(holders[n] for n in now))) < k:
                    mend(now)
    return set(cut.values())
