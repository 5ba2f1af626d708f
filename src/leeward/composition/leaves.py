"""A disassociated release as the leaves of its clusters, with the most and the fewest records that may hold a set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from leeward.composition.known import Coding, bits_of
from leeward.release import Release

ANYTHING = -1
"""The mask of all codes."""


@dataclass(frozen=True)
class Chunk:
    """Subrecords over a domain, and how many records have each; `shared`: of a joint cluster."""

    node: int
    domain: int
    subrecords: Mapping[int, int]
    shared: bool

    def holding(self, part: int, allowed: int = ANYTHING) -> int:
        """How many subrecords have `part` and nothing but allowed codes."""
        kept = self.subrecords.items()
        return sum(many for codes, many in kept if not part & ~codes and not codes & ~allowed)


@dataclass
class Leaf:
    """A cluster.

    chunks : its own and those of the joint clusters above it, each with the codes that it counts for this cluster (not
        those that a chunk further down counts already)
    items : the codes of its item chunk
    seen : the codes that a record may have; must : those that every record has
    """

    records: int
    chunks: list[tuple[int, Chunk]] = field(default_factory=list)
    items: int = 0
    seen: int = 0
    must: int = 0


class Leaves:
    """A disassociated release.

    shown : the codes that it shows anywhere
    holding : of each code, the leaves that show it
    low, high : of each code, the least and the most records that may have it
    """

    def __init__(self, release: Release, coding: Coding) -> None:
        nodes = release.table("nodes.parquet").collect()
        self.parent: dict[int, int | None] = dict(nodes.select("node", "parent").rows())
        self.records: dict[int, int] = dict(nodes.select("node", "records").rows())
        joint = {node for node in self.parent.values() if node is not None}
        self.own, items = _chunks_of(release, coding, joint, self.records)
        self.leaves = {
            node: self._leaf(node, items.get(node, 0))
            for node, kind in nodes.select("node", "kind").rows()
            if kind == "cluster"
        }
        self.shown = reduce(or_, (leaf.seen for leaf in self.leaves.values()), 0)
        self.holding: dict[int, set[int]] = {bit: set() for bit in bits_of(self.shown)}
        for node, leaf in self.leaves.items():
            for bit in bits_of(leaf.seen):
                self.holding[bit].add(node)
        self.low, self.high = self._totals()
        self.slack: dict[int, int] = {}

    def _leaf(self, node: int, items: int) -> Leaf:
        leaf, done = Leaf(self.records[node], items=items), 0
        at: int | None = node
        while at is not None:
            for chunk in self.own.get(at, ()):
                leaf.chunks.append((chunk.domain & ~done, chunk))
            done |= reduce(or_, (chunk.domain for chunk in self.own.get(at, ())), items)
            at = self.parent[at]
        leaf.seen = done
        for counted, chunk in leaf.chunks:
            size = self.records[chunk.node]
            leaf.must |= sum(bit for bit in bits_of(counted) if chunk.holding(bit) == size)
        return leaf

    def _totals(self) -> tuple[Counter[int], Counter[int]]:
        low: Counter[int] = Counter()
        for chunks in self.own.values():
            for chunk in chunks:
                for codes, many in chunk.subrecords.items():
                    low.update(dict.fromkeys(bits_of(codes), many))
        high = Counter(low)
        for leaf in self.leaves.values():
            for bit in bits_of(leaf.items):
                low[bit] += 1
                high[bit] += leaf.records
        return low, high

    def tighten(self, other: Leaves) -> None:
        """The same patients with the same codes: what a code's total in the other release leaves for the leaves that
        only list it, beside the one record that each has."""
        both = self.shown & other.shown
        self.slack = {
            bit: max(0, min(self.high[bit], other.high[bit]) - self.low[bit]) for bit in bits_of(both)
        }

    def most(self, node: int, known: int, allowed: int = ANYTHING) -> int:
        """The most records of a leaf that may have these codes, and no other than allowed ones."""
        leaf = self.leaves[node]
        if known & ~leaf.seen:
            return 0
        best, left = leaf.records, known
        for counted, chunk in leaf.chunks:
            part = known & counted
            # The records without a part in a shared chunk may be those of other clusters.
            if not part and (chunk.shared or not chunk.domain & ~allowed):
                continue
            left &= ~part
            best = min(best, chunk.holding(part, allowed))
            if not best:
                return 0
        for bit in bits_of(left):
            best = min(best, 1 + self.slack.get(bit, best))
        return best

    def places(self, known: int) -> Iterator[int]:
        """The leaves of which some record may have these codes."""
        nodes = sorted(set.intersection(*(self.holding.get(bit, set()) for bit in bits_of(known))))
        return (node for node in nodes if self.most(node, known))

    def capped(self, rows: Mapping[int, int], known: int) -> int:
        """The sum of so many records of each leaf with these codes, where those below a joint cluster are together at
        most as many as its shared chunks have."""
        below: dict[int | None, dict[int, None]] = {}
        for node in rows:
            at: int | None = node
            while at is not None:
                below.setdefault(self.parent[at], {})[at] = None
                at = self.parent[at]
        return sum(self._left(root, rows, known, below).get(0, 0) for root in below.get(None, ()))

    def _left(
        self, node: int, rows: Mapping[int, int], known: int, below: Mapping[int | None, Iterable[int]]
    ) -> dict[int, int]:
        """The most records below a node by the codes that they need from shared chunks above it."""
        found = {known: rows[node]} if node in rows else {}
        for child in below.get(node, ()):
            for rest, most in self._left(child, rows, known, below).items():
                found[rest] = found.get(rest, 0) + most
        after: dict[int, int] = {}
        items = self.leaves[node].items if node in self.leaves else 0
        for rest, most in found.items():
            for chunk in self.own.get(node, ()):
                if part := rest & chunk.domain:
                    most, rest = min(most, chunk.holding(part)), rest & ~part
            rest &= ~items
            after[rest] = after.get(rest, 0) + most
        return after


def _chunks_of(
    release: Release, coding: Coding, joint: set[int], records: Mapping[int, int]
) -> tuple[dict[int, list[Chunk]], dict[int, int]]:
    """The chunks of subrecords and the item codes of each node."""
    rows = release.table("chunks.parquet").select("node", "chunk", "kind", "codes").collect()
    subrecords: dict[tuple[int, int], Counter[int]] = {}
    items: dict[int, int] = {}
    for node, chunk, kind, codes in rows.iter_rows():
        if kind == "item":
            items[node] = items.get(node, 0) | coding.mask(codes)
        else:
            subrecords.setdefault((node, chunk), Counter())[coding.mask(codes)] += 1
    own: dict[int, list[Chunk]] = {}
    for (node, _), counted in subrecords.items():
        counted[0] += records[node] - counted.total()  # `rules` writes no empty ones
        own.setdefault(node, []).append(Chunk(node, reduce(or_, counted, 0), counted, node in joint))
    return own, items
