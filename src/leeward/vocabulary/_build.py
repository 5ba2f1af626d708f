"""From (node, parent) pairs to depth-first arrays, with an error for everything that is not a tree."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from leeward.arrays import Int32s, offsets_of
from leeward.errors import BadInput


@dataclass(frozen=True)
class Shape:
    """The arrays of a `Hierarchy` that follow from parents alone; nodes in depth-first order, root first."""

    labels: tuple[str, ...]
    parent: Int32s
    depth: Int32s
    height: Int32s
    end: Int32s
    leaf_count: Int32s
    first_leaf: Int32s
    last_leaf: Int32s
    leaves: Int32s


def inner_label(label: str, taken: AbstractSet[str]) -> str:
    """A label for the inner node of a code that also is a leaf: `250` → `250.*`, `250.0` → `250.0*`."""
    made = f"{label}*" if "." in label else f"{label}.*"
    while made in taken:
        made += "*"
    return made


def shape_of(pairs: Sequence[tuple[str, str | None]], name: str, rows: Sequence[int]) -> Shape:
    """Check that the pairs are one tree and number its nodes depth first, children in the order given."""
    if not pairs:
        raise BadInput(f"{name}: the hierarchy is empty; give one row a node, as `node,parent`.")
    row_of = list(rows) or list(range(1, len(pairs) + 1))
    number = _number_nodes(pairs, name, row_of)
    given_parent = _find_parents(pairs, name, row_of, number)
    root = _only_root(pairs, name, row_of, given_parent)
    order = _depth_first(given_parent, root)
    if len(order) < len(pairs):
        _raise_cycle(pairs, name, row_of, given_parent, order)
    return _measure([pairs[i][0] for i in order], given_parent, order)


def _number_nodes(
    pairs: Sequence[tuple[str, str | None]], name: str, row_of: Sequence[int]
) -> dict[str, int]:
    number: dict[str, int] = {}
    for i, (node, parent) in enumerate(pairs):
        if not node:
            raise BadInput(f"{name}, row {row_of[i]}: the column `node` is empty; every row names a node.")
        first = number.setdefault(node, i)
        if first != i:
            why = "again" if (pairs[first][1] or "") == (parent or "") else "with a second parent"
            raise BadInput(
                f"{name}, row {row_of[i]}: node {node!r} of row {row_of[first]} appears {why}; "
                "a node has one row."
            )
    return number


def _find_parents(
    pairs: Sequence[tuple[str, str | None]], name: str, row_of: Sequence[int], number: dict[str, int]
) -> list[int]:
    found = []
    for i, (node, parent) in enumerate(pairs):
        above = number.get(parent, -2) if parent else -1
        if above == -2:
            raise BadInput(
                f"{name}, row {row_of[i]}: the parent {parent!r} of node {node!r} is not a node; "
                f"add a row for it (`{parent},` if it is the root)."
            )
        found.append(above)
    return found


def _only_root(
    pairs: Sequence[tuple[str, str | None]], name: str, row_of: Sequence[int], parent: Sequence[int]
) -> int:
    roots = [i for i, above in enumerate(parent) if above < 0]
    if not roots:
        raise BadInput(f"{name}: no root, so the parents form a cycle; leave the parent of one node empty.")
    if len(roots) > 1:
        shown = ", ".join(f"{pairs[i][0]!r} (row {row_of[i]})" for i in roots[:5])
        raise BadInput(
            f"{name}: {len(roots)} roots, {shown}{', …' if len(roots) > 5 else ''}; "
            "a hierarchy has one: add a root above them."
        )
    return roots[0]


def _depth_first(parent: Sequence[int], root: int) -> list[int]:
    children: list[list[int]] = [[] for _ in parent]
    for i, above in enumerate(parent):
        if above >= 0:
            children[above].append(i)
    order: list[int] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(reversed(children[node]))
    return order


def _raise_cycle(
    pairs: Sequence[tuple[str, str | None]],
    name: str,
    row_of: Sequence[int],
    parent: Sequence[int],
    reached: Sequence[int],
) -> None:
    inside = set(reached)
    node = next(i for i in range(len(parent)) if i not in inside)
    seen: set[int] = set()
    while node not in seen:  # a node that the root does not reach climbs into a cycle
        seen.add(node)
        node = parent[node]
    raise BadInput(
        f"{name}, row {row_of[node]}: node {pairs[node][0]!r} is its own ancestor; "
        "a hierarchy has no cycle: correct one of the parents."
    )


def _measure(labels: list[str], given_parent: Sequence[int], order: Sequence[int]) -> Shape:
    n = len(order)
    position = np.empty(n, np.int32)
    position[np.asarray(order)] = np.arange(n, dtype=np.int32)
    parent = np.array([position[given_parent[i]] if given_parent[i] >= 0 else -1 for i in order], np.int32)
    depth = np.zeros(n, np.int32)
    end = np.arange(n, dtype=np.int32)
    height = np.zeros(n, np.int32)
    up = parent.tolist()
    for node in range(1, n):
        depth[node] = depth[up[node]] + 1
    for node in range(n - 1, 0, -1):
        end[up[node]] = max(end[up[node]], end[node])
        height[up[node]] = max(height[up[node]], height[node] + 1)
    is_leaf = end == np.arange(n)
    before = offsets_of(is_leaf)
    return Shape(
        labels=tuple(labels),
        parent=parent,
        depth=depth,
        height=height,
        end=end,
        leaf_count=(before[end + 1] - before[:-1]).astype(np.int32),
        first_leaf=before[:-1].astype(np.int32),
        last_leaf=(before[end + 1] - 1).astype(np.int32),
        leaves=np.flatnonzero(is_leaf).astype(np.int32),
    )
