"""How many records may have a set of codes in any data set that two disassociations can both be of: an integer program.

A record of the data has a content, a leaf of the first release and a leaf of the second.
For each release, every chunk's subrecords are the contents' parts, each as often as published; every code of an item
chunk is in at least one record of its leaf; and a record has no code that its leaf does not show. Sizes are exponential
in the codes: for a dozen patients.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import polars as pl
from scipy.optimize import Bounds, LinearConstraint, milp

Codes = frozenset[str]


class Published:
    """A share: leaves, and for each of its rows of the program what it demands."""

    def __init__(self, share: Path) -> None:
        nodes = pl.read_parquet(share / "data" / "nodes.parquet")
        self.rules = '"attacker": "rules"' in (share / "release.json").read_text()
        self.parent = dict(nodes.select("node", "parent").rows())
        self.records = dict(nodes.select("node", "records").rows())
        self.leaves = [node for node, kind in nodes.select("node", "kind").rows() if kind == "cluster"]
        self.items: dict[int, Codes] = {}
        self.chunks: dict[tuple[int, int], Counter[Codes]] = {}
        for row in pl.read_parquet(share / "data" / "chunks.parquet").rows(named=True):
            if row["kind"] == "item":
                self.items[row["node"]] = frozenset(row["codes"])
            else:
                place = row["node"], row["chunk"]
                self.chunks.setdefault(place, Counter())[frozenset(row["codes"])] += 1
        for (node, _), rows in self.chunks.items():
            rows[frozenset()] += self.records[node] - rows.total()  # `rules` writes no empty ones
        self.joint = set(self.parent.values())
        self.counted = {leaf: self._counted(leaf) for leaf in self.leaves}

    def _counted(self, leaf: int) -> dict[tuple[int, int], Codes]:
        """The codes that each chunk at or above a leaf counts for it: those not counted or listed further down."""
        found, done, at = {}, self.items.get(leaf, frozenset()), leaf
        while at is not None:
            domains = {
                place: frozenset().union(*rows) for place, rows in self.chunks.items() if place[0] == at
            }
            found |= {place: domain - done for place, domain in domains.items()}
            done = done.union(*domains.values())
            at = self.parent[at]
        return found

    def shown(self, leaf: int) -> Codes:
        return self.items.get(leaf, frozenset()).union(*self.counted[leaf].values())

    def demands(self) -> list[tuple[object, float, float]]:
        """(key, least, most): of the cells whose `keys_of` have the key, the sum is between the two."""
        sizes = [(("leaf", leaf), self.records[leaf], self.records[leaf]) for leaf in self.leaves]
        parts = [
            (("chunk", place, part), 0 if self.rules and place[0] in self.joint and not part else many, many)
            for place, rows in self.chunks.items()
            for part, many in rows.items()
        ]
        items = [
            (("item", leaf, code), 1, self.records[leaf])
            for leaf, codes in self.items.items()
            for code in codes
        ]
        return [*sizes, *parts, *items]

    def keys_of(self, leaf: int, content: Codes) -> list[object]:
        chunks = [("chunk", place, content & codes) for place, codes in self.counted[leaf].items()]
        items = [("item", leaf, code) for code in content & self.items.get(leaf, frozenset())]
        return [("leaf", leaf), *chunks, *items]


def most_candidates(one: Path, two: Path, known: Codes, codes: Codes) -> int:
    """The most records with `known` in any data set over `codes` that both shares can be of."""
    shares = [Published(one), Published(two)]
    contents = [
        frozenset(each)
        for each in chain.from_iterable(
            combinations(sorted(codes), size) for size in range(1, len(codes) + 1)
        )
    ]
    cells = [
        (p, q, content)
        for p in shares[0].leaves
        for q in shares[1].leaves
        for content in contents
        if content <= shares[0].shown(p) & shares[1].shown(q)
    ]
    demands = [((side, key), least, most) for side in (0, 1) for key, least, most in shares[side].demands()]
    row_of = {key: row for row, (key, _, _) in enumerate(demands)}
    matrix = np.zeros((len(demands), len(cells)))
    forbidden = np.zeros(len(cells), bool)
    for column, (p, q, content) in enumerate(cells):
        for side, leaf in ((0, p), (1, q)):
            for key in shares[side].keys_of(leaf, content):
                if (side, key) in row_of:
                    matrix[row_of[side, key], column] += 1
                else:
                    forbidden[column] = True  # a part that no subrecord is
    wanted = np.array([-float(known <= content) for _, _, content in cells])
    solved = milp(
        wanted,
        constraints=LinearConstraint(
            matrix, [low for _, low, _ in demands], [high for _, _, high in demands]
        ),
        integrality=np.ones(len(cells)),
        bounds=Bounds(0, np.where(forbidden, 0, np.inf)),
    )
    assert solved.status == 0, solved.message
    return round(-solved.fun)
