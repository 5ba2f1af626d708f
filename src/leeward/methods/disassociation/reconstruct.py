"""Reconstructed data sets: records that could have given the release (docs/methods/disassociation.md#reconstruction).

Only what is published is used: each cluster's subrecords are dealt to its slots at random, chunk by chunk, shared
chunks over all slots of their joint cluster, item-chunk codes in numbers drawn from the stated prior.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from leeward.compiled import njit
from leeward.errors import GuaranteeUnreachable
from leeward.methods.disassociation.publish import Published
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable

SCHEMA = pa.schema([("record", pa.int64()), ("codes", pa.list_(pa.string()))])
GRADES = {"graded": ("cubic", "quintic")}
"""`graded`: n^-3 for a code that some record or shared chunk counts, n^-5 for one that only item chunks list."""

MOST_SWAPS = 1_000
"""Swaps for each subrecord that clashes, before the whole reconstruction is drawn anew."""

MOST_DRAWS = 50
"""Reconstructions drawn before the release is given up."""

SHARED = -2
ITEM = -3


class _Leaves(NamedTuple):
    """Each cluster's rows, codes, and how many codes and record chunks it has."""

    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]
    n_codes: NDArray[np.int32]
    n_chunks: NDArray[np.int32]


class _Chunks(NamedTuple):
    """The chunk of each cluster's codes, the chunks of each node, the clusters below it, and where each (record, code)
    is published."""

    of_code: NDArray[np.int32]
    n_chunks: NDArray[np.int32]
    below_at: NDArray[np.int64]
    below: NDArray[np.int32]
    occurrence_node: NDArray[np.int32]
    occurrence_chunk: NDArray[np.int32]


def item_count_prior(prior: str, most: int) -> NDArray[np.float64]:
    """P(n) of an item-chunk code's count, float64[most], for n = 1…most
    (docs/methods/disassociation.md#estimating-counts)."""
    n = np.arange(1, most + 1, dtype=np.float64)
    weight = {
        "cubic": n**-3,
        "quintic": n**-5,
        "one": (n == 1).astype(np.float64),
        "uniform": np.ones(most),
    }[prior]
    return np.asarray(weight / weight.sum())


def reconstruction(p: Published, number: int, k: int, prior: str, randomness: Randomness) -> ReleaseTable:
    """`reconstructions/NN.parquet`: one record a slot, in shuffled order."""
    grades = GRADES.get(prior, (prior,))
    cumulative = np.ones((len(grades), k, k))
    for grade, each in enumerate(grades):
        for most in range(1, k):
            cumulative[grade, most - 1, :most] = np.cumsum(item_count_prior(each, most))
    grade_of = np.full(len(p.codes), len(grades) - 1, np.int64)
    grade_of[np.unique(p.data.values[p.occurrence_chunk >= 0])] = 0
    d = p.data
    leaves = _Leaves(d.leaf_offsets, d.leaf_codes, d.leaf_n_codes, d.leaf_n_chunks)
    chunks = _Chunks(
        p.layout.chunk,
        p.layout.n_chunks,
        p.layout.below_at,
        p.layout.below,
        p.occurrence_node,
        p.occurrence_chunk,
    )
    for draw in range(MOST_DRAWS):
        again = ("again", draw) if draw else ()
        seed = randomness.number("reconstruction", number, *again)
        at, code = _reconstruct(d.offsets, d.values, leaves, chunks, k, cumulative, grade_of, np.uint64(seed))
        if len(at):
            break
    else:
        raise GuaranteeUnreachable(
            f"no reconstruction was found in {MOST_DRAWS} draws that holds each code at most once a record; "
            "leave out the nested shared chunks (--nested) or the reconstructions (--reconstructions)."
        )
    shuffled = randomness.stream("reconstruction", number, "order").permutation(len(at) - 1)
    lists = pa.ListArray.from_arrays(pa.array(at), pa.array(p.codes, pa.string()).take(pa.array(code)))
    table = pa.table(
        {"record": np.arange(len(at) - 1, dtype=np.int64), "codes": lists.take(pa.array(shuffled))},
        schema=SCHEMA,
    )
    return ReleaseTable.of(f"reconstructions/{number:02d}.parquet", table)


