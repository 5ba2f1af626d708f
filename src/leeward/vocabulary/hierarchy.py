"""Generalization hierarchies as flat arrays (a tree whose leaves are the values that records hold).

Nodes are numbered depth first, so the subtree of a node is the run of numbers `node … end[node]` and an ancestor test
is two comparisons; leaves are numbered the same way, so the leaves below a node are an interval too.

Loss follows Tamersoy (2011), chapter IV, by docs/methods/trajectories.md#loss: Δ(node) is the number of leaves below
the node, where a leaf has none, so generalizing a value to the root costs the same as suppressing it (1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from leeward.arrays import Bools, Float64s, Int32s, offsets_of
from leeward.errors import BadInput, listed
from leeward.vocabulary._text import read_table, write_table

Pairs = Sequence[tuple[str, str | None]]
"""(node, parent) labels."""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A rooted tree of labels; every array has one entry a node, int32, node 0 is the root.

    name : what to call it in messages.
    labels : the text of each node, unique.
    parent : the node above, -1 for the root.
    depth : steps from the root.
    end : the last node of the subtree; `node` is `x` or an ancestor of it if and only if `node <= x <= end[node]`.
    leaf_count : leaves under the node; a leaf counts 1 (the reading of AvgRE).
    first_leaf, last_leaf : the interval of leaf numbers under the node (both included).
    leaves : int32[|A|], the node of each leaf number.
    level : a node's kind, rising towards the root; height above the lowest leaf unless the vocabulary says otherwise.
    level_names : one name a level (`"5-digit"`, …).
    index : node of each label.
    """

    name: str
    labels: tuple[str, ...]
    parent: Int32s
    depth: Int32s
    end: Int32s
    leaf_count: Int32s
    first_leaf: Int32s
    last_leaf: Int32s
    leaves: Int32s
    level: Int32s
    level_names: tuple[str, ...]
    index: Mapping[str, int] = field(repr=False)

    @classmethod
    def from_pairs(
        cls,
        pairs: Iterable[tuple[str, str | None]],
        name: str = "hierarchy",
        levels: Mapping[str, int] | None = None,
        level_names: Sequence[str] = (),
        rows: Sequence[int] = (),
    ) -> Hierarchy:
        """Build from (node, parent) pairs; the root's parent is None or empty. Children keep the order given.

        `levels` gives each label's level (default: height); `rows` are row numbers for messages (default: 1, 2, …).
        Raises BadInput: no node, empty label, a node twice, an unknown parent, no root, two roots, a cycle.
        """
        listed = list(pairs)
        if not listed:
            raise BadInput(f"{name}: the hierarchy is empty; give one row per node, as `node,parent`.")
        above, order = _place_nodes(listed, name, list(rows) or range(1, len(listed) + 1))
        n = len(order)
        labels = tuple(listed[i][0] for i in order)
        index = dict(zip(labels, range(n), strict=True))
        position = np.full(n + 1, -1, np.int32)  # the last one is that of no parent
        position[order] = np.arange(n)
        parent = position[np.array(above)[order]]
        depth, height, end = np.zeros(n, np.int32), np.zeros(n, np.int32), np.arange(n, dtype=np.int32)
        up = parent.tolist()
        for node in range(1, n):
            depth[node] = depth[up[node]] + 1
        for node in range(n - 1, 0, -1):
            end[up[node]] = max(end[up[node]], end[node])
            height[up[node]] = max(height[up[node]], height[node] + 1)
        is_leaf = end == np.arange(n)
        before = offsets_of(is_leaf).astype(np.int32)
        level = height if levels is None else np.array([levels[label] for label in labels], np.int32)
        return cls(
            name=name,
            labels=labels,
            parent=parent,
            depth=depth,
            end=end,
            leaf_count=before[end + 1] - before[:-1],
            first_leaf=before[:-1],
            last_leaf=before[end + 1] - 1,
            leaves=np.flatnonzero(is_leaf).astype(np.int32),
            level=level,
            level_names=tuple(level_names) or tuple(f"level {i}" for i in range(int(level.max()) + 1)),
            index=index,
        )

    @classmethod
    def from_csv(cls, path: str | Path, name: str | None = None) -> Hierarchy:
        """Read a CSV with the columns `node` and `parent` (empty for the root). Raises BadInput with file and row."""
        path = Path(path)
        table = read_table(path)
        nodes, parents = table.column("node"), table.column("parent")
        return cls.from_pairs(zip(nodes, parents, strict=True), name=name or path.name, rows=table.rows)

    @property
    def n_leaves(self) -> int:
        """|A|: how many leaves the hierarchy has."""
        return len(self.leaves)

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: object) -> bool:
        return label in self.index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        return self.labels == other.labels and np.array_equal(self.parent, other.parent)

    def __hash__(self) -> int:
        return hash(self.labels)

    def __repr__(self) -> str:
        sizes = f"{len(self):,} nodes, {self.n_leaves:,} leaves, depth {int(self.depth.max())}"
        return f"Hierarchy({self.name}: {sizes})"

    def is_leaf(self, node: ArrayLike) -> Bools:
        nodes = np.asarray(node)
        return np.asarray(self.end[nodes] == nodes)

    def nodes_of(self, labels: Sequence[str]) -> Int32s:
        """The node of each label, int32. Raises BadInput with the number of labels that are missing."""
        nodes = np.array([self.index.get(label, -1) for label in labels], np.int32)
        missing = int(np.count_nonzero(nodes < 0))
        if missing:
            raise BadInput(
                f"{self.name}: {missing:,} of {len(nodes):,} codes are not in this hierarchy; add them, "
                "choose the vocabulary they belong to, or take them out of the input."
            )
        return nodes

    def leaf_labels(self) -> tuple[str, ...]:
        return tuple(self.labels[leaf] for leaf in self.leaves)

    def ancestors(self, node: int) -> tuple[int, ...]:
        """The nodes above, from the parent to the root (empty for the root)."""
        found = []
        while (node := int(self.parent[node])) >= 0:
            found.append(node)
        return tuple(found)

    def is_ancestor(self, above: ArrayLike, below: ArrayLike) -> Bools:
        """Whether `above` is `below` or an ancestor of it (element by element)."""
        a, b = np.asarray(above), np.asarray(below)
        return np.asarray((a <= b) & (b <= self.end[a]))

    @property
    def deltas(self) -> Int32s:
        """Δ of every node, int32: leaves below it, a leaf having none (docs/methods/trajectories.md#loss)."""
        return np.where(self.is_leaf(np.arange(len(self))), 0, self.leaf_count).astype(np.int32)

    @property
    def losses(self) -> Float64s:
        """LM(leaf, node) of every node: Δ(node) / |A|. A tree of one node has loss 0 throughout."""
        return self.deltas / self.n_leaves

    @overload
    def lca(self, a: int, b: int) -> int: ...
    @overload
    def lca(self, a: Int32s, b: Int32s) -> Int32s: ...
    def lca(self, a: int | Int32s, b: int | Int32s) -> int | Int32s:
        """The lowest common ancestor of two nodes, or of two arrays of nodes element by element."""
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            top, other = (
                x.copy() for x in np.broadcast_arrays(np.asarray(a, np.int32), np.asarray(b, np.int32))
            )
            while (outside := ~self.is_ancestor(top, other)).any():
                top[outside] = self.parent[top[outside]]
            return top
        node = int(a)
        while not node <= b <= self.end[node]:
            node = int(self.parent[node])
        return node

    def restrict(self, codes: Iterable[str]) -> Hierarchy:
        """The hierarchy whose leaves are exactly `codes`, with the inner nodes above them; levels stay.

        A code that is above another one keeps its label for a leaf of its own, and the inner node is renamed: with 250
        and 250.00 the inner node becomes `250.*` and has the leaves `250` and `250.00`. Raises BadInput for no code, or
        codes that the hierarchy lacks (their number only).
        """
        wanted = set(self.nodes_of(sorted(set(codes))).tolist())
        if not wanted:
            raise BadInput(f"{self.name}: no code is left to build a hierarchy over; give at least one.")
        inner = {above for node in wanted for above in self.ancestors(node)}
        taken = set(self.labels)
        label: dict[int, str] = {}
        above: dict[str, str | None] = {}
        levels: dict[str, int] = {}
        for node in sorted(wanted | inner):
            own = self.labels[node]
            label[node] = inner_label(own, taken) if node in inner & wanted else own
            above[label[node]] = label[int(self.parent[node])] if node else None
            above.setdefault(own, label[node])  # the leaf of a code that is above another one
            levels |= dict.fromkeys((own, label[node]), int(self.level[node]))
        return Hierarchy.from_pairs(above.items(), self.name, levels, self.level_names)

    def to_pairs(self) -> list[tuple[str, str]]:
        """(node, parent) labels, parents first; the root's parent is the empty text."""
        return [
            (label, self.labels[up] if up >= 0 else "")
            for label, up in zip(self.labels, self.parent.tolist(), strict=True)
        ]

    def write_csv(self, path: str | Path) -> None:
        write_table(Path(path), ("node", "parent"), self.to_pairs())


