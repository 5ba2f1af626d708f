"""Reconstructed data sets: records that could have given the release (docs/methods/disassociation.md#reconstruction).

Uses published data only: each cluster's subrecords are dealt to its slots at random, chunk by chunk, shared
chunks over all slots of their joint cluster, item-chunk codes in numbers n drawn from P(n) ∝ n^-3 (prior `cubic`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from leeward.analysis.kernels import mix
from leeward.arrays import Float64s, Int32s, Int64s, UInt64s
from leeward.compiled import njit
from leeward.errors import GuaranteeUnreachable
from leeward.methods.disassociation.horpart import Clustered
from leeward.methods.disassociation.publish import Layout, Published, positions_below
from leeward.methods.disassociation.verpart import Chunks
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable

SCHEMA = pa.schema([("record", pa.int64()), ("codes", pa.list_(pa.string()))])
MOST_SWAPS = 1_000
"""Swaps per clashing subrecord before the whole reconstruction is drawn again."""

MOST_DRAWS = 50
"""Reconstructions drawn before the release fails."""

SHARED = -2
ITEM = -3


class Slots(NamedTuple):
    """The records under construction, each a chain of (code, part) pairs from head[slot] on by `link`, -1 at its end.
    `part`: record chunk of the pair, or SHARED, or ITEM; `used`: int64[1], pairs so far; `state`: of the random
    numbers."""

    head: Int64s
    link: Int64s
    code: Int32s
    part: Int32s
    used: Int64s
    state: UInt64s


def reconstruction(p: Published, number: int, k: int, randomness: Randomness) -> ReleaseTable:
    """`reconstructions/NN.parquet`: one record per slot, in shuffled order."""
    weights = np.arange(1.0, k) ** -3
    cumulative = np.ones((k, k))
    for most in range(1, k):
        cumulative[most - 1, :most] = np.cumsum(weights[:most] / weights[:most].sum())
    for draw in range(MOST_DRAWS):
        again = ("again", draw) if draw else ()
        seed = randomness.number("reconstruction", number, *again)
        at, code = _reconstruct(p.data.records, p.data.chunks, p.layout, k, cumulative, np.uint64(seed))
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
def _draw(s: Slots) -> Any:
    s.state[0] += np.uint64(0x9E3779B97F4A7C15)
    return np.int64(mix(s.state[0]) >> np.uint64(1))


@njit(inner=True)
def _shuffle(a: Int64s, s: Slots) -> None:
    for i in range(len(a) - 1, 0, -1):
        j = _draw(s) % (i + 1)
        a[i], a[j] = a[j], a[i]


@njit
def _put(s: Slots, slot: int, code: int, part: int) -> None:
    at = s.used[0]
    s.code[at], s.part[at], s.link[at] = code, part, s.head[slot]
    s.head[slot] = at
    s.used[0] = at + 1


@njit
def _holds(s: Slots, slot: int, code: int) -> bool:
    at = s.head[slot]
    while at >= 0:
        if s.code[at] == code:
            return True
        at = s.link[at]
    return False


@njit
def _fits(s: Slots, slot: int, own: Int32s) -> bool:
    for code in own:  # noqa: SIM110 (a kernel has no generators)
        if _holds(s, slot, code):
            return False
    return True


@njit(inner=True)
def _settle_clashes(s: Slots, slots: Int64s, first: Int64s, own: Int32s) -> bool:
    """Swap slots until no subrecord, own[first[x]:first[x + 1]], has a code that its slot already holds; False if that
    fails. A subrecord that clashes takes a slot that fits it, if possible one whose subrecord fits in turn; else that
    subrecord clashes next, a random walk over the assignments."""
    size = len(slots)
    waiting = np.empty(size, np.int64)
    n_waiting = 0
    for x in range(size):
        if not _fits(s, slots[x], own[first[x] : first[x + 1]]):
            waiting[n_waiting] = x
            n_waiting += 1
    steps = MOST_SWAPS * n_waiting
    while n_waiting > 0:
        x = waiting[n_waiting - 1]
        mine = own[first[x] : first[x + 1]]
        if _fits(s, slots[x], mine):
            n_waiting -= 1
            continue
        if steps == 0:
            return False
        steps -= 1
        start = _draw(s) % size
        candidate = np.int64(-1)
        settled = False
        for i in range(size):
            y = (start + i) % size
            if y == x or not _fits(s, slots[y], mine):
                continue
            candidate = y if candidate < 0 else candidate
            if _fits(s, slots[x], own[first[y] : first[y + 1]]):
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
def _deal_chunk(
    s: Slots, rows: Int64s, node: int, chunk: int, near: Clustered, layout: Layout, part: int
) -> bool:
    """Deal the chunk's subrecords of `rows` to the slots of `rows`, no code twice in a slot; False if that fails."""
    slots = rows.copy()
    _shuffle(slots, s)
    first = np.zeros(len(rows) + 1, np.int64)
    held = 0
    for r in rows:
        held += near.offsets[r + 1] - near.offsets[r]
    own = np.empty(held, np.int32)
    n = 0
    for x in range(len(rows)):
        for j in range(near.offsets[rows[x]], near.offsets[rows[x] + 1]):
            if layout.node[j] == node and layout.chunk[j] == chunk:
                own[n] = near.values[j]
                n += 1
        first[x + 1] = n
    # With `nested` a slot may have some codes of a shared chunk from a chunk below.
    if part == SHARED and not _settle_clashes(s, slots, first, own):
        return False
    for x in range(len(rows)):
        for code in own[first[x] : first[x + 1]]:
            _put(s, slots[x], code, part)
    return True