@njit
def _draw(state: NDArray[np.uint64]) -> Any:
    """The next of a keyed counter's mixed numbers (SplitMix64), below 2^63."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(1))


@njit(inner=True)
def _shuffle(a: NDArray[np.int64], state: NDArray[np.uint64]) -> None:
    for i in range(len(a) - 1, 0, -1):
        j = _draw(state) % (i + 1)
        a[i], a[j] = a[j], a[i]


@njit
def _holds(
    head: NDArray[np.int64], link: NDArray[np.int64], code: NDArray[np.int32], slot: int, c: int
) -> bool:
    at = head[slot]
    while at >= 0:
        if code[at] == c:
            return True
        at = link[at]
    return False


@njit
def _fits(
    head: NDArray[np.int64],
    link: NDArray[np.int64],
    code: NDArray[np.int32],
    slot: int,
    first: NDArray[np.int64],
    own: NDArray[np.int32],
    x: int,
) -> bool:
    """Whether a slot has none of the codes of subrecord x yet."""
    for j in range(first[x], first[x + 1]):  # noqa: SIM110 (a kernel has no generators)
        if _holds(head, link, code, slot, own[j]):
            return False
    return True


@njit(inner=True)
def _settle_clashes(
    head: NDArray[np.int64],
    link: NDArray[np.int64],
    code: NDArray[np.int32],
    slots: NDArray[np.int64],
    first: NDArray[np.int64],
    own: NDArray[np.int32],
    state: NDArray[np.uint64],
) -> bool:
    """Swap slots until no subrecord meets a code of its own in its slot; False where that was not reached.

    A subrecord that clashes takes a slot that fits it, if possible one whose subrecord fits in turn; else that
    subrecord clashes next, a random walk over the assignments.
    """
    size = len(slots)
    waiting = np.empty(size, np.int64)
    n_waiting = 0
    for x in range(size):
        if not _fits(head, link, code, slots[x], first, own, x):
            waiting[n_waiting] = x
            n_waiting += 1
    steps = MOST_SWAPS * n_waiting
    while n_waiting > 0:
        x = waiting[n_waiting - 1]
        if _fits(head, link, code, slots[x], first, own, x):
            n_waiting -= 1
            continue
        if steps == 0:
            return False
        steps -= 1
        start = _draw(state) % size
        candidate = np.int64(-1)
        settled = False
        for i in range(size):
            y = (start + i) % size
            if y == x or not _fits(head, link, code, slots[y], first, own, x):
                continue
            candidate = y if candidate < 0 else candidate
            if _fits(head, link, code, slots[x], first, own, y):
                candidate = y
                settled = True
                break
        if candidate < 0:
            return False
        slots[x], slots[candidate] = slots[candidate], slots[x]
        waiting[n_waiting - 1] = candidate
        if settled:
            n_waiting -= 1
    return True


@njit
def _reconstruct(
    offsets: NDArray[np.int64],
    values: NDArray[np.int32],
    cut: _Leaves,
    chunks: _Chunks,
    k: int,
    cumulative: NDArray[np.float64],
    grade_of: NDArray[np.int64],
    seed: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    leaf_offsets, leaf_codes, leaf_n_codes, leaf_n_chunks = cut
    code_chunk, n_chunks, below_at, below, occurrence_node, occurrence_chunk = chunks
    n = leaf_offsets[-1]
    leaves = len(leaf_n_codes)
    state = np.empty(1, np.uint64)
    state[0] = seed
    room = len(values) + k * len(leaf_codes) // 2 + n + 16
    code = np.empty(room, np.int32)
    link = np.empty(room, np.int64)
    part = np.empty(room, np.int32)  # record chunk of the pair, or SHARED, or ITEM
    head = np.full(n, -1, np.int64)
    used = 0
    # record chunks: each chunk's subrecords dealt to the slots of the cluster
    for leaf in range(leaves):
        b, e = leaf_offsets[leaf], leaf_offsets[leaf + 1]
        for c in range(leaf_n_chunks[leaf]):
            slots = np.arange(b, e)
            _shuffle(slots, state)
            for r in range(b, e):
                for j in range(offsets[r], offsets[r + 1]):
                    if occurrence_node[j] == leaf and occurrence_chunk[j] == c:
                        slot = slots[r - b]
                        code[used], part[used], link[used] = values[j], c, head[slot]
                        head[slot] = used
                        used += 1
    # shared chunks: over all slots of the joint cluster, no code twice in a slot
    for node in range(leaves, len(n_chunks)):
        size = 0
        for x in range(below_at[node], below_at[node + 1]):
            size += leaf_offsets[below[x] + 1] - leaf_offsets[below[x]]
        rows = np.empty(size, np.int64)
        size = 0
        for x in range(below_at[node], below_at[node + 1]):
            for r in range(leaf_offsets[below[x]], leaf_offsets[below[x] + 1]):
                rows[size] = r
                size += 1
        for c in range(n_chunks[node]):
            slots = rows.copy()
            _shuffle(slots, state)
            # Codes of this chunk that each row has: with `nested` a slot may have some of them from a chunk below.
            first = np.zeros(size + 1, np.int64)
            for x in range(size):
                count = 0
                for j in range(offsets[rows[x]], offsets[rows[x] + 1]):
                    count += occurrence_node[j] == node and occurrence_chunk[j] == c
                first[x + 1] = first[x] + count
            own = np.empty(first[size], np.int32)
            for x in range(size):
                count = first[x]
                for j in range(offsets[rows[x]], offsets[rows[x] + 1]):
                    if occurrence_node[j] == node and occurrence_chunk[j] == c:
                        own[count] = values[j]
                        count += 1
            if not _settle_clashes(head, link, code, slots, first, own, state):
                return np.empty(0, np.int32), np.empty(0, np.int32)
            for x in range(size):
                for j in range(first[x], first[x + 1]):
                    code[used], part[used], link[used] = own[j], SHARED, head[slots[x]]
                    head[slots[x]] = used
                    used += 1
    # item chunks: empty slots first
    for leaf in range(leaves):
        b, e = leaf_offsets[leaf], leaf_offsets[leaf + 1]
        base = offsets[b]
        slots = np.arange(b, e)
        last_item = -1
        for i in range(base, base + leaf_n_codes[leaf]):
            if code_chunk[i] >= 0:
                continue
            last_item = leaf_codes[i]
            most = max(1, min(k - 1, e - b))
            u = _draw(state) / 9.223372036854775807e18
            count = 1
            while count < most and u >= cumulative[grade_of[leaf_codes[i]], most - 1, count - 1]:
                count += 1
            _shuffle(slots, state)
            for empty_first in range(2):
                for slot in slots:
                    if count == 0:
                        break
                    if (head[slot] < 0) == (empty_first == 0) and not _holds(
                        head, link, code, slot, leaf_codes[i]
                    ):
                        code[used], part[used], link[used] = leaf_codes[i], ITEM, head[slot]
                        head[slot] = used
                        used += 1
                        count -= 1
        for slot in range(b, e):
            if head[slot] >= 0:
                continue
            if last_item >= 0:
                code[used], part[used], link[used] = last_item, ITEM, -1
                head[slot] = used
                used += 1
            else:
                _take_subrecord(head, link, part, b, e, slot)
    at = np.zeros(n + 1, np.int32)
    out = np.empty(used, np.int32)
    filled = 0
    for slot in range(n):
        begin = filled
        x = head[slot]
        while x >= 0:
            out[filled] = code[x]
            filled += 1
            x = link[x]
        out[begin:filled].sort()
        at[slot + 1] = filled
    return at, out[:filled]


@njit(inner=True)
def _take_subrecord(
    head: NDArray[np.int64], link: NDArray[np.int64], part: NDArray[np.int32], b: int, e: int, empty: int
) -> None:
    """Give an empty slot one record-chunk subrecord of a slot that holds two (there is one: #empty-item-chunks)."""
    for slot in range(b, e):
        first = np.int32(-1)
        two = False
        x = head[slot]
        while x >= 0:
            if part[x] >= 0:
                if first < 0:
                    first = part[x]
                elif part[x] != first:
                    two = True
            else:
                two = True
            x = link[x]
        if first < 0 or not two:
            continue
        rest = np.int64(-1)
        x = head[slot]
        while x >= 0:
            after = link[x]
            if part[x] == first:
                link[x] = head[empty]
                head[empty] = x
            else:
                link[x] = rest
                rest = x
            x = after
        head[slot] = rest
        return