def inner_label(label: str, taken: set[str]) -> str:
    """A label for the inner node of a code that also is a leaf: `250` → `250.*`, `250.0` → `250.0*`."""
    made = f"{label}*" if "." in label else f"{label}.*"
    while made in taken:
        made += "*"
    return made


def _place_nodes(pairs: Pairs, name: str, row_of: Sequence[int]) -> tuple[list[int], list[int]]:
    """The place of each pair's parent (-1: none), and the pairs depth first. BadInput for what is not a tree."""
    number = _number_nodes(pairs, name, row_of)
    for row, (node, parent) in zip(row_of, pairs, strict=True):
        if parent and parent not in number:
            raise BadInput(
                f"{name}, row {row}: the parent {parent!r} of node {node!r} is not a node; "
                f"add a row for it (`{parent},` if it is the root)."
            )
    above = [number[parent] if parent else -1 for _, parent in pairs]
    order = _depth_first(above, _only_root(pairs, name, row_of, above))
    if len(order) < len(pairs):
        # A node that the root does not reach climbs into a cycle.
        at = min(set(range(len(pairs))).difference(order))
        seen: set[int] = set()
        while at not in seen:
            seen.add(at)
            at = above[at]
        raise BadInput(
            f"{name}, row {row_of[at]}: node {pairs[at][0]!r} is its own ancestor; "
            "a hierarchy has no cycle: correct one of the parents."
        )
    return above, order


def _number_nodes(pairs: Pairs, name: str, row_of: Sequence[int]) -> dict[str, int]:
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


def _only_root(pairs: Pairs, name: str, row_of: Sequence[int], parent: Sequence[int]) -> int:
    roots = [i for i, above in enumerate(parent) if above < 0]
    if not roots:
        raise BadInput(f"{name}: no root, so the parents form a cycle; leave the parent of one node empty.")
    if len(roots) > 1:
        shown = listed([f"{pairs[i][0]!r} (row {row_of[i]})" for i in roots], 5)
        raise BadInput(f"{name}: {len(roots)} roots, {shown}; a hierarchy has one: add a root above them.")
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
