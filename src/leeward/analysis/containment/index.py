"""Multisets of codes as flat arrays, what a population answers about them, and a population in memory, indexed by
(code, at least c).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from leeward.analysis.containment import kernels
from leeward.analysis.itemsets import bit_rows, common
from leeward.arrays import (
    Int32s,
    Int64s,
    UInt16s,
    UInt32s,
    UInt64s,
    first_lists,
    offsets_of,
    positions_of,
    ranges_of,
)
from leeward.cohort.lenses.code_sets import CodeCounts
from leeward.engine import pool


@dataclass(frozen=True)
class Multisets:
    """Records (or parts of records) over a numbered list of codes.

    offsets : int64[n + 1]; record r holds the entries `offsets[r]:offsets[r + 1]`.
    values : int32[total], code numbers, ascending inside a record, no repeats.
    counts : int32[total], mentions, at least 1.
    """

    offsets: Int64s
    values: Int32s
    counts: Int32s

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def owners(self) -> Int64s:
        """The record of each entry, int64[total]."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.offsets))

    def sizes(self) -> Int64s:
        """Mentions in each record, int64[n]."""
        return np.bincount(self.owners(), weights=self.counts, minlength=len(self)).astype(np.int64)

    def take(self, records: Int64s) -> Multisets:
        entries = positions_of(self.offsets, records)
        return Multisets(
            offsets_of(np.diff(self.offsets)[records]), self.values[entries], self.counts[entries]
        )

    def with_counts(self, counts: NDArray[np.integer]) -> Multisets:
        """The same entries with other counts; entries of count 0 go."""
        kept = counts > 0
        return Multisets(offsets_of(kept)[self.offsets], self.values[kept], counts[kept].astype(np.int32))

    def cap(self, caps: Int64s) -> Multisets:
        """Each code at most `caps[code]` times."""
        return self.with_counts(np.minimum(self.counts, caps[self.values]))

    def distinct(self) -> tuple[Multisets, Int64s]:
        """The different records, in order of first appearance, and the number of each record among them."""
        entries = self.values.astype(np.int64) * (int(self.counts.max(initial=0)) + 1) + self.counts
        first, number = first_lists(self.offsets, np.unique(entries, return_inverse=True)[1])
        return self.take(first), number

    def record(self, r: int) -> tuple[Int32s, Int32s]:
        entries = slice(int(self.offsets[r]), int(self.offsets[r + 1]))
        return self.values[entries], self.counts[entries]

    @staticmethod
    def together(parts: Sequence[Multisets]) -> Multisets:
        lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.offsets) for part in parts)])
        return Multisets(
            np.cumsum(lengths),
            np.concatenate([np.zeros(0, np.int32), *(part.values for part in parts)]),
            np.concatenate([np.zeros(0, np.int32), *(part.counts for part in parts)]),
        )


@dataclass(frozen=True)
class Projection:
    """What of a population concerns one record: the distinct non-empty overlaps with it.

    rows : uint16[n, m], mentions shared of each of the record's m codes.
    weights : int64[n], how many people share exactly these.
    """

    rows: UInt16s
    weights: Int64s


class Population(Protocol):
    """A population that counts; in memory (`Index`) or behind an engine.

    n : number of people.
    caps : int64[codes], counts above these are not told apart; what is asked must lie within.
    asks_at_once : every question costs a pass over the data, so put many together.
    threads : how many threads may ask side by side.
    """

    @property
    def n(self) -> int: ...
    @property
    def caps(self) -> Int64s: ...
    @property
    def asks_at_once(self) -> bool: ...
    @property
    def threads(self) -> int: ...

    def supports(self) -> Int64s:
        """People with at least c mentions of a code, flat by (code, c = 1…cap): int64[sum(caps)]."""

    def counts(self, asked: Multisets, limit: int | None = None) -> Int64s:
        """Distinguishability of each multiset: people that contain it. With a `limit`, exact only below it."""

    def projections(self, asked: Multisets, floors: Int64s) -> Iterator[Projection]:
        """For each record the overlaps of at least `floors[r]` (≥ 1) mentions."""


def levels_of(records: Multisets, starts: Int64s) -> tuple[Int64s, Int64s]:
    """Every (record, item) of the records: one line a mention, as (record int64, item int64). The items of a code c,
    its levels, are numbered from `starts[c]` on (`offsets_of` the caps)."""
    return (
        np.repeat(records.owners(), records.counts),
        ranges_of(starts[records.values], records.counts),
    )


GRID_BITS = 20.0
"""Up to 2**20 combinations of capped counts, a histogram over all of them answers every question."""
DENSE = 32
"""A list of at least n / 32 people is kept as bits too: they then take no more room than its 32-bit numbers."""
QUESTIONS_AT_ONCE = 128
PACKED_BITS = 62.0

NOWHERE = np.iinfo(np.int64).max


