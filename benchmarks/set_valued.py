"""Two algorithms of related work on sets of codes, opponents in `study_disassociation_related.py`.

Partition (He and Naughton, *Anonymization of set-valued data via top-down, local generalization*, PVLDB 2009):
complete k-anonymity, every record is published like k - 1 others. All records begin as the root; a part is split by
what its records hold below one node, the one whose expansion lowers NCP most; records of splits smaller than k stay as
they were.

Suppression (Xu, Wang, Fu and Yu, *Anonymizing transaction databases for publication*, KDD 2008): (h, k, p)-coherence
without private items, every set of at most p codes is held by 0 or by at least k records. Codes are taken out of all
records, first those in most violations (minimal moles) for each occurrence lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leeward.vocabulary.hierarchy import Hierarchy

Record = tuple[int, ...]


class Part(NamedTuple):
    """Records that are published alike, and the nodes that each of them is published as."""

    rows: list[int]
    nodes: frozenset[int]


def partition(records: Sequence[Record], tree: Hierarchy, k: int) -> list[Part]:
    """Parts of at least k records; a record is the nodes of its codes, leaves of `tree`.

    Where the paper is silent: ties go to the smaller node; a node at which a part, or the rest of one, could not be
    split is not tried there again.
    """
    if len(records) < k:
        raise ValueError(f"{len(records)} records, fewer than k = {k}")
    paths = {leaf: (*reversed(tree.ancestors(leaf)), leaf) for leaf in tree.leaves.tolist()}
    cost = np.where(tree.is_leaf(np.arange(len(tree))), 0, tree.leaf_count).tolist()
    depth = tree.depth.tolist()
    waiting = [(Part([*range(len(records))], frozenset({0})), frozenset[int]())]
    done = []

    def gains(rows: Sequence[int], nodes: frozenset[int]) -> Counter[int]:
        """By how much NCP falls when a node is expanded, in leaves: for each inner one among `nodes`."""
        found = Counter({node: 0 for node in nodes if cost[node]})
        for leaf, times in Counter(leaf for row in rows for leaf in records[row]).items():
            for node in paths[leaf]:
                if node in found:
                    found[node] += times * (cost[node] - cost[paths[leaf][depth[node] + 1]])
        return found

    while waiting:
        part, closed = waiting.pop()
        open_nodes = gains(part.rows, part.nodes - closed)
        if not open_nodes:
            done.append(part)
            continue
        node = min(open_nodes, key=lambda each: (-open_nodes[each], each))
        below = depth[node] + 1
        splits: dict[frozenset[int], list[int]] = {}
        for row in part.rows:
            paths_of = (paths[leaf] for leaf in records[row])
            key = frozenset(p[below] for p in paths_of if len(p) > below and p[below - 1] == node)
            splits.setdefault(key, []).append(row)
        rest = [row for rows in splits.values() if len(rows) < k for row in rows]
        large = {key: rows for key, rows in splits.items() if len(rows) >= k}
        if rest and len(rest) < k:  # filled up with the records that lose least
            spare = [(row, key) for key, rows in large.items() if len(rows) > k for row in rows]
            spare.sort(key=lambda each: (gains([each[0]], frozenset({node}))[node], each[0]))
            for row, key in spare:
                if len(rest) < k < len(large[key]):
                    large[key].remove(row)
                    rest.append(row)
        while rest and len(rest) < k:
            smallest = min(large, key=lambda each: (len(large[each]), sorted(each)))
            rest += large.pop(smallest)
        if rest:
            waiting.append((Part(rest, part.nodes), closed | {node}))
        waiting += [(Part(rows, (part.nodes - {node}) | key), closed) for key, rows in large.items()]
    return done


def expected(
    parts: Sequence[Part], tree: Hierarchy, queries: Sequence[Record], reading: str
) -> NDArray[np.float64]:
    """Expected records that hold each set of leaves (`leeward.analysis.generalized` has the readings)."""
    times = Counter[frozenset[int]]()
    for part in parts:
        times[part.nodes] += len(part.rows)
    cover = np.full((len(times), len(tree)), -1, np.int32)
    for at, nodes in enumerate(times):
        for node in nodes:
            cover[at, node : tree.end[node] + 1] = node
    size = tree.leaf_count.astype(float)
    records = np.array([*times.values()], float)
    found = []
    for query in queries:
        nodes = cover[:, sorted(query)]  # codes below one node are neighbours
        each = 1 / size[nodes] if reading == "share" else np.full(nodes.shape, 0.5)
        if reading == "subset":
            first = np.diff(nodes, axis=1, prepend=-2) != 0
            each = np.where(first, each / (1 - 2.0 ** -size[nodes]), each)
        found.append(float((records * np.where(nodes < 0, 0, each).prod(axis=1)).sum()))
    return np.array(found)


def minimal_moles(records: Sequence[Record], k: int, p: int) -> list[frozenset[int]]:
    """Sets of at most p codes that some record holds and fewer than k do, though at least k hold each part of them."""
    fine: set[tuple[int, ...]] = {()}
    moles = []
    for size in range(1, p + 1):
        supports = Counter(
            held
            for record in records
            for held in combinations(sorted(record), size)
            if all(held[:i] + held[i + 1 :] in fine for i in range(size))
        )
        fine = {held for held, support in supports.items() if support >= k}
        moles += [frozenset(held) for held, support in supports.items() if support < k]
    return moles


def suppressed(records: Sequence[Record], k: int, p: int) -> set[int]:
    """The codes that are taken out of all records; of equally bad ones the smallest first."""
    lost = Counter(code for record in records for code in record)
    left = minimal_moles(records, k, p)
    with_code: dict[int, set[frozenset[int]]] = {}
    for mole in left:
        for code in mole:
            with_code.setdefault(code, set()).add(mole)
    gone = set()
    while any(with_code.values()):
        # A mole of one code can be mended by that code alone: it goes first.
        code = max(with_code, key=lambda c: (frozenset({c}) in with_code[c], len(with_code[c]) / lost[c], -c))
        gone.add(code)
        for mole in [*with_code[code]]:
            for each in mole:
                with_code[each].discard(mole)
    return gone
