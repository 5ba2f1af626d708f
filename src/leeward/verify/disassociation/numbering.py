"""Orders that a disassociated share shows by itself (of its rows, of its nodes, of the subrecords of a chunk), and
whether numbers of subrecords say whose they are, or which of them belong to one patient.

With the clusters' members at hand every subrecord has possible owners: the members who have its codes in its chunk. Two
kinds of statistics, both sums over chunks with the exact mean and variance of a shuffled chunk (Hoeffding 1951), of
columns of payload by themselves:

- zipped: for two chunks of a node let C(i, j) be the members who have subrecord i of the one and j of the other; the
  statistic is the sum of C(i, i).
- owners: the covariance of a subrecord's number with the mean place of its possible owners, by the source's order and
  by the order of clusters below a joint cluster.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leeward.verify.checks import Check
from leeward.verify.disassociation.layout import ITEM, PAYLOAD, Layout
from leeward.verify.flat import Floats, Longs, Words, find, heads_of, offsets_of, pairs_of_lists, places_of
from leeward.verify.order import LIMIT, telling


def check_shuffles(layout: Layout) -> Check:
    """Numbers of subrecords say nothing of their content, nor of which are filled in another chunk of their node: both
    are sums over chunks of permutation statistics, with their exact mean and variance (see `verify.order`)."""
    content, together = number_excess(layout)
    return check_deviations(
        "subrecords_shuffled",
        {"content": round(content, 2), "filled together": round(together, 2)},
        "Subrecord numbers reveal nothing about their content or about subrecords of other chunks.",
        "Subrecord numbers reveal something",
    )


def check_deviations(name: str, found: dict[str, float], good: str, bad: str, **more: Any) -> Check:
    """A check that passes where no deviation tells something; `bad` precedes those that do."""
    told = ", ".join(telling(found))
    return Check(
        name, not told, f"{bad}: {told}." if told else good, {"deviations": found, "limit": LIMIT} | more
    )


def number_excess(layout: Layout) -> tuple[float, float]:
    """Deviations of the number's covariance with the first code, and of fillings at the same number in two chunks that
    follow each other in their node and have as many rows."""
    chunks, n = layout.chunks, layout.chunks.rows()
    row = np.flatnonzero(np.diff(chunks.offsets) > 0)
    owner, number = np.searchsorted(chunks.start, row, side="right") - 1, chunks.number[row]
    inside = (number >= 0) & (number < n[owner])
    row, owner, number = row[inside], owner[inside], number[inside]

    def sums(values: Longs | None) -> NDArray[np.float64]:
        return np.bincount(owner, values, len(n)).astype(float)

    code = layout.place[chunks.values[chunks.offsets[row]]]
    several = (chunks.kind != ITEM) & (n > 1)
    squares = sums(code**2) - sums(code) ** 2 / np.maximum(n, 1)
    one = several & (squares > 0)  # every chunk counts alike, whatever its codes
    trend = (sums(code * number) - sums(code) * (n - 1) / 2)[one] / np.sqrt(squares[one])
    first = _deviation(trend, (n * (n + 1) / 12)[one])

    order = layout.groups_of[several[layout.groups_of]]
    a, b = order[:-1], order[1:]
    paired = (chunks.node[a] == chunks.node[b]) & (n[a] == n[b])
    a, b = a[paired], b[paired]
    filled = np.zeros(len(chunks.number), np.bool_)
    filled[chunks.start[owner] + number] = True
    both = filled[places_of(chunks.start[a], n[a])] & filled[places_of(chunks.start[b], n[a])]
    size, in_a, in_b = n[a], sums(None)[a], sums(None)[b]
    joint = np.bincount(np.repeat(np.arange(len(a)), size), both, len(a)) - in_a * in_b / size
    return first, _deviation(
        joint, in_a * in_b * (size - in_a) * (size - in_b) / (size * size * (size - 1.0))
    )


def _deviation(excess: NDArray[np.float64], variance: NDArray[np.float64]) -> float:
    """What a sum is above its mean, in standard deviations."""
    spread = variance.sum()
    return float(excess.sum() / np.sqrt(spread)) if spread > 0 else 0.0


Sums = NDArray[np.float64]
"""float64[statistics, 2]: above the mean, variance."""

NODES_ZIPPED = 3_000
"""Nodes whose subrecords are put together, drawn among those of at most `MOST_RECORDS`."""

MOST_RECORDS = 300

NODES_AT_ONCE = 500
"""Nodes whose pairs of kinds are counted at once: as many as memory may hold."""

STATISTICS = (
    "zipped", "payload beside chunks", "zipped payload", "owners", "owners by cluster", "owners of payload",
    "owners of payload by cluster",
)  # fmt: skip


class Parts(NamedTuple):
    """What members have in record, shared and payload chunks, by chunk, then by slot. The members of a node are those
    of the slots from first[place of the node in preorder] to first[its end]; `member` has their numbers, one a slot.
    `word` is, for each part, the sum of its codes' words."""

    member: Longs
    first: Longs
    chunk: Longs
    slot: Longs
    word: Words


