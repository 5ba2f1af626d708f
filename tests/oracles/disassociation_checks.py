"""A published disassociation as plain nested objects, and its checks one by one, slow and literal
(docs/methods/disassociation.md). The verifier's kernels are compared with these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

Subrecord = frozenset[str]
Chunk = list[Subrecord]


@dataclass
class Leaf:
    """A cluster: its size, its record chunks (one subrecord a record, empty ones too), its item chunk."""

    size: int
    chunks: list[Chunk] = field(default_factory=list)
    items: set[str] = field(default_factory=set)


@dataclass
class Joint:
    """A joint cluster: its children and its shared chunks (one subrecord a record of the joint cluster)."""

    children: list[Tree]
    shared: list[Chunk] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(child.size for child in self.children)


Tree = Leaf | Joint


def domain(chunk: Chunk) -> set[str]:
    return set().union(*chunk)


def subtree(tree: Tree) -> Iterator[Tree]:
    yield tree
    if isinstance(tree, Joint):
        for child in tree.children:
            yield from subtree(child)


def support(chunk: Chunk, codes: frozenset[str]) -> int:
    return sum(codes <= row for row in chunk)


def smallest_support(chunk: Chunk, m: int) -> int | None:
    """Of the code sets of size 1 to m that occur in the chunk, the smallest support."""
    sets = {
        frozenset(s) for row in chunk for size in range(1, m + 1) for s in combinations(sorted(row), size)
    }
    return min((support(chunk, s) for s in sets), default=None)


def is_km_anonymous(chunk: Chunk, k: int, m: int) -> bool:
    smallest = smallest_support(chunk, m)
    return smallest is None or smallest >= k


def is_k_anonymous(chunk: Chunk, k: int) -> bool:
    return all(chunk.count(row) >= k for row in chunk if row)


def violates_lemma_2(leaf: Leaf, k: int, m: int, spare: int = 0) -> bool:
    if leaf.items:
        return False
    v = len(leaf.chunks)
    filled = sum(1 for chunk in leaf.chunks for row in chunk if row)
    return v == 0 or filled < leaf.size + k * (min(m, v) - 1) + spare


def has_overlap(forest: list[Tree], *, apart: bool = True) -> bool:
    """A code in two chunks of one node, or (`apart`) in an item chunk and in a shared chunk above it."""

    def at(tree: Tree, above: set[str]) -> bool:
        own = [domain(c) for c in (tree.chunks if isinstance(tree, Leaf) else tree.shared)]
        if isinstance(tree, Leaf):
            if apart and tree.items & above:
                return True
            own.append(tree.items)
        if sum(map(len, own)) != len(set().union(*own)):
            return True
        return isinstance(tree, Joint) and any(at(c, above.union(*own)) for c in tree.children)

    return any(at(tree, set()) for tree in forest)


def violates_property_1(forest: list[Tree], k: int) -> bool:
    for tree in forest:
        for joint in subtree(tree):
            if isinstance(joint, Leaf):
                continue
            below: set[str] = set()
            for child in joint.children:
                for node in subtree(child):
                    below = below.union(*map(domain, node.chunks if isinstance(node, Leaf) else node.shared))
            if any(domain(c) & below and not is_k_anonymous(c, k) for c in joint.shared):
                return True
    return False
