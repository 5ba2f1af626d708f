"""Frequent itemsets of an index, exact: at least one term, at most one value of each quasi-identifier.

The definition is Apriori's (Li & Qin 2017, Figure 4, step 3: an itemset without a health term is
dropped); the way is vertical (Eclat), over the index's bitmaps. Supports are exact data: for the replication study and
the custodian. What may be released is `catalogue`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leeward.analysis.itemsets import LIMIT, minimum_count
from leeward.errors import BadInput
from leeward.queries.index.counts import Index, Unit

Item = tuple[str, str]
"""A quasi-identifier and its value; a term has the empty name for a quasi-identifier."""


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
    from leeward.queries.index import kernels

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
    words = (index.rows + 63) // 64
    bits = np.zeros((len(items), words), np.uint64)
    for i, item in enumerate(items):
        kernels.set_bits(bits[i], np.frombuffer(index.bitmap(*item).to_array(), np.uint32))
    roots = sum(name == "" for name, _ in items)
    if not roots:
        return Itemsets((), np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
    group = np.array([names.index(name) - 1 for name, _ in items], np.int64)
    size = len(items) if max_size is None else max_size
    by_patient = unit == "patient" and index.rows > index.patients
    last = index.last_rows() if by_patient else np.zeros(1, np.uint64)
    offsets, members, counted = kernels.eclat(
        bits, np.array(supports, np.int64), group, last, roots, least, size, limit, by_patient
    )
    if len(counted) > limit:
        raise BadInput(f"more than {limit:,} itemsets reach the support of {least:,}; raise `min_support`.")
    return Itemsets(tuple(items), offsets, members, counted)
