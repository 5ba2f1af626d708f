"""`attacker: rules` (docs/proofs.md#rules), plainly, on clusters and joint clusters as given
and with every draw given from outside; and the data set of the proof, from which the same files come, with k records of
a known set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

Cell = tuple[int, int]
"""A cluster or joint cluster, and a code."""
Records = Sequence[frozenset[int]]


@dataclass(frozen=True)
class Forest:
    """The cluster of each record, and the joint cluster above each node (-1: none); joint clusters come after clusters
    and after what is below them."""

    leaf: Sequence[int]
    parent: Sequence[int]

    @property
    def leaves(self) -> range:
        return range(max(self.leaf) + 1)

    @property
    def joints(self) -> range:
        return range(max(self.leaf) + 1, len(self.parent))

    def way_up(self, node: int) -> list[int]:
        return [node, *(self.way_up(self.parent[node]) if self.parent[node] >= 0 else ())]


@dataclass(frozen=True)
class Coins:
    """The (cluster, code) that are held back, and the code that each cluster lists if it is short."""

    held: frozenset[Cell]
    drawn: dict[int, int]


@dataclass(frozen=True)
class Files:
    """How many records a node counts with a code; which codes a cluster lists."""

    counted: dict[Cell, int]
    listed: frozenset[Cell]


def short_clusters(records: Records, forest: Forest, k: int, m: int, hidden: Collection[int]) -> set[int]:
    """Clusters whose counted codes might leave a record without any."""
    held = Counter((leaf, c) for leaf, r in zip(forest.leaf, records, strict=True) for c in r)
    found = set()
    for leaf in forest.leaves:
        counts = [n for (where, c), n in held.items() if where == leaf and n > k and c not in hidden]
        if sum(counts) <= forest.leaf.count(leaf) + k * (min(m, len(counts)) - 1):
            found.add(leaf)
    return found


def make(
    records: Records, forest: Forest, k: int, m: int, coins: Coins, hidden: Collection[int] = ()
) -> Files:
    """Count and list. `hidden`: sensitive codes."""
    held = Counter((leaf, c) for leaf, r in zip(forest.leaf, records, strict=True) for c in r)
    drawn = {(leaf, coins.drawn[leaf]) for leaf in short_clusters(records, forest, k, m, hidden)}
    counted, climbing, listed = {}, {}, set()
    for cell, n in held.items():
        if cell[1] in hidden:
            listed.add(cell)
        elif n > k and cell not in drawn:
            counted[cell] = n
        elif cell in coins.held | drawn:
            listed.add(cell)
        else:
            climbing[cell] = n
    for joint in forest.joints:
        for code in {c for _, c in climbing}:
            below = [cell for cell in climbing if cell[1] == code and joint in forest.way_up(cell[0])]
            if sum(climbing[cell] for cell in below) > k:
                counted[joint, code] = sum(climbing.pop(cell) for cell in below)
    return Files(counted, frozenset(listed | set(climbing)))


def with_k_records(
    records: Records, forest: Forest, k: int, m: int, coins: Coins, wanted: frozenset[int], owner: int
) -> tuple[list[frozenset[int]], Coins, int]:
    """The proof's data set: k records of the owner's cluster have all of `wanted`, and draws with which it gives the
    same files; and in how many clusters a record would be without a code but for the code drawn there."""
    files = make(records, forest, k, m, coins)
    other = [set(r) for r in records]
    held = set(coins.held)
    home = forest.leaf[owner]
    here = [i for i, leaf in enumerate(forest.leaf) if leaf == home]
    chosen = sorted(here, key=lambda i: (i != owner, -len(wanted & records[i])))[:k]

    def move(code: int, sources: list[int], targets: list[int]) -> None:
        for source, target in zip(sources, list(targets), strict=False):
            other[source].remove(code)
            other[target].add(code)
            targets.remove(target)

    for code in sorted(wanted):
        holders = [i for i in here if code in records[i]]
        lacking = [i for i in chosen if code not in records[i]]
        spare = sorted((i for i in holders if i not in chosen), key=lambda i: -len(other[i]))
        move(code, spare, lacking)
        if len(holders) >= k:  # counted, or the drawn code, listed: an exchange
            continue
        if (home, code) in files.listed:
            for i in lacking:
                other[i].add(code)
            held.add((home, code))
            continue
        joint = next(a for a in forest.way_up(home) if (a, code) in files.counted)
        for a in forest.way_up(home):
            donors = [
                i
                for i, leaf in enumerate(forest.leaf)
                if code in other[i]
                and leaf != home
                and a in forest.way_up(leaf)
                and (leaf, code) not in files.listed
                and next(b for b in forest.way_up(leaf) if (b, code) in files.counted) == joint
            ]
            move(code, sorted(donors, key=lambda i: -len(other[i])), lacking)
            if a == joint:
                break
        assert not lacking
    filled = 0
    for leaf in forest.leaves:
        members = [i for i, own in enumerate(forest.leaf) if own == leaf]
        for i in members:
            if not other[i]:
                fill(i, members, other, lambda j, c: not (j in chosen and c in wanted))
        empty = [i for i in members if not other[i]]
        for i in empty:
            assert (leaf, coins.drawn[leaf]) in files.listed
            other[i].add(coins.drawn[leaf])
        filled += len(empty) > 0
    return [frozenset(r) for r in other], Coins(frozenset(held), coins.drawn), filled


def fill(empty: int, members: list[int], other: list[set[int]], free: object) -> None:
    """A code of a record with several goes to one without any."""
    for i in members:
        for code in sorted(other[i]):
            if len(other[i]) > 1 and free(i, code):  # type: ignore[operator]  # a function of a record and a code
                other[i].remove(code)
                other[empty].add(code)
                return
