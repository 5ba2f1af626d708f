"""MDAV and MST, comparators of the study of condensation, on worked examples and on any points."""

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


def groups_of(values: list[tuple[float, ...]], k: int, by: str = "mdav") -> list[list[tuple[float, ...]]]:
    import microaggregation

    labels = getattr(microaggregation, by)(np.array(values, float).reshape(len(values), -1), k)
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
    from microaggregation import mdav

    if len(points) < k:
        return
    scaled = [
        tuple(27_720 * x for x in point) for point in points
    ]  # means of up to 12 rows are whole numbers
    labels = mdav(np.array(scaled, np.float64), k)
    found = [set(np.flatnonzero(labels == g).tolist()) for g in range(labels.max() + 1)]
    assert all(k <= len(group) < 2 * k for group in found)
    assert found == plain(points, k)


def test_worked_example_of_trees() -> None:
    """By hand, k = 2: the edges have the lengths 1, 1, 7, 1, 1, 11 and 8. 11 goes (6 and 2 rows are left), 8 stays (one
    row would be left), 7 goes; every other edge would leave one row."""
    values = [(float(x),) for x in (1, 2, 3, 10, 11, 12, 23, 31)]
    assert sorted(groups_of(values, 2, "mst")) == [
        [(1.0,), (2.0,), (3.0,)],
        [(10.0,), (11.0,), (12.0,)],
        [(23.0,), (31.0,)],
    ]


def test_worked_example_of_centroids() -> None:
    """By hand, k = 2: 9 is farthest from the mean of 3 and takes 3; of 0, 1 and 2 the first is farthest and takes 1; 2
    is nearer to the mean of 0.5 than to that of 6."""
    values = [(float(x),) for x in (0, 1, 2, 3, 9)]
    assert groups_of(values, 2, "by_centroids") == [[(3.0,), (9.0,)], [(0.0,), (1.0,), (2.0,)]]


ANY_POINTS = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.tuples(*[st.integers(0, 6)] * width), min_size=1, max_size=14)
)


@given(ANY_POINTS, st.integers(1, 4))
def test_any_tree_is_of_least_length_and_cut_as_the_paper_says(points: list[tuple[int, ...]], k: int) -> None:
    from microaggregation import cut_tree, mst, spanning_tree

    if len(points) < k:
        return
    order, parent, length = spanning_tree(np.array(points, np.float64))
    assert sorted(order) == list(range(len(points)))
    gaps = sorted(
        (sum((x - y) ** 2 for x, y in zip(points[i], points[j], strict=True)), i, j)
        for i in range(len(points))
        for j in range(i)
    )
    kruskal, part_of = 0, {i: {i} for i in range(len(points))}
    for gap, i, j in gaps:
        if part_of[i] is not part_of[j]:
            kruskal += gap
            part_of[i] |= part_of[j]
            part_of.update(dict.fromkeys(part_of[j], part_of[i]))
    assert length.sum() == kruskal
    edges = {(row, int(parent[row])) for row in range(1, len(points))}
    for row in sorted(range(1, len(points)), key=lambda i: (-length[i], i)):
        fewer = edges - {(row, int(parent[row]))}
        if all(len(component(end, fewer)) >= k for end in (row, int(parent[row]))):
            edges = fewer
    parts = cut_tree(order, parent, length, k)
    assert all(set(np.flatnonzero(parts == parts[i])) == component(i, edges) for i in range(len(points)))
    sizes = np.bincount(mst(np.array(points, np.float64), k))
    assert sizes.min() >= k and sizes.max() < 2 * k + k


def component(row: int, edges: set[tuple[int, int]]) -> set[int]:
    """The rows that edges join to a row."""
    found = {row}
    while more := {end for edge in edges if found & set(edge) for end in edge} - found:
        found |= more
    return found
