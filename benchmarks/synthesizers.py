"""Two common synthesizers of tables that know of no plan, as comparators: sequential trees and a Gaussian copula.

Sequential trees: J. P. Reiter, *Using CART to generate partially synthetic public use microdata*, Journal of Official
Statistics 21 (2005), as in the R package synthpop (B. Nowok, G. M. Raab and C. Dibben, Journal of Statistical Software
74, 2016). Gaussian copula with the table's own margins: N. Patki, R. Wedge and K. Veeramachaneni, *The synthetic data
vault*, DSAA 2016; its correlations are fitted to what simulated rows of levels and ties have (M. C. Cario and
B. L. Nelson, *Modeling and generating random vectors with arbitrary marginal distributions*, 1997).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from leeward.cohort.lenses.table import Table

Floats = NDArray[np.float64]
Random = np.random.Generator

SIMULATED, ROUNDS = 20_000, 8
"""Rows and rounds in which the copula's correlations are fitted."""


def by_trees(table: Table, order: Sequence[str], least: int, random: Random) -> pl.DataFrame:
    """As many rows, column by column in `order`: the first column is drawn with replacement; each further one from the
    source rows in the leaf of a tree on the columns before it. A leaf has `least` source rows at least, so a value is
    one of `least` patients'. No value may be missing."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    values = {name: table.encode(name) for name in order}
    drawn = {order[0]: random.choice(values[order[0]], len(table))}
    for place, name in enumerate(order[1:], start=1):
        kind = DecisionTreeClassifier if table.column(name).is_categorical else DecisionTreeRegressor
        tree = kind(min_samples_leaf=min(least, len(table)), random_state=int(random.integers(2**31 - 1)))
        before, made = (_features(table, order[:place], rows) for rows in (values, drawn))
        leaves = tree.fit(before, values[name]).apply(before)
        donors = np.argsort(leaves, kind="stable")
        starts = np.searchsorted(leaves[donors], asked := tree.apply(made), "left")
        sizes = np.searchsorted(leaves[donors], asked, "right") - starts
        drawn[name] = values[name][donors[starts + (random.random(len(asked)) * sizes).astype(np.int64)]]
    return _frame(table, drawn)


def by_copula(table: Table, outcome: str, random: Random) -> pl.DataFrame:
    """As many rows of normal scores with the source's correlations, each turned into a value of its column at the same
    rank. Levels are put in the order of the mean of `outcome`, so that their scores rise with it. No value may be
    missing."""
    columns = [column.name for column in table.columns]
    numbers = {name: _ranked(table, name, table.encode(outcome)) for name in columns}
    margins = [np.sort(numbers[name], kind="stable") for name in columns]
    wanted = _correlation(np.column_stack([_scores(numbers[name]) for name in columns]))
    latent = wanted.copy()
    for _ in range(ROUNDS):
        scores = np.column_stack(
            [
                _scores(_at_rank(margin, each))
                for margin, each in zip(margins, _normal(latent, SIMULATED, random).T, strict=True)
            ]
        )
        latent = np.clip(latent + wanted - _correlation(scores), -0.999, 0.999)
        np.fill_diagonal(latent, 1.0)
    sources = [table.encode(name)[np.argsort(numbers[name], kind="stable")] for name in columns]
    made = _normal(latent, len(table), random)
    return _frame(
        table,
        {name: _at_rank(source, each) for name, source, each in zip(columns, sources, made.T, strict=True)},
    )


def _features(table: Table, names: Sequence[str], values: Mapping[str, Floats]) -> Floats:
    """Numbers as they are, levels as dummies."""
    parts = []
    for name in names:
        column = table.column(name)
        levels = np.arange(len(column.levels)) if column.is_categorical else None
        own = values[name][:, None]
        parts.append(own if levels is None else (own == levels).astype(float))
    return np.column_stack(parts)


def _ranked(table: Table, name: str, outcome: Floats) -> Floats:
    """A column's values in an order that has a meaning: levels by the mean of the outcome."""
    values = table.encode(name)
    if not table.column(name).is_categorical:
        return values
    means = [
        outcome[values == level].mean() if (values == level).any() else 0.0
        for level in range(len(table.column(name).levels))
    ]
    return rankdata(means, "ordinal")[values.astype(np.int64)].astype(np.float64)


def _scores(values: Floats) -> Floats:
    """Normal scores of mean ranks."""
    return np.asarray(norm.ppf((rankdata(values) - 0.5) / len(values)))


def _at_rank(ordered: Floats, scores: Floats) -> Floats:
    """The value of `ordered` at the rank that each normal score stands for."""
    places = (norm.cdf(scores) * len(ordered)).astype(np.int64)
    return np.asarray(ordered[np.minimum(places, len(ordered) - 1)])


def _correlation(scores: Floats) -> Floats:
    """Correlations of columns; those of a column of one value are 0."""
    moved = scores - scores.mean(axis=0)
    spread = np.sqrt((moved**2).sum(axis=0))
    found = moved.T @ moved / np.outer(*(2 * [np.where(spread > 0, spread, 1.0)]))
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


def _normal(correlation: Floats, rows: int, random: Random) -> Floats:
    """Normal rows with the nearest correlations that normal rows can have: negative eigenvalues are set to 0."""
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    root /= np.sqrt((root**2).sum(axis=1))[:, None]
    return np.asarray(random.standard_normal((rows, len(values))) @ root.T)


def _frame(table: Table, values: Mapping[str, Floats]) -> pl.DataFrame:
    return pl.DataFrame([column.decode(values[column.name]) for column in table.columns])
