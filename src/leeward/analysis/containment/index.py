"""A population in memory, indexed by (code, at least c)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np

from leeward.analysis.containment import kernels
from leeward.analysis.containment.multisets import Multisets, Projection, item_offsets
from leeward.analysis.holders import bit_rows
from leeward.arrays import Int32s, Int64s, UInt16s, UInt32s, UInt64s, offsets_of
from leeward.cohort.lenses.code_sets import CodeCounts
from leeward.engine import pool

GRID_BITS = 20.0
"""Up to 2**20 combinations of capped counts, a histogram over all of them answers every question."""
DENSE = 32
"""A list of at least n / 32 people is kept as bits too: they then take no more room than its 32-bit numbers."""
QUESTIONS_AT_ONCE = 128
PACKED_BITS = 62.0

NOWHERE = np.iinfo(np.int64).max


class Index:
    """Implements `Population` over flat arrays; every part is built when first needed.

    Parameters
    ----------
    people : Multisets
        One record a person, over the numbered codes.
    caps : int64[codes]
        Counts above these are not told apart (at most 65,535).
    threads : int
        Worker threads for questions.
    """

    asks_at_once = False

    def __init__(self, people: Multisets, caps: Int64s, threads: int = 1) -> None:
        self._people = people
        self._starts = item_offsets(caps)
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
        """See `Population`."""
        return np.diff(self._list_offsets)

    def counts(self, asked: Multisets, limit: int | None = None) -> Int64s:
        """See `Population`. Few codes: looked up in the grid; else lists and bit words are intersected."""
        if self._grid is not None:
            strides = np.array(self._grid.strides, np.int64) // self._grid.itemsize
            cells = np.bincount(
                asked.owners(), weights=asked.counts * strides[asked.values], minlength=len(asked)
            )
            return np.asarray(self._grid.reshape(-1)[cells.astype(np.int64)])
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

        _in_threads(count, range(0, len(asked), QUESTIONS_AT_ONCE), self.threads)
        return out

    def owners(self, codes: Int32s, counts: Int32s) -> UInt32s:
        """The people who contain one multiset, ascending."""
        items = self._starts[codes] + counts - 1
        if not len(items):
            return np.arange(self.n, dtype=np.uint32)
        lists = [self._lists[self._list_offsets[item] : self._list_offsets[item + 1]] for item in items]
        found, *others = sorted(lists, key=len)
        for other in others:
            if not len(found):
                break
            place = np.minimum(np.searchsorted(other, found), len(other) - 1)
            found = found[other[place] == found]
        return found

    def records(self) -> Multisets:
        """The people's records, codes outside of the numbering left out."""
        return self._people

    def projections(self, asked: Multisets, floors: Int64s) -> Iterator[Projection]:
        """See `Population`."""
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
    """One thread's working arrays for projections."""

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


def _in_threads(work: Callable[[int], object], firsts: Sequence[int], threads: int) -> None:
    with pool(min(threads, len(firsts))) as workers:
        list(workers.map(work, firsts))
