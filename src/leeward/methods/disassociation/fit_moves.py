"""Moves of fitted partitioning: records go to the cluster where the objective grows most.

See docs/methods/disassociation.md#fitted-partitioning and `fit`, which has the objective.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leeward.analysis.bits import popcount
from leeward.arrays import Float64s, Int32s, Int64s, UInt16s, UInt64s
from leeward.compiled import njit

TRIES = 8
"""Clusters looked at for each code of a record."""

FEWEST_MOVES = 0.005
"""Rounds end when a smaller share of the records moves."""


class Aim(NamedTuple):
    """What a search is after.

    k, cap : fewest and most records of a cluster; weight : w of the objective
    rounds : rounds of moves
    """

    k: int
    cap: int
    weight: float
    rounds: int


class Block(NamedTuple):
    """The clusters of a block while records move.

    at, code : the records' codes in local numbers
    home : int32[records], each record's cluster
    support : uint16[clusters, codes]
    size, plain, square : int64[clusters], records, Σ s and Σ s² over supports of k and more
    """

    at: Int64s
    code: Int32s
    home: Int32s
    support: UInt16s
    size: Int64s
    plain: Int64s
    square: Int64s


class Ceilings(NamedTuple):
    """What a record can add to each cluster at most, so that most clusters need not be looked at.

    counted, nearly : uint64[clusters], a bit (code modulo 64) for every code with k records or more, and with k - 1;
        bits of codes that no longer have so many may remain
    each : float64[clusters, 3], the most that one code of the first and of the second kind adds, and what one record
        more costs
    """

    counted: UInt64s
    nearly: UInt64s
    each: Float64s


SLACK = 1e-6
"""Far above the rounding of a gain: a cluster is passed over only where its ceiling is lower by as much."""


@njit(cache=True, nogil=True, inline="always")
def value_of(plain: int, square: int, size: int, weight: float) -> float:
    return 0.0 if size == 0 else weight * plain + (1.0 - weight) * square / size


@njit(cache=True, nogil=True)
def _leaving(b: Block, p: int, k: int, weight: float) -> float:
    """What the objective gains (nearly always less than nothing) when record p leaves its cluster."""
    here = b.home[p]
    row = b.support[here]
    plain, square = b.plain[here], b.square[here]
    before = value_of(plain, square, b.size[here], weight)
    for j in range(b.at[p], b.at[p + 1]):
        s = np.int64(row[b.code[j]])
        if s > k:
            plain -= 1
            square -= 2 * s - 1
        elif s == k:
            plain -= k
            square -= k * k
    return value_of(plain, square, b.size[here] - 1, weight) - before


@njit(cache=True, nogil=True)
def _note_size(b: Block, x: int, aim: Aim, top: Ceilings) -> None:
    """What a code adds to a cluster of N records at most (s is at most N), and what its objective loses by N + 1."""
    size, rest = b.size[x], 1.0 - aim.weight
    if size == 0 or size >= aim.cap:
        top.each[x, 2] = np.inf
        return
    top.each[x, 0] = aim.weight + rest * (2 * size + 1) / (size + 1)
    top.each[x, 1] = max(top.each[x, 0], aim.weight * aim.k + rest * aim.k * aim.k / (size + 1))
    top.each[x, 2] = rest * b.square[x] / (size * (size + 1.0)) - SLACK


@njit(cache=True, nogil=True)
def note_supports(b: Block, hosts_at: Int64s, hosts: Int32s, clusters: int, aim: Aim, top: Ceilings) -> None:
    top.counted[:] = 0
    top.nearly[:] = 0
    for c in range(len(hosts_at) - 1):
        bit = np.uint64(1) << np.uint64(c & 63)
        for i in range(hosts_at[c], hosts_at[c + 1]):
            if b.support[hosts[i], c] >= aim.k:
                top.counted[hosts[i]] |= bit
            else:
                top.nearly[hosts[i]] |= bit
    for x in range(clusters):
        _note_size(b, x, aim, top)


@njit(cache=True, nogil=True)
def move_noted(b: Block, p: int, there: int, aim: Aim, top: Ceilings) -> None:
    """`move`, with the ceilings kept above what can be added."""
    here, k = b.home[p], aim.k
    move(b, p, there, k)
    for j in range(b.at[p], b.at[p + 1]):
        c = b.code[j]
        bit = np.uint64(1) << np.uint64(c & 63)
        if b.support[here, c] == k - 1:
            top.nearly[here] |= bit
        if b.support[there, c] == k - 1:
            top.nearly[there] |= bit
        elif b.support[there, c] == k:
            top.counted[there] |= bit
    _note_size(b, here, aim, top)
    _note_size(b, there, aim, top)


@njit(cache=True, nogil=True)
def move(b: Block, p: int, there: int, k: int) -> None:
    here = b.home[p]
    for j in range(b.at[p], b.at[p + 1]):
        c = b.code[j]
        s = np.int64(b.support[here, c])
        if s > k:
            b.plain[here] -= 1
            b.square[here] -= 2 * s - 1
        elif s == k:
            b.plain[here] -= k
            b.square[here] -= k * k
        b.support[here, c] = s - 1
        s = np.int64(b.support[there, c])
        if s >= k:
            b.plain[there] += 1
            b.square[there] += 2 * s + 1
        elif s == k - 1:
            b.plain[there] += k
            b.square[there] += k * k
        b.support[there, c] = s + 1
    b.size[here] -= 1
    b.size[there] += 1
    b.home[p] = there


@njit(cache=True, nogil=True)
def hosts_of(b: Block, clusters: int, k: int) -> tuple[Int64s, Int32s]:
    """For each code the clusters that would count it with one record more."""
    n_codes = b.support.shape[1]
    at = np.zeros(n_codes + 1, np.int64)
    for x in range(clusters):
        for c in range(n_codes):
            if b.support[x, c] >= k - 1:
                at[c + 1] += 1
    for c in range(n_codes):
        at[c + 1] += at[c]
    fill = at[:-1].copy()
    hosts = np.empty(at[n_codes], np.int32)
    for x in range(clusters):
        for c in range(n_codes):
            if b.support[x, c] >= k - 1:
                hosts[fill[c]] = x
                fill[c] += 1
    return at, hosts


@njit(cache=True, nogil=True)
def best_host(
    b: Block,
    p: int,
    turn: int,
    hosts_at: Int64s,
    hosts: Int32s,
    aim: Aim,
    top: Ceilings,
    floor: float,
) -> tuple[int, float]:
    """The cluster where record p adds most, and how much; clusters where it adds less than `floor` may be passed
    over."""
    best, best_gain = -1, 0.0
    # what entering adds is written out here: as a function of its own it takes half the run
    k, weight, rest = aim.k, aim.weight, 1.0 - aim.weight
    support, code = b.support, b.code
    first, last = b.at[p], b.at[p + 1]
    home = b.home[p]
    own, twice, more = np.uint64(0), np.uint64(0), 0
    for j in range(first, last):
        bit = np.uint64(1) << np.uint64(code[j] & 63)
        if own & bit:
            twice |= bit
            more += 1
        own |= bit
    for j in range(first, last):
        c = code[j]
        n = hosts_at[c + 1] - hosts_at[c]
        if n == 0:
            continue
        tries, step, place = n, 1, 0
        if n > TRIES:  # spread over the list from a scattered start, the same on every machine
            tries = TRIES
            step = n // tries
            place = ((p + 1) * 2654435761 + turn * 40503) % n
        for _ in range(tries):
            there = hosts[hosts_at[c] + place]
            place += step
            if place >= n:
                place -= n
            nearly = top.nearly[there] & own
            counted = top.counted[there] & own & ~nearly
            ceiling = popcount(counted) * top.each[there, 0] + popcount(nearly) * top.each[there, 1]
            if (counted | nearly) & twice:
                ceiling += more * top.each[there, 1]
            if ceiling - top.each[there, 2] < max(best_gain, floor) or there == home:
                continue
            row = support[there]
            plain, square, size_there = b.plain[there], b.square[there], b.size[there]
            before = weight * plain + rest * square / size_there
            for i in range(first, last):
                s = np.int64(row[code[i]])
                if s >= k:
                    plain += 1
                    square += 2 * s + 1
                elif s == k - 1:
                    plain += k
                    square += k * k
            gain = weight * plain + rest * square / (size_there + 1) - before
            if gain > best_gain:
                best, best_gain = there, gain
    return best, best_gain


@njit(cache=True, nogil=True)
def members_of(b: Block, clusters: int) -> tuple[Int64s, Int32s]:
    at = np.zeros(clusters + 1, np.int64)
    for h in b.home:
        at[h + 1] += 1
    for x in range(clusters):
        at[x + 1] += at[x]
    fill = at[:-1].copy()
    member = np.empty(len(b.home), np.int32)
    for p in range(len(b.home)):
        member[fill[b.home[p]]] = p
        fill[b.home[p]] += 1
    return at, member


@njit(cache=True, nogil=True)
def improve(b: Block, clusters: int, aim: Aim) -> int:
    """Dissolve small clusters and move records while the objective grows; returns the moves."""
    k, weight = aim.k, aim.weight
    top = Ceilings(np.empty(clusters, np.uint64), np.empty(clusters, np.uint64), np.zeros((clusters, 3)))
    touched = np.empty(clusters, np.bool_)
    back = np.empty(4 * k, np.int32)
    moves = 0
    for turn in range(aim.rounds):
        hosts_at, hosts = hosts_of(b, clusters, k)
        note_supports(b, hosts_at, hosts, clusters, aim, top)
        member_at, member = members_of(b, clusters)
        touched[:] = False
        moved = 0
        for x in range(clusters):
            first, last = member_at[x], member_at[x + 1]
            if first == last or last - first > 4 * k or touched[x]:
                continue
            worth = value_of(b.plain[x], b.square[x], b.size[x], weight)
            gained, placed = 0.0, 0
            for i in range(first, last):
                p = member[i]
                there, gain = best_host(b, p, turn, hosts_at, hosts, aim, top, 0.0)
                if there < 0:
                    break
                gained += gain
                back[placed] = there
                placed += 1
                move_noted(b, p, there, aim, top)
            if placed == last - first and gained > worth + 1e-9:
                moved += placed
                for i in range(placed):
                    touched[back[i]] = True
            else:
                for i in range(placed - 1, -1, -1):
                    move_noted(b, member[first + i], x, aim, top)
        for p in range(len(b.home)):
            if b.size[b.home[p]] <= k:
                continue
            out = _leaving(b, p, k, weight)
            there, gain = best_host(b, p, turn, hosts_at, hosts, aim, top, -out)
            if there >= 0 and gain + out > 1e-9:
                move_noted(b, p, there, aim, top)
                moved += 1
        moves += moved
        if moved < FEWEST_MOVES * len(b.home):
            break
    return moves
