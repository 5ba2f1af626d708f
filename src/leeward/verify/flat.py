"""Flat arrays: lists packed one after the other, groups of numbers, and the source's events in numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]


def distinct(keys: Longs) -> Longs:
    """The distinct keys, ascending."""
    keys = sort(keys)
    return keys[heads_of(keys)]


def sort(keys: Longs) -> Longs:
    """Polars sorts in half of NumPy's time."""
    found: Longs = pl.Series(keys).sort().to_numpy()
    return found


def falls_of(values: Ints | Longs, offsets: Longs) -> NDArray[np.bool_]:
    """Whether each value is at most the value before it in its list; the first of a list follows none."""
    falls = np.append(False, values[1:] <= values[:-1])[: len(values)]
    falls[offsets[:-1][offsets[:-1] < len(values)]] = False
    return falls


def lists_of(marked: NDArray[np.bool_], offsets: Longs) -> Longs:
    """The lists with a marked value, ascending."""
    return distinct(np.searchsorted(offsets, np.flatnonzero(marked), side="right") - 1)


def count_keys(keys: Longs) -> tuple[Longs, Longs]:
    keys = sort(keys)
    heads = np.flatnonzero(heads_of(keys))
    return keys[heads], np.diff(np.append(heads, len(keys)))


def heads_of(ascending: Longs) -> NDArray[np.bool_]:
    """Where another value begins."""
    heads = np.ones(len(ascending), np.bool_)
    heads[1:] = ascending[1:] != ascending[:-1]
    return heads


def offsets_of(lengths: Longs) -> Longs:
    """Where each list begins when lists of these lengths are packed, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def places_of(starts: Longs, lengths: Longs) -> Longs:
    """The places starts[i], starts[i] + 1, … of each list i, list after list."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)


def pairs_of_lists(values: Ints | Longs, offsets: Longs, width: int) -> tuple[Longs, Longs]:
    """(keys, lists): x * width + y of every two values x < y of a list, ascending, and how many lists have both. Values
    are below `width`; those of a list ascend."""
    later = np.repeat(offsets[1:], np.diff(offsets)) - np.arange(1, len(values) + 1)
    keys = np.repeat(values * np.int64(width), later)
    keys += values[places_of(np.arange(1, len(values) + 1), later)]
    return count_keys(keys)


def values_of_groups(group: Ints | Longs, value: Ints, n: int) -> tuple[Longs, Ints]:
    """(offsets, values): the distinct values of each group 0 … n-1, ascending; values below 0 are left out."""
    width = int(value.max(initial=0)) + 1
    known = value >= 0
    keys = distinct(group[known].astype(np.int64) * width + value[known])
    return np.searchsorted(keys, np.arange(n + 1) * width), (keys % width).astype(np.int32)


def find(numbers: Longs, wanted: Longs, missing: int) -> Longs:
    """Index of each of `wanted` in the ascending `numbers`, `missing` where it is not there."""
    if len(numbers) == 0:
        return np.full(len(wanted), missing, np.int64)
    below, span = int(numbers[0]) - 1, int(numbers[-1]) - int(numbers[0]) + 1
    if span <= 4 * len(numbers):  # a table takes a tenth of the time of a search
        table = np.full(span + 2, missing, np.int64)
        table[(numbers - below)[::-1]] = np.arange(len(numbers))[::-1]  # the first of equal ones
        found: Longs = table[np.clip(wanted, below, below + span + 1) - below]
        return found
    place = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    return np.where(numbers[place] == wanted, place, missing).astype(np.int64)


def run_sums(words: Words, offsets: Longs) -> Words:
    """The sum of each list, modulo 2^64."""
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words)])
    return total[offsets[1:]] - total[offsets[:-1]]


def preorder(parent: Ints) -> tuple[Ints, Ints]:
    """Nodes in preorder, and the place there where each subtree ends; nodes of a cycle are left out. A parent below 0
    is none."""
    n = len(parent)
    above = np.where(parent < 0, n, parent).tolist()
    below: list[list[int]] = [[] for _ in range(n + 1)]
    for node in range(n):
        below[above[node]].append(node)
    order: list[int] = []
    waiting = below[n][::-1]
    while waiting:
        order.append(waiting.pop())
        waiting += reversed(below[order[-1]])
    size = [1] * (n + 1)
    for node in reversed(order):
        size[above[node]] += size[node]
    end = np.zeros(n, np.int32)
    end[order] = np.arange(len(order)) + np.array(size, np.int32)[order]
    return np.array(order, np.int32), end


LARGEST = 1 << 62
"""Keys stay below."""


def rank(values: pl.Series) -> tuple[pl.Series, Ints]:
    """The distinct values, ascending (a null first), and each value's place among them. Neighbours that are equal are
    looked up once."""
    heads = values.ne_missing(values.shift(1)).to_numpy().copy()
    heads[:1] = True
    first = values.filter(pl.Series(heads))
    places = first.rank("dense").cast(pl.Int32).fill_null(0).to_numpy()
    if not first.null_count():
        places = places - np.int32(1)
    if len(places) < len(values):
        places = np.repeat(places, np.diff(np.append(np.flatnonzero(heads), len(values))))
    return first.unique().sort(), places


