"""The recipient's models before and after (Gal et al. 2014, §3.5), beside bootstrap resamples of the original."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.plan import Model, event_rows, models_of
from leeward.analysis.regression import Fit, fit_model
from leeward.cohort.lenses.table import Floats, Table
from leeward.engine import pool
from leeward.methods.condensation.measures.columns import SEED, Both

Metrics = dict[str, float]
"""Shares of coefficients, as in Figs. 1–3 of the paper (docs/methods/condensation.md#metrics).

significance : of all, those whose significance changed; direction : of the significant, those whose sign changed;
outside, outside_significant : of all and of the significant that can be estimated, those outside the original 95 %
interval; lost : of all, those that cannot be estimated any more
"""

BOOTSTRAP = 20
MOST_ROWS = 50_000
"""Above this many rows models are fitted once before and once after: no repetitions, no bootstrap."""

TOGETHER = 1_000_000
"""Above this many rows models are fitted one after another: a fit holds several copies of its columns."""


def compare(before: Fit, after: Fit) -> Metrics | None:
    """The metrics of one fit against the original's; None where either did not converge, which says nothing of either.
    A coefficient that is not estimable any more (a withheld level's) counts as changed, not as outside."""
    if not (before.converged and after.converged):
        return None
    known = ~np.isnan(before.coefficients)
    significant = before.significant & known
    gone = np.isnan(after.coefficients)
    changed = (before.significant != after.significant) | gone
    flipped = gone | (np.sign(before.coefficients) != np.sign(after.coefficients))
    outside = (after.coefficients < before.low) | (after.coefficients > before.high)
    return {
        "significance": _share(changed, known),
        "direction": _share(flipped, significant),
        "outside": _share(outside, known & ~gone),
        "outside_significant": _share(outside, significant & ~gone),
        "lost": _share(gone, known),
    }


def mean_metrics(found: Sequence[Metrics | None]) -> Metrics | None:
    rows = [each for each in found if each is not None]
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]} if rows else None


def models(both: Both, bootstrap: int = BOOTSTRAP, most_rows: int = MOST_ROWS) -> dict[str, Any] | None:
    """Each model of the plan: coefficients, metrics over the repetitions in custody, the bootstrap's floor."""
    plan = [each for each in models_of(both.release.parameters.get("plan", ())) if each.kind != "forest"]
    if not plan:
        return None
    small = len(both.table) <= most_rows
    frames = [both.made, *(_repetitions(both) if small else [])]
    rounds = bootstrap if small else 0
    found = [one_model(model, both.table, frames, rounds) for model in plan]
    return {"repetitions": len(frames), "bootstrap": rounds, "models": found}


def _repetitions(both: Both) -> list[pl.DataFrame]:
    custody, schema = both.release.custody, both.made.schema
    files = sorted((custody / "data/repetitions").glob("*.parquet")) if custody else []
    found = [both.release.custody_table(f"repetitions/{file.stem}") for file in files]
    return [frame.cast(schema) for frame in found if frame is not None]


def one_model(model: Model, table: Table, frames: Sequence[pl.DataFrame], rounds: int) -> dict[str, Any]:
    """One model fitted to the original, to each made table, and to `rounds` resamples of the original. Metrics are
    means over the fits that converged, None where none did. A coefficient's `spread` is its covariate's standard
    deviation."""
    before, *after = fits(model, table, [table.frame, *frames])
    named = zip(before.names, spreads(model, table), strict=True)
    coefficients = [
        {"name": name, "spread": spread, "before": _estimate(before, n), "after": _estimate(after[0], n)}
        for n, (name, spread) in enumerate(named)
    ]
    failed = {"original": int(not before.converged), "released": sum(not each.converged for each in after)}
    found = {
        "title": model.title,
        "kind": model.kind,
        "coefficients": coefficients,
        "metrics": mean_metrics([compare(before, each) for each in after]),
        "did_not_converge": failed,
    }
    if rounds:
        resampled = fits(model, table, _resamples(table.frame, rounds))
        failed["bootstrap"] = sum(not each.converged for each in resampled)
        if (metrics := mean_metrics([compare(before, each) for each in resampled])) is not None:
            found["bootstrap"] = metrics
    return found


def fits(model: Model, table: Table, frames: Iterable[pl.DataFrame]) -> list[Fit]:
    with pool(2 if len(table) <= TOGETHER else 1) as workers:
        return list(workers.map(lambda frame: fit_model(model, table, frame), frames))


def _resamples(frame: pl.DataFrame, rounds: int) -> Iterable[pl.DataFrame]:
    random = np.random.Generator(np.random.Philox(SEED))
    for _ in range(rounds):
        yield frame[np.sort(random.integers(0, frame.height, frame.height))]


def spreads(model: Model, table: Table) -> list[float]:
    """Each coefficient's covariate's standard deviation in the original; 1 for levels, and for numbers in 0 … 1."""
    found: list[float] = []
    for name in model.covariates:
        column = table.column(name)
        if column.is_categorical:
            found += [1.0] * max(0, len(column.levels) - 1)
        elif (column.low, column.high) == (0.0, 1.0):
            found.append(1.0)
        else:
            found.append(float(np.nanstd(table.encode(name))) or 1.0)
    return found


def _estimate(found: Fit, number: int) -> dict[str, float | None]:
    """A coefficient with its 95 % interval; None where it is not estimable."""
    values = {"coefficient": found.coefficients, "low": found.low, "high": found.high, "p": found.p}
    return {name: None if np.isnan(each[number]) else float(each[number]) for name, each in values.items()}


def survival(both: Both, points: int = 120) -> list[dict[str, Any]] | None:
    """Kaplan–Meier curves of the plan's times and events before and after, at up to `points` times."""
    plan = models_of(both.release.parameters.get("plan", ()))
    outcomes = dict.fromkeys((m.time, m.event, m.event_value) for m in plan if m.kind == "cox")
    found = []
    for time, event, value in outcomes:
        model = Model("cox", ("",), None, time, event, value)
        assert time is not None  # a Cox model has one
        sides = [
            (frame[time].cast(pl.Float64).to_numpy(), event_rows(frame, model))
            for frame in (both.table.frame, both.made)
        ]
        at = np.linspace(0.0, float(sides[0][0].max()), points)
        before, after = (kaplan_meier(*side, at).tolist() for side in sides)
        curve = {"time": time, "event": event, "event_value": value, "at": at.tolist()}
        found.append({**curve, "before": before, "after": after})
    return found or None


def kaplan_meier(times: Floats, events: np.ndarray, at: Floats) -> Floats:
    """Estimated share that survives each time of `at` (Kaplan and Meier 1958, equation 2b). `times`, of an event or of
    censoring, and `events` (bool) have one entry per patient."""
    distinct, place = np.unique(times, return_inverse=True)
    ended = np.bincount(place)
    at_risk = len(times) - np.cumsum(ended) + ended
    surviving = np.append(1.0, np.cumprod(1 - np.bincount(place, weights=events) / at_risk))
    return surviving[np.searchsorted(distinct, at, side="right")]


def _share(which: np.ndarray, among: np.ndarray) -> float:
    return float(which[among].mean()) if among.any() else 0.0
