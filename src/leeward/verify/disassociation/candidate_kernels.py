"""Kernels that count the records that may hold a set of codes, for the verifier of disassociation
(docs/methods/disassociation.md#estimating-counts). Written for the verifier alone; no method uses or shares them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit
from leeward.verify.disassociation.files import ITEM
from leeward.verify.disassociation.kernels import UNLIMITED
from leeward.verify.disassociation.layout import Flat

Array = NDArray[Any]


@njit
def _add(table: Array, low: int, high: int, width: int, a: int, b: int, count: int) -> Any:
    """Add `count` candidates of the pair {a, b} if its smaller code is in this block of the table."""
    x, y = min(a, b), max(a, b)
    if low <= x < high:
        table[(x - low) * width + y] += count


@njit
def pair_candidates(flat: Flat, low: int, high: int, width: int) -> Any:
    """Upper bound, for every pair of codes, on the records that may hold both.

    The table holds rows low … high - 1 (the smaller code of a pair) of the upper triangle, flat; singles
    lie on the diagonal. Codes of one chunk count where they lie in one subrecord; codes of different chunks
    count up to the rarer one; a code of a shared chunk meets what the whole joint cluster holds below it."""
    order, end, records = flat.order, flat.end, flat.records
    node_groups, groups_of, kind = flat.node_groups, flat.groups_of, flat.kind
    start, offsets, values = flat.start, flat.offsets, flat.values
    bounds, codes, supports = flat.bounds, flat.codes, flat.supports
    n = len(order)
    table = np.zeros((high - low) * width, np.int32)
    below = np.zeros(width, np.int64)
    touched = np.empty(width, np.int32)
    for at in range(n):
        v = order[at]
        for q in range(node_groups[v], node_groups[v + 1]):
            g = groups_of[q]
            if kind[g] != ITEM:
                for row in range(start[g], start[g + 1]):
                    for i in range(offsets[row], offsets[row + 1]):
                        for j in range(i + 1, offsets[row + 1]):
                            _add(table, low, high, width, values[i], values[j], 1)
            for i in range(bounds[g], bounds[g + 1]):
                count = records[v] if kind[g] == ITEM else supports[i]
                _add(table, low, high, width, codes[i], codes[i], count)
                if kind[g] == ITEM:
                    for j in range(i + 1, bounds[g + 1]):
                        _add(table, low, high, width, codes[i], codes[j], count)
                for q2 in range(q + 1, node_groups[v + 1]):
                    h = groups_of[q2]
                    for j in range(bounds[h], bounds[h + 1]):
                        other = records[v] if kind[h] == ITEM else supports[j]
                        _add(table, low, high, width, codes[i], codes[j], min(count, other))
        if flat.leaf[v]:
            continue
        n_touched = 0
        for later in range(at + 1, end[v]):
            u = order[later]
            for q in range(node_groups[u], node_groups[u + 1]):
                g = groups_of[q]
                for i in range(bounds[g], bounds[g + 1]):
                    c = codes[i]
                    if below[c] == 0:
                        touched[n_touched] = c
                        n_touched += 1
                    below[c] += records[u] if kind[g] == ITEM else supports[i]
        for q in range(node_groups[v], node_groups[v + 1]):
            g = groups_of[q]
            for i in range(bounds[g], bounds[g + 1]):
                for t in range(n_touched):
                    if touched[t] != codes[i]:
                        _add(
                            table, low, high, width, codes[i], touched[t], min(below[touched[t]], supports[i])
                        )
        for t in range(n_touched):
            below[touched[t]] = 0
    return table


@njit
def set_candidates(wanted: Array, chain: Array, flat: Flat, stamp: Array, hit: Array) -> Any:
    """Records of one cluster's own chunks and of the shared chunks above (`chain`, the cluster first) that
    may hold all of `wanted`; -1 when a code is not visible. `stamp` (int64 a code) and `hit` are scratch."""
    node_groups, groups_of, kind = flat.node_groups, flat.groups_of, flat.kind
    start, offsets, values = flat.start, flat.offsets, flat.values
    bounds, codes = flat.bounds, flat.codes
    smallest = UNLIMITED
    found = 0
    for c in wanted:
        stamp[c] = 1
    for step in range(len(chain)):
        v = chain[step]
        smallest = min(smallest, flat.records[v])
        for q in range(node_groups[v], node_groups[v + 1]):
            g = groups_of[q]
            inside = 0
            for i in range(bounds[g], bounds[g + 1]):
                if stamp[codes[i]] == 1:
                    stamp[codes[i]] = 2
                    hit[inside] = codes[i]
                    inside += 1
            found += inside
            if inside > 0 and kind[g] != ITEM:
                count = np.int64(0)
                for row in range(start[g], start[g + 1]):
                    have = 0
                    for i in range(offsets[row], offsets[row + 1]):
                        if stamp[values[i]] == 2:
                            have += 1
                    if have == inside:
                        count += 1
                smallest = min(smallest, count)
            for i in range(inside):
                stamp[hit[i]] = 3
    for c in wanted:
        stamp[c] = 0
    return smallest if found == len(wanted) else np.int64(-1)


@njit
def candidates_of_trees(
    wanted: Array, enough: int, leaves: Array, flat: Flat, stamp: Array, hit: Array
) -> Any:
    """Records that may hold all of `wanted`: the best cluster of each tree of nodes, summed until there are
    `enough`."""
    parent = flat.parent
    best = np.zeros(len(parent), np.int64)  # of each root
    chain = np.empty(len(parent), np.int32)
    total = np.int64(0)
    for leaf in leaves:
        depth = 1
        chain[0] = leaf
        while parent[chain[depth - 1]] >= 0:
            chain[depth] = parent[chain[depth - 1]]
            depth += 1
        count = set_candidates(wanted, chain[:depth], flat, stamp, hit)
        root = chain[depth - 1]
        if count > best[root]:
            total += count - best[root]
            best[root] = count
        if total >= enough:
            break
    return total


@njit
def _fits(record: Array, leaf: int, flat: Flat, stamp: Array) -> Any:
    node_groups, groups_of, kind = flat.node_groups, flat.groups_of, flat.kind
    start, offsets, values = flat.start, flat.offsets, flat.values
    bounds, codes = flat.bounds, flat.codes
    for c in record:
        stamp[c] = 1
    found = 0
    good = True
    v = leaf
    while v >= 0:
        for q in range(node_groups[v], node_groups[v + 1]):
            g = groups_of[q]
            inside = 0
            for i in range(bounds[g], bounds[g + 1]):
                if stamp[codes[i]] == 1:
                    stamp[codes[i]] = 2
                    inside += 1
            found += inside
            if kind[g] != ITEM and good:
                match = False
                for row in range(start[g], start[g + 1]):
                    if offsets[row + 1] - offsets[row] != inside:
                        continue
                    have = 0
                    for i in range(offsets[row], offsets[row + 1]):
                        if stamp[values[i]] == 2:
                            have += 1
                    if have == inside:
                        match = True
                        break
                good = match
            if inside > 0:
                for i in range(bounds[g], bounds[g + 1]):
                    if stamp[codes[i]] == 2:
                        stamp[codes[i]] = 3
        if not good:
            break
        v = flat.parent[v]
    for c in record:
        stamp[c] = 0
    return good and found == len(record)


@njit
def fits_somewhere(record: Array, holders: Array, flat: Flat, stamp: Array) -> Any:
    """True when a record is one that some cluster at or below one of `holders` may hold: each code visible,
    and what the record leaves in each record or shared chunk is one of that chunk's subrecords. A code lies
    in the lowest chunk that has it."""
    for v in holders:
        for at in range(flat.position[v], flat.end[v]):
            if flat.leaf[flat.order[at]] and _fits(record, flat.order[at], flat, stamp):
                return True
    return False
