"""The pilot: which weight, and which algorithm, keeps the recipient's plan best on a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from leeward.analysis.plan import Model, design_of, median_time
from leeward.analysis.regression import Fit, fit
from leeward.cohort.lenses.table import Table
from leeward.randomness import Randomness

if TYPE_CHECKING:
    from leeward.methods.condensation.parameters import Condensation

ALGORITHMS = ("balanced", "improved", "condensation")
WEIGHTS = (0.3, 0.5, 0.7)
SAMPLE_ROWS = 5_000
SAMPLE_GROUPS = 30
"""The sample has at least so many groups' worth of rows."""
REPEATS = 2


def choose(method: Condensation, table: Table, randomness: Randomness) -> tuple[Condensation, dict[str, Any]]:
    """Choose the weight and the algorithm with the fewest fits that did not converge, then the least score (ties: the
    first tried). Returns the method, and what was tried. The data decide, so choice and scores stay in custody."""
    from leeward.methods.condensation.prepare import prepare

    rows = max(SAMPLE_ROWS, SAMPLE_GROUPS * method.k)
    sample = table
    if rows < len(table):
        drawn = randomness.stream("condensation", "pilot").choice(len(table), rows, replace=False)
        sample = replace(table, frame=table.frame[np.sort(drawn)])
    prepare(candidates(method)[0], table)  # what cannot be condensed is refused before anything is tried
    originals = [original(model, sample) for model in method.models if model.has_coefficients]
    streams = [Randomness(randomness.number("pilot", number), True) for number in range(REPEATS)]
    tried, methods = [], candidates(method)
    for each in methods:
        scores = [score for stream in streams for score in _scores(each, sample, originals, stream)]
        known = [score for score in scores if score is not None]
        mean = float(np.mean(known)) if known else 0.0
        choice = {"algorithm": each.algorithm, "weight": each.weight}
        tried.append({**choice, "score": mean, "did_not_converge": len(scores) - len(known)})
    best = min(range(len(tried)), key=lambda n: (tried[n]["did_not_converge"], tried[n]["score"]))
    facts = {
        "rows": len(sample),
        "tried": tried,
        "chosen": {name: tried[best][name] for name in ("algorithm", "weight")},
        "did_not_converge": sum(not each.converged for _, _, each in originals),
    }
    return methods[best], facts


def candidates(method: Condensation) -> list[Condensation]:
    """What is tried: weights for algorithms that use one, and the algorithms where `auto` is asked."""
    algorithms: Sequence[Any] = (method.algorithm,)
    if method.algorithm == "auto":
        # What was asked beside `auto` leaves out the algorithms that cannot do it.
        algorithms = ALGORITHMS[:2] if method.coarsen_time else ALGORITHMS
    found = []
    for algorithm in algorithms:
        weighted = algorithm in ("balanced", "improved")
        weights = WEIGHTS if weighted and (method.weight == "pilot" or method.algorithm == "auto") else (0.5,)
        found += [replace(method, algorithm=algorithm, weight=weight) for weight in weights]
    return found


def original(model: Model, table: Table) -> tuple[Model, float | None, Fit]:
    """A model fitted to the original, with the cut of a logistic model of a time."""
    cut = median_time(model, table.frame)
    return model, cut, fit(model.kind, design_of(model, table.frame, table.columns, cut))


def _scores(
    method: Condensation,
    table: Table,
    originals: Sequence[tuple[Model, float | None, Fit]],
    randomness: Randomness,
) -> list[float | None]:
    """Changed directions twice, changed significance and leaving the interval once, as shares: a score for each model
    whose fit to the original converged; None where the fit to the made table did not."""
    from leeward.engine import make
    from leeward.methods.condensation.condense import condense, ready

    prepared, kernel = ready(method, table, randomness)
    made = condense(prepared, kernel, make("local", threads=1), randomness, len(table)).frame
    return [_model_score(each, made, table) for each in originals if each[2].converged]


def _model_score(original: tuple[Model, float | None, Fit], made: pl.DataFrame, table: Table) -> float | None:
    model, cut, before = original
    after = fit(model.kind, design_of(model, made, table.columns, cut))
    if not after.converged:
        return None
    known = ~np.isnan(before.coefficients)
    if not known.any():
        return 0.0
    significant = before.significant
    flipped = significant & ~(np.sign(before.coefficients) == np.sign(after.coefficients))
    inside = (after.coefficients >= before.low) & (after.coefficients <= before.high)
    changed = (before.significant != after.significant)[known].mean()
    return float(2 * flipped.sum() / max(1, significant.sum()) + changed + (~inside)[known].mean())
