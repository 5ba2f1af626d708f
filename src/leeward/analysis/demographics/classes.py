"""Classes: at least k patients each, published with one vector of generalized demographics
(docs/methods/whole-patient.md#classes).

In classes with sensitive columns no value of these is frequent (docs/methods/whole-patient.md#sensitive-columns).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from leeward.analysis.demographics.columns import Columns, Level
from leeward.arrays import AnyArray, Bools, Float64s, Int32s, Int64s
from leeward.errors import GuaranteeUnreachable
from leeward.randomness import Randomness


@dataclass(frozen=True)
class Classes:
    """A class of each record, ordered by their labels.

    vectors : int32[classes, columns], nodes of the columns' hierarchies, distinct
    of_record : int32[records], -1 for a record that is left out
    small : the number of records whose class at the chosen levels was below k
    taken : the number of records of other classes that joined a class below k
    """

    columns: Columns
    vectors: Int32s
    of_record: Int32s
    small: int = 0
    taken: int = 0

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def sizes(self) -> Int64s:
        """int64[classes]: the records of each class."""
        return np.bincount(self.of_record[self.of_record >= 0], minlength=len(self)).astype(np.int64)

    @property
    def left_out(self) -> int:
        return int((self.of_record < 0).sum())

    @property
    def released(self) -> Int64s:
        return np.flatnonzero(self.of_record >= 0)

    @property
    def members(self) -> list[Int64s]:
        order = np.argsort(self.of_record, kind="stable")[self.left_out :]
        return np.split(order, np.cumsum(self.sizes)[:-1])

    def without_left_out(self) -> Classes:
        """The classes of the records that are released, which the others left without gaps."""
        kept = self.released
        return replace(self, columns=self.columns.take(kept), of_record=self.of_record[kept])

    @property
    def labels(self) -> list[tuple[str, ...]]:
        return [self.columns.labels(vector) for vector in self.vectors]

    def loss(self) -> float:
        """The mean LM of the published vectors over records and columns."""
        return float(np.average(self.columns.loss(self.vectors), weights=self.sizes))

    def losses(self) -> dict[str, float]:
        return {
            column.name: float(np.average(column.losses[self.vectors[:, i]], weights=self.sizes))
            for i, column in enumerate(self.columns.columns)
        }


def classes_of(
    columns: Columns,
    levels: Mapping[str, Level],
    k: int,
    small: str,
    randomness: Randomness,
    kept: frozenset[str] = frozenset(),
    alike: Int64s | None = None,
) -> Classes:
    """Classes by the vectors at `levels`, the small ones merged, suppressed or left out.

    kept : the columns that are generalized last where small classes are merged.
    alike : int64[records], equal for records of which all or none may be taken into a small class; who is taken is
        then not drawn, but decided by the records alone (see `MergingAlike`).

    Raises GuaranteeUnreachable: fewer than k records, or none left.
    """
    vectors, of_record = group_vectors(columns.vectors(levels))
    return enlarge(columns, vectors, of_record, k, small, randomness, kept, alike)


def group_vectors(vectors: Int32s) -> tuple[Int32s, Int64s]:
    """The distinct vectors in their order, and the number of each record's."""
    distinct, number = np.unique(vectors, axis=0, return_inverse=True)
    return distinct.astype(np.int32), number.reshape(-1).astype(np.int64)