def check_zipping(layout: Layout, parts: Parts, words: Words) -> Check:
    """Numbers of subrecords say nothing of owners. `words`: of each row of a chunk the sum of its codes' words."""
    nodes = layout.nodes
    fitting = np.flatnonzero((nodes.records >= 2) & (nodes.records <= MOST_RECORDS))
    draws = np.random.Generator(np.random.Philox(key=len(nodes.leaf)))
    chosen = np.sort(draws.permutation(fitting)[:NODES_ZIPPED])
    blocks = np.array_split(chosen, len(chosen) // NODES_AT_ONCE + 1)
    sums = sum((zip_sums(layout, nodes, parts, words) for nodes in blocks), np.zeros((len(STATISTICS), 2)))
    found = {
        name: round(float(excess / np.sqrt(variance)), 2) if variance > 0 else 0.0
        for name, (excess, variance) in zip(STATISTICS, sums, strict=True)
    }
    return check_deviations(
        "zipped_subrecords",
        found,
        "Subrecord numbers reveal neither whose they are nor which belong to one patient.",
        "Subrecord numbers reveal whose they are, or which belong to one patient",
        nodes=len(chosen),
    )


def zip_sums(layout: Layout, nodes: Longs, parts: Parts, words: Words) -> Sums:
    """What each statistic has above its mean over the nodes, and its variance; left out are nodes whose members, and
    chunks whose rows, are not as many as the node's records."""
    chunks, first, n = layout.chunks, parts.first[layout.flat.position[nodes]], layout.nodes.records[nodes]
    whole = parts.first[layout.end[nodes]] - first == n
    nodes, first, n = nodes[whole], first[whole], n[whole]
    count = layout.node_groups[nodes + 1] - layout.node_groups[nodes]
    groups, node = (
        layout.groups_of[places_of(layout.node_groups[nodes], count)],
        np.repeat(np.arange(len(n)), count),
    )
    fit = (chunks.kind[groups] != ITEM) & (chunks.rows()[groups] == n[node])
    groups, node = groups[fit], node[fit]
    size = n[node]
    begin = offsets_of(size)
    member, shown = np.zeros(begin[-1], np.uint64), np.zeros(begin[-1], np.uint64)
    low, high = np.searchsorted(parts.chunk, [groups, groups + 1])
    own = places_of(low, high - low)
    member[parts.slot[own] + np.repeat(begin[:-1] - first[node], high - low)] = parts.word[own]
    rows = places_of(chunks.start[groups], size)
    numbered = (chunks.number[rows] >= 0) & (chunks.number[rows] < np.repeat(size, size))
    shown[(chunks.number[rows] + np.repeat(begin[:-1], size))[numbered]] = words[rows][numbered]
    return sums_of(member, shown, node, parts.member[places_of(first, n)], n, chunks.kind[groups] == PAYLOAD)


def sums_of(
    member: Words, shown: Words, node: Longs, owner: Longs, n: Longs, carried: NDArray[np.bool_]
) -> Sums:
    """The statistics of nodes of n records each, whose members are `owner`, node after node.

    member, shown : parts of members, and subrecords by their numbers, as words: n of a chunk, chunk after chunk.
    node, carried : the node of each chunk; whether it is payload.

    With T how many members have a kind of part in one chunk and a kind in another, and s how many subrecords show a
    kind, C(i, j) is T of the kinds of i and j. Its sum of squares about row and column means is
    Σ C² - (Σ row sums² + Σ column sums²) / n + (Σ C)² / n², all of integers.
    """
    size = n[node]
    chunk = np.repeat(np.arange(len(node)), size)
    at = places_of(offsets_of(n)[:-1][node], size)
    words, of_word = np.concatenate([member, shown]), np.concatenate([chunk, chunk])
    order = np.lexsort((words, of_word))
    heads = heads_of(words[order]) | heads_of(of_word[order])
    kind = np.empty(len(words), np.int64)
    kind[order] = np.cumsum(heads) - 1
    kinds = Kinds(kind[: len(member)], kind[len(member) :], of_word[order][heads])
    following = places_of(np.zeros(len(n), np.int64), n)
    ranks = np.empty(len(owner), np.int64)
    ranks[np.lexsort((owner, np.repeat(np.arange(len(n)), n)))] = following
    moved = following[at] - (size[chunk] - 1) / 2
    pairs = pair_sums(kinds, at, size, carried)
    turns = [owner_sums(kinds, places[at], moved, chunk, size) for places in (ranks, following)]
    return np.array([*pairs, *(turn[one].sum(axis=0) for one in (~carried, carried) for turn in turns)])


class Kinds(NamedTuple):
    """Kinds of parts, from 0: of each member's part, of each subrecord, and the chunk of each kind."""

    of_member: Longs
    of_shown: Longs
    chunk: Longs


def pair_sums(kinds: Kinds, at: Longs, size: Longs, carried: NDArray[np.bool_]) -> Sums:
    """The sums over pairs of chunks of a node: of no payload, of one, of two. `at`: the member, and the number, of each
    part."""
    many, chunks, turn = max(len(kinds.chunk), 1), max(len(size), 1), np.argsort(at, kind="stable")
    shown = np.bincount(kinds.of_shown, minlength=many).astype(float)
    lists = offsets_of(np.bincount(at))
    keys, t = pairs_of_lists(kinds.of_member[turn], lists, many)
    other, s = pairs_of_lists(kinds.of_shown[turn], lists, many)
    x, y = np.divmod(keys, many)
    a, b = kinds.chunk[x], kinds.chunk[y]
    rows, of_rows = sum_by_key(x * chunks + b, t * shown[y])
    columns, of_columns = sum_by_key(y * chunks + a, t * shown[x])
    of_pair, whole = sum_by_key(a * chunks + b, t * shown[x] * shown[y])

    def over_pairs(a: Longs, b: Longs, values: Floats) -> Any:
        return np.bincount(carried[a].astype(int) + carried[b], values, 3)

    def over_sums(keys: Longs, sums: Floats) -> Any:
        """The squares of row sums or column sums."""
        kind, b = np.divmod(keys, chunks)
        return over_pairs(kinds.chunk[kind], b, sums**2 * shown[kind] / (size[b] * (size[b] - 1)))

    c, d = np.divmod(of_pair, chunks)
    traces = over_pairs(a, b, t * np.append(s, 0)[find(other, keys, -1)])
    means = over_pairs(c, d, whole / size[c])
    squares = over_pairs(a, b, t**2 * shown[x] * shown[y] / (size[a] - 1))
    of_all = over_pairs(c, d, whole**2 / (size[c] ** 2 * (size[c] - 1)))
    variance = squares - over_sums(rows, of_rows) - over_sums(columns, of_columns) + of_all
    return np.stack([traces - means, variance], axis=1)


def sum_by_key(keys: Longs, values: Floats) -> tuple[Longs, Floats]:
    found, place = np.unique(keys, return_inverse=True)
    return found, np.bincount(place, values, len(found)).astype(np.float64)


def owner_sums(kinds: Kinds, places: Longs, moved: Floats, chunk: Longs, size: Longs) -> Sums:
    """The sums of each chunk by itself. `places`: of each part's member; `moved`: each number less the mean number."""
    many = len(kinds.chunk)
    people = np.bincount(kinds.of_member, minlength=many)
    mean = (np.bincount(kinds.of_member, places, many) / np.maximum(people, 1))[kinds.of_shown]
    mean -= (np.bincount(chunk, mean, len(size)) / size)[chunk]
    found = [np.bincount(chunk, values, len(size)) for values in (mean * moved, mean**2)]
    scale = size * (size + 1) / 12  # what owners in order would make, by chance's variance
    return np.stack(found, axis=1) / scale[:, None]
