"""The count index: exact counts of patients and of rows, for the charged path only.

Nothing here adds noise and nothing here is for a recipient's eyes: `charged_query` charges, draws and asks.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import pairwise, takewhile
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyroaring import BitMap

from leeward.errors import BadInput
from leeward.queries.index import store
from leeward.queries.language.formula import Literal, normal_form
from leeward.queries.language.query import Predicate, Query, in_months, quote
from leeward.queries.language.vocabulary import Vocabulary, from_tables, nearest
from leeward.queries.privacy.mechanism import Unit

SEXES = {"f": "female", "female": "f", "m": "male", "male": "m"}
"""Alternative spellings of a value: either is accepted for the one in the public domain."""
KEPT = 64
"""Terms and nodes whose rows are kept in memory."""


class Index:
    """An index on disk, opened for reading. Safe for threads: bitmaps are only read.

    `rows`, `patients`, `values` and every count are exact data and stay with the custodian; `meta` and `terms` are
    public.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the index in the folder `path`; BadInput: no index, one of another version, or a damaged one."""
        folder = self.path = Path(path)
        head = store.read_head(folder)
        try:
            self.meta: store.Meta = store.read_meta(head["meta"])
            self.rows, self.patients = int(head["rows"]), int(head["patients"])
            names = ("vocabulary", "aliases", "directory")
            vocabulary, aliases, directory = (store.read_table(folder / f"{name}.arrow") for name in names)
            self._bytes = store.map_file(folder / store.BITMAPS)
            self._patient_of_row: NDArray[np.int32] | None = None
            if store.PATIENTS in head["files"]:
                self._patient_of_row = np.frombuffer(store.map_file(folder / store.PATIENTS), np.int32)
        except (KeyError, TypeError, ValueError, OSError, pa.ArrowInvalid):
            raise BadInput(f"{folder}: the index is damaged; build it again with `leeward index`.") from None
        self.terms: Vocabulary = from_tables(vocabulary, aliases, self.meta.vocabulary)
        self._places: dict[str, dict[str, tuple[int, int]]] = {
            column: {} for column in ("", *(qid.name for qid in self.meta.qids))
        }
        columns = [directory.column(name).to_pylist() for name in store.DIRECTORY.names]
        for column, value, offset, length in zip(*columns, strict=True):
            self._places[column][value] = (offset, length)
        self._term = lru_cache(KEPT)(self._read_term)

    # -- what is public ----

    def resolve(self, query: Query) -> Query:
        """The query in the index's canonical form: its `canonical()` identifies it for the ledger.

        Aliases, labels and nodes become one name each, the terms get their normal form (one that another implies is
        dropped), conditions are typed and cut to the public domain. Uses the public vocabulary and domains, never data.

        BadInput: unknown term (with the nearest known ones), unknown quasi-identifier, a condition that its type does
        not take, a value outside a declared domain of texts, terms that hold for every row or for none.
        """
        own = {name: self.terms.resolve(name) for name in query.names}  # the vocabulary's names
        asked = frozenset(
            frozenset(Literal(own[n], holds) for n, holds in each) for each in query.to_formula()
        )
        return Query.of(
            normal_form(asked, self.terms.covers), tuple(sorted(map(self._convert, query.predicates)))
        )

    def domain(self, qid: str) -> tuple[str, ...] | None:
        """Every permissible value of a quasi-identifier, in order, where a domain was declared (public)."""
        known = self.meta.qid(qid)
        if known.domain is None or known.kind == "text":
            return known.domain
        low, high = known.ends
        return tuple(map(known.text_of, range(low, high + 1)))

    def _convert(self, predicate: Predicate) -> Predicate:
        qid = self.meta.qid(predicate.qid)
        if qid.kind == "text":
            return _of_text(qid, predicate)
        if qid.kind == "month":
            predicate = in_months(predicate)
        elif predicate.kind == "prefix":
            raise BadInput(
                f"`{qid.name}` holds whole numbers, which have no wildcard; write a range, as in 80..89."
            )
        low, high = _number(qid, predicate.low), _number(qid, predicate.high or predicate.low)
        if low > high:
            raise BadInput(f"`{qid.name}`: the range runs backwards; write the smaller value first.")
        if qid.ends:
            first, last = qid.ends
            if first <= high and low <= last:
                low, high = max(low, first), min(high, last)
        if low == high:
            return Predicate(qid.name, "equals", qid.text_of(low))
        return Predicate(qid.name, "range", qid.text_of(low), qid.text_of(high))

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
        known = self.meta.qid(qid)
        rows = self.matching(query)
        wanted = [self._convert(Predicate(known.name, "equals", value.casefold())) for value in values]
        if any(each.kind != "equals" for each in wanted):
            raise BadInput(f"`{qid}`: a bin is one value.")
        bins = [rows & self._rows_within(each) for each in wanted]
        if most is None or known.per_patient:
            return np.array([self.size_of(each, unit) for each in bins], np.int64)
        used = np.zeros(self.patients, np.int64)
        counts = np.zeros(len(values), np.int64)
        for i, each in enumerate(bins):
            who, many = np.unique(self.patients_of(each), return_counts=True)
            taken = np.minimum(1 if unit == "patient" else many, most - used[who])
            used[who] += taken
            counts[i] = taken.sum()
        return counts

    def matching(self, query: Query) -> BitMap:
        """The rows that match; not to be changed. Exact."""
        resolved = self.resolve(query)
        parts = [self._term(name) for name in resolved.terms]
        parts += [
            BitMap.union(*(self._rows_of(literal) for literal in clause)) for clause in resolved.clauses
        ]
        parts += map(self._rows_within, resolved.predicates)
        return reduce(operator.and_, sorted(parts, key=len))

    def _rows_of(self, literal: Literal) -> BitMap:
        rows = self._term(literal.name)
        return rows if literal.holds else rows.flip(0, self.rows)

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
        return tuple(sorted(self._places[known.name], key=known.sort_key))

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
        offset, length = self._places[column].get(value, (0, 0))
        return BitMap.deserialize(bytes(self._bytes[offset : offset + length])) if length else BitMap()

    def _read_term(self, name: str) -> BitMap:
        return self._union("", self.terms.expand(name, self._places[""]))

    def _union(self, column: str, values: Iterable[str]) -> BitMap:
        return BitMap.union(BitMap(), *(self.bitmap(column, value) for value in values))

    def _rows_within(self, predicate: Predicate) -> BitMap:
        qid = self.meta.qid(predicate.qid)
        if predicate.kind == "equals":
            return self.bitmap(qid.name, predicate.low)
        held = self._places[qid.name]
        if predicate.kind == "prefix":
            return self._union(qid.name, (value for value in held if value.startswith(predicate.low)))
        low, high = _number(qid, predicate.low), _number(qid, predicate.high)
        return self._union(qid.name, (value for value in held if low <= _number(qid, value) <= high))


def _number(qid: store.Qid, text: str) -> int:
    number = qid.number_of(text)
    if number is not None:
        return number
    if qid.kind == "month":
        raise BadInput(f"`{qid.name}`: a month is written YYYY-MM.")
    raise BadInput(f"`{qid.name}` holds whole numbers; write one, or a range as in 0..17.")


def _of_text(qid: store.Qid, predicate: Predicate) -> Predicate:
    """A condition on text; with a declared domain equal sets of values have one form."""
    if predicate.kind == "range":
        raise BadInput(
            f"`{qid.name}` holds text, which has no ranges; write a value, or a beginning as in 1230*."
        )
    if qid.domain is None:
        return predicate
    if predicate.kind == "prefix":
        return _of_beginning(qid.domain, predicate)
    for spelling in (predicate.low, SEXES.get(predicate.low)):
        if spelling in qid.domain:
            return replace(predicate, low=spelling)
    near = nearest(predicate.low, qid.domain)
    hint = f" Nearest: {', '.join(near)}." if near else ""
    raise BadInput(f"`{qid.name}`: {quote(predicate.low)} is not among its permissible values.{hint}")


def _of_beginning(domain: Sequence[str], predicate: Predicate) -> Predicate:
    meant = [value for value in domain if value.startswith(predicate.low)]
    if len(meant) == 1:
        return replace(predicate, kind="equals", low=meant[0])
    ends = zip(min(meant, default=""), max(meant, default=""), strict=False)
    beginning = "".join(sign for sign, _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    return replace(predicate, low=beginning or predicate.low)
