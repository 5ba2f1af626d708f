"""Generalization hierarchies as flat arrays (a tree whose leaves are the values that records hold).

Nodes are numbered depth first, so the subtree of a node is the run of numbers `node … end[node]` and an
ancestor test is two comparisons; leaves are numbered the same way, so the leaves below a node are an
interval too.

Loss follows Tamersoy (2011), chapter IV, by docs/methods/trajectories.md#loss: Δ(node) is the number of
leaves below the node, where a leaf has none, so generalizing a value to the root costs the same as
suppressing it (1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from leeward.arrays import Bools, Float64s, Int32s
from leeward.errors import BadInput
from leeward.vocabulary._build import Shape, inner_label, shape_of
from leeward.vocabulary._text import read_table, write_table


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A rooted tree of labels; every array has one entry a node, int32, node 0 is the root.

    Attributes
    ----------
    name : what to call it in messages.
    labels : the text of each node, unique.
    parent : the node above, -1 for the root.
    depth : steps from the root.
    end : the last node of the subtree; `node` is an ancestor-or-self of `x` if and only if `node <= x <=
        end[node]`.
    leaf_count : leaves under the node; a leaf counts 1 (the reading of AvgRE).
    first_leaf, last_leaf : the interval of leaf numbers under the node (both included).
    leaves : int32[|A|], the node of each leaf number.
    level : a node's kind, rising towards the root; height above the lowest leaf unless the vocabulary says
        otherwise.
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

    # -- making ----

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

        `levels` gives each label's level (default: height); `rows` are row numbers for messages (default:
        1, 2, …). Raises BadInput: no node, empty label, a node twice, an unknown parent, no root, two
        roots, a cycle.
        """
        shape = shape_of(list(pairs), name, rows)
        return cls._of_shape(shape, name, levels, level_names)

    @classmethod
    def from_csv(cls, path: str | Path, name: str | None = None) -> Hierarchy:
        """Read a CSV with the columns `node` and `parent` (empty for the root). Raises BadInput with file
        and row.
        """
        path = Path(path)
        table = read_table(path)
        nodes, parents = table.column("node"), table.column("parent")
        return cls.from_pairs(zip(nodes, parents, strict=True), name=name or path.name, rows=table.rows)

    @classmethod
    def _of_shape(
        cls, shape: Shape, name: str, levels: Mapping[str, int] | None, level_names: Sequence[str]
    ) -> Hierarchy:
        level = shape.height if levels is None else np.array([levels[x] for x in shape.labels], np.int32)
        names = tuple(level_names) or tuple(f"level {i}" for i in range(int(level.max()) + 1))
        return cls(
            name=name,
            labels=shape.labels,
            parent=shape.parent,
            depth=shape.depth,
            end=shape.end,
            leaf_count=shape.leaf_count,
            first_leaf=shape.first_leaf,
            last_leaf=shape.last_leaf,
            leaves=shape.leaves,
            level=level,
            level_names=names,
            index={label: node for node, label in enumerate(shape.labels)},
        )

    # -- reading ----

    @property
    def root(self) -> int:
        """The node of the root: always 0."""
        return 0

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
        """Whether each node is a leaf."""
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
        """The labels of the leaves, in order."""
        return tuple(self.labels[leaf] for leaf in self.leaves)

    def children(self, node: int) -> Int32s:
        """The nodes directly below, in order."""
        return np.flatnonzero(self.parent == node).astype(np.int32)

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

    # -- loss ----

    @property
    def deltas(self) -> Int32s:
        """Δ of every node, int32: leaves below it, a leaf having none (docs/methods/trajectories.md#loss)."""
        return np.where(self.is_leaf(np.arange(len(self))), 0, self.leaf_count).astype(np.int32)

    @property
    def losses(self) -> Float64s:
        """LM(leaf, node) of every node: Δ(node) / |A|. A tree of one node has loss 0 throughout."""
        return self.deltas / self.n_leaves

    def delta(self, node: int) -> int:
        """Δ(node): leaves below the node; 0 for a leaf."""
        return 0 if self.end[node] == node else int(self.leaf_count[node])

    def loss(self, node: int) -> float:
        """LM of generalizing a value below `node` to it: Δ(node) / |A|."""
        return self.delta(node) / self.n_leaves

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

    # -- parts and files ----

    def restrict(self, codes: Iterable[str]) -> Hierarchy:
        """The hierarchy whose leaves are exactly `codes`, with the inner nodes above them; levels stay.

        A code that is above another one keeps its label for a leaf of its own, and the inner node is renamed:
        with 250 and 250.00 the inner node becomes `250.*` and has the leaves `250` and `250.00`.
        Raises BadInput for no code, or codes that the hierarchy lacks (their number only).
        """
        wanted = sorted(set(self.nodes_of(sorted(set(codes))).tolist()))
        if not wanted:
            raise BadInput(f"{self.name}: no code is left to build a hierarchy over; give at least one.")
        kept: set[int] = set()
        inner: set[int] = set()
        for node in wanted:
            kept.add(node)
            inner.update(self.ancestors(node))
        kept |= inner
        own_leaf = inner.intersection(wanted)
        taken = set(self.labels)
        label = {node: self.labels[node] for node in kept}
        label |= {node: inner_label(self.labels[node], taken) for node in own_leaf}
        pairs: list[tuple[str, str | None]] = []
        levels: dict[str, int] = {}
        for node in sorted(kept):
            pairs.append((label[node], label[int(self.parent[node])] if node else None))
            levels[label[node]] = int(self.level[node])
            if node in own_leaf:
                pairs.append((self.labels[node], label[node]))
                levels[self.labels[node]] = int(self.level[node])
        return Hierarchy.from_pairs(pairs, self.name, levels, self.level_names)

    def renamed(self, name: str) -> Hierarchy:
        """The same hierarchy under another name."""
        return replace(self, name=name)

    def to_pairs(self) -> list[tuple[str, str]]:
        """(node, parent) labels, parents first; the root's parent is the empty text."""
        return [
            (label, self.labels[up] if up >= 0 else "")
            for label, up in zip(self.labels, self.parent.tolist(), strict=True)
        ]

    def write_csv(self, path: str | Path) -> None:
        """Write `node,parent` (UTF-8, one line feed a row): `code_hierarchy.csv` and `age_hierarchy.csv` of
        a release.
        """
        write_table(Path(path), ("node", "parent"), self.to_pairs())
