"""Trajectories as flat arrays for the kernels: distinct ones once, with the records that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leeward.errors import BadInput
from leeward.methods.trajectories.space import Axis, Space

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Gains = NDArray[Any]
"""int32 where all sums fit, else int64."""

RECIPROCAL_BITS = 62
"""Scores of `normalised` must fit in this many bits."""

BLOCK_YEARS, WIDE_SPAN = 16, 12
"""Blocks of trajectories that a bound dismisses together: by middle age, and by whether they span many ages."""


class Columns(NamedTuple):
    """An axis seen from the values in use: columns are the used leaves in depth-first order. Kernels take it whole.

    nodes : int32[columns], the node of each column.
    low, high : int32 a node, the columns below it (high excluded).
    parent, published, gain : of the axis; gain in the kernels' number type.
    """

    nodes: Ints
    low: Ints
    high: Ints
    parent: Ints
    published: Ints
    gain: Gains


class Entries(NamedTuple):
    """What kernels read of distinct trajectories (`Problem`), as one argument."""

    offsets: Longs
    code: Ints
    age: Ints
    pair: Ints
    length: Ints
    rank: Ints
    group: Ints
    score: Longs


@dataclass(frozen=True)
class Problem:
    """Distinct trajectories by (length, block, rank); entry d has the pairs offsets[d]:offsets[d + 1].

    code, age : int32, column of each pair.  pair : int32, code column · |age columns| + age column.
    length, rank, copies : int32 a distinct trajectory; ranks order ties (smallest tuple of pairs first).
    shape : int32, equal for entries with equal trajectories (they differ in their sensitive value).
    block : int32, equal for entries of equal length and similar ages; first_age, last_age : int32 age columns.
    group : int32, the sensitive payload value of the entry; -1 without.
    records, record_offsets : the records of each entry, ascending.
    score : int64[longest + 1], 1/n of `normalised` in units of 1/score[0] (exact while it fits, else rounded
        down: docs/methods/trajectories.md#alignment).
    """

    codes: Columns
    ages: Columns
    offsets: Longs
    code: Ints
    age: Ints
    pair: Ints
    length: Ints
    rank: Ints
    copies: Ints
    shape: Ints
    block: Ints
    first_age: Ints
    last_age: Ints
    group: Ints
    records: Longs
    record_offsets: Longs
    score: Longs
    unit: int

    def __len__(self) -> int:
        return len(self.length)

    @property
    def entries(self) -> Entries:
        """The arrays of the trajectories, for kernels."""
        return Entries(
            self.offsets, self.code, self.age, self.pair, self.length, self.rank, self.group, self.score
        )

    @property
    def total(self) -> int:
        """Number of records."""
        return len(self.records)

    @property
    def longest(self) -> int:
        """Pairs of the longest trajectory."""
        return int(self.length.max())


def make(
    offsets: Longs, codes: Ints, ages: Ints, space: Space, k: int, groups: Ints | None = None
) -> Problem:
    """Sort each trajectory by (age, code), find the distinct ones, order them.

    `codes` and `ages` are leaves of the space's hierarchies. Raises BadInput if the losses would not fit.
    """
    lengths = np.diff(offsets)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    code_rank, age_rank = space.code.rank[codes], space.age.rank[ages]
    order = _by_age_and_code(owner, age_rank, code_rank)
    codes, ages, code_rank, age_rank = codes[order], ages[order], code_rank[order], age_rank[order]
    entry_of, first, n_distinct, rank, shape, block = _distinct(offsets, code_rank, age_rank, groups)
    by_entry = np.argsort(entry_of, kind="stable")
    copies = np.bincount(entry_of, minlength=n_distinct).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(copies, dtype=np.int64)])
    kept = _gather(offsets, first)
    length = lengths[first].astype(np.int32)
    longest = int(length.max())
    number = _number_type(space, longest)
    code_columns = _columns(space.code, codes, number)
    age_columns = _columns(space.age, ages, number)
    column_of_code = np.zeros(len(space.code.parent), np.int32)
    column_of_code[code_columns.nodes] = np.arange(len(code_columns.nodes))
    column_of_age = np.zeros(len(space.age.parent), np.int32)
    column_of_age[age_columns.nodes] = np.arange(len(age_columns.nodes))
    code, age = column_of_code[codes[kept]], column_of_age[ages[kept]]
    begins = np.concatenate([[0], np.cumsum(length, dtype=np.int64)])
    return Problem(
        codes=code_columns,
        ages=age_columns,
        offsets=begins,
        code=code,
        age=age,
        pair=(code * np.int32(len(age_columns.nodes)) + age).astype(np.int32),
        length=length,
        rank=rank,
        copies=copies,
        shape=shape,
        block=block,
        first_age=np.minimum.reduceat(age, begins[:-1]),
        last_age=np.maximum.reduceat(age, begins[:-1]),
        group=np.full(n_distinct, -1, np.int32) if groups is None else groups[first].astype(np.int32),
        records=by_entry.astype(np.int64),
        record_offsets=starts,
        score=reciprocals(longest, space.unit, k),
        unit=space.unit,
    )


def _by_age_and_code(owner: Longs, age_rank: Ints, code_rank: Ints) -> Longs:
    ages, codes = int(age_rank.max()) + 1, int(code_rank.max()) + 1
    if (len(owner) + 1) * ages * codes >= 1 << 62:
        return np.lexsort((code_rank, age_rank, owner))
    # One number a pair sorts several times faster; equal pairs of a record are alike.
    return np.argsort((owner * ages + age_rank) * codes + code_rank)


def reciprocals(longest: int, unit: int, k: int) -> Longs:
    """1/n for n = 1 … longest in units of 1/score[0]: exact (their common denominator) while scores of clusters
    of up to 2k records fit in 62 bits, else in units of 2⁻ᵇ rounded down, with the largest b that fits.

    Raises BadInput if not even 12 bits are left.
    """
    room = RECIPROCAL_BITS - (unit * longest).bit_length() - (2 * k + 1).bit_length()
    common = int(np.lcm.reduce(np.arange(1, min(longest, 40) + 1, dtype=object))) if longest <= 40 else 0
    if 0 < common.bit_length() <= room:
        scale = common
    elif room >= 12:
        scale = 1 << min(room - 1, 40)
    else:
        raise BadInput(
            f"trajectories of up to {longest:,} pairs with hierarchies this large and k = {k} do not fit in 64-bit "
            "losses; restrict the code hierarchy to a list of codes, or shorten the trajectories."
        )
    return np.array([scale] + [scale // n for n in range(1, longest + 1)], np.int64)


def _number_type(space: Space, longest: int) -> type[np.int32] | type[np.int64]:
    return np.int32 if space.unit * (longest + 1) < (1 << 29) else np.int64


def _columns(axis: Axis, used: Ints, number: type[np.int32] | type[np.int64]) -> Columns:
    nodes = np.unique(used).astype(np.int32)
    everything = np.arange(len(axis.parent), dtype=np.int32)
    low = np.searchsorted(nodes, everything).astype(np.int32)
    high = np.searchsorted(nodes, axis.end, side="right").astype(np.int32)
    return Columns(nodes, low, high, axis.parent, axis.published, axis.gain.astype(number))


def _gather(offsets: Longs, chosen: Longs) -> Longs:
    """Positions of the pairs of the chosen records, one record after the other."""
    sizes = offsets[chosen + 1] - offsets[chosen]
    ends = np.cumsum(sizes)
    return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(offsets[chosen] - (ends - sizes), sizes)


def _distinct(
    offsets: Longs, code_rank: Ints, age_rank: Ints, groups: Ints | None
) -> tuple[Longs, Longs, int, Ints, Ints, Ints]:
    """(entry of each record, first record of each entry, number of entries; rank, shape, block of each entry)."""
    order, starts = _in_order(offsets, code_rank.astype(np.int64), age_rank.astype(np.int64))
    shape_of = np.empty(len(order), np.int64)
    shape_of[order] = np.cumsum(starts) - 1
    kinds = np.zeros(len(order), np.int64) if groups is None else groups.astype(np.int64)
    # Records of an entry side by side, the first of them first.
    together = np.lexsort((kinds, shape_of))
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(shape_of[together]) != 0) | (np.diff(kinds[together]) != 0)
    first = together[begins]
    by_rank = np.lexsort((first, shape_of[first]))
    place_of_rank = np.empty(len(first), np.int64)
    place_of_rank[by_rank] = np.arange(len(first))
    record_rank = np.empty(len(order), np.int64)
    record_rank[together] = place_of_rank[np.cumsum(begins) - 1]
    first = first[by_rank]
    rank = np.arange(len(first), dtype=np.int32)
    shape = shape_of[first].astype(np.int32)
    lengths = np.diff(offsets)[first]
    youngest, oldest = age_rank[offsets[first]], age_rank[offsets[first + 1] - 1]
    similar = (youngest + oldest) // (2 * BLOCK_YEARS) * 2 + (oldest - youngest > WIDE_SPAN)
    order = np.lexsort((rank, similar, lengths))
    changed = (np.diff(lengths[order]) != 0) | (np.diff(similar[order]) != 0)
    block = np.concatenate([[0], np.cumsum(changed)]).astype(np.int32)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[record_rank], first[order], len(first), rank[order], shape[order], block


def _in_order(offsets: Longs, code_rank: Longs, age_rank: Longs) -> tuple[Longs, NDArray[np.bool_]]:
    """Records by their tuples of (code, age), a prefix first, equal ones by number; and where each kind begins.

    One position of the tuples after the other, among the records that are still equal.
    """
    lengths = np.diff(offsets)
    width = int(age_rank.max()) + 1
    keys = code_rank * width + age_rank + 1  # 0: the tuple has ended
    order = np.arange(len(lengths))
    starts = np.zeros(len(order), np.bool_)
    starts[:1] = True
    places = order.copy()
    position = 0
    while len(places):
        records = order[places]
        more = lengths[records] > position
        key = np.where(more, keys[np.minimum(offsets[records] + position, len(keys) - 1)], 0)
        run = np.cumsum(starts[places])
        sorted_by = np.lexsort((key, run))
        order[places] = records[sorted_by]
        key, more = key[sorted_by], more[sorted_by]
        starts[places[1:]] |= key[1:] != key[:-1]
        # Alone in its run, or ended like all of its run: nothing more to tell apart.
        open_run = np.ones(len(order) + 1, np.bool_)
        open_run[: len(order)] = starts
        alone = open_run[places] & open_run[places + 1]
        places = places[more & ~alone]
        position += 1
    return order, starts
