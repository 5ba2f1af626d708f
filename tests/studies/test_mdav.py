"""MDAV, the comparator of the study of condensation, on a worked example and on any points."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def groups_of(values: list[tuple[float, ...]], k: int) -> list[list[tuple[float, ...]]]:
    from mdav import mdav

    labels = mdav(np.array(values, float).reshape(len(values), -1), k)
    return [
        [v for v, label in zip(values, labels, strict=True) if label == g] for g in range(max(labels) + 1)
    ]


def test_worked_example() -> None:
    """By hand, k = 2."""
    values = [(float(x),) for x in (1, 2, 3, 10, 11, 12, 23, 31)]
    # mean 11.625; 31 is 19.4 off, 1 is 10.6 off. {31, 23}, then {1, 2}; four are left: 3 is farthest from their
    # mean of 9 and takes 10, the nearest; 11 and 12 remain.
    assert groups_of(values, 2) == [
        [(23.0,), (31.0,)],
        [(1.0,), (2.0,)],
        [(3.0,), (10.0,)],
        [(11.0,), (12.0,)],
    ]


def test_fewer_than_two_groups_of_rows_are_one_group() -> None:
    assert groups_of([(1.0,), (2.0,), (9.0,)], 2) == [[(1.0,), (2.0,), (9.0,)]]


def plain(points: list[tuple[int, ...]], k: int) -> list[set[int]]:
    """The steps of the paper on lists of whole numbers; means are kept as sums, so that no distance is rounded."""

    def gap(a: tuple[int, ...], b: tuple[int, ...]) -> int:
        return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))

    def off(i: int) -> int:
        total = [sum(points[j][d] for j in left) for d in range(len(points[i]))]
        return sum((len(left) * x - t) ** 2 for x, t in zip(points[i], total, strict=True))

    left, found = list(range(len(points))), []

    def take(row: int) -> None:
        near = sorted(left, key=lambda i: (i != row, gap(points[i], points[row]), i))[:k]
        found.append(set(near))
        left[:] = [i for i in left if i not in near]

    while len(left) >= 3 * k:
        r = max(left, key=lambda i: (off(i), -i))
        take(r)
        take(max(left, key=lambda i: (gap(points[i], points[r]), -i)))
    if len(left) >= 2 * k:
        take(max(left, key=lambda i: (off(i), -i)))
    return [*found, set(left)]


@given(
    st.integers(1, 3).flatmap(
        lambda width: st.lists(st.tuples(*[st.integers(0, 6)] * width), min_size=1, max_size=12)
    ),
    st.integers(1, 4),
)
def test_any_points_as_the_paper_says(points: list[tuple[int, ...]], k: int) -> None:
    from mdav import mdav

    if len(points) < k:
        return
    scaled = [
        tuple(27_720 * x for x in point) for point in points
    ]  # means of up to 12 rows are whole numbers
    labels = mdav(np.array(scaled, np.float64), k)
    found = [set(np.flatnonzero(labels == g).tolist()) for g in range(labels.max() + 1)]
    assert all(k <= len(group) < 2 * k for group in found)
    assert found == plain(points, k)
