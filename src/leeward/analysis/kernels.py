"""Kernels of code sets: bits of words, frequent itemsets and their supports, and the m-subsets of every record."""

from __future__ import annotations

from typing import Any

import numpy as np

from leeward.arrays import AnyArray
from leeward.compiled import njit


@njit(inline="always")
def popcount(word: Any) -> Any:
    """Number of bits set in a 64-bit word, as an int64 (Warren, Hacker's Delight, figure 5-2)."""
    x = np.uint64(word)
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit
def postings(offsets: AnyArray, values: AnyArray, codes: int) -> Any:
    """Where each code's records begin, int64[codes + 1], and the records, int32, ascending: a counting sort, which
    needs no memory but its result's."""
    starts = np.zeros(codes + 1, np.int64)
    for value in values:
        starts[value + 1] += 1
    starts = np.cumsum(starts)
    free = starts[:-1].copy()
    records = np.empty(len(values), np.int32)
    for r in range(len(offsets) - 1):
        for i in range(offsets[r], offsets[r + 1]):
            records[free[values[i]]] = r
            free[values[i]] += 1
    return starts, records


@njit
def pair_supports(offsets: AnyArray, values: AnyArray, codes: int) -> Any:
    """Support of each pair, upper triangle of int32[codes, codes], singles on the diagonal."""
    table = np.zeros((codes, codes), np.int32)
    for r in range(len(offsets) - 1):
        for i in range(offsets[r], offsets[r + 1]):
            for j in range(i, offsets[r + 1]):
                table[values[i], values[j]] += 1
    return table


@njit(inner=True)
def empty_list() -> list[int]:
    """An empty list of whole numbers: Numba cannot tell what `[]` holds."""
    return [0 for _ in range(0)]


@njit(inner=True)
def first_not_below(values: AnyArray, start: Any, end: Any, least: Any) -> Any:
    """The first place in the ascending `values[start:end]` that is not below `least` (galloping, then halving)."""
    step = 1
    low = start
    while low + step < end and values[low + step] < least:
        low += step
        step *= 2
    high = min(low + step, end)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@njit(inner=True)
def and_count(a: AnyArray, b: AnyArray, out: AnyArray) -> Any:
    """out = a & b; returns the number of bits set."""
    total = np.int64(0)
    for w in range(len(a)):
        x = a[w] & b[w]
        out[w] = x
        total += popcount(x)
    return total


@njit
def grown(array: AnyArray, needed: int) -> Any:
    """The array, or a longer one that begins with it."""
    if needed <= len(array):
        return array
    larger = np.empty(max(2 * len(array), needed), array.dtype)
    larger[: len(array)] = array
    return larger


@njit
def by_support(items: AnyArray, starts: AnyArray) -> Any:
    """The items by rising length of their lists, `starts[i]:starts[i + 1]`; equal ones stay in their order."""
    order = items.copy()
    for i in range(1, len(order)):
        j = i
        while (
            j > 0
            and starts[order[j] + 1] - starts[order[j]] < starts[order[j - 1] + 1] - starts[order[j - 1]]
        ):
            order[j], order[j - 1] = order[j - 1], order[j]
            j -= 1
    return order


@njit(inner=True)
def _support(bits: AnyArray, pair: AnyArray, chosen: AnyArray, c: int, least: int, partial: AnyArray) -> Any:
    """Support of the chosen codes (at least one) and c, with its bitmap in `partial`; of a pair, or where a pair of
    them has less than `least`, that of the pair."""
    depth = len(chosen)
    support = np.int64(pair[chosen[0], c])
    for d in range(1, depth):
        support = min(support, np.int64(pair[chosen[d], c]))
    if support < least or len(partial) == 2:
        return support
    return and_count(partial[depth - 1], bits[c], partial[depth])


