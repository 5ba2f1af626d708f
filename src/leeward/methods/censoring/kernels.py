"""Kernel of scope `groups`: the population is split on frequent items."""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import numpy as np

from leeward.compiled import njit


@njit
def split(offsets, items, starts, holders, weight, k):
    """The group of each distinct record, int64[n]; every group has weight ≥ k (docs/methods/censoring.md#groups).

    Record r has items[offsets[r]:offsets[r + 1]] and stands for weight[r] people; item i is held by
    holders[starts[i]:starts[i + 1]]. A node's records have its depth in `depth`; counts[d] are the people of the node
    at depth d who have each item.
    """
    n, n_items = len(weight), len(starts) - 1
    depth = np.zeros(n, np.int64)
    group = np.full(n, -1, np.int64)
    counts = np.zeros((8, n_items), np.int64)
    people = np.zeros(8, np.int64)
    lists = [np.arange(n)]
    for r in range(n):
        people[0] += weight[r]
        for e in range(offsets[r], offsets[r + 1]):
            counts[0, items[e]] += weight[r]
    made = np.int64(0)
    d = 0
    while True:
        best = -1
        if people[d] >= k:
            for i in range(n_items):
                if k <= counts[d, i] < people[d] and (best < 0 or counts[d, i] > counts[d, best]):
                    best = i
        if best >= 0:
            if d + 1 == len(people):
                more = np.zeros((2 * len(people), n_items), np.int64)
                more[: len(people)] = counts
                counts = more
                larger = np.zeros(len(counts), np.int64)
                larger[: len(people)] = people
                people = larger
            counts[d + 1] = 0
            people[d + 1] = 0
            those = holders[starts[best] : starts[best + 1]]
            those = those[depth[those] == d]
            for one in those:
                depth[one] = d + 1
                people[d + 1] += weight[one]
                for e in range(offsets[one], offsets[one + 1]):
                    counts[d + 1, items[e]] += weight[one]
            counts[d] -= counts[d + 1]
            people[d] -= people[d + 1]
            lists.append(those)
            d += 1
            continue
        if people[d] >= k:
            for one in lists[d]:
                if depth[one] == d:
                    depth[one] = -1
                    group[one] = made
            made += 1
        elif d > 0:  # too few to be a group: back to the node above
            for one in lists[d]:
                if depth[one] == d:
                    depth[one] = d - 1
            counts[d - 1] += counts[d]
            people[d - 1] += people[d]
        else:  # at the root they join the last group
            for r in range(n):
                if depth[r] == 0:
                    group[r] = made - 1
        if d == 0:
            break
        lists.pop()
        d -= 1
    return group
