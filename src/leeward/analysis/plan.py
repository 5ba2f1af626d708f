"""The recipient's plan: which models will be fitted (Gal et al. 2014; the spec's `plan:`).

`linear`, `poisson` (of counts) and `logistic` have a `response`, or a `time` (then logistic models whether the time is
above the original's median); with `event` they look at the rows whose event is `event_value` only. `cox` has `time` and
`event` and looks at everybody. `forest`, a random forest, has no coefficients; its response is a number, or one of two
values as a logistic model's, and so is a time. `covariates` are columns; levels become dummies against the first level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from leeward.cohort.lenses.table import Column, Floats, Table, encode
from leeward.errors import BadInput
from leeward.release.spec import PLAN_KEYS, PLANS


@dataclass(frozen=True)
class Model:
    kind: Literal["linear", "logistic", "cox", "poisson", "forest"]
    covariates: tuple[str, ...]
    response: str | None = None
    time: str | None = None
    event: str | None = None
    event_value: Any = None

    @property
    def title(self) -> str:
        """For example `cox: time, status = 1`."""
        outcome = self.response or self.time
        value = "" if self.event_value is None else f" = {self.event_value}"
        event = "" if self.event is None else f", {self.event}{value}"
        return f"{self.kind}: {outcome}{event}"

    def to_json(self) -> dict[str, Any]:
        content = {key: value for key in PLAN_KEYS[:4] if (value := getattr(self, key)) is not None}
        return {self.kind: {**content, "covariates": list(self.covariates)}}

    def columns(self) -> list[str]:
        named = [self.response, self.time, self.event]
        return list(dict.fromkeys([*(each for each in named if each is not None), *self.covariates]))


@dataclass(frozen=True)
class Design:
    """A model's data: complete rows only.

    names : the coefficients' names; matrix : float64[rows, names]; outcome : float64[rows]; event : bool[rows] or None
    """

    names: tuple[str, ...]
    matrix: Floats
    outcome: Floats
    event: Any


def models_of(plan: Sequence[Any]) -> tuple[Model, ...]:
    """The plan's models; BadInput for an entry that is no model, an unknown key, a missing column."""
    return tuple(_model_of(entry, number) for number, entry in enumerate(plan, start=1))


def _model_of(entry: Any, number: int) -> Model:
    where = f"plan[{number}]"
    if isinstance(entry, Model):
        return entry
    if not isinstance(entry, Mapping) or len(entry) != 1 or next(iter(entry)) not in PLANS:
        raise BadInput(f"`{where}`: one of {', '.join(PLANS)} with its columns.")
    kind, content = next(iter(entry.items()))
    where = f"{where}.{kind}"
    if not isinstance(content, Mapping) or not set(content) <= set(PLAN_KEYS):
        raise BadInput(f"`{where}` takes {', '.join(PLAN_KEYS)}.")
    _check_types(content, where)
    covariates = content["covariates"]
    covariates = (covariates,) if isinstance(covariates, str) else tuple(covariates)
    model = Model(kind, covariates, *(content.get(key) for key in PLAN_KEYS[:4]))
    _check_outcome(model, where)
    return model


def _check_types(content: Mapping[str, Any], where: str) -> None:
    names = content.get("covariates")
    if not isinstance(names, list | tuple | str) or not names or not all(isinstance(c, str) for c in names):
        raise BadInput(f"`{where}.covariates` is a list of columns.")
    for key in ("response", "time", "event"):
        if not isinstance(content.get(key), str | None):
            raise BadInput(
                f"`{where}.{key}` is the name of a column, as text (in quotes where it is a number)."
            )
    if not isinstance(content.get("event_value"), str | int | float | None):
        raise BadInput(f"`{where}.event_value` is a text or a number.")


def _check_outcome(model: Model, where: str) -> None:
    if model.kind == "cox" and (model.time is None or model.event is None or model.response is not None):
        raise BadInput(f"`{where}` needs `time` and `event`, and takes no `response`.")
    if model.kind != "cox" and (model.time is None) == (model.response is None):
        raise BadInput(f"`{where}` needs either `response` or `time`.")
    outcome = {model.response, model.time, model.event} & set(model.covariates)
    if outcome:
        raise BadInput(f"`{where}`: '{next(iter(outcome))}' is an outcome and a covariate; keep one.")