def enlarge(
    columns: Columns,
    vectors: Int32s,
    of_record: Int64s,
    k: int,
    small: str,
    randomness: Randomness,
    kept: frozenset[str] = frozenset(),
    alike: Int64s | None = None,
) -> Classes:
    """Bring every class to k records: `merge`, `suppress` or `drop` what is below (see `Merging`)."""
    if len(of_record) < k:
        raise GuaranteeUnreachable(
            f"{len(of_record):,} patients, fewer than k = {k}; no class of k can be formed. Lower k or add patients."
        )
    sizes = np.bincount(of_record, minlength=len(vectors))
    below = sizes < k
    few = int(sizes[below].sum())
    if not few:
        return in_order(columns, vectors, of_record, 0, 0)
    if small == "drop":
        of_record = np.where(below[of_record], -1, of_record)
        if not (of_record >= 0).any():
            raise GuaranteeUnreachable(
                f"no class of demographics has k = {k} patients, so `small: drop` would leave nobody. Keep less of the "
                "demographics (`keep`), or choose `small: merge`."
            )
        return in_order(columns, vectors, of_record, few, 0)
    if small == "suppress":
        vectors = np.concatenate([vectors, np.zeros((1, len(columns)), np.int32)])
        of_record = np.where(below[of_record], len(vectors) - 1, of_record)
    if alike is None:
        merging = Merging(columns, vectors, of_record, k, kept)
    else:
        merging = MergingAlike(columns, vectors, of_record.copy(), k, kept)
        merging.alike = alike
    merging.run()
    assigned = merging.assign(randomness)
    taken = int(((assigned != of_record) & ~below[of_record]).sum()) if small == "merge" else 0
    return in_order(columns, merging.vectors, assigned, few, taken)


class Merging:
    """Classes below k, the smallest first, are joined with the class where that costs least.

    A class of n < k records takes from another class as many records as it lacks, or all of them where fewer than k
    would stay there. The class that is made has the least common vector of both. The cost is the LM that this adds,
    over all records that get another vector. Which records of a class are taken is drawn at random, so that it does not
    depend on what a patient has.
    """

    def __init__(
        self, columns: Columns, vectors: Int32s, of_record: Int64s, k: int, kept: frozenset[str]
    ) -> None:
        self.columns, self.k = columns, k
        self.weights = columns.weights(kept)
        self.vectors = vectors.copy()
        self.of_record = of_record
        self.sizes = np.bincount(of_record, minlength=len(vectors)).astype(np.int64)
        self.number = {tuple(vector): i for i, vector in enumerate(vectors.tolist())}
        self.moves: list[tuple[int, int, int]] = []  # from class, to class, number of records

    def run(self) -> None:
        """Note what moves where until no class is below k."""
        while True:
            few = np.flatnonzero((self.sizes > 0) & (self.sizes < self.k))
            if not len(few):
                return
            self._join(int(few[np.argmin(self.sizes[few])]))

    def _join(self, small: int) -> None:
        lacking = self.k - int(self.sizes[small])
        others = np.flatnonzero(self.sizes > 0)
        others = others[others != small]
        takes = np.where(self.sizes[others] - lacking >= self.k, lacking, self.sizes[others])
        above, cost = _joining(
            self.columns, self.weights, self.vectors, small, self.sizes[small], others, takes
        )
        best = int(np.argmin(cost))
        target, other = self._class_of(above[best]), int(others[best])
        self._move(small, target, int(self.sizes[small]))
        wanted = self.k - int(self.sizes[target])
        if wanted > 0:  # no older class of that vector is large enough
            enough = self.sizes[other] - wanted >= self.k
            self._move(other, target, wanted if enough else int(self.sizes[other]))

    def _class_of(self, vector: Int32s) -> int:
        key = tuple(vector.tolist())
        if key not in self.number:
            self.number[key] = len(self.vectors)
            self.vectors = np.concatenate([self.vectors, vector[None]])
            self.sizes = np.append(self.sizes, 0)
        return self.number[key]

    def _move(self, source: int, target: int, records: int) -> None:
        if source != target and records:
            self.moves.append((source, target, records))
            self.sizes[source] -= records
            self.sizes[target] += records

    def assign(self, randomness: Randomness) -> Int64s:
        """int64[records]: the class of each record after all moves, drawn where a part of a class moves."""
        draw = randomness.stream("classes")
        shuffled = draw.permutation(len(self.of_record)).astype(np.int64)
        by_class = shuffled[np.argsort(self.of_record[shuffled], kind="stable")]
        bounds = np.searchsorted(self.of_record[by_class], np.arange(len(self.vectors) + 1))
        pools: list[list[int]] = [by_class[a:b].tolist() for a, b in itertools.pairwise(bounds)]
        for source, target, records in self.moves:
            keep = len(pools[source]) - records
            pools[source], taken = pools[source][:keep], pools[source][keep:]
            pools[target] = taken + pools[target]  # what came last is not passed on first
        found = np.empty_like(self.of_record)
        for number, pool in enumerate(pools):
            found[pool] = number
        return found


