"""Phenome-wide association studies, before and after anonymization (Heatherly et al. 2013).

Conventions: docs/methods/visits.md#phewas.

For each phecode and each predictor (a SNP as 0, 1 or 2 copies of an allele, or any number): the allelic χ² test of the
2 × 2 table (Fisher's exact test where an expected count is below 5), and logistic regression with covariates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from leeward.analysis.phewas.phenotypes import Phenotypes
from leeward.arrays import Bools, Float64s, Int64s
from leeward.engine import pool
from leeward.errors import BadInput, require_extra

if TYPE_CHECKING:
    from leeward.vocabulary.phecode import PhecodeMap


FEW = 5.0
"""An expected count below this: Fisher's exact test."""

CORRECTIONS = ("p05", "bonferroni", "fdr")
"""Rules of significance: p < 0.05, 0.05 over the number of tests of the predictor, false discovery rate 0.05."""

ALPHA = 0.05

MOST_STEPS = 60
SMALL_STEP = 1e-10
"""Newton's steps square: after a step so small, and it is taken, the coefficients are exact in double precision."""
NORMAL_95 = 1.959964
"""Standard errors on either side of a 95 % interval."""
LONGEST_STEP = 4.0
"""A coefficient moves no farther at once (in units of a standardised column): the first steps may overshoot."""
FARTHEST = 30.0
"""A coefficient beyond this means that cases and controls are separated."""

CELLS_AT_ONCE = 1 << 18
"""Cells of all models that are fitted at once, whatever the threads: the order of sums depends on it."""

OUTCOMES = ("fitted", "few", "collinear", "separated")
"""What became of a regression: fitted; fewer cases or controls than `min_cases`; a column that tells nothing new among
these people; groups that the columns separate, so that no finite coefficient is the likeliest."""


def scan(
    phenotypes: Phenotypes,
    people: pl.DataFrame,
    predictors: Sequence[str],
    covariates: Sequence[str] = (),
    *,
    min_cases: int = 1,
    threads: int = 1,
) -> pl.DataFrame:
    """Logistic regression (Wald) of every phecode on every predictor, and Fisher's test for counts of alleles.

    people : one row a person, in the order of the phenotypes' numbers, numeric columns; a person without a value of the
        predictor or of a covariate is left out of its tests
    min_cases : phecodes with fewer cases (or controls) are not tested: their p is null
    returns : `predictor`, `phecode`, `cases`, `controls`, `beta`, `error`, `p`, `regression` (`fitted`, or why those
        three are null: see `OUTCOMES`), `odds_ratio`, `p_allelic`, `exact` (whether that was Fisher's test); the last
        three are null for a predictor that is no count of alleles
    """
    require_extra("PheWAS", "models", "scipy")
    # What the covariates alone explain is the same for every predictor, and a good place to start from.
    null = _Cells.of(people, covariates)
    nowhere = np.full((len(phenotypes.names), len(null.design)), np.nan)
    start = _fit_all(phenotypes, null, nowhere, min_cases, threads).beta
    return pl.concat(
        _of_predictor(phenotypes, people, name, covariates, start, min_cases, threads) for name in predictors
    )


@dataclass(frozen=True)
class _Cells:
    """People with equal values: the design of each cell, the cell of each person (-1: left out), people of a cell."""

    design: Float64s
    spread: Float64s
    of_person: Int64s
    totals: Float64s

    @staticmethod
    def of(people: pl.DataFrame, columns: Sequence[str]) -> _Cells:
        """float64[1 + columns, cells]: a constant and the columns, in units of their spread around their mean."""
        for name in columns:
            if name not in people.columns or not people[name].dtype.is_numeric():
                raise BadInput(
                    f"phewas: `{name}` is not a numeric column of the patients; name one, or recode it as numbers."
                )
        values = people.select(pl.col(columns).cast(pl.Float64).fill_nan(None)).to_numpy()
        values = values.reshape(people.height, len(columns))
        known = ~np.isnan(values).any(axis=1)
        if not known.any():
            listed = ", ".join(f"`{name}`" for name in columns)
            raise BadInput(f"phewas: nobody has a value of {listed}.")
        rows, inverse = _distinct_rows(values[known])
        of_person = np.full(len(values), -1, np.int64)
        of_person[known] = inverse
        totals = np.bincount(inverse, minlength=len(rows)).astype(np.float64)
        # Standardised columns keep Newton's steps well conditioned; only the predictor's scale matters afterwards.
        mean = values[known].mean(axis=0)
        spread = values[known].std(axis=0)
        spread[spread == 0] = 1.0
        design = np.vstack([np.ones(len(rows)), ((rows - mean) / spread).T])
        return _Cells(np.ascontiguousarray(design), np.append(1.0, spread), of_person, totals)