class Index:
    """Implements `Population` over flat arrays; every part is built when first needed.

    people : one record a person, over the numbered codes
    caps : int64[codes]; counts above these are not told apart (at most 65,535)
    """

    asks_at_once = False

    def __init__(self, people: Multisets, caps: Int64s, threads: int = 1) -> None:
        self._people = people
        self._starts = offsets_of(caps)
        self.caps = caps
        self.n = len(people)
        self.threads = threads

    @staticmethod
    def of(population: CodeCounts, codes: Sequence[str], caps: Int64s, threads: int = 1) -> Index:
        """The index of a population's lens over `codes` (sorted); its other codes are left out."""
        return Index(number_records(population, codes), caps, threads)

    @cached_property
    def _list_offsets(self) -> Int64s:
        people = self._people
        supports = kernels.item_supports(people.values, people.counts, self.caps, self._starts)
        return offsets_of(supports)

    @cached_property
    def _lists(self) -> UInt32s:
        people = self._people
        lists: UInt32s = kernels.item_lists(
            people.offsets, people.values, people.counts, self.caps, self._starts, self._list_offsets
        )
        return lists

    @cached_property
    def _bits(self) -> tuple[Int64s, UInt64s]:
        """The row in the bit words of each item, -1 where it has none; and the words."""
        dense = np.flatnonzero(self.supports() * DENSE >= max(self.n, 1))
        row = np.full(int(self._starts[-1]), -1, np.int64)
        row[dense] = np.arange(len(dense))
        lists = [self._lists[self._list_offsets[item] : self._list_offsets[item + 1]] for item in dense]
        return row, bit_rows(lists, self.n)

    @cached_property
    def _grid(self) -> Int64s | None:
        """People with at least these counts, for every combination of counts within the caps; None if too many."""
        if np.log2(self.caps + 1.0).sum() > GRID_BITS:
            return None
        shape = tuple(int(cap) + 1 for cap in self.caps)
        strides = np.array([int(np.prod(shape[j + 1 :])) for j in range(len(shape))], np.int64)
        people = self._people
        steps = np.minimum(people.counts, self.caps[people.values]) * strides[people.values]
        cells = np.bincount(people.owners(), weights=steps, minlength=self.n).astype(np.int64)
        grid = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
        for axis in range(len(shape)):
            grid = np.flip(np.cumsum(np.flip(grid, axis), axis), axis)
        return np.ascontiguousarray(grid).astype(np.int64)

    def supports(self) -> Int64s:
        return np.diff(self._list_offsets)

    def counts(self, asked: Multisets, limit: int | None = None) -> Int64s:
        """See `Population`. Few codes: looked up in the grid; else lists and bit words are intersected."""
        if self._grid is not None:
            strides = np.array(self._grid.strides, np.int64) // self._grid.itemsize
            cells = np.bincount(
                asked.owners(), weights=asked.counts * strides[asked.values], minlength=len(asked)
            )
            return np.asarray(self._grid.reshape(-1)[cells.astype(np.int64)])
        asked, number = asked.distinct()
        out = np.zeros(len(asked), np.int64)
        items = self._starts[asked.values] + asked.counts - 1
        dense, words = self._bits
        most = NOWHERE if limit is None else limit

        def count(first: int) -> None:
            last = min(first + QUESTIONS_AT_ONCE, len(asked))
            kernels.intersections(
                asked.offsets,
                first,
                last,
                items,
                self._list_offsets,
                self._lists,
                dense,
                words,
                self.n,
                most,
                out,
            )

        firsts = range(0, len(asked), QUESTIONS_AT_ONCE)
        with pool(min(self.threads, len(firsts))) as workers:
            list(workers.map(count, firsts))
        return out[number]

    def owners(self, codes: Int32s, counts: Int32s) -> UInt32s:
        items = self._starts[codes] + counts - 1
        if not len(items):
            return np.arange(self.n, dtype=np.uint32)
        lists = [self._lists[self._list_offsets[item] : self._list_offsets[item + 1]] for item in items]
        return common(lists)

    def records(self) -> Multisets:
        """The people's records, codes outside of the numbering left out."""
        return self._people

    def projections(self, asked: Multisets, floors: Int64s) -> Iterator[Projection]:
        scratch = Scratch(self)
        for r in range(len(asked)):
            codes, levels = asked.record(r)
            yield self.projection(codes, levels, int(floors[r]), scratch)

    def projection(self, codes: Int32s, levels: Int32s, floor: int, scratch: Scratch) -> Projection:
        """The overlaps with one record of at least `floor` (≥ 1) mentions."""
        people = self._people
        rows = kernels.project(
            codes, levels, floor, people.offsets, people.values, people.counts, self._starts,
            self._list_offsets, self._lists, scratch.shared, scratch.slot, scratch.found,
        )  # fmt: skip
        return merge_rows(rows, np.ones(len(rows), np.int64), levels)


class Scratch:
    def __init__(self, index: Index) -> None:
        self.shared = np.zeros(index.n, np.uint16)
        self.slot = np.full(len(index.caps), -1, np.int16)
        self.found = np.empty(index.n, np.uint32)


def merge_rows(rows: UInt16s, weights: Int64s, levels: Int32s) -> Projection:
    """Equal rows put together, where a row packs into 64 bits; wider records have few rows and keep them all."""
    if len(rows) < 2 or np.log2(levels + 1.0).sum() > PACKED_BITS:
        return Projection(rows, weights)
    shape = tuple(levels + 1)
    keys, place = np.unique(np.ravel_multi_index(tuple(rows.T), shape), return_inverse=True)
    summed = np.bincount(place, weights=weights, minlength=len(keys)).astype(np.int64)
    return Projection(np.stack(np.unravel_index(keys, shape), axis=1).astype(np.uint16), summed)


def number_records(lens: CodeCounts, codes: Sequence[str]) -> Multisets:
    """The lens's records over the numbering of `codes` (sorted); other codes are left out, people stay."""
    if tuple(codes) == lens.codes:
        return Multisets(lens.offsets, lens.values, lens.counts)
    number = {code: place for place, code in enumerate(codes)}
    place = np.array([number.get(code, -1) for code in lens.codes] or [-1], np.int32)
    values = place[lens.values]
    known = values >= 0
    before = offsets_of(known)
    return Multisets(before[lens.offsets], values[known], lens.counts[known])