@njit
def _deal_items(s: Slots, leaf: int, near: Clustered, chunks: Chunks, k: int, cumulative: Float64s) -> None:
    """Deal the codes of a leaf's item chunk to its slots, empty ones first; afterwards no slot is empty."""
    b, e = near.bounds[leaf], near.bounds[leaf + 1]
    slots = np.arange(b, e)
    most = max(1, min(k - 1, e - b))
    last_item = np.int64(-1)
    for i in range(chunks.at[leaf], chunks.at[leaf + 1]):
        if chunks.chunk[i] >= 0:
            continue
        last_item = np.int64(chunks.code[i])
        u = _draw(s) / 9.223372036854775807e18
        count = 1
        while count < most and u >= cumulative[most - 1, count - 1]:
            count += 1
        _shuffle(slots, s)
        for empty_first in range(2):
            for slot in slots:
                if count == 0:
                    break
                if (s.head[slot] < 0) == (empty_first == 0) and not _holds(s, slot, last_item):
                    _put(s, slot, last_item, ITEM)
                    count -= 1
    for slot in range(b, e):
        if s.head[slot] < 0 and last_item >= 0:
            _put(s, slot, last_item, ITEM)
        elif s.head[slot] < 0:
            _take_subrecord(s, b, e, slot)


@njit
def _reconstruct(
    near: Clustered,
    chunks: Chunks,
    layout: Layout,
    k: int,
    cumulative: Float64s,
    seed: int,
) -> tuple[Int32s, Int32s]:
    """Offsets and codes of records, ascending; both empty if a shared chunk could not be dealt."""
    bounds = near.bounds
    leaves = len(bounds) - 1
    n = bounds[leaves]
    room = len(near.values) + k * len(near.values) // 2 + n + 16
    s = Slots(
        np.full(n, -1, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.zeros(1, np.int64),
        np.full(1, seed, np.uint64),
    )
    for node in range(len(layout.n_chunks)):  # the leaves come first
        rows = positions_below(node, layout, bounds)
        for c in range(layout.n_chunks[node]):
            if not _deal_chunk(s, rows, node, c, near, layout, c if node < leaves else SHARED):
                return np.empty(0, np.int32), np.empty(0, np.int32)
    for leaf in range(leaves):
        _deal_items(s, leaf, near, chunks, k, cumulative)
    at = np.zeros(n + 1, np.int32)
    out = np.empty(s.used[0], np.int32)
    filled = 0
    for slot in range(n):
        begin = filled
        x = s.head[slot]
        while x >= 0:
            out[filled] = s.code[x]
            filled += 1
            x = s.link[x]
        out[begin:filled].sort()
        at[slot + 1] = filled
    return at, out[:filled]


@njit(inner=True)
def _take_subrecord(s: Slots, b: int, e: int, empty: int) -> None:
    """Give an empty slot one record-chunk subrecord of a slot that holds two (there is one: #empty-item-chunks)."""
    for slot in range(b, e):
        first = np.int32(-1)
        two = False
        x = s.head[slot]
        while x >= 0:
            two = two or bool(s.part[x] < 0 or (first >= 0 and s.part[x] != first))
            if first < 0 and s.part[x] >= 0:
                first = s.part[x]
            x = s.link[x]
        if first < 0 or not two:
            continue
        rest = np.int64(-1)
        x = s.head[slot]
        while x >= 0:
            after = s.link[x]
            if s.part[x] == first:
                s.link[x] = s.head[empty]
                s.head[empty] = x
            else:
                s.link[x] = rest
                rest = x
            x = after
        s.head[slot] = rest
        return
