"""The count index: exact counts of patients and of rows, for the charged path only.

Nothing here adds noise and nothing here is for a recipient's eyes: `answering` charges, draws and asks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from leeward.errors import BadInput
from leeward.queries.index import store
from leeward.queries.language.query import (
    EXACT,
    Predicate,
    Query,
    from_month_numbers,
    in_months,
    month_number,
    quote,
)
from leeward.queries.language.vocabulary import Vocabulary, from_tables, nearest

MEMORY = 64 * 2**20
"""Approximate limit, in bytes, of the cumulated bitmaps of one quasi-identifier."""
FEW = 4
"""Up to this many values are joined without cumulated bitmaps."""


class Ranges:
    """Bitmaps of ordered values; a row has at most one of the values.

    Bitmaps are cumulated when the first wide range is asked for.
    Threads may share it: at worst two of them cumulate the same.
    """

    def __init__(
        self, values: Sequence[str], bitmap: Callable[[str], BitMap], rows: int, memory: int = MEMORY
    ) -> None:
        self.values = tuple(values)
        self._bitmap = bitmap
        blocks = max(1, min(len(self.values), memory // max(rows // 8, 1)))
        self._block = -(-max(len(self.values), 1) // blocks)
        self._below: list[BitMap] | None = None

    def within(self, found: BitMap, first: int, end: int) -> BitMap:
        """Rows of `found` whose value has a number from `first` to `end` − 1."""
        if end - first <= FEW:
            return self._together(found, first, end)
        low, high = -(-first // self._block), end // self._block
        if low >= high:
            return self._together(found, first, end)
        below = self._cumulate()
        core = (found & below[high]) - below[low]
        core |= self._together(found, first, low * self._block)
        core |= self._together(found, high * self._block, end)
        return core

    def _together(self, found: BitMap, first: int, end: int) -> BitMap:
        kept = BitMap()
        for value in self.values[first:end]:
            kept |= found & self._bitmap(value)
        return kept

    def _cumulate(self) -> list[BitMap]:
        """Cumulative row sets at every b-th value: rows whose value is below number 0, b, 2b, …"""
        if self._below is None:
            below = [BitMap()]
            for start in range(0, len(self.values) - self._block + 1, self._block):
                parts = [self._bitmap(value) for value in self.values[start : start + self._block]]
                below.append(BitMap.union(below[-1], *parts))
            self._below = below
        return self._below


Unit = Literal["patient", "note"]

SEXES = {"f": "female", "female": "f", "m": "male", "male": "m"}
"""Alternative spellings of a value: either is accepted for the one in the public domain."""
LAST_SIGN = "\U0010ffff"
"""Sorts after every text that continues a prefix."""

KEPT = 512 * 2**20
"""Approximate limit, in bytes, of cached bitmaps of terms, nodes and values."""


class Index:
    """An index on disk, opened for reading. Safe for threads: bitmaps are only read.

    `rows`, `patients`, `values` and every count are exact data and stay with the custodian; `meta` and `terms` are
    public.
    """

    def __init__(self, stored: store.Stored) -> None:
        self.path: Path = stored.path
        self.meta: store.Meta = stored.meta
        self.rows: int = stored.rows
        self.patients: int = stored.patients
        self.terms: Vocabulary = from_tables(stored.vocabulary, stored.aliases, stored.meta.vocabulary)
        self._bytes = stored.bitmaps
        self._patient_of_row: NDArray[np.int32] | None = (
            None if stored.patient_of_row is None else np.frombuffer(stored.patient_of_row, np.int32)
        )
        self._places: dict[str, dict[str, tuple[int, int]]] = {
            "": {},
            **{qid.name: {} for qid in self.meta.qids},
        }
        columns = [
            stored.directory.column(name).to_pylist() for name in ("column", "value", "offset", "length")
        ]
        for column, value, offset, length in zip(*columns, strict=True):
            self._places[column][value] = (offset, length)
        self._kept: OrderedDict[object, BitMap] = OrderedDict()
        self._kept_bytes = 0
        self._lock = Lock()
        self._ranges: dict[str, tuple[Ranges, list[Any]]] = {}

    @staticmethod
    def open(path: str | Path) -> Index:
        """Open the index in the folder `path`.

        Raises
        ------
        BadInput
            No index, one of another version, or a damaged one.
        """
        return Index(store.read(path))

    # -- what is public ----

    def resolve(self, query: Query) -> Query:
        """The query in the index's canonical form: its `canonical()` identifies it for the ledger.

        Aliases, labels and nodes become one name each, a term that another one implies is dropped, conditions are
        typed and cut to the public domain. Uses public vocabulary and domains only, never data.

        Raises
        ------
        BadInput
            Unknown term (with the nearest known ones), unknown quasi-identifier, a condition that its type does not
            take, a value outside a declared domain of texts.
        """
        names = {self.terms.resolve(term) for term in query.terms}
        kept = [name for name in names if not any(self._covers_other(name, other) for other in names)]
        typed = (self._convert(predicate) for predicate in query.predicates)
        resolved = object.__new__(Query)  # names of terms are the vocabulary's own, not folded
        object.__setattr__(resolved, "terms", tuple(sorted(kept)))
        object.__setattr__(resolved, "predicates", tuple(sorted(p for p in typed if p is not None)))
        return resolved

    def _covers_other(self, name: str, other: str) -> bool:
        """Whether every row with `other` also has `name`; of two equivalent names the first one stays."""
        covers = self.terms.covers
        return other != name and covers(name, other) and (other < name or not covers(other, name))

    def domain(self, qid: str) -> tuple[str, ...] | None:
        """Every permissible value of a quasi-identifier, in order, where a domain was declared (public)."""
        known = self.meta.qid(qid)
        if known.domain is None or known.kind == "text":
            return known.domain
        low, high = (_number(known, end) for end in known.domain)
        return tuple(_format_value(known, n) for n in range(low, high + 1))

    def _convert(self, predicate: Predicate) -> Predicate | None:
        qid = self.meta.qid(predicate.qid)
        if qid.kind == "text":
            return _of_text(qid, predicate)
        if qid.kind == "month":
            found = in_months(predicate)
        else:
            if predicate.kind == "prefix":
                raise BadInput(
                    f"`{qid.name}` holds whole numbers, which have no wildcard; write a range, as in 80..89."
                )
            found = predicate
        low = _number(qid, found.low)
        high = _number(qid, found.high or found.low)
        if low > high:
            raise BadInput(f"`{qid.name}`: the range runs backwards; write the smaller value first.")
        if qid.domain is not None:
            first, last = (_number(qid, end) for end in qid.domain)
            if first <= high and low <= last:
                low, high = max(low, first), min(high, last)
        if qid.kind == "month":
            return from_month_numbers(qid.name, low, high)
        return Predicate(qid.name, "equals", str(low)) if low == high else Predicate(
            qid.name, "range", str(low), str(high)
        )  # fmt: skip

    # -- exact data ----

    def count(self, query: Query, unit: Unit = "patient") -> int:
        """Exact number of distinct patients with a matching row, or of matching rows (`unit="note"`)."""
        return self.size_of(self.matching(query), unit)

    def count_by(
        self, query: Query, qid: str, values: Sequence[str], unit: Unit = "patient", most: int | None = None
    ) -> NDArray[np.int64]:
        """Counts of `query` in each bin `qid = value`, int64[len(values)]. Exact.

        `values` must be chosen without looking at the data. With `most` a patient counts in no more than that many
        bins (in the first ones, in the order of `values`), so the counts of two data sets that differ in one patient
        differ by at most `most` in sum; rows beyond are left out too where rows are counted.
        """
        qid = self.meta.qid(qid).name
        rows = self.matching(query)
        bins = [rows & self.bitmap(qid, self._bin(qid, value).low) for value in values]
        if most is None or self.meta.qid(qid).per_patient:
            return np.array([self.size_of(each, unit) for each in bins], np.int64)
        used = np.zeros(self.patients, np.int32)
        counts = np.zeros(len(values), np.int64)
        for i, each in enumerate(bins):
            people = self.patients_of(each)
            if unit == "patient":
                people = np.unique(people)
                people = people[used[people] < most]
                used[people] += 1
                counts[i] = len(people)
            else:
                who, many = np.unique(people, return_counts=True)
                taken = np.minimum(many, most - used[who])
                used[who] += taken.astype(np.int32)
                counts[i] = int(taken.sum())
        return counts

    def matching(self, query: Query) -> BitMap:
        """The rows that match; not to be changed. Exact."""
        resolved = self.resolve(query)
        parts = [self._term(name) for name in resolved.terms]
        ranges = []
        for predicate in resolved.predicates:
            if predicate.kind == "equals":
                parts.append(self.bitmap(predicate.qid, predicate.low))
            else:
                ranges.append(predicate)
        parts.sort(key=len)
        found = parts[0]
        for other in parts[1:]:
            found = found & other
        for predicate in ranges:
            values, first, end = self._places_of(predicate)
            found = values.within(found, first, end)
        return found

    def size_of(self, rows: BitMap, unit: Unit = "patient") -> int:
        """Number of distinct patients, or of rows, of a bitmap of rows."""
        if unit not in ("patient", "note"):
            raise BadInput(f"`unit` is patient or note; got {unit!r}.")
        if unit == "note" or self._patient_of_row is None:
            return len(rows)
        people = self.patients_of(rows)
        # Rows are sorted by patient: a new patient begins where the number changes.
        return int(np.count_nonzero(people[1:] != people[:-1])) + 1 if len(people) else 0

    def patients_of(self, rows: BitMap) -> NDArray[np.int32]:
        """The patient's number of each row of a bitmap, ascending."""
        numbers = np.frombuffer(rows.to_array(), np.uint32)
        return numbers.astype(np.int32) if self._patient_of_row is None else self._patient_of_row[numbers]

    def values(self, qid: str) -> tuple[str, ...]:
        """Values of a quasi-identifier that occur in the data, in order. Exact: never for a recipient."""
        known = self.meta.qid(qid)
        held = self._places[known.name]
        return tuple(sorted(held) if known.kind == "text" else sorted(held, key=lambda v: _number(known, v)))

    def held(self, column: str) -> tuple[str, ...]:
        """Terms (`column` empty) or values that occur in some row, sorted. Exact."""
        return tuple(sorted(self._places[column]))

    def patients_of_rows(self, first: int, end: int) -> NDArray[np.int32]:
        """The patient's number of each row from `first` to `end` - 1."""
        if self._patient_of_row is None:
            return np.arange(first, end, dtype=np.int32)
        return self._patient_of_row[first:end]

    def rows_with(self, column: str, name: str) -> BitMap:
        """The rows with a canonical name of the vocabulary (`column` empty) or a value; not to be changed. Exact."""
        return self.bitmap(column, name) if column else self._term(name)

    def stretches(self, patients: int) -> list[tuple[int, int]]:
        """Row ranges (first, end) of `patients` patients at a time."""
        if self._patient_of_row is None:
            return [(low, min(low + patients, self.rows)) for low in range(0, self.rows, patients)]
        cuts = np.searchsorted(self._patient_of_row, np.arange(0, self.patients, patients)).tolist()
        return list(pairwise([*cuts, self.rows]))

    def bitmap(self, column: str, value: str) -> BitMap:
        """The rows with a term (`column` empty) or a value; empty where no row has it. Not to be changed."""
        place = self._places[column].get(value)
        if place is None:
            return BitMap()
        key = (column, value)
        found = self._kept.get(key)
        if found is None:
            offset, length = place
            found = self._keep(key, BitMap.deserialize(bytes(self._bytes[offset : offset + length])))
        return found

    def _term(self, name: str) -> BitMap:
        key = ("term", name)
        found = self._kept.get(key)
        if found is None:
            parts = [self.bitmap("", term) for term in self.terms.expand(name, self._places[""])]
            found = self._keep(key, parts[0] if len(parts) == 1 else BitMap.union(BitMap(), *parts))
        return found

    def _places_of(self, predicate: Predicate) -> tuple[Ranges, int, int]:
        """The values of a range or beginning: all of the quasi-identifier's in order, the first meant, the end."""
        qid = self.meta.qid(predicate.qid)
        known = self._ranges.get(qid.name)
        if known is None:
            values = self.values(qid.name)
            ranges = Ranges(values, partial(self.bitmap, qid.name), self.rows)
            known = self._ranges[qid.name] = (
                ranges,
                list(values) if qid.kind == "text" else [_number(qid, value) for value in values],
            )
        ranges, order = known
        if predicate.kind == "prefix":
            first = bisect_left(order, predicate.low)
            return ranges, first, bisect_left(order, predicate.low + LAST_SIGN, lo=first)
        low, high = _number(qid, predicate.low), _number(qid, predicate.high)
        return ranges, bisect_left(order, low), bisect_right(order, high)

    def _bin(self, qid: str, value: str) -> Predicate:
        found = self._convert(Predicate(qid, "equals", value.casefold()))
        if found is None or found.kind != "equals":
            raise BadInput(f"`{qid}`: a bin is one value.")
        return found

    def _keep(self, key: object, bitmap: BitMap) -> BitMap:
        """Cache a bitmap; the oldest ones are dropped where there is no room."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = bitmap
                self._kept_bytes += self._size(bitmap)
            while self._kept_bytes > KEPT and len(self._kept) > 1:
                self._kept_bytes -= self._size(self._kept.popitem(last=False)[1])
        return bitmap

    def _size(self, bitmap: BitMap) -> int:
        """Approximate bytes of a bitmap: two per row held, or a bit for every row."""
        return min(2 * len(bitmap), self.rows // 8) + 64


def _number(qid: store.Qid, text: str) -> int:
    if qid.kind == "month":
        found = month_number(text)
        if found is None:
            raise BadInput(f"`{qid.name}`: a month is written YYYY-MM.")
        return found
    try:
        return int(text)
    except ValueError:
        raise BadInput(f"`{qid.name}` holds whole numbers; write one, or a range as in 0..17.") from None


def _format_value(qid: store.Qid, number: int) -> str:
    return from_month_numbers(qid.name, number, number).low if qid.kind == "month" else str(number)


def _of_text(qid: store.Qid, predicate: Predicate) -> Predicate | None:
    """A condition on text; with a declared domain equal sets of values have one form."""
    if predicate.kind == "range":
        raise BadInput(
            f"`{qid.name}` holds text, which has no ranges; write a value, or a beginning as in 1230*."
        )
    if qid.domain is None:
        return predicate
    if predicate.kind == "equals":
        other = SEXES.get(predicate.low)
        if predicate.low not in qid.domain and other in qid.domain:
            return replace(predicate, low=other)
        if predicate.low not in qid.domain:
            near = nearest(predicate.low, qid.domain)
            hint = f" Nearest: {', '.join(near)}." if near else ""
            raise BadInput(f"`{qid.name}`: {quote(predicate.low)} is not among its permissible values.{hint}")
        return predicate
    meant = [value for value in qid.domain if value.startswith(predicate.low)]
    if len(meant) == 1:
        return replace(predicate, kind="equals", low=meant[0])
    return replace(predicate, low=_common_beginning(meant)) if meant else predicate


def _common_beginning(values: Sequence[str]) -> str:
    first, last = min(values), max(values)
    size = 0
    while size < min(len(first), len(last)) and first[size] == last[size]:
        size += 1
    return first[:size]


__all__ = ["EXACT", "Index", "Query", "Unit"]
