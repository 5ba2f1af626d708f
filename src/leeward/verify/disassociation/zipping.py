"""Whether numbers of subrecords say whose they are, or which of them belong to one patient.

With the clusters' members at hand every subrecord has possible owners: the members who have its codes in its chunk. Two
kinds of statistics, both sums over chunks with the exact mean and variance of a shuffled chunk (Hoeffding 1951), of
columns of payload by themselves:

- zipped: for two chunks of a node let C(i, j) be the members who have subrecord i of the one and j of the other; the
  statistic is the sum of C(i, i).
- owners: the covariance of a subrecord's number with the mean place of its possible owners, by the source's order and
  by the order of clusters below a joint cluster.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit
from leeward.verify.checks import Check
from leeward.verify.disassociation.files import ITEM, PAYLOAD, Ints, Longs
from leeward.verify.disassociation.layout import Flat, Layout
from leeward.verify.order import LIMIT

Words = NDArray[np.uint64]

NODES_ZIPPED = 3_000
"""Nodes whose subrecords are put together, drawn among those of at most `MOST_RECORDS`."""

MOST_RECORDS = 300

STATISTICS = (
    "zipped", "payload beside chunks", "zipped payload", "owners", "owners by cluster", "owners of payload",
    "owners of payload by cluster",
)  # fmt: skip


def zipped_check(
    layout: Layout, by_leaf: Longs, leaf_starts: Longs, starts: Longs, values: Ints, group: Longs, salt: Words
) -> Check:
    """Numbers of subrecords say nothing of owners. `by_leaf`, `starts`: see `members`."""
    nodes = layout.nodes
    fitting = np.flatnonzero((nodes.records >= 2) & (nodes.records <= MOST_RECORDS))
    draws = np.random.Generator(np.random.Philox(key=len(nodes.leaf)))
    chosen = np.sort(draws.permutation(fitting)[:NODES_ZIPPED])
    sums = zip_sums(chosen, by_leaf, leaf_starts, starts, values, layout.flat, group, salt)
    found = {
        name: round(float(excess / np.sqrt(variance)), 2) if variance > 0 else 0.0
        for name, (excess, variance) in zip(STATISTICS, sums.reshape(-1, 2), strict=True)
    }
    telling = [name for name, z in found.items() if abs(z) > LIMIT]
    return Check(
        "zipped_subrecords",
        not telling,
        "The numbers of subrecords say neither whose they are nor which belong to one patient."
        if not telling
        else f"The numbers of subrecords say whose they are, or which belong to one patient: {', '.join(telling)}.",
        {"deviations": found, "limit": LIMIT, "nodes": len(chosen)},
    )


@njit
def mixed(word: np.uint64) -> np.uint64:
    """A word spread over 64 bits (splitmix64)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit
def zip_sums(
    chosen: Longs,
    by_leaf: Longs,
    leaf_starts: Longs,
    starts: Longs,
    values: Ints,
    flat: Flat,
    group: Longs,
    salt: Words,
) -> NDArray[np.float64]:
    """What each statistic has above its mean, and its variance, over the nodes chosen."""
    order, position, end, leaf, parent = flat.order, flat.position, flat.end, flat.leaf, flat.parent
    node_groups, groups_of, kind, start = flat.node_groups, flat.groups_of, flat.kind, flat.start
    number, offsets, rows = flat.number, flat.offsets, flat.values
    bounds, codes = flat.bounds, flat.codes
    sums = np.zeros(14)
    place = np.zeros(len(salt), np.int64)
    stamp = np.full(len(salt), -1, np.int64)
    own = np.full(len(kind), -1, np.int64)
    for node in chosen:
        n = flat.records[node]
        first, last = node_groups[node], node_groups[node + 1]
        count = 0
        for i in range(first, last):
            if kind[groups_of[i]] != ITEM and start[groups_of[i] + 1] - start[groups_of[i]] == n:
                own[groups_of[i]] = count
                count += 1
        if count == 0:
            continue
        member = np.zeros((count, n), np.uint64)
        carried = np.zeros(count, np.int64)
        owner = np.zeros(n, np.int64)
        m = 0
        for p in range(position[node], end[node]):
            below = order[p]
            if not leaf[below]:
                continue
            at = below
            while at >= 0:
                for i in range(node_groups[at], node_groups[at + 1]):
                    for j in range(bounds[groups_of[i]], bounds[groups_of[i] + 1]):
                        if stamp[codes[j]] != below:
                            stamp[codes[j]] = below
                            place[codes[j]] = j
                at = parent[at]
            for r in range(leaf_starts[below], leaf_starts[below + 1]):
                if m == n:
                    break
                owner[m] = by_leaf[r]
                for v in range(starts[by_leaf[r]], starts[by_leaf[r] + 1]):
                    if stamp[values[v]] == below and own[group[place[values[v]]]] >= 0:
                        member[own[group[place[values[v]]]], m] += salt[values[v]]
                m += 1
        shown = np.zeros((count, n), np.uint64)
        for i in range(first, last):
            g = groups_of[i]
            if own[g] >= 0:
                carried[own[g]] = kind[g] == PAYLOAD
                for row in range(start[g], start[g + 1]):
                    if 0 <= number[row] < n:
                        for v in range(offsets[row], offsets[row + 1]):
                            shown[own[g], number[row]] += salt[rows[v]]
                own[g] = -1
        if m == n:
            add_sums(sums, member, shown, owner, carried)
    return sums


