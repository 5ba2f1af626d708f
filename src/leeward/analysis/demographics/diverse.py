"""Classes in which no value of a sensitive column is frequent (docs/methods/whole-patient.md#sensitive-columns)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from leeward.analysis.demographics.classes import KEPT, Classes, least_common
from leeward.arrays import Bools, Float64s, Int32s, Int64s
from leeward.errors import GuaranteeUnreachable


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

    @property
    def limited(self) -> Bools:
        """bool[values]: whether a value must be rare; having none need not."""
        return self.values.is_not_null().to_numpy()


def sensitive_columns(table: pl.DataFrame, ells: Mapping[str, int]) -> tuple[Sensitive, ...]:
    """The columns of `ells`; `table` has a row for each released record."""
    found = []
    for name, ell in ells.items():
        text = table[name].cast(pl.String)
        values = text.unique().sort(nulls_last=True)
        number = values.to_frame("value").with_row_index("number")
        rows = text.to_frame("value").join(
            number, on="value", how="left", nulls_equal=True, maintain_order="left"
        )
        found.append(Sensitive(name, values, rows["number"].to_numpy().astype(np.int64), ell))
    return tuple(found)


def diversify_classes(classes: Classes, columns: Sequence[Sensitive], kept: frozenset[str]) -> Classes:
    """Join classes in which a sensitive value is too frequent, the smallest first, with the class where that costs the
    least LM: of those that make it rare enough, where there is one.

    Raises
    ------
    GuaranteeUnreachable
        A value that is too frequent among all records.
    """
    inside = np.flatnonzero(classes.of_record >= 0)
    class_of = classes.of_record[inside].astype(np.int64)
    counts = [column.counts(class_of, len(classes))[:, column.limited] for column in columns]
    for column, table in zip(columns, counts, strict=True):
        most = int(table.sum(axis=0).max(initial=0))
        if most * column.ell > len(inside):
            raise GuaranteeUnreachable(
                f"`sensitive_columns.{column.name}`: {most:,} of {len(inside):,} patients have the same value, more "
                f"than 1 in {column.ell}. Lower it, or leave harmless values empty in the source."
            )
    vectors, sizes = classes.vectors.copy(), classes.sizes
    weights: Float64s = np.array([KEPT if name in kept else 1.0 for name in classes.columns.names])
    joined = np.arange(len(classes))

    def frequent(sizes: Int64s, tables: Sequence[Int64s]) -> Bools:
        most = [t.max(axis=1, initial=0) * c.ell > sizes for c, t in zip(columns, tables, strict=True)]
        return np.asarray(np.logical_or.reduce(most))

    while (bad := np.flatnonzero(frequent(sizes, counts) & (sizes > 0))).size:
        small = int(bad[np.argmin(sizes[bad])])
        others = np.flatnonzero(sizes > 0)
        others = others[others != small]
        above = least_common(classes.columns, vectors[others], vectors[small])
        loss = classes.columns.loss(above, weights)
        cost = sizes[small] * (loss - classes.columns.loss(vectors[small], weights))
        cost = cost + sizes[others] * (loss - classes.columns.loss(vectors[others], weights))
        still = frequent(sizes[others] + sizes[small], [t[others] + t[small] for t in counts])
        best = int(np.lexsort((np.round(cost, 9), still))[0])
        # A class that has the new labels already joins too: two classes never have the same.
        for other in {int(others[best]), *others[(vectors[others] == above[best]).all(axis=1)].tolist()}:
            joined[joined == other] = small
            for table in counts:
                table[small] += table[other]
                table[other] = 0
            sizes[small] += sizes[other]
            sizes[other] = 0
        vectors[small] = above[best]
    return _renumber(classes, vectors, joined)


def _renumber(classes: Classes, vectors: Int32s, joined: Int64s) -> Classes:
    """The classes that are left, in the order of their vectors."""
    used = np.unique(joined)
    order = used[np.lexsort(vectors[used].T[::-1])]
    number = np.full(len(vectors) + 1, -1, np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    number[:-1] = number[joined]
    return replace(classes, vectors=vectors[order].astype(np.int32), of_record=number[classes.of_record])


def count_values(classes: Classes, columns: Sequence[Sensitive]) -> pl.DataFrame:
    """`class`, `column`, `value`, `records` of a class with that value, by class, then by column as given,
    then by value, null last."""
    class_of = classes.of_record[classes.of_record >= 0].astype(np.int64)
    parts = []
    for place, column in enumerate(columns):
        table = column.counts(class_of, len(classes))
        number, value = np.nonzero(table)
        parts.append(
            pl.DataFrame(
                {
                    "class": number.astype(np.int64),
                    "place": np.full(len(number), place),
                    "column": [column.name] * len(number),
                    "value": column.values.gather(value),
                    "records": table[number, value],
                }
            )
        )
    return pl.concat(parts).sort("class", "place", maintain_order=True).drop("place")
