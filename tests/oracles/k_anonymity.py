"""Strict Mondrian by recursion, beside docs/methods/k-anonymity.md#groups: slow, for small inputs."""

from __future__ import annotations

from collections.abc import Sequence

Row = tuple[float, ...]


def mondrian(rows: Sequence[Row], k: int) -> set[frozenset[int]]:
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
                if min(len(left), len(right)) >= k:
                    return split(left) + split(right)
        return [part]

    return {frozenset(each) for each in split(list(range(len(rows))))}
