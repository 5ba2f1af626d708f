"""The pilot: which weight, and which algorithm, keeps the recipient's plan best on a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward.analysis.plan import Model
from leeward.analysis.regression import Fit, fit_model
from leeward.cohort.lenses.table import Table
from leeward.methods.condensation.measures.models import compare
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
    planned = [model for model in method.models if model.kind != "forest"]
    originals = [(model, fit_model(model, sample, sample.frame)) for model in planned]
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
        "did_not_converge": sum(not each.converged for _, each in originals),
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


def _scores(
    method: Condensation, table: Table, originals: Sequence[tuple[Model, Fit]], randomness: Randomness
) -> list[float | None]:
    """Changed directions twice, changed significance, leaving the interval and being lost once, as shares: a score for
    each model whose fit to the original converged; None where the fit to the made table did not."""
    from leeward.engine import make
    from leeward.methods.condensation.condense import condense, ready

    prepared, kernel = ready(method, table, randomness)
    made = condense(prepared, kernel, make("local", threads=1), randomness, len(table)).frame
    fits = [compare(before, fit_model(model, table, made)) for model, before in originals if before.converged]
    keys = ("direction", "direction", "significance", "outside", "lost")
    return [None if each is None else sum(each[key] for key in keys) for each in fits]
