"""Moves of fitted partitioning: each record goes to the cluster where the objective grows most.

See docs/methods/disassociation.md#fitted-partitioning and `fit`, which defines the objective.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leeward.analysis.kernels import popcount
from leeward.arrays import Bools, Float64s, Int32s, Int64s, UInt16s, UInt64s
from leeward.compiled import njit

TRIES = 8
"""Clusters tried for each code of a record."""

FEWEST_MOVES = 0.005
"""Rounds end when a smaller share of the records moves."""

NEARLY_WORTH = 0.9
"""A cluster whose records add less than this share of its worth elsewhere is not tried again: of 6,561 later tries on
a block of made-up records 14 succeeded."""

AT_HOME = 1.0
"""A record is not moved if its cluster would lose at least this much per code: little can be gained (on a block of
made-up records 14 % of the searches and no move; of UCI half of the searches, 4 of 3,849 moves). With .8 more
occurrences of UCI end in item chunks."""


class Aim(NamedTuple):
    """Limits and weight of a search. `k`, `cap`: fewest and most records of a cluster. `weight`: w of the objective."""

    k: int
    cap: int
    weight: float
    rounds: int


class Block(NamedTuple):
    """The clusters of a block while records move.

    at, code : the records' codes in local numbers
    home : int32[records], each record's cluster
    support : uint16[clusters, codes]
    sums : int64[clusters, 3], records, Σ s and Σ s² over supports of k and more
    kept : bool[clusters], whether `dissolve` found the cluster worth far more than what its records add elsewhere
    """

    at: Int64s
    code: Int32s
    home: Int32s
    support: UInt16s
    sums: Int64s
    kept: Bools


class Hosts(NamedTuple):
    """Clusters that would count a code with one more record, and upper bounds of what a record can add to each cluster,
    by which most are skipped.

    at, host : int32, code c is counted by the clusters host[at[c]:at[c + 1]]
    sets : uint64[clusters, 2], a bit (`bit_of`) for every code with k records or more, and with k - 1; bits of
        codes that no longer have so many may remain
    each : float64[clusters, 3], the most that one code of the first and of the second kind adds, and the cost of one
        more record
    found, ceiling : scratch for one search
    """

    at: Int64s
    host: Int32s
    sets: UInt64s
    each: Float64s
    found: UInt64s
    ceiling: Float64s


SLACK = 1e-6
"""Margin far above the rounding error of a gain: a cluster is skipped only if its ceiling is lower by this much."""


@njit(inner=True, inline="always")
def value_of(plain: int, square: int, size: int, weight: float) -> float:
    return 0.0 if size == 0 else weight * plain + (1.0 - weight) * square / size


@njit(inner=True, inline="always")
def steps(s: int, k: int) -> tuple[int, int]:
    """Increase of Σ s and Σ s² when a support of s grows by one."""
    counted, nearly = int(s >= k), int(s == k - 1)
    return counted + k * nearly, (2 * s + 1) * counted + k * k * nearly


@njit(inner=True, inline="always")
def bit_of(code: int) -> Any:
    """The bit of a code in a word: the 32 most frequent codes have one each, the others share the rest."""
    return np.uint64(1) << np.uint64(code if code < 32 else 32 + (code & 31))


@njit
def hosts_of(b: Block, clusters: int, aim: Aim) -> Hosts:
    n_codes = b.support.shape[1]
    at = np.zeros(n_codes + 1, np.int64)
    for x in range(clusters):
        for c in range(n_codes):
            at[c + 1] += int(b.support[x, c] >= aim.k - 1)
    at = np.cumsum(at)
    fill, host = at[:-1].copy(), np.empty(at[n_codes], np.int32)
    sets, each = np.zeros((clusters, 2), np.uint64), np.zeros((clusters, 3))
    for x in range(clusters):
        for c in range(n_codes):
            if b.support[x, c] >= aim.k - 1:
                host[fill[c]] = x
                fill[c] += 1
                sets[x, 0 if b.support[x, c] >= aim.k else 1] |= bit_of(c)
        note_size(b.sums, each, x, aim)
    room = TRIES * np.diff(b.at).max() + 1
    return Hosts(at, host, sets, each, np.empty(room, np.uint64), np.empty(room))


@njit(inner=True)
def note_size(sums: Int64s, each: Float64s, x: int, aim: Aim) -> None:
    """Update the most that a code adds to cluster x of N records (s ≤ N), and what its objective loses by N + 1."""
    size, rest = sums[x, 0], 1.0 - aim.weight
    if size == 0 or size >= aim.cap:
        each[x, 2] = np.inf
        return
    each[x, 0] = aim.weight + rest * (2 * size + 1) / (size + 1)
    each[x, 1] = max(each[x, 0], aim.weight * aim.k + rest * aim.k * aim.k / (size + 1))
    each[x, 2] = rest * sums[x, 2] / (size * (size + 1.0)) - SLACK


@njit
def count_in(b: Block, p: int, x: int, k: int, step: int) -> None:
    """Add record p to the counts of cluster x (`step` 1), or remove it (-1)."""
    plain, square = 0, 0
    gone = int(step < 0)
    for j in range(b.at[p], b.at[p + 1]):
        c = b.code[j]
        s = np.int64(b.support[x, c])
        one, two = steps(s - gone, k)
        plain += one
        square += two
        b.support[x, c] = s + step
    b.sums[x, 0] += step
    b.sums[x, 1] += step * plain
    b.sums[x, 2] += step * square


@njit
def note(b: Block, p: int, x: int, aim: Aim, top: Hosts) -> None:
    """Raise the ceilings of cluster x after record p entered or left it."""
    for j in range(b.at[p], b.at[p + 1]):
        c = b.code[j]
        if b.support[x, c] >= aim.k - 1:
            top.sets[x, 0 if b.support[x, c] >= aim.k else 1] |= bit_of(c)
    note_size(b.sums, top.each, x, aim)


@njit(inner=True)
def _leaving(b: Block, p: int, k: int, weight: float) -> float:
    """Gain of the objective (nearly always negative) when record p leaves its cluster."""
    here = b.home[p]
    size, plain, square = b.sums[here, 0], b.sums[here, 1], b.sums[here, 2]
    before = value_of(plain, square, size, weight)
    for j in range(b.at[p], b.at[p + 1]):
        one, two = steps(np.int64(b.support[here, b.code[j]]) - 1, k)
        plain -= one
        square -= two
    return value_of(plain, square, size - 1, weight) - before


@njit
def best_host(b: Block, p: int, turn: int, aim: Aim, top: Hosts, floor: float) -> tuple[int, float]:
    """The first cluster where record p adds most, and the gain; clusters where it adds less than `floor` may be
    skipped."""
    # Unsigned indices need no check for negative values.
    first, last = np.uint64(b.at[p]), np.uint64(b.at[p + 1])
    own, twice, more = np.uint64(0), np.uint64(0), 0
    for j in range(first, last):
        bit = bit_of(b.code[j])
        if own & bit:
            twice |= bit
            more += 1
        own |= bit
    zero, one, two = np.uint64(0), np.uint64(1), np.uint64(2)
    home = np.uint64(b.home[p])
    n = np.uint64(0)
    for j in range(first, last):
        c = np.uint64(b.code[j])
        begin = np.uint64(top.at[c])
        size = np.uint64(top.at[c + one]) - begin
        tries, step, place = size, one, np.uint64(0)
        if size > np.uint64(TRIES):  # spread over the list from a scattered start, the same on every machine
            tries = np.uint64(TRIES)
            step = size // tries
            place = np.uint64((np.int64(p) + 1) * 2654435761 + turn * 40503) % size
        for _ in range(tries):
            x = np.uint64(top.host[begin + place])
            place += step
            if place >= size:
                place -= size
            nearly = top.sets[x, one] & own
            counted = top.sets[x, zero] & own & ~nearly
            ceiling = (
                popcount(counted) * top.each[x, zero] + popcount(nearly) * top.each[x, one] - top.each[x, two]
            )
            if (counted | nearly) & twice:
                ceiling += more * top.each[x, one]
            top.found[n], top.ceiling[n] = x, ceiling  # kept only where n grows: no branch to mispredict
            n += np.uint64(ceiling >= floor and x != home)
    best, best_gain = np.int64(-1), 0.0
    k, weight, rest = aim.k, aim.weight, 1.0 - aim.weight
    for q in range(n):
        if top.ceiling[q] < max(best_gain, floor):
            continue
        x = top.found[q]
        records, plain, square = b.sums[x, zero], b.sums[x, one], b.sums[x, two]
        before = weight * plain + rest * square / records
        for j in range(first, last):
            more_plain, more_square = steps(np.int64(b.support[x, np.uint64(b.code[j])]), k)
            plain += more_plain
            square += more_square
        gain = weight * plain + rest * square / (records + 1) - before
        if gain > best_gain:
            best, best_gain = np.int64(x), gain
    return int(best), best_gain


@njit
def members_of(b: Block, clusters: int) -> tuple[Int64s, Int32s]:
    at = np.zeros(clusters + 1, np.int64)
    for h in b.home:
        at[h + 1] += 1
    return np.cumsum(at), np.argsort(b.home, kind="mergesort").astype(np.int32)


@njit
def dissolve(b: Block, clusters: int, turn: int, aim: Aim, top: Hosts) -> int:
    """Dissolve small clusters that are not `kept` and whose records add more elsewhere than the cluster is worth;
    returns the number of moves."""
    member_at, member = members_of(b, clusters)
    touched = np.zeros(clusters, np.bool_)
    back = np.empty(4 * aim.k, np.int32)
    moved = 0
    for x in range(clusters):
        first, last = member_at[x], member_at[x + 1]
        if first == last or last - first > 4 * aim.k or touched[x] or b.kept[x]:
            continue
        worth = value_of(b.sums[x, 1], b.sums[x, 2], b.sums[x, 0], aim.weight)
        gained, placed = 0.0, 0
        for p in member[first:last]:  # x is unchanged until all have a place: it hosts none of them
            there, gain = best_host(b, p, turn, aim, top, 0.0)
            if there < 0:
                break
            gained += gain
            back[placed] = there
            placed += 1
            count_in(b, p, there, aim.k, 1)
            note(b, p, there, aim, top)
        if placed == last - first and gained > worth + 1e-9:
            moved += placed
            for i in range(placed):
                p = member[first + i]
                count_in(b, p, x, aim.k, -1)
                b.home[p] = back[i]
                touched[back[i]] = True
            note_size(b.sums, top.each, x, aim)
        else:
            b.kept[x] = gained < NEARLY_WORTH * worth
            for i in range(placed):
                count_in(b, member[first + i], back[i], aim.k, -1)
                note(b, member[first + i], back[i], aim, top)
    return moved


@njit
def relocate(b: Block, turn: int, aim: Aim, top: Hosts) -> int:
    """Move records out of clusters of more than k where the objective grows (`AT_HOME`); returns their number."""
    moved = 0
    for p in range(len(b.home)):
        here = b.home[p]
        if b.sums[here, 0] <= aim.k:
            continue
        out = _leaving(b, p, aim.k, aim.weight)
        if -out >= AT_HOME * (b.at[p + 1] - b.at[p]):
            continue
        there, gain = best_host(b, p, turn, aim, top, -out)
        if there >= 0 and gain + out > 1e-9:
            count_in(b, p, here, aim.k, -1)
            note(b, p, here, aim, top)
            count_in(b, p, there, aim.k, 1)
            note(b, p, there, aim, top)
            b.home[p] = there
            moved += 1
    return moved


@njit
def improve(b: Block, clusters: int, aim: Aim) -> None:
    for turn in range(aim.rounds):
        top = hosts_of(b, clusters, aim)
        if dissolve(b, clusters, turn, aim, top) + relocate(b, turn, aim, top) < FEWEST_MOVES * len(b.home):
            return
