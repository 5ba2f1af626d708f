"""Classes of a sample by its population: at least k people of the population could have the labels of each
(docs/methods/whole-patient.md#methods)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from leeward.analysis.demographics.classes import Classes, group_vectors, in_order, least_common
from leeward.analysis.demographics.columns import Columns, Level, columns_of, texts_of, values_of
from leeward.arrays import Bools, Float64s, Int32s, Int64s
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.vocabulary import Hierarchy

FIRST_ROW = (
    "A patient's demographics are those of the patient's first row: give sample and population in the same order of "
    "rows, or columns that do not change from row to row."
)


@dataclass(frozen=True)
class SampleClasses(Classes):
    """Classes of a sample, and the people of the population whose exact values fit each one: int64 arrays."""

    people: tuple[Int64s, ...] = ()


@dataclass(frozen=True)
class Both:
    """The same columns, over the same hierarchies, of a sample and of its population."""

    sample: Columns
    everyone: Columns


def columns_of_both(
    sample: tuple[pl.DataFrame | None, pl.Series, str],
    population: tuple[pl.DataFrame | None, pl.Series, str],
    names: Sequence[str],
    hierarchies: Mapping[str, str | Hierarchy],
    keep: Mapping[str, Level],
) -> Both:
    """The columns of sample and population, each (frame of patients, patients wanted, name). BadInput as
    `columns_of`, and for patients of the sample whose demographics nobody in the population has."""
    both = [values_of(people, wanted, names, source) for people, wanted, source in (population, sample)]
    rows = pl.concat(frame.select(texts_of(column).alias(column.name) for column in frame) for frame in both)
    numbers = pl.Series(range(rows.height), dtype=pl.Int64)
    stacked = rows.with_columns(numbers.alias("patient"))
    n = len(population[1])
    # An identifier is one in the population.
    columns_of(stacked, numbers[:n], names, hierarchies, keep, population[2])
    columns = columns_of(stacked, numbers, names, hierarchies, keep, sample[2])
    _, exact = group_vectors(columns.vectors({}))
    strangers = int((~np.isin(exact[n:], exact[:n])).sum())
    if strangers:
        raise BadInput(
            f"{sample[2]}: {strangers:,} patients have demographics that nobody in the population has. The sample must "
            f"come from the population: check that both have the same columns, spelled alike. {FIRST_ROW}"
        )
    places = np.arange(len(rows))
    return Both(columns.take(places[n:]), columns.take(places[:n]))


def classes_in_population(
    both: Both, levels: Mapping[str, Level], k: int, small: str, kept: frozenset[str], records: Int64s | None
) -> SampleClasses:
    """The classes of these records of the sample (None: all), by the vectors at `levels`.

    A vector that fewer than k people of the population have gets the least common vector with the one where that
    costs least, until k people fit it (`merge`), or the root (`suppress`); or its patients are left out (`drop`). What
    becomes of a vector depends on the population alone, never on the sample.

    Raises GuaranteeUnreachable: `drop` would leave nobody.
    """
    sample = both.sample if records is None else both.sample.take(records)
    vectors, of_person = group_vectors(both.everyone.vectors(levels))
    sizes = np.bincount(of_person, minlength=len(vectors))
    number = {tuple(vector): i for i, vector in enumerate(vectors.tolist())}
    own = np.array([number[tuple(vector)] for vector in sample.vectors(levels).tolist()], np.int64)
    few = int((sizes[own] < k).sum())
    target = vectors.copy()
    rare = np.unique(own[sizes[own] < k])
    if small == "suppress":
        target[rare] = 0
    elif small == "merge":
        for i in rare.tolist():
            target[i] = _enlarge(sample, vectors, sizes, i, k, sample.weights(kept))
    left = (sizes[own] < k) & (small == "drop")
    if left.all():
        raise GuaranteeUnreachable(
            f"no class of demographics has k = {k} people of the population, so `small: drop` would leave nobody. Keep "
            "less of the demographics (`keep`), or choose `small: merge`."
        )
    distinct, of_vector = group_vectors(target)
    made = in_order(sample, distinct, np.where(left, -1, of_vector[own]), few, 0)
    people = tuple(
        np.flatnonzero(below(sample, vectors, vector)[of_person]).astype(np.int64) for vector in made.vectors
    )
    return SampleClasses(made.columns, made.vectors, made.of_record, made.small, made.taken, people)


def _enlarge(columns: Columns, vectors: Int32s, sizes: Int64s, i: int, k: int, weights: Float64s) -> Int32s:
    """The vector of `vectors[i]` once k people fit it: joined with one after the other where it costs least."""
    found = vectors[i]
    while int(sizes[below(columns, vectors, found)].sum()) < k:
        others = vectors[~below(columns, vectors, found)]
        above = least_common(columns, others, found)
        found = above[int(np.argmin(np.round(columns.loss(above, weights), 9)))]
    return found


def below(columns: Columns, vectors: Int32s, vector: Int32s) -> Bools:
    """bool[vectors]: those at or below one."""
    return np.asarray((least_common(columns, vectors, vector) == vector).all(axis=1))