@njit
def eclat(bits: AnyArray, supports: AnyArray, pair: AnyArray, least: int, size: int, limit: int) -> Any:
    """Depth-first walk over the frequent codes: (offsets, ranks, supports), at most one more than `limit`. `pair`
    prunes: a set is tried only when its new code is frequent with every code before it."""
    codes, words = bits.shape
    out_offsets = np.zeros(1024, np.int64)
    out_items = np.empty(4096, np.int32)
    out_supports = np.empty(1024, np.int64)
    found = 0
    used = 0
    depth_limit = min(size, codes)
    partial = np.empty((depth_limit, words), np.uint64)
    chosen = np.zeros(depth_limit + 1, np.int32)
    depth = 0
    while depth >= 0 and found <= limit:
        c = chosen[depth]
        if c >= codes:
            depth -= 1
            if depth >= 0:
                chosen[depth] += 1
            continue
        if depth == 0:
            count = np.int64(supports[c])
            partial[0] = bits[c]
        else:
            count = _support(bits, pair, chosen[:depth], c, least, partial)
        if count < least:
            chosen[depth] += 1
            continue
        out_offsets = grown(out_offsets, found + 2)
        out_supports = grown(out_supports, found + 1)
        out_items = grown(out_items, used + depth + 1)
        for d in range(depth + 1):
            out_items[used] = chosen[d]
            used += 1
        out_supports[found] = count
        found += 1
        out_offsets[found] = used
        if depth + 1 < depth_limit:
            chosen[depth + 1] = c + 1
            depth += 1
        else:
            chosen[depth] += 1
    return out_offsets[: found + 1].copy(), out_items[:used].copy(), out_supports[:found].copy()


@njit
def supports(starts: AnyArray, records: AnyArray, offsets: AnyArray, items: AnyArray, n: int) -> Any:
    """Support of each itemset: the rarest code's records, thinned by each other code's, merged or by bisection."""
    out = np.empty(len(offsets) - 1, np.int64)
    held = np.empty(0, np.int32)
    for q in range(len(offsets) - 1):
        first, last = offsets[q], offsets[q + 1]
        if first == last:
            out[q] = n
            continue
        order = by_support(items[first:last], starts)
        count = starts[order[0] + 1] - starts[order[0]]
        if len(held) < count:
            held = np.empty(2 * count, np.int32)
        held[:count] = records[starts[order[0]] : starts[order[0] + 1]]
        for i in range(1, len(order)):
            count = _keep_common(held, count, records[starts[order[i]] : starts[order[i] + 1]])
        out[q] = count
    return out


@njit(inner=True)
def _keep_common(held: AnyArray, count: int, records: AnyArray) -> Any:
    """Keep of the first `count` numbers in `held` those among `records` (both ascending); returns how many stay."""
    kept, low, high = np.int64(0), np.int64(0), np.int64(len(records))
    if count * 16 < high:
        for h in range(count):
            low += np.searchsorted(records[low:high], held[h])
            if low == high:
                break
            if records[low] == held[h]:
                held[kept] = held[h]
                kept += 1
        return kept
    at = np.int64(0)
    while at < count and low < high:
        a, b = held[at], records[low]
        if a == b:
            held[kept] = a
            kept += 1
        at += np.int64(a <= b)
        low += np.int64(b <= a)
    return kept


PART_KEYS = 16_384
"""Keys that are counted at once."""

TOUCH = 16
"""Words of bitmaps that are joined in the time in which one record is found and marked."""


