"""Frequent itemsets of an index, exact: at least one term, at most one value of each quasi-identifier.

For the replication study: supports are exact data, and what may be released is `queries.answer.catalogue`. The
definition is Apriori's (Li & Qin 2017, Figure 4, step 3: an itemset without a health term is dropped); the way is
vertical (Eclat), over the index's bitmaps: words of 64 rows, patients as stretches of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.analysis.itemsets import LIMIT, minimum_count
from leeward.analysis.kernels import grown, popcount
from leeward.compiled import njit
from leeward.errors import BadInput
from leeward.queries.index.counts import Index, Unit

Array = NDArray[Any]


@njit
def rows_in_both(a: Array, b: Array) -> Any:
    """Number of rows in both bitmaps."""
    total = np.int64(0)
    for w in range(len(a)):
        total += popcount(a[w] & b[w])
    return total


@njit
def patients_in_both(a: Array, b: Array, last: Array) -> Any:
    """Number of patients with a row in both bitmaps; `last` has the bit of each patient's last row.

    Adding ones to all rows of a patient but the last one carries into the last one exactly when any of them is set:
    one addition looks at 64 rows of however many patients, and the carry goes on into the next word.
    """
    total = np.int64(0)
    carry = np.uint64(0)
    for w in range(len(a)):
        x = a[w] & b[w]
        end = last[w]
        rest = ~end
        low = x & rest
        first = low + rest
        more = np.uint64(1) if first < low else np.uint64(0)
        second = first + carry
        if second < first:
            more = np.uint64(1)
        carry = more
        total += popcount((second | x) & end)
    return total


@njit
def eclat(
    bits: Array,
    supports: Array,
    group: Array,
    last: Array,
    roots: int,
    least: int,
    size: int,
    limit: int,
    by_patient: bool,
) -> Any:
    """Depth-first walk (Eclat; Zaki 2000): (offsets, items, supports), one more than `limit` at most.

    Items are ascending, the first `roots` of them terms; an itemset begins with a term, so that none is without one.
    Items of one `group` (values of a quasi-identifier; −1 for terms) never meet. A set is tried with an item only
    where the set without its own last item was frequent with it.
    """
    items, words = bits.shape
    depth_limit = min(size, items)
    out_offsets = np.zeros(1024, np.int64)
    out_items = np.empty(4096, np.int32)
    out_supports = np.empty(1024, np.int64)
    found = 0
    used = 0
    partial = np.empty((depth_limit, words), np.uint64)
    allowed = np.empty(
        (depth_limit + 1, items), np.int32
    )  # items to try at each depth, with their support there
    support = np.empty((depth_limit + 1, items), np.int64)
    lengths = np.zeros(depth_limit + 1, np.int64)
    place = np.zeros(depth_limit + 1, np.int64)
    chosen = np.zeros(depth_limit + 1, np.int32)
    for i in range(items):
        allowed[0, i] = i
        support[0, i] = supports[i]
    lengths[0] = items
    depth = 0
    while depth >= 0 and found <= limit:
        at = place[depth]
        if at >= lengths[depth] or (depth == 0 and allowed[0, at] >= roots):
            depth -= 1
            if depth >= 0:
                place[depth] += 1
            continue
        item = allowed[depth, at]
        chosen[depth] = item
        out_offsets = grown(out_offsets, found + 2)
        out_supports = grown(out_supports, found + 1)
        out_items = grown(out_items, used + depth + 1)
        for d in range(depth + 1):
            out_items[used] = chosen[d]
            used += 1
        out_supports[found] = support[depth, at]
        found += 1
        out_offsets[found] = used
        if depth + 1 == depth_limit:
            place[depth] += 1
            continue
        if depth == 0:
            partial[0] = bits[item]
        else:
            for w in range(words):
                partial[depth, w] = partial[depth - 1, w] & bits[item, w]
        count = 0
        for j in range(at + 1, lengths[depth]):
            other = allowed[depth, j]
            if group[other] >= 0 and group[other] == group[item]:
                continue
            if by_patient:
                together = patients_in_both(partial[depth], bits[other], last)
            else:
                together = rows_in_both(partial[depth], bits[other])
            if together >= least:
                allowed[depth + 1, count] = other
                support[depth + 1, count] = together
                count += 1
        lengths[depth + 1] = count
        place[depth + 1] = 0
        depth += 1
    return out_offsets[: found + 1].copy(), out_items[:used].copy(), out_supports[:found].copy()


Item = tuple[str, str]
"""A quasi-identifier and its value; a term has the empty name for a quasi-identifier."""


def words_of(rows: int, chosen: NDArray[Any]) -> NDArray[np.uint64]:
    """The chosen ones of `rows` as the bits of uint64[ceil(rows / 64)]."""
    held = np.zeros((rows + 63) // 64 * 64, np.bool_)
    held[chosen] = True
    return np.packbits(held, bitorder="little").view(np.uint64)


@dataclass(frozen=True)
class Itemsets:
    """Itemsets as flat arrays: number i is `members[offsets[i]:offsets[i + 1]]`, ascending places in `items`.

    `items` has the terms first, each part in order; `supports` counts patients or rows.
    """

    items: tuple[Item, ...]
    offsets: NDArray[np.int64]
    members: NDArray[np.int32]
    supports: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.supports)

    def __getitem__(self, i: int) -> tuple[Item, ...]:
        return tuple(self.items[m] for m in self.members[self.offsets[i] : self.offsets[i + 1]])

    def to_dict(self) -> dict[tuple[Item, ...], int]:
        """Itemset -> support, for small data and tests."""
        return {self[i]: int(self.supports[i]) for i in range(len(self))}


def frequent_itemsets(
    index: Index,
    min_support: int | float,
    *,
    qids: Sequence[str] = (),
    unit: Unit = "patient",
    max_size: int | None = None,
    limit: int = LIMIT,
) -> Itemsets:
    """All itemsets of terms, and of values of `qids`, that `min_support` patients or rows hold.

    Parameters
    ----------
    min_support
        A number of patients (or rows), or a share of them in (0, 1].
    qids
        Quasi-identifiers whose values take part.
    unit
        'patient' counts distinct patients with a row that holds all of an itemset, 'note' counts such rows.
    max_size
        Most items of an itemset, values included.
    limit
        Itemsets to find before `min_support` is called too low.

    Raises
    ------
    BadInput
        `min_support` out of range, an unknown quasi-identifier, or more than `limit` itemsets.
    """
    if unit not in ("patient", "note"):
        raise BadInput(f"`unit` is patient or note; got {unit!r}.")
    if max_size is not None and max_size < 1:
        raise BadInput(f"`max_size` must be at least 1; got {max_size}.")
    least = minimum_count(max(index.patients if unit == "patient" else index.rows, 1), min_support)
    names = ("", *(index.meta.qid(name).name for name in qids))
    items: list[Item] = []
    supports: list[int] = []
    for name in names:
        for value in index.held(name):
            # Rows are never fewer than patients, so most items are settled without looking at patients.
            rows = index.bitmap(name, value)
            support = index.size_of(rows, unit) if len(rows) >= least else 0
            if support >= least:
                items.append((name, value))
                supports.append(support)
    bits = np.zeros((len(items), (index.rows + 63) // 64), np.uint64)
    for i, item in enumerate(items):
        bits[i] = words_of(index.rows, np.frombuffer(index.bitmap(*item).to_array(), np.uint32))
    roots = sum(name == "" for name, _ in items)
    if not roots:
        return Itemsets((), np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
    group = np.array([names.index(name) - 1 for name, _ in items], np.int64)
    size = len(items) if max_size is None else max_size
    by_patient = unit == "patient" and index.rows > index.patients
    patient = index.patients_of_rows(0, index.rows)
    last = words_of(index.rows, np.flatnonzero(np.r_[patient[1:] != patient[:-1], True]))
    offsets, members, counted = eclat(
        bits, np.array(supports, np.int64), group, last, roots, least, size, limit, by_patient
    )
    if len(counted) > limit:
        raise BadInput(f"more than {limit:,} itemsets reach the support of {least:,}; raise `min_support`.")
    return Itemsets(tuple(items), offsets, members, counted)
