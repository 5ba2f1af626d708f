"""Multisets of codes as flat arrays, and what a population answers about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from leeward.arrays import Int32s, Int64s, UInt16s, offsets_of


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
        """The records of these numbers, in this order."""
        lengths = np.diff(self.offsets)[records]
        offsets = offsets_of(lengths)
        entries = np.repeat(self.offsets[records] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Multisets(offsets, self.values[entries], self.counts[entries])

    def with_counts(self, counts: NDArray[np.integer]) -> Multisets:
        """The same entries with other counts; entries of count 0 go."""
        kept = counts > 0
        held = np.bincount(self.owners()[kept], minlength=len(self))
        offsets = offsets_of(held)
        return Multisets(offsets, self.values[kept], counts[kept].astype(np.int32))

    def capped(self, caps: Int64s) -> Multisets:
        """Each code at most `caps[code]` times."""
        return self.with_counts(np.minimum(self.counts, caps[self.values]))

    def distinct(self) -> tuple[Multisets, Int64s]:
        """The different records, in order of first appearance, and the number of each record among them."""
        numbers = np.zeros(len(self), np.int64)
        first: list[int] = []
        seen: dict[tuple[bytes, bytes], int] = {}
        for r, (start, end) in enumerate(
            zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True)
        ):
            key = (self.values[start:end].tobytes(), self.counts[start:end].tobytes())
            number = seen.setdefault(key, len(first))
            if number == len(first):
                first.append(r)
            numbers[r] = number
        return self.take(np.array(first, np.int64)), numbers

    def record(self, r: int) -> tuple[Int32s, Int32s]:
        """Codes and counts of one record."""
        entries = slice(int(self.offsets[r]), int(self.offsets[r + 1]))
        return self.values[entries], self.counts[entries]

    @staticmethod
    def together(parts: Sequence[Multisets]) -> Multisets:
        """One after the other."""
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


def item_offsets(caps: Int64s) -> Int64s:
    """Where each code's levels begin in the flat numbering by (code, level), int64[codes + 1]."""
    return offsets_of(caps)


def levels_of(records: Multisets, starts: Int64s) -> tuple[Int64s, Int64s]:
    """Every (record, item) of the records: one line a mention, as (record int64, item int64)."""
    total = records.counts.astype(np.int64)
    first = starts[records.values]
    entry = np.repeat(np.arange(len(total)), total)
    place = np.arange(int(total.sum())) - np.repeat(np.cumsum(total) - total, total)
    return records.owners()[entry], first[entry] + place
