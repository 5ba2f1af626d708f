"""Orders that a disassociated share shows by itself: of its rows, of its nodes, of the subrecords of a chunk."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.compiled import njit
from leeward.verify.checks import Check
from leeward.verify.disassociation.files import ITEM, Ints, Longs
from leeward.verify.disassociation.layout import Layout
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
    chunks = layout.chunks
    order = np.argsort(chunks.node, kind="stable")
    content, together = number_excess(
        order, chunks.node, chunks.kind, chunks.start, chunks.number, chunks.offsets, chunks.values,
        layout.place,
    )  # fmt: skip
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


@njit
def number_excess(
    order: Longs,
    node: Ints,
    kind: NDArray[np.int8],
    start: Longs,
    number: Longs,
    offsets: Longs,
    values: Ints,
    place: Longs,
) -> tuple[float, float]:
    """Deviations of the number's covariance with the first code, and of fillings at the same number in two chunks."""
    trend = spread = joint = joint_spread = 0.0
    i = 0
    while i < len(order):
        last = i
        while last < len(order) and node[order[last]] == node[order[i]]:
            last += 1
        previous = np.empty(0, np.bool_)
        for c in range(i, last):
            g = order[c]
            n = start[g + 1] - start[g]
            if kind[g] == ITEM or n < 2:
                continue
            filled = np.zeros(n, np.bool_)
            known = np.zeros(n)
            for row in range(start[g], start[g + 1]):
                s = number[row]
                if 0 <= s < n and offsets[row + 1] > offsets[row]:
                    filled[s] = True
                    known[s] = place[values[offsets[row]]]
            known -= known.mean()
            moved = np.arange(n) - (n - 1) / 2
            size = np.sqrt((known**2).sum())
            if size > 0:  # every chunk counts alike, whatever its codes
                trend += (known * moved).sum() / size
                spread += (moved**2).sum() / (n - 1)
            if len(previous) == n:
                a, b = previous.sum(), filled.sum()
                joint += (previous & filled).sum() - a * b / n
                joint_spread += a * b * (n - a) * (n - b) / (n * n * (n - 1.0))
            previous = filled
        i = last
    first = trend / np.sqrt(spread) if spread > 0 else 0.0
    second = joint / np.sqrt(joint_spread) if joint_spread > 0 else 0.0
    return first, second
