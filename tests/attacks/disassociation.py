"""The attacker of disassociated codes: knows up to m codes of a patient, and perhaps the algorithm.

    python tests/attacks/disassociation.py share/ known.csv

Reads `share/` and the background knowledge (`known`: one line a patient, codes with commas between). For each set of
up to m codes of a patient the attacker counts the records that may be the patient's, plainly, node by node: the most
that one data set has from which the operation could have made the files. Who knows that codes are counted from t
records on (t = k + 1 by `attacker: counts`, else k) knows that a code of an item chunk has at most t - 1 records of its
cluster; who knows Refine, that clusters below a joint cluster that does not count a code, nor anything below it, have
at most t - 1 records with it together.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import polars as pl


@dataclass
class Node:
    """A cluster or a joint cluster: its chunks of subrecords, item codes, and the nodes below."""

    records: int
    chunks: dict[int, list[frozenset[str]]] = field(default_factory=dict)
    items: frozenset[str] = frozenset()
    below: list[Node] = field(default_factory=list)
    most: dict[str, int] = field(default_factory=dict)
    """The most records of each item code, for who knows Refine."""

    def leaves(self) -> list[Node]:
        return [leaf for each in self.below for leaf in each.leaves()] or [self]

    def counted(self) -> frozenset[str]:
        """The codes of chunks at or below the node."""
        own = [subrecord for subrecords in self.chunks.values() for subrecord in subrecords]
        return frozenset().union(*own, *(each.counted() for each in self.below))

    def bound(self, least: int, done: frozenset[str] = frozenset()) -> None:
        """Fill in `most` of the clusters below, for codes counted from `least` records on; `done`: codes that a node
        above has bounded."""
        leaves = self.leaves()
        here = frozenset().union(*(leaf.items for leaf in leaves)) - self.counted() - done
        for code in here:
            listing = [leaf for leaf in leaves if code in leaf.items]
            for leaf in listing:
                leaf.most[code] = max(least - len(listing), 1)
        for each in self.below:
            each.bound(least, done | here)

    def candidates(self, wanted: frozenset[str], item_most: int | None) -> int:
        """The most records below the node that may hold `wanted`; `item_most` None: as `most` has it."""
        return self.left(wanted, item_most).get(frozenset(), 0)

    def left(self, wanted: frozenset[str], item_most: int | None) -> dict[frozenset[str], int]:
        """The most records that may hold `wanted` but for what the shared chunks above have to give."""
        found: dict[frozenset[str], int] = {}
        if not self.below:
            found = {wanted: self.records}
        for each in self.below:
            for rest, most in each.left(wanted, item_most).items():
                found[rest] = found.get(rest, 0) + most
        after: dict[frozenset[str], int] = {}
        for rest, most in found.items():
            for subrecords in self.chunks.values():
                part = rest & frozenset().union(*subrecords)
                if part:
                    most = min(most, sum(part <= subrecord for subrecord in subrecords))
                    rest -= part
            if rest & self.items:
                own = min(self.most[code] for code in rest & self.items) if item_most is None else item_most
                most, rest = min(most, own), rest - self.items
            after[rest] = after.get(rest, 0) + most
        return after


@dataclass(frozen=True)
class Attack:
    """Of `sets` known code sets, those that no record can have as far as the files show (codes were suppressed), and
    of the others those with fewer than k candidates; and with the algorithm known."""

    sets: int
    not_shown: int
    below_k: int
    below_k_algorithm_known: int
    smallest: int


def counted_from(share: Path) -> int:
    manifest = json.loads((share / "release.json").read_text())
    return int(manifest["guarantee"]["k"]) + (manifest["parameters"]["attacker"] in ("counts", "rules"))


def read(share: Path) -> list[Node]:
    """The topmost nodes, `most` filled in."""
    rows = pl.read_parquet(share / "data" / "nodes.parquet").rows(named=True)
    nodes = {row["node"]: Node(row["records"]) for row in rows}
    for row in pl.read_parquet(share / "data" / "chunks.parquet").rows(named=True):
        node = nodes[row["node"]]
        if row["kind"] == "item":
            node.items = frozenset(row["codes"])
        else:
            node.chunks.setdefault(row["chunk"], []).append(frozenset(row["codes"]))
    for row in rows:
        if row["parent"] is not None:
            nodes[row["parent"]].below.append(nodes[row["node"]])
    top = [nodes[row["node"]] for row in rows if row["parent"] is None]
    for node in top:
        node.bound(counted_from(share))
    return top


def known_most(share: Path) -> int:
    """The most records of an item code, as far as the guarantee's attacker knows. The one code of a cluster that moved
    there because its item chunk was empty may have more: its candidates are too few here, never too many."""
    guarantee, least = json.loads((share / "release.json").read_text())["guarantee"], counted_from(share)
    return least - 1 if least > guarantee["k"] else sys.maxsize


def attack(share: Path, known: Iterable[frozenset[str]], k: int | None = None) -> Attack:
    """Look every set of up to m codes of the known patients up; `k` in place of the stated one."""
    guarantee = json.loads((share / "release.json").read_text())["guarantee"]
    k = guarantee["k"] if k is None else k
    top = read(share)
    sets = {
        frozenset(chosen)
        for codes in known
        for size in range(1, guarantee["m"] + 1)
        for chosen in combinations(sorted(codes), size)
    }
    most = known_most(share)
    plain = [sum(node.candidates(wanted, most) for node in top) for wanted in sorted(sets, key=sorted)]
    capped = [sum(node.candidates(wanted, None) for node in top) for wanted in sorted(sets, key=sorted)]
    shown = [n for n in plain if n]
    return Attack(
        len(sets),
        len(plain) - len(shown),
        sum(n < k for n in shown),
        sum(n > 0 and c < k for n, c in zip(plain, capped, strict=True)),
        min(shown, default=0),
    )


if __name__ == "__main__":
    patients = [frozenset(line.split(",")) for line in Path(sys.argv[2]).read_text().split()]
    sys.stdout.write(f"{attack(Path(sys.argv[1]), patients)}\n")