def _distinct_rows(values: Float64s) -> tuple[Float64s, Int64s]:
    numbers = np.zeros(len(values), np.int64)
    for column in values.T:
        distinct, place = np.unique(column, return_inverse=True)
        if len(distinct) > len(values) // 2:
            return values, np.arange(len(values))
        numbers = np.unique(numbers * len(distinct) + place.ravel(), return_inverse=True)[1].ravel()
    first = np.unique(numbers, return_index=True)[1]
    return values[first], numbers


@dataclass(frozen=True)
class _Fits:
    """Of each phenotype: coefficients and errors of every column, (cases, controls), outcome."""

    beta: Float64s
    error: Float64s
    counted: Int64s
    outcome: Int64s


def _fit_all(phenotypes: Phenotypes, cells: _Cells, start: Float64s, min_cases: int, threads: int) -> _Fits:
    n, width = len(phenotypes.names), len(cells.totals)
    outcomes = np.full(n, OUTCOMES.index("few"))
    fits = _Fits(
        np.full_like(start, np.nan), np.full_like(start, np.nan), np.zeros((n, 2), np.int64), outcomes
    )
    at_once = max(1, CELLS_AT_ONCE // width)

    def count(people: Int64s) -> Float64s:
        cell = cells.of_person[people]
        return np.asarray(np.bincount(cell[cell >= 0], minlength=width), np.float64)

    def fit(first: int) -> None:
        mine = range(first, min(n, first + at_once))
        cases = np.stack([count(phenotypes.cases(p)) for p in mine])
        people = cells.totals - np.stack([count(phenotypes.others(p)) for p in mine])
        ill, everyone = cases.sum(axis=1), people.sum(axis=1)
        fits.counted[mine] = np.stack([ill, everyone - ill], axis=1)
        some = np.flatnonzero((fits.counted[mine] >= max(1, min_cases)).all(axis=1))
        begin = start[first + some]
        nowhere = np.isnan(begin[:, 0])
        begin[nowhere] = 0.0
        begin[nowhere, 0] = np.log(ill[some] / (everyone - ill)[some])[nowhere]
        found = fit_logistic(cells.design, cases[some], people[some], begin)
        for whole, part in zip((fits.beta, fits.error, fits.outcome), found, strict=True):
            whole[first + some] = part

    with pool(threads) as workers:
        list(workers.map(fit, range(0, n, at_once)))
    return fits


def fit_logistic(
    design: Float64s, cases: Float64s, people: Float64s, begin: Float64s
) -> tuple[Float64s, Float64s, Int64s]:
    """Maximum likelihood of many logistic models by Newton's method: coefficients and standard errors, float64[models,
    columns], NaN where there is no answer; and the places of their outcomes among `OUTCOMES`.

    design : float64[columns, cells], the first row all 1. cases, people : float64[models, cells], of each cell.
    begin : float64[models, columns], where the search starts.
    """
    from scipy.special import expit

    fitted, collinear, separated = map(OUTCOMES.index, ("fitted", "collinear", "separated"))
    beta, error = np.full_like(begin, np.nan), np.full_like(begin, np.nan)
    outcome = np.full(len(begin), separated)
    at, going = begin, np.arange(len(begin))
    for turn in range(MOST_STEPS):
        share = expit(at @ design)
        expected = people[going] * share
        gradient = (cases[going] - expected) @ design.T
        weight = expected * (1.0 - share)
        information = np.stack([(weight * column) @ design.T for column in design], axis=1)
        definite = _are_definite(information)
        if turn == 0:
            outcome[~definite] = collinear
        going, information = going[definite], information[definite]
        step = np.linalg.solve(information, gradient[definite][:, :, None])[:, :, 0]
        largest = np.abs(step).max(axis=1, initial=0.0)
        at = at[definite] + step * (LONGEST_STEP / np.maximum(largest, LONGEST_STEP))[:, None]
        near = (np.abs(at) < FARTHEST).all(axis=1)
        done = near & (largest < SMALL_STEP)
        beta[going[done]], outcome[going[done]] = at[done], fitted
        error[going[done]] = np.sqrt(np.diagonal(np.linalg.inv(information[done]), axis1=1, axis2=2))
        at, going = at[near & ~done], going[near & ~done]
        if not len(going):
            break
    return beta, error, outcome


def _are_definite(matrices: Float64s) -> Bools:
    """Which of these symmetric matrices, float64[n, columns, columns], are positive definite: the pivots of their
    elimination, as parts of the diagonal, are above the rounding."""
    rest, definite = matrices, np.ones(len(matrices), np.bool_)
    with np.errstate(all="ignore"):
        for c in range(matrices.shape[1]):
            pivot = rest[:, c, c]
            definite &= pivot > 1e-11 * matrices[:, c, c]
            rest = rest - rest[:, :, c, None] * rest[:, None, c] / pivot[:, None, None]
    return definite


def _of_predictor(
    phenotypes: Phenotypes,
    people: pl.DataFrame,
    predictor: str,
    covariates: Sequence[str],
    start: Float64s,
    min_cases: int,
    threads: int,
) -> pl.DataFrame:
    from scipy.stats import norm

    cells = _Cells.of(people, [*covariates, predictor])
    n = len(phenotypes.names)
    fits = _fit_all(phenotypes, cells, np.column_stack([start, np.zeros(n)]), min_cases, threads)
    beta, error = (each[:, -1] / cells.spread[-1] for each in (fits.beta, fits.error))
    tested: Bools = np.all(fits.counted >= max(1, min_cases), axis=1)
    frame = pl.DataFrame(
        {
            "predictor": np.repeat(predictor, n),
            "phecode": pl.Series(phenotypes.names, dtype=pl.String),
            "cases": fits.counted[:, 0],
            "controls": fits.counted[:, 1],
            "beta": beta,
            "error": error,
            "p": 2 * norm.sf(np.abs(beta / error)),
            "regression": [OUTCOMES[each] for each in fits.outcome],
            **_allelic(phenotypes, people[predictor], tested),
        }
    )
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))