@njit
def mix(x: Any) -> Any:
    """SplitMix64's finalizer: a bijection of 64-bit words that looks random."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit
def subset_keys(
    offsets: AnyArray,
    values: AnyArray,
    m: int,
    base: Any,
    exact: bool,
    salt: Any,
    threshold: Any,
    keys: AnyArray,
    owners: AnyArray,
) -> Any:
    """Keys of the m-subsets of every record, written to `keys` (and the record to `owners` unless that is
    empty).

    `exact`: the subset as a number in base `base`; else a 64-bit hash. Only subsets whose two smallest
    codes (one, for m = 1) hash below `threshold` are kept: the same ones in every record, so that their
    supports stay whole. Returns how many; more than fit are counted, not written."""
    found = 0
    chosen = np.zeros(m + 1, np.int64)
    key = np.zeros(m + 1, np.uint64)
    lead = min(m, 2)
    for r in range(len(offsets) - 1):
        first = offsets[r]
        n = offsets[r + 1] - first
        if n < m:
            continue
        depth = 0
        chosen[0] = 0
        while depth >= 0:
            if chosen[depth] > n - (m - depth):
                depth -= 1
                if depth >= 0:
                    chosen[depth] += 1
                continue
            before = key[depth - 1] if depth > 0 else np.uint64(0)
            code = np.uint64(values[first + chosen[depth]])
            if exact:
                key[depth] = before * base + code
            else:
                key[depth] = mix(before ^ mix(code + np.uint64(0x9E3779B97F4A7C15) * np.uint64(depth + 1)))
            if depth + 1 == lead and mix(key[depth] ^ salt) > threshold:
                chosen[depth] += 1
                continue
            if depth + 1 == m:
                if found < len(keys):
                    keys[found] = key[depth]
                    if len(owners):
                        owners[found] = r
                found += 1
                chosen[depth] += 1
            else:
                chosen[depth + 1] = chosen[depth] + 1
                depth += 1
    return found


@njit(inner=True)
def _rarest_of_bits(bits: AnyArray, width: int, partial: AnyArray, out: AnyArray) -> None:
    """Smallest support of a set of 1 … len(out) of the first `width` bitmaps; `partial` is scratch."""
    chosen = np.zeros(len(out) + 1, np.int64)
    depth = 0
    while depth >= 0:
        c = chosen[depth]
        if c >= width:
            depth -= 1
            if depth >= 0:
                chosen[depth] += 1
            continue
        support = np.int64(0)
        last = depth + 1 == len(out)
        for w in range(bits.shape[1]):
            word = bits[c, w] if depth == 0 else partial[depth - 1, w] & bits[c, w]
            support += popcount(word)
            if not last:
                partial[depth, w] = word
        out[depth] = min(out[depth], support)
        if last:
            chosen[depth] += 1
        else:
            chosen[depth + 1] = c + 1
            depth += 1


@njit
def rarest_subsets(
    offsets: AnyArray,
    values: AnyArray,
    starts: AnyArray,
    holders: AnyArray,
    chosen: AnyArray,
    largest: int,
    widest: int,
) -> Any:
    """Support of the rarest set of m codes of each chosen record, int64[len(chosen), largest]; 2^62 where
    it has fewer than m. Of a record with more than `widest` codes only the rarest `widest` are looked at.

    Where there are few sets for the records to be looked at, each is counted by bitmaps. Otherwise every other record's
    overlap is a mask of its codes, and supports of all its subsets are the sums over the masks that contain them."""
    n = len(offsets) - 1
    out = np.full((len(chosen), largest), np.int64(2**62), np.int64)
    overlap = np.zeros(n, np.uint16)
    count = np.zeros(1 << widest, np.int64)
    words = (n + 63) // 64
    bits, partial = np.empty((widest, words), np.uint64), np.empty((largest, words), np.uint64)
    for at in range(len(chosen)):
        r = chosen[at]
        own = by_support(values[offsets[r] : offsets[r + 1]], starts)[:widest]
        width = len(own)
        touched, subsets = np.int64(0), np.int64(0)
        for j in range(width):
            touched += starts[own[j] + 1] - starts[own[j]]
        choose = np.int64(1)
        for size in range(1, min(width, largest) + 1):
            choose = choose * (width - size + 1) // size
            subsets += choose
        if subsets * words < TOUCH * touched:
            for j in range(width):
                bits[j] = 0
                for t in range(starts[own[j]], starts[own[j] + 1]):
                    bits[j, holders[t] >> 6] |= np.uint64(1) << np.uint64(holders[t] & 63)
            _rarest_of_bits(bits, width, partial, out[at])
        else:
            _rarest_of_masks(own, starts, holders, overlap, count, out[at])
    return out


@njit(inner=True)
def _rarest_of_masks(
    own: AnyArray, starts: AnyArray, holders: AnyArray, overlap: AnyArray, count: AnyArray, out: AnyArray
) -> None:
    """Smallest support of a set of 1 … len(out) of the codes `own`, by what each record shares with them; `overlap`
    (zero, and left so) and `count` are scratch."""
    masks = 1 << len(own)
    count[:masks] = 0
    for j in range(len(own)):
        for t in range(starts[own[j]], starts[own[j] + 1]):
            overlap[holders[t]] |= np.uint16(1 << j)
    for j in range(len(own)):
        for t in range(starts[own[j]], starts[own[j] + 1]):
            count[overlap[holders[t]]] += (
                1  # of a record that was counted already the empty mask, which is not read
            )
            overlap[holders[t]] = np.uint16(0)
    for j in range(len(own)):
        for mask in range(masks):
            if not (mask >> j) & 1:
                count[mask] += count[mask | (1 << j)]
    for mask in range(1, masks):
        size = popcount(mask)
        if size <= len(out):
            out[size - 1] = min(out[size - 1], count[mask])


@njit
def rarest_pair(offsets: AnyArray, values: AnyArray, table: AnyArray) -> Any:
    """Support of each record's rarest pair, int64[n]; 2^62 where it has fewer than two codes."""
    out = np.full(len(offsets) - 1, np.int64(2**62), np.int64)
    for r in range(len(offsets) - 1):
        for i in range(offsets[r], offsets[r + 1]):
            for j in range(i + 1, offsets[r + 1]):
                out[r] = min(out[r], np.int64(table[values[i], values[j]]))
    return out