class MergingAlike(Merging):
    """As `Merging`, without a draw: records that are alike are taken together, those of which a class has the fewest
    first (of equals the lower number), until there are enough; all where fewer than k would stay."""

    alike: Int64s

    def _move(self, source: int, target: int, records: int) -> None:
        if source == target or not records:
            return
        own = np.flatnonzero(self.of_record == source)
        _, number, sizes = np.unique(self.alike[own], return_inverse=True, return_counts=True)
        order = np.argsort(sizes, kind="stable")
        enough = int(np.searchsorted(np.cumsum(sizes[order]), records)) + 1
        taken = own[np.isin(number, order[:enough])]
        taken = taken if len(own) - len(taken) >= self.k else own
        self.of_record[taken] = target
        self.sizes[source] -= len(taken)
        self.sizes[target] += len(taken)

    def assign(self, randomness: Randomness) -> Int64s:
        return self.of_record


def least_common(columns: Columns, vectors: Int32s, other: Int32s) -> Int32s:
    found = np.empty_like(vectors)
    for i, column in enumerate(columns.columns):
        distinct, number = np.unique(vectors[:, i], return_inverse=True)
        found[:, i] = column.tree.lca(distinct, np.full(len(distinct), other[i], np.int32))[
            number.reshape(-1)
        ]
    return found


def _joining(
    columns: Columns, weights: Float64s, vectors: Int32s, small: int, size: int, others: Int64s, takes: Int64s
) -> tuple[Int32s, Float64s]:
    """The least common vector of the class `small` with each of the others, and the LM that it adds to the `size`
    records of the one and those that it takes from the other."""
    above = least_common(columns, vectors[others], vectors[small])
    loss = columns.loss(above, weights)
    cost = size * (loss - columns.loss(vectors[small], weights))
    cost = cost + takes * (loss - columns.loss(vectors[others], weights))
    return above, np.round(cost, 9)


