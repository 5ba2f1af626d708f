"""Which records hold which codes, and frequent itemsets with their supports, counted vertically with bitmaps (Eclat;
Zaki 2000).

Record r has the distinct, ascending codes `values[offsets[r]:offsets[r + 1]]`. A bitmap is `uint64[ceil(n / 64)]`, bit
r set when record r holds the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leeward.arrays import AnyArray, Int32s, Int64s, UInt64s, offsets_of
from leeward.errors import BadInput

if TYPE_CHECKING:
    from leeward.cohort.lenses.code_sets import CodeSets


def owners_of(offsets: Int64s) -> Int64s:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def postings(offsets: Int64s, values: Int32s, codes: int) -> tuple[Int64s, Int32s]:
    """Records that hold each code, ascending: (starts int64[codes + 1], records int32)."""
    from leeward.analysis import kernels

    found: tuple[Int64s, Int32s] = kernels.postings(offsets, values, codes)
    return found


def bit_rows(lists: Sequence[AnyArray], n: int) -> UInt64s:
    """Lists of numbers below n as bits: uint64[len(lists), ceil(n / 64)]."""
    bits = np.zeros((len(lists), (n + 63) // 64), np.uint64)
    for row, numbers in zip(bits, lists, strict=True):
        has = np.zeros(64 * len(row), np.bool_)
        has[numbers] = True
        row[:] = np.packbits(has, bitorder="little").view(np.uint64)
    return bits


def common(lists: Iterable[AnyArray]) -> AnyArray:
    """The numbers that are in all of these ascending lists (at least one)."""
    found, *others = sorted(lists, key=len)
    for each in others:
        found = found[each.take(np.searchsorted(each, found), mode="clip") == found]
    return found


LIMIT = 5_000_000
"""Most itemsets that are mined before the support is called too low."""

Itemset = tuple[int, ...]


class TooManyItemsets(BadInput):
    """More itemsets reach the support than the limit."""


@dataclass(frozen=True)
class Itemsets:
    """Itemsets as flat arrays: number i is `items[offsets[i]:offsets[i + 1]]`, ascending indices into `codes`."""

    offsets: Int64s
    items: Int32s
    supports: Int64s

    def __len__(self) -> int:
        return len(self.supports)

    def __getitem__(self, i: int) -> Itemset:
        return tuple(self.items[self.offsets[i] : self.offsets[i + 1]].tolist())


def minimum_count(records: int, min_support: int | float) -> int:
    """Records that `min_support` asks for: an integer is a count (≥ 1), a float a share of records in (0, 1]."""
    if isinstance(min_support, bool) or not isinstance(min_support, int | float):
        raise BadInput("`min_support` must be a whole number of records or a share of them between 0 and 1.")
    if isinstance(min_support, int):
        if min_support < 1:
            raise BadInput(f"`min_support` must be at least 1 record; got {min_support}.")
        return min_support
    if not 0.0 < min_support <= 1.0:
        raise BadInput(f"`min_support` as a share must be above 0 and at most 1; got {min_support:g}.")
    # The share of a support s is s / records: the least s with s / records >= min_support, whatever the
    # rounding.
    count = max(int(min_support * records) - 1, 1)
    while count / records < min_support:
        count += 1
    return count


def mine(
    sets: CodeSets, min_support: int | float, max_size: int | None = None, *, limit: int = LIMIT
) -> Itemsets:
    """All sets of 1 to `max_size` codes that at least `min_support` records hold, depth first: (a), (a, b), (a, b,
    c), (a, c), (b), … BadInput: `min_support` out of range; TooManyItemsets (a BadInput too): more than `limit`."""
    from leeward.analysis import kernels

    least = minimum_count(max(len(sets), 1), min_support)
    supports = sets.supports()
    frequent = np.flatnonzero(supports >= least).astype(np.int32)
    longest = int(sets.lengths().max(initial=0))
    size = longest if max_size is None else min(max_size, longest)
    if len(frequent) == 0 or size < 1:
        return Itemsets(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
    rank = np.full(len(sets.codes), -1, np.int32)
    rank[frequent] = np.arange(len(frequent), dtype=np.int32)
    bits, pairs = [], np.zeros((1, 1), np.int32)
    for first, block in sets.blocks():
        ranks = rank[block.values]
        bounds = offsets_of(ranks >= 0)[block.offsets]
        ranks = ranks[ranks >= 0]
        starts, records = postings(bounds, ranks, len(frequent))
        bits.append(bit_rows(np.split(records, starts[1:-1]), len(block)))
        if size > 1:
            both = kernels.pair_supports(bounds, ranks, len(frequent))
            pairs = np.add(pairs, both, out=pairs) if first else both
    bitmaps = np.concatenate(bits, axis=1)
    offsets, items, counts = kernels.eclat(bitmaps, supports[frequent], pairs, least, size, limit)
    if len(counts) > limit:
        raise TooManyItemsets(
            f"More than {limit:,} itemsets reach the support of {least:,} records; raise `min_support`."
        )
    return Itemsets(offsets, frequent[items], counts)


def frequent_itemsets(
    sets: CodeSets, min_support: int | float, max_size: int | None = None
) -> list[tuple[Itemset, int]]:
    """The itemsets of `mine` as (indices into `sets.codes`, support), by falling support, then items."""
    found = mine(sets, min_support, max_size)
    listed = [(found[i], int(found.supports[i])) for i in range(len(found))]
    return sorted(listed, key=lambda each: (-each[1], each[0]))


def supports_of(sets: CodeSets, itemsets: Sequence[Sequence[int] | Int32s]) -> Int64s:
    """Number of records that hold all codes of each itemset, int64[len(itemsets)]; of the empty set: all records."""
    from leeward.analysis import kernels
    from leeward.engine import over_blocks

    lengths = np.array([len(each) for each in itemsets], np.int64)
    offsets = offsets_of(lengths)
    items = np.fromiter((int(c) for each in itemsets for c in each), np.int32, count=int(offsets[-1]))
    if len(items) and (items.min() < 0 or items.max() >= len(sets.codes)):
        raise BadInput("An itemset names a code that no record holds.")

    def count(block: CodeSets) -> Int64s:
        starts, records = postings(block.offsets, block.values, len(sets.codes))
        return np.concatenate(
            over_blocks(
                lambda low, high: kernels.supports(
                    starts, records, offsets[low : high + 1], items, len(block)
                ),
                len(lengths),
            )
        )

    return sum(count(block) for _, block in sets.blocks())  # type: ignore[return-value]  # never empty