class Numbered:
    """Events as flat arrays. `patients` has the distinct identifiers, ascending; `codes` has those that may occur, each
    once, "" for what is missing; `patient` and `code` give, for each event, its places among them."""

    def __init__(self, events: pl.DataFrame) -> None:
        self._events = events
        self._visits: dict[str, tuple[Longs, int]] = {}
        self._numbers: dict[str, tuple[Longs, int]] = {}
        self.patients, self.patient = rank(events["patient"])
        code = events["code"]
        if not isinstance(code.dtype, pl.Enum):
            code = code.cast(pl.String)
            code = code.cast(pl.Enum(code.drop_nulls().unique().sort()))
        kind = code.dtype
        assert isinstance(kind, pl.Enum)
        self.codes = [*kind.categories.to_list(), ""]
        self.code = code.to_physical().cast(pl.Int32).fill_null(len(self.codes) - 1).to_numpy()

    @property
    def width(self) -> int:
        """`patient * width + code` is a key of both."""
        return len(self.codes)

    @cached_property
    def sets(self) -> tuple[Longs, Ints]:
        """(offsets, codes): the distinct codes of each patient, ascending."""
        return values_of_groups(self.patient, self.code, len(self.patients))

    @property
    def pairs(self) -> Longs:
        """The distinct keys `patient * width + code`, ascending."""
        offsets, codes = self.sets
        return np.repeat(np.arange(len(self.patients)), np.diff(offsets)) * self.width + codes

    @cached_property
    def people(self) -> Longs:
        return np.bincount(self.sets[1], minlength=self.width)

    @property
    def held(self) -> list[str]:
        return [code for code, people in zip(self.codes, self.people.tolist(), strict=True) if people]

    @cached_property
    def first(self) -> Ints:
        """Each patient's first row, from 0."""
        rows = np.empty(len(self.patients), np.int32)
        rows[self.patient[::-1]] = np.arange(len(self.patient), dtype=np.int32)[::-1]
        return rows

    def visit(self, column: str | None) -> Longs:
        """A key of each event's visit, equal for the same patient and value of `column`; an event without a value is a
        visit of its own. Without a column a patient is one visit. `key // spread(column)` is the patient."""
        return self._visit(column)[0]

    def spread(self, column: str | None) -> int:
        """What a visit's key divided by gives its patient."""
        return self._visit(column)[1]

    def visits(self, column: str | None) -> tuple[Longs, int]:
        """The number of each event's visit, from 0, and how many visits there are; visits as in `visit`."""
        if column is None:
            return self.patient.astype(np.int64), len(self.patients)
        if column not in self._numbers:
            keys = self.visit(column)
            found = distinct(keys)
            self._numbers[column] = np.searchsorted(found, keys), len(found)
        return self._numbers[column]

    def _visit(self, column: str | None) -> tuple[Longs, int]:
        if column is None:
            return self.patient.astype(np.int64), 1
        if column not in self._visits:
            self._visits[column] = self._visits_by(self._events[column])
        return self._visits[column]

    def _visits_by(self, values: pl.Series) -> tuple[Longs, int]:
        """Keys with room for a code each: `key * width + code` fits 64 bits."""
        n, most = len(values), LARGEST // (max(1, len(self.patients)) * self.width)
        if values.dtype.is_integer() and len(known := values.drop_nulls()):
            bounds = known.to_numpy()
            least, largest = int(bounds.min()), int(bounds.max())
            if largest - least + 1 + n < most:
                place = (values.fill_null(least).cast(pl.Int64) - least).to_numpy()
                return self._keys(place, largest - least + 1, values)
        names, of_event = rank(values)
        if len(names) + n < most:
            return self._keys(of_event, len(names), values)
        key, spread = self._keys(of_event, len(names), values)
        found = distinct(key)
        owner = found // spread
        inside = np.arange(len(found)) - np.searchsorted(owner, owner)
        room = int(inside.max(initial=0)) + 1
        return (owner * room + inside)[np.searchsorted(found, key)], room

    def _keys(self, place: Longs | Ints, names: int, values: pl.Series) -> tuple[Longs, int]:
        """Keys by patient and the place of each event's value among `names`; the events without a value after them."""
        spread = names + (len(values) if values.null_count() else 0)
        if values.null_count():
            place = np.where(values.is_null().to_numpy(), names + np.arange(len(values)), place)
        return self.patient.astype(np.int64) * spread + place, spread

    @cached_property
    def mentions(self) -> tuple[Longs, Longs]:
        """The keys of `pairs`, and how often each is mentioned; with a visit column a code counts once a visit."""
        if "visit" not in self._events.columns:
            return count_keys(self.patient.astype(np.int64) * self.width + self.code)
        visit, code = np.divmod(distinct(self.visit("visit") * self.width + self.code), self.width)
        return count_keys(visit // self.spread("visit") * self.width + code)


@dataclass(frozen=True)
class Mentioned:
    """Events as far as codes are counted: see `Numbered`."""

    patients: pl.Series
    codes: list[str]
    mentions: tuple[Longs, Longs]

    @staticmethod
    def of(parts: Iterable[Numbered]) -> Mentioned:
        """Of parts with the same codes, whose patients ascend from part to part."""
        patients, keys, has = [], [], []
        before = 0
        for part in parts:
            of_part, mentions = part.mentions
            patients.append(part.patients)
            keys.append(of_part + before * part.width)
            has.append(mentions)
            before += len(part.patients)
        return Mentioned(pl.concat(patients), part.codes, (np.concatenate(keys), np.concatenate(has)))

    @property
    def width(self) -> int:
        return len(self.codes)