def _allelic(phenotypes: Phenotypes, predictor: pl.Series, tested: Bools) -> dict[str, Any]:
    n = len(phenotypes.names)
    odds, p, exact = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, np.bool_)
    copies = predictor.cast(pl.Float64).fill_nan(None).to_numpy()
    known = ~np.isnan(copies)
    if np.isin(copies[known], (0.0, 1.0, 2.0)).all():
        tables = _allele_tables(phenotypes, np.where(known, copies, 0).astype(np.int64), known)
        odds[tested], p[tested], exact[tested] = allelic_tests(tables[tested])
    return {"odds_ratio": odds, "p_allelic": p, "exact": exact}


def _allele_tables(phenotypes: Phenotypes, copies: Int64s, known: Bools) -> Int64s:
    """int64[phecodes, 2, 2]: (cases, controls) by (allele counted, the other)."""
    out = np.empty((len(phenotypes.names), 2, 2), np.int64)
    weights = np.stack([np.where(known, copies, 0), np.where(known, 2 - copies, 0)])
    everyone = weights.sum(axis=1)
    for p in range(len(out)):
        out[p, 0] = weights[:, phenotypes.cases(p)].sum(axis=1)
        out[p, 1] = everyone - out[p, 0] - weights[:, phenotypes.others(p)].sum(axis=1)
    return out


