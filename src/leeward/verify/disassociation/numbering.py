"""Orders that a disassociated share shows by itself: of its rows, of its nodes, of the subrecords of a chunk."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.verify.checks import Check
from leeward.verify.disassociation.files import ITEM
from leeward.verify.disassociation.layout import Layout
from leeward.verify.flat import Longs, places_of
from leeward.verify.order import LIMIT, order_check


def order_checks(layout: Layout) -> list[Check]:
    """Numbers of nodes and subrecords say nothing of what they number."""
    nodes = layout.nodes
    known = {"records": pl.Series(nodes.records), "kind": pl.Series(nodes.leaf)}
    return [order_check("order_of_node_numbers", known, "nodes"), subrecords_shuffled(layout)]


def subrecords_shuffled(layout: Layout) -> Check:
    """Numbers of subrecords say nothing of their content, nor of which are filled in another chunk of their node.

    Both are sums over chunks of permutation statistics, with their exact mean and variance (see `verify.order`).
    """
    content, together = number_excess(layout)
    found = {"content": content, "filled together": together}
    telling = [name for name, z in found.items() if abs(z) > LIMIT]
    return Check(
        "subrecords_shuffled",
        not telling,
        "The numbers of subrecords say nothing of their content, nor of subrecords of other chunks."
        if not telling
        else f"The numbers of subrecords say something: {', '.join(telling)}.",
        {"deviations": {name: round(z, 2) for name, z in found.items()}, "limit": LIMIT},
    )


def number_excess(layout: Layout) -> tuple[float, float]:
    """Deviations of the number's covariance with the first code, and of fillings at the same number in two chunks that
    follow each other in their node and have as many rows."""
    chunks, n = layout.chunks, layout.chunks.rows()
    row = np.flatnonzero(np.diff(chunks.offsets) > 0)
    owner, number = np.searchsorted(chunks.start, row, side="right") - 1, chunks.number[row]
    inside = (number >= 0) & (number < n[owner])
    row, owner, number = row[inside], owner[inside], number[inside]

    def sums(values: Longs | None) -> NDArray[np.float64]:
        return np.bincount(owner, values, len(n)).astype(float)

    code = layout.place[chunks.values[chunks.offsets[row]]]
    several = (chunks.kind != ITEM) & (n > 1)
    squares = sums(code**2) - sums(code) ** 2 / np.maximum(n, 1)
    one = several & (squares > 0)  # every chunk counts alike, whatever its codes
    trend = (sums(code * number) - sums(code) * (n - 1) / 2)[one] / np.sqrt(squares[one])
    first = _deviation(trend, (n * (n + 1) / 12)[one])

    order = layout.groups_of[several[layout.groups_of]]
    a, b = order[:-1], order[1:]
    paired = (chunks.node[a] == chunks.node[b]) & (n[a] == n[b])
    a, b = a[paired], b[paired]
    filled = np.zeros(len(chunks.number), np.bool_)
    filled[chunks.start[owner] + number] = True
    both = filled[places_of(chunks.start[a], n[a])] & filled[places_of(chunks.start[b], n[a])]
    size, in_a, in_b = n[a], sums(None)[a], sums(None)[b]
    joint = np.bincount(np.repeat(np.arange(len(a)), size), both, len(a)) - in_a * in_b / size
    return first, _deviation(
        joint, in_a * in_b * (size - in_a) * (size - in_b) / (size * size * (size - 1.0))
    )


def _deviation(excess: NDArray[np.float64], variance: NDArray[np.float64]) -> float:
    """What a sum is above its mean, in standard deviations."""
    spread = variance.sum()
    return float(excess.sum() / np.sqrt(spread)) if spread > 0 else 0.0
