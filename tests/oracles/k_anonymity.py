"""Strict Mondrian by recursion, beside docs/methods/k-anonymity.md#groups, and the limits of sensitive columns, beside
docs/methods/k-anonymity.md#sensitive-columns: slow, for small inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction

Row = tuple[float, ...]


def mondrian(
    rows: Sequence[Row], k: int, may_stand: Callable[[list[int]], bool] = lambda part: True
) -> set[frozenset[int]]:
    """The groups, as sets of row numbers."""
    width = range(len(rows[0]))
    ranges = [max(row[c] for row in rows) - min(row[c] for row in rows) or 1.0 for c in width]

    def wide(part: list[int], column: int) -> float:
        values = [rows[i][column] for i in part]
        return (max(values) - min(values)) / ranges[column]

    def split(part: list[int]) -> list[list[int]]:
        for column in sorted(width, key=lambda c: -wide(part, c)):
            if wide(part, column) == 0:
                return [part]
            values = sorted(rows[i][column] for i in part)
            median = values[(len(values) - 1) // 2]
            for left in (
                [i for i in part if rows[i][column] <= median],
                [i for i in part if rows[i][column] < median],
            ):
                right = [i for i in part if i not in left]
                if min(len(left), len(right)) >= k and may_stand(left) and may_stand(right):
                    return split(left) + split(right)
        return [part]

    return {frozenset(each) for each in split(list(range(len(rows))))}


def is_frequent(values: Sequence[Hashable], ell: int) -> bool:
    """Whether more than 1 in `ell` have one value; None is no value."""
    return any(n * ell > len(values) for value, n in Counter(values).items() if value is not None)


def ordered_distance(own: Sequence[float], whole: Sequence[float]) -> Fraction:
    """What moves over each step from a distinct value to the next, in steps of 1 / (values - 1)."""
    distinct = sorted(set(whole))
    moved = sum(
        abs(Fraction(sum(x <= v for x in own), len(own)) - Fraction(sum(x <= v for x in whole), len(whole)))
        for v in distinct
    )
    return Fraction(moved) / max(1, len(distinct) - 1)


def equal_distance(own: Sequence[Hashable], whole: Sequence[Hashable]) -> Fraction:
    """Half the differences of the shares of each value."""
    return (
        sum(
            (
                abs(Fraction(own.count(v), len(own)) - Fraction(whole.count(v), len(whole)))
                for v in set(whole)
            ),
            Fraction(0),
        )
        / 2
    )