def allelic_tests(tables: Int64s) -> tuple[Float64s, Float64s, Bools]:
    """Odds ratio, p and whether the test was exact, of tables int64[n, 2, 2] (χ² without continuity correction)."""
    from scipy.stats import chi2, fisher_exact

    counts = tables.astype(np.float64)
    rows, columns = counts.sum(axis=2), counts.sum(axis=1)
    total = counts.sum(axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = rows[:, :, None] * columns[:, None, :] / total[:, None, None]
        statistic = ((counts - expected) ** 2 / expected).sum(axis=(1, 2))
        odds = counts[:, 0, 0] * counts[:, 1, 1] / (counts[:, 0, 1] * counts[:, 1, 0])
    p = chi2.sf(statistic, 1)
    exact = (expected < FEW).any(axis=(1, 2))
    for i in np.flatnonzero(exact):
        p[i] = fisher_exact(tables[i]).pvalue
    return odds, p, exact


def significant(results: pl.DataFrame, test: Literal["logistic", "allelic"] = "allelic") -> pl.DataFrame:
    """`predictor`, `phecode`, `value` (the p) and a column for each rule of `CORRECTIONS`; untested rows are out."""
    column = "p" if test == "logistic" else "p_allelic"
    found = results.select("predictor", "phecode", pl.col(column).alias("value")).drop_nulls()
    ranked = found.with_columns(
        pl.len().over("predictor").alias("tests"),
        pl.col("value").rank("ordinal").over("predictor").alias("rank"),
    )
    under = ranked.filter(pl.col("value") <= ALPHA * pl.col("rank") / pl.col("tests"))
    limits = under.group_by("predictor").agg(pl.col("value").max().alias("limit"))
    return (
        ranked.join(limits, on="predictor", how="left")
        .with_columns(
            (pl.col("value") < ALPHA).alias("p05"),
            (pl.col("value") < ALPHA / pl.col("tests")).alias("bonferroni"),
            (pl.col("value") <= pl.col("limit")).fill_null(False).alias("fdr"),
        )
        .drop("tests", "rank", "limit")
        .sort("predictor", "phecode")
    )


def compare(
    before: pl.DataFrame, after: pl.DataFrame, test: Literal["logistic", "allelic"] = "allelic"
) -> pl.DataFrame:
    """For each predictor and rule: associations significant in the original, lost (in the original only), and false
    (in the anonymized data only). The paper calls them Type I and II errors, which elsewhere mean the opposite."""
    keys = ["predictor", "phecode"]
    both = significant(before, test).join(
        significant(after, test), on=keys, how="full", coalesce=True, suffix="_after"
    )
    rows = []
    for predictor in before["predictor"].unique(maintain_order=True):
        mine = both.filter(pl.col("predictor") == predictor)
        for rule in CORRECTIONS:
            was, now = mine[rule].fill_null(False), mine[f"{rule}_after"].fill_null(False)
            figures = {"original": was, "kept": was & now, "lost": was & ~now, "false": now & ~was}
            counted = {name: int(each.sum()) for name, each in figures.items()}
            rows.append({"predictor": predictor, "rule": rule, **counted})
    return pl.DataFrame(rows)


def totals(comparison: pl.DataFrame) -> dict[str, dict[str, int]]:
    summed = comparison.group_by("rule", maintain_order=True).agg(
        pl.col("original", "kept", "lost", "false").sum()
    )
    return {str(row.pop("rule")): row for row in summed.to_dicts()}


def compare_effects(tests: pl.DataFrame) -> dict[str, float]:
    """How far the effects of the original's associations (p < 0.05) moved. `tests`: `p_original`, `beta` and `error`
    (log odds ratio and its standard error) and `beta_anonymized`. `compared`: their number. `moved`: the mean change,
    below 0 towards no effect. `inside`: the share within the original's 95 % interval."""
    known = tests.filter(pl.col("p_original") < ALPHA).drop_nulls(["beta", "error", "beta_anonymized"])
    change = (known["beta_anonymized"] - known["beta"]).to_numpy()
    inside = np.abs(change) < NORMAL_95 * known["error"].to_numpy()
    moved = change * np.sign(known["beta"].to_numpy())
    n = max(1, known.height)
    return {"compared": known.height, "moved": float(moved.sum()) / n, "inside": int(inside.sum()) / n}


def mapping_of(files: str | Sequence[str] | None, *, ignored: bool = False) -> PhecodeMap:
    """The phecode map of one or several files (one a vocabulary); None: the map that was added. `ignored` also takes
    the rows that the files mark as to be ignored."""
    from leeward.vocabulary import phecode, registry

    if files is None:
        return phecode.load(registry.find("phecode"), ignored=ignored)
    maps = [phecode.load(file, ignored=ignored) for file in ([files] if isinstance(files, str) else files)]
    if not maps:
        raise BadInput("phewas: `map` names no file.")
    first = maps[0]
    for other in maps[1:]:
        if set(first.codes) & set(other.codes):
            raise BadInput(
                f"phewas: {first.name} and {other.name} map the same vocabulary; give one file for each."
            )
        first = first.joined(other)
    return first