def in_order(columns: Columns, vectors: AnyArray, of_record: AnyArray, small: int, moved: int) -> Classes:
    """Empty classes go; the others are numbered in the order of their vectors, which says nothing of the data."""
    used = np.unique(of_record[of_record >= 0])
    order = used[np.lexsort(vectors[used].T[::-1])]
    number = np.full(len(vectors) + 1, -1, np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return Classes(columns, vectors[order].astype(np.int32), number[of_record].astype(np.int32), small, moved)


@dataclass(frozen=True)
class Sensitive:
    """A column of the released patients, in the order of the classes' records.

    values : the distinct values as text, ascending, null last where a patient has none
    number : int64[records], each record's value
    ell : no value may be that of more than 1 in `ell` records of a class; null may
    """

    name: str
    values: pl.Series
    number: Int64s
    ell: int

    def counts(self, class_of: Int64s, classes: int) -> Int64s:
        """int64[classes, values]: the records of each class with each value."""
        width = len(self.values)
        found = np.bincount(class_of * width + self.number, minlength=classes * width)
        return found.reshape(classes, width).astype(np.int64)

    def is_frequent(self, records: Int64s) -> bool:
        """Whether more than 1 in `ell` of some of the records have one value."""
        number = self.number[records]
        held = np.bincount(number[self.values.is_not_null().to_numpy()[number]])
        return int(held.max(initial=0)) * self.ell > len(records)


def sensitive_columns(table: pl.DataFrame, ells: Mapping[str, int]) -> tuple[Sensitive, ...]:
    """The columns of `ells`; `table` has a row for each released record."""
    found = []
    for name, ell in ells.items():
        text = table[name].cast(pl.String)
        values = text.unique().sort(nulls_last=True)
        number = {value: i for i, value in enumerate(values)}
        found.append(Sensitive(name, values, np.array([number[each] for each in text], np.int64), ell))
    return tuple(found)


def diversify_classes(classes: Classes, columns: Sequence[Sensitive], kept: frozenset[str]) -> Classes:
    """Join classes in which a sensitive value is too frequent, the smallest first, with the class that makes it rare
    enough at the least LM, or else costs least. GuaranteeUnreachable: a value that is too frequent among all
    records."""
    inside = np.flatnonzero(classes.of_record >= 0)
    class_of = classes.of_record[inside].astype(np.int64)
    counts = [limited_counts(column, class_of, len(classes)) for column in columns]
    vectors, sizes = classes.vectors.copy(), classes.sizes
    weights = classes.columns.weights(kept)
    joined = np.arange(len(classes))

    def frequent(sizes: Int64s, tables: Sequence[Int64s]) -> Bools:
        most = [t.max(axis=1, initial=0) * c.ell > sizes for c, t in zip(columns, tables, strict=True)]
        return np.asarray(np.logical_or.reduce(most))

    while (bad := np.flatnonzero(frequent(sizes, counts) & (sizes > 0))).size:
        small = int(bad[np.argmin(sizes[bad])])
        others = np.flatnonzero(sizes > 0)
        others = others[others != small]
        above, cost = _joining(classes.columns, weights, vectors, small, sizes[small], others, sizes[others])
        still = frequent(sizes[others] + sizes[small], [t[others] + t[small] for t in counts])
        best = int(np.lexsort((cost, still))[0])
        # A class that has the new labels already joins too: two classes never have the same.
        for other in {int(others[best]), *others[(vectors[others] == above[best]).all(axis=1)].tolist()}:
            joined[joined == other] = small
            for table in counts:
                table[small] += table[other]
                table[other] = 0
            sizes[small] += sizes[other]
            sizes[other] = 0
        vectors[small] = above[best]
    of_record = np.where(classes.of_record < 0, -1, joined[classes.of_record])
    return in_order(classes.columns, vectors, of_record, classes.small, classes.taken)


def limited_counts(column: Sensitive, class_of: Int64s, classes: int) -> Int64s:
    """Each class's records with each value that must be rare; GuaranteeUnreachable if it is too frequent among all."""
    table = column.counts(class_of, classes)[:, column.values.is_not_null().to_numpy()]
    most = int(table.sum(axis=0).max(initial=0))
    if most * column.ell > len(class_of):
        raise GuaranteeUnreachable(
            f"`sensitive_columns.{column.name}`: {most:,} of {len(class_of):,} patients have the same value, more "
            f"than 1 in {column.ell}. Lower it, or leave harmless values empty in the source."
        )
    return table


def count_values(classes: Classes, columns: Sequence[Sensitive]) -> pl.DataFrame:
    """`class`, `column`, `value`, `records` of a class with that value, in this order of rows; null values last."""
    class_of = classes.of_record[classes.of_record >= 0].astype(np.int64)
    parts = []
    for column in columns:
        table = column.counts(class_of, len(classes))
        number, value = np.nonzero(table)
        shown = {"value": column.values.gather(value), "records": table[number, value]}
        parts.append(pl.DataFrame({"class": number.astype(np.int64), **shown}))
    names = pl.concat(
        part.select("class", column=pl.lit(each.name)) for part, each in zip(parts, columns, strict=True)
    )
    counted = pl.concat(parts).with_columns(names["column"])
    return counted.select("class", "column", "value", "records").sort("class", maintain_order=True)