def check_models(models: Sequence[Model], table: Table) -> None:
    """BadInput where a model does not fit the table: an unknown column, a missing outcome, an event that never is."""
    for number, model in enumerate(models, start=1):
        role = f"plan[{number}].{model.kind}"
        for name in model.columns():
            table.column(name, role)
        for outcome in filter(None, (model.time, model.event)):
            _require_known(table, outcome, role)
        if model.time is not None and table.column(model.time).kind not in ("number", "whole"):
            raise BadInput(f"{table.name}: the time '{model.time}' of {role} must be a number.")
        if model.kind in ("linear", "poisson") and model.response:
            column, counts = table.column(model.response), model.kind == "poisson"
            if column.is_categorical or (counts and column.low < 0):
                must = "a number, and nowhere below 0" if counts else "a number"
                raise BadInput(f"{table.name}: the response '{model.response}' of {role} must be {must}.")
        if not event_rows(table.frame, model).any():
            raise BadInput(
                f"{table.name}: no row has the `event_value` of {role} in column '{model.event}'; name the value that "
                "means the event."
            )


def _require_known(table: Table, name: str, role: str) -> None:
    absent = np.flatnonzero(table.frame[name].is_null().to_numpy())
    if len(absent):
        rows = ", ".join(map(str, (absent[:20] + 1).tolist()))
        raise BadInput(
            f"{table.name}: column '{name}', an outcome of {role}, is missing in {len(absent):,} rows (rows {rows}); "
            "leave these patients out or fill the values in."
        )


def event_rows(frame: pl.DataFrame, model: Model) -> Any:
    """bool[rows]: where the event has happened (`event_value`, or without one: 1 or true)."""
    if model.event is None:
        return np.ones(frame.height, bool)
    series = frame[model.event]
    if model.event_value is None:
        return (series.cast(pl.Int64, strict=False) == 1).fill_null(False).to_numpy()
    return (series.cast(pl.String) == _text(model.event_value, series)).fill_null(False).to_numpy()


def _text(value: Any, series: pl.Series) -> str:
    if isinstance(value, bool):
        return str(value).lower() if series.dtype == pl.Boolean else str(int(value))
    return str(float(value)) if series.dtype.is_float() and isinstance(value, int) else str(value)


def design_of(
    model: Model, frame: pl.DataFrame, columns: Sequence[Column], cut: float | None = None
) -> Design:
    """The model's data from a table. `cut`: the original's `median_time`, for logistic models of a time."""
    known = {each.name: each for each in columns}
    event = event_rows(frame, model)
    inside = event if model.kind != "cox" else np.ones(frame.height, bool)
    covariates = [known[name] for name in model.covariates]
    names = [name for column in covariates for name in coefficients_of(column)]
    matrix = np.empty((frame.height, len(names)))
    place = 0
    for column in covariates:
        values, width = encode(frame[column.name], column, "table")[:, None], len(coefficients_of(column))
        if column.is_categorical:
            values = np.where(np.isnan(values), np.nan, values == np.arange(1, width + 1))
        matrix[:, place : place + width] = values
        place += width
    outcome = outcome_of(model, frame, columns, cut)
    whole = inside & ~np.isnan(matrix).any(axis=1) & ~np.isnan(outcome)
    if not whole.all():
        matrix, outcome, event = matrix[whole], outcome[whole], event[whole]
    return Design(tuple(names), matrix, outcome, event if model.kind == "cox" else None)


def coefficients_of(column: Column) -> list[str]:
    """What a covariate's coefficients are called: its name, or its levels after the first."""
    if not column.is_categorical:
        return [column.name]
    return [f"{column.name}={level}" for level in column.levels[1:]]


def outcome_of(
    model: Model, frame: pl.DataFrame, columns: Sequence[Column], cut: float | None = None
) -> Floats:
    """float64[rows]: a model's time or response; NaN where missing. 0 or 1 for a logistic model, and for a forest of a
    time, of levels or of two whole numbers."""
    name = model.response or model.time or ""
    (column,) = [each for each in columns if each.name == name]
    values = encode(frame[name], column, "table")
    two = (
        cut is not None or column.is_categorical or (column.kind == "whole" and column.high - column.low == 1)
    )
    if model.kind != "logistic" and not (model.kind == "forest" and two):
        return values
    if model.response is None:
        assert cut is not None  # a logistic model of a time is always given the original's median
    threshold = column.low if cut is None else cut
    return np.where(np.isnan(values), np.nan, (values > threshold).astype(float))


def median_time(model: Model, frame: pl.DataFrame) -> float | None:
    """The median time of the original's events: where a logistic model of a time cuts, before and after alike."""
    if model.kind not in ("logistic", "forest") or model.time is None:
        return None
    times = frame[model.time].cast(pl.Float64).to_numpy()[event_rows(frame, model)]
    return float(np.nanmedian(times))
