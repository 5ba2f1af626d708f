"""Records that contain a set, counted from lists and from bits, against counting one by one."""

from __future__ import annotations

import numpy as np
import pytest

from leeward.verify.kernels import count_containers
from leeward.verify.visits import levels
from leeward.verify.visits.layout import VisitLists


def lists_of(rows: list[list[int]], records: list[int], labels: int) -> VisitLists:
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    values = np.array([code for row in rows for code in row], np.int32)
    names = tuple(f"{label:03}" for label in range(labels))
    return VisitLists(np.array(records, np.int64), np.arange(len(rows)), offsets, values, names)


@pytest.mark.parametrize("records_a_holder", [0, 3, 10**9])
def test_containers_are_those_that_hold_every_code(
    records_a_holder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "RECORDS_A_HOLDER", records_a_holder)
    for seed in range(6):
        random = np.random.default_rng(seed)
        common = random.random(12) ** 2
        held = [np.flatnonzero(random.random(12) < common).tolist() for _ in range(300)]
        numbers = random.choice(10**6, 300, replace=False).tolist()  # numbers of records need not be 0 … n-1
        asked = [[]] + [
            sorted(random.choice(12, random.integers(1, 5), replace=False).tolist()) for _ in range(60)
        ]
        population, sets = lists_of(held, numbers, 12), lists_of(asked, [0] * 61, 12)
        for enough in (1, 5, 1000):
            found = count_containers(sets.offsets, sets.values, *levels.holders_of(population), enough)
            wanted = [0] + [min(enough, sum(set(each) <= set(row) for row in held)) for each in asked[1:]]
            assert found.tolist() == wanted


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_a_part_counts_the_records_that_contain_it_whether_or_not_they_show_it_of_a_visit(k: int) -> None:
    """Two records show {0, 1} of a visit, two more contain it of visits apart."""
    population = lists_of([[0, 1], [0, 1], [0, 1, 2], [0, 1]], [0, 1, 2, 3], 3)
    sets = lists_of([[0, 1], [0, 1], [0], [1], [0], [1]], [0, 1, 2, 2, 3, 3], 3)
    check = levels.check_containment("contained_sets", sets, population, k)
    assert check.passed == (k <= 4)
    assert check.figures["distinct"] == 3
    assert check.figures["smallest"] == min(k, 4)