@njit
def add_sums(sums: NDArray[np.float64], member: Words, shown: Words, owner: Longs, carried: Longs) -> None:
    """The statistics of one node: parts of members and subrecords as words, a row a chunk; `carried`: 1 for payload."""
    count, n = member.shape
    kinds = np.empty((count, n), np.int64)  # of a member's part: members with the same have one kind, from 0
    like = np.full(
        (count, n), -1, np.int64
    )  # of a subrecord: the kind of members with that part, -1 for none
    many = np.zeros(count, np.int64)
    ranks = np.argsort(np.argsort(owner)).astype(np.float64)
    for c in range(count):
        by_word = np.argsort(member[c], kind="mergesort")
        words = np.empty(n, np.uint64)
        for i in by_word:
            if many[c] == 0 or words[many[c] - 1] != member[c, i]:
                words[many[c]] = member[c, i]
                many[c] += 1
            kinds[c, i] = many[c] - 1
        words = words[: many[c]]
        for i in range(n):
            j = np.searchsorted(words, shown[c, i])
            if j < len(words) and words[j] == shown[c, i]:
                like[c, i] = j
        people, total, following = np.zeros(n), np.zeros(n), np.zeros(n)
        for i in range(n):
            people[kinds[c, i]] += 1
            total[kinds[c, i]] += ranks[i]
            following[kinds[c, i]] += i
        for turn in range(2):
            mean = np.zeros(n)
            for i in range(n):
                if like[c, i] >= 0:
                    of_all = total if turn == 0 else following
                    mean[i] = of_all[like[c, i]] / people[like[c, i]]
            mean -= mean.mean()
            moved = np.arange(n) - (n - 1) / 2
            scale = (moved**2).sum() / (n - 1)  # what owners in order would make, by chance's variance
            at = 6 + 4 * carried[c] + 2 * turn
            sums[at] += (mean * moved).sum() / scale
            sums[at + 1] += (mean**2).sum() / scale
    together = np.zeros((many.max(), many.max()), np.int64)
    for a in range(count):
        for b in range(a + 1, count):
            at = 2 * (carried[a] + carried[b])
            add_pair(sums[at : at + 2], kinds[a], kinds[b], like[a], like[b], together)


@njit(inner=True)
def add_pair(
    sums: NDArray[np.float64],
    of_a: Longs,
    of_b: Longs,
    like_a: Longs,
    like_b: Longs,
    together: NDArray[np.int64],
) -> None:
    """The statistic of two chunks of a node, by kinds of members: `together` is how many members have the one kind in
    the first chunk and the other in the second, all zero before and after.

    C(i, j) is `together` of the kinds that i and j are like. Its sum of squares about row and column means is
    Σ C² - (Σ row sums² + Σ column sums²) / n + (Σ C)² / n², all of integers.
    """
    n = len(of_a)
    shown_a, shown_b = np.zeros(len(together), np.int64), np.zeros(len(together), np.int64)
    rows, columns = np.zeros(len(together), np.int64), np.zeros(len(together), np.int64)
    for i in range(n):
        together[of_a[i], of_b[i]] += 1
        if like_a[i] >= 0:
            shown_a[like_a[i]] += 1
        if like_b[i] >= 0:
            shown_b[like_b[i]] += 1
    trace = 0
    for i in range(n):
        if like_a[i] >= 0 and like_b[i] >= 0:
            trace += together[like_a[i], like_b[i]]
    squares = 0
    for i in range(n):
        x, y = of_a[i], of_b[i]
        found = together[x, y]
        if found > 0:  # once for each pair of kinds
            together[x, y] = 0
            rows[x] += found * shown_b[y]
            columns[y] += found * shown_a[x]
            squares += found * found * shown_a[x] * shown_b[y]
    all_of = (shown_a * rows).sum()
    if all_of == 0:
        return
    means = (shown_a * rows**2).sum() + (shown_b * columns**2).sum()
    sums[0] += trace - all_of / n
    sums[1] += (squares - means / n + all_of * all_of / (n * n)) / (n - 1)
