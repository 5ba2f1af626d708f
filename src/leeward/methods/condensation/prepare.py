"""From a table to columns of numbers: roles, strata, withheld rows, rare levels, missing values; and from these to the
columns of a matrix: standardized numbers, dummies of levels, indicators of missing values.

See docs/methods/condensation.md#preparation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.analysis.plan import Model, check_models, event_rows, median_time, outcome_of
from leeward.cohort.lenses.table import Column, Floats, Table, as_levels, encode, refuse_numberings
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.condensation.parameters import STRATIFIED, Condensation
from leeward.methods.condensation.synthesis import Longs

COPIED_SHARE = 0.05
COPIED_CHANCE = 3.0
"""A column that equals a time in more than this share of the rows, and this many times as often as by chance, is an
outcome time too."""


@dataclass(frozen=True)
class Roles:
    """What the plan and the parameters make of the columns. `strata`: the plan's events, whose values are never mixed.
    `times`: the plan's times, matched by rank. `responses`: columns that share the response's weight (times first)."""

    strata: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    responses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Feature:
    """A column that is condensed. `keeps_missing`: missing values are a level of their own; otherwise they are imputed
    inside the group, by `fallback` where the group knows no value. `role`: `time`, `response` or `other`."""

    column: Column
    keeps_missing: bool
    fallback: float
    role: str


@dataclass(frozen=True)
class CondensedColumn:
    """A column as it is condensed; `feature` is None where it has no value. `values`: float64[rows], NaN where missing
    or withheld. `withheld_levels`, `imputed`: how many levels, and values."""

    name: str
    feature: Feature | None
    values: Floats
    withheld_levels: int = 0
    imputed: int = 0


@dataclass(frozen=True)
class Prepared:
    """A table ready to be grouped.

    columns : all but the strata
    stratum : int64[rows], of each row; −1 where it has fewer than k rows and is withheld
    strata : the value (level number) of each stratum column in each stratum
    side : int64[rows]; rows of a stratum with different sides are never grouped together (`sides_of`)
    exact : the times that are published as they are; the first follows the other columns, further ones do not
        (`condense.exchange`)
    """

    table: Table
    roles: Roles
    strata_columns: tuple[Column, ...]
    columns: tuple[CondensedColumn, ...]
    stratum: Longs
    strata: tuple[tuple[float, ...], ...]
    side: Longs
    exact: tuple[str, ...]

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        return tuple(each.feature for each in self.columns if each.feature is not None)

    @cached_property
    def values(self) -> dict[str, Floats]:
        return {each.name: each.values for each in self.columns if each.feature is not None}

    @property
    def parts(self) -> int:
        """How many pairs of a stratum and a side have rows."""
        sides = int(self.side.max()) + 1
        kept = self.stratum >= 0
        return int(np.count_nonzero(np.bincount(self.stratum[kept] * sides + self.side[kept])))


def roles_of(parameters: Condensation) -> Roles:
    """Roles from the plan, and from what is given beside it."""
    models = parameters.models
    strata = dict.fromkeys([*parameters.strata, *(model.event for model in models if model.event)])
    times = dict.fromkeys([*parameters.time, *(model.time for model in models if model.time)])
    responses = [*times, *parameters.response, *(model.response for model in models if model.response)]
    return Roles(
        tuple(strata), tuple(times), tuple(dict.fromkeys(each for each in responses if each not in strata))
    )


def prepare(parameters: Condensation, table: Table) -> Prepared:
    """The table as features and strata, with the sides of the plan's logistic models for `balanced`. Raises BadInput
    where a role names an unknown column, an outcome is missing or no number, or a column looks like an identifier;
    GuaranteeUnreachable for fewer than k rows, or no stratum with k rows."""
    k, models, roles = parameters.k, parameters.models, roles_of(parameters)
    own = parameters.algorithm in STRATIFIED
    exact = roles.times if own and not parameters.coarsen_time else ()
    _check_roles(table, models, roles)
    if len(table) < k:
        raise GuaranteeUnreachable(
            f"{table.name}: {len(table):,} rows are fewer than k = {k:,}. Choose a smaller k or give more rows."
        )
    balanced = parameters.algorithm == "balanced"
    events = {name: as_levels(table, name) for name in roles.strata}
    strata_columns = tuple(events.values()) if own or parameters.strata else ()
    stratum, strata = _strata(table, strata_columns, k)
    kept = stratum >= 0
    if not kept.any():
        raise GuaranteeUnreachable(
            f"{table.name}: no stratum of {', '.join(roles.strata)} has k = {k:,} rows. Choose a smaller k or other "
            "strata."
        )
    of_plan = chain.from_iterable(model.columns() for model in models)
    refuse_numberings(table, {*roles.strata, *roles.times, *roles.responses, *of_plan})
    _refuse_copies_of_times(table, roles, exact, k)
    columns = (events.get(each.name, each) for each in table.columns)
    prepared = Prepared(
        table=table,
        roles=roles if strata_columns else replace(roles, strata=()),
        strata_columns=strata_columns,
        columns=tuple(
            _prepare_column(parameters, table, column, roles, kept)
            for column in columns
            if column not in strata_columns
        ),
        stratum=stratum,
        strata=strata,
        side=sides_of(models if balanced else (), table, stratum, k),
        exact=exact,
    )
    if not prepared.features:
        raise BadInput(f"{table.name}: no column with values is left to condense.")
    return prepared


def _prepare_column(
    parameters: Condensation, table: Table, column: Column, roles: Roles, kept: np.ndarray
) -> CondensedColumn:
    """A column without its rare levels, and whether its missing values stay missing."""
    name = column.name
    values = encode(table.frame[name], column, table.name)
    if not (~np.isnan(values) & kept).any():
        return CondensedColumn(name, None, values)
    withheld = 0
    if column.kind in ("levels", "ordered") and parameters.rare == "withhold":
        values, withheld = _without_rare(table, column, values, kept, parameters.k)
    known = ~np.isnan(values) & kept
    absent = int((~known & kept).sum())
    originally = int((table.frame[name].is_null().to_numpy() & kept).sum())
    keeps = parameters.missing == "level" and originally >= parameters.k and absent == originally
    role = "time" if name in roles.times else "response" if name in roles.responses else "other"
    role = role if parameters.algorithm in STRATIFIED else "other"
    feature = Feature(column, keeps, _middle(column, values[known]), role)
    return CondensedColumn(name, feature, values, withheld, 0 if keeps else absent)


def _check_roles(table: Table, models: Sequence[Model], roles: Roles) -> None:
    check_models(models, table)
    for role, names in (("strata", roles.strata), ("time", roles.times), ("response", roles.responses)):
        for name in names:
            column = table.column(name, f"`{role}`")
            if role != "response" and column.missing:
                rows = np.flatnonzero(table.frame[name].is_null().to_numpy())[:20] + 1
                raise BadInput(
                    f"{table.name}: column '{name}' ({role}) is missing in {column.missing:,} rows (rows "
                    f"{', '.join(map(str, rows.tolist()))}); leave these patients out or fill the values in."
                )
            if role == "time" and column.kind not in ("number", "whole"):
                raise BadInput(f"{table.name}: the time '{name}' must be a number; it holds {column.dtype}.")
    both = set(roles.strata) & set(roles.times)
    if both:
        raise BadInput(f"{table.name}: '{next(iter(both))}' is a time and a stratum; keep one.")


def _refuse_copies_of_times(table: Table, roles: Roles, exact: Sequence[str], k: int) -> None:
    """BadInput where a column equals an exact time in many rows: whoever knows the column knows the time."""
    rows = len(table)
    for column in table.columns:
        if column.kind not in ("number", "whole") or column.name in (*roles.times, *roles.strata):
            continue
        values = table.encode(column.name)
        for time in exact:
            other = table.encode(time)
            equal = int((values == other).sum())
            if equal <= max(k, COPIED_SHARE * rows):
                continue
            found, counts = np.unique(values, return_counts=True)
            times, time_counts = np.unique(other, return_counts=True)
            _, here, there = np.intersect1d(found, times, return_indices=True)
            by_chance = float((counts[here] * (time_counts[there] / rows)).sum())
            if equal > COPIED_CHANCE * by_chance:
                raise BadInput(
                    f"{table.name}: column '{column.name}' equals the time '{time}' in {equal:,} rows: whoever knows "
                    f"it knows the exact time. Name '{column.name}' as a `time` too, or leave it out with --drop."
                )


def _strata(table: Table, columns: Sequence[Column], k: int) -> tuple[Longs, tuple[tuple[float, ...], ...]]:
    """Each row's stratum (−1 below k rows), and each stratum's levels."""
    if not columns:
        return np.zeros(len(table), np.int64), ((),)
    values = [encode(table.frame[column.name], column, table.name) for column in columns]
    number = np.zeros(len(table), np.int64)
    for each in values:  # no stratum is missing; column by column, so that numbers stay below the rows
        levels, own = np.unique(each, return_inverse=True)
        number = np.unique(number * len(levels) + own, return_inverse=True)[1]
    _, first = np.unique(number, return_index=True)
    found = np.column_stack([each[first] for each in values])
    enough = np.bincount(number, minlength=len(found)) >= k
    renumbered = np.where(enough, np.cumsum(enough) - 1, -1)
    return renumbered[number].astype(np.int64), tuple(tuple(row) for row in found[enough].tolist())


def sides_of(models: Sequence[Model], table: Table, stratum: Longs, k: int) -> Longs:
    """The outcomes of the plan's logistic models as a number for each row, int64[rows]. A model cuts what is not yet
    cut of a stratum in two, unless fewer than k rows would be left on a side: groups that stand on one side keep how
    often the outcome goes with each value of a covariate."""
    side = np.zeros(len(table), np.int64)
    for model in models:
        if model.kind != "logistic":
            continue
        outcome = outcome_of(model, table.frame, table.columns, median_time(model, table.frame))
        above = (outcome == 1.0) & event_rows(table.frame, model)
        part = (stratum + 1) * (int(side.max()) + 1) + side
        high = np.bincount(part, weights=above)
        enough = np.minimum(high, np.bincount(part) - high) >= k
        side = 2 * side + (above & enough[part])
    return side


def _without_rare(
    table: Table, column: Column, values: Floats, kept: np.ndarray, k: int
) -> tuple[Floats, int]:
    """The values without levels that fewer than k rows have, and how many levels went."""
    known = ~np.isnan(values)
    counts = np.bincount(values[known & kept].astype(np.int64), minlength=len(column.levels))
    rare = (counts > 0) & (counts < k)
    if not rare.any():
        return values, 0
    if not (counts >= k).any():
        raise BadInput(
            f"{table.name}: no level of column '{column.name}' is in k = {k:,} rows ({int(rare.sum()):,} levels); it "
            "looks like an identifier or free text. Leave it out with --drop, or group its levels."
        )
    gone = np.zeros(len(values), bool)
    gone[known] = rare[values[known].astype(np.int64)]
    return np.where(gone, np.nan, values), int(rare.sum())


def _middle(column: Column, known: Floats) -> float:
    if column.is_categorical:
        return float(np.bincount(known.astype(np.int64)).argmax())
    return float(np.sort(known)[(len(known) - 1) // 2])


def release_columns(prepared: Prepared, made: dict[str, Floats], stratum: Longs) -> pl.DataFrame:
    """Made values, strata and empty columns as a frame with the input's columns in their order and types. `stratum` is
    the stratum of each made row."""
    by_name = {feature.column.name: feature.column for feature in prepared.features}
    places = {column.name: place for place, column in enumerate(prepared.strata_columns)}
    series = []
    for column in prepared.table.columns:
        name = column.name
        if name in by_name:
            series.append(by_name[name].decode(made[name]))
        elif name in places:
            codes = np.array([levels[places[name]] for levels in prepared.strata])
            series.append(prepared.strata_columns[places[name]].decode(codes[stratum]))
        else:
            series.append(pl.Series(name, [None], dtype=column.dtype).extend_constant(None, len(stratum) - 1))
    return pl.DataFrame(series)


@dataclass(frozen=True)
class Place:
    """A feature's columns in the matrix (one, or one a level). `indicator`: the column that is 1 where the value is
    missing."""

    columns: slice
    indicator: int | None


@dataclass(frozen=True)
class Layout:
    """The matrix's columns. `centres`, `scales`: mean and standard deviation of each (0 becomes 1). `weights`: of the
    squared distance; they add up to 1."""

    features: tuple[Feature, ...]
    places: tuple[Place, ...]
    centres: Floats
    scales: Floats
    weights: Floats

    @property
    def width(self) -> int:
        return len(self.centres)

    def attribute(self) -> NDArray[np.int64]:
        """The feature that each column belongs to."""
        owner = np.empty(self.width, np.int64)
        for number, place in enumerate(self.places):
            owner[place.columns] = number
            if place.indicator is not None:
                owner[place.indicator] = number
        return owner

    def matrix(self, values: Mapping[str, Floats], absent: Mapping[str, NDArray[np.bool_]]) -> Floats:
        """Standardized float64[rows, columns], unweighted. `values` holds no NaN; `absent` marks what is missing."""
        made = np.empty((len(next(iter(values.values()))), self.width))
        for j, raw, _ in self._columns(values, absent):
            made[:, j] = (raw - self.centres[j]) / self.scales[j]
        return made

    def points(self, values: Mapping[str, Floats]) -> NDArray[np.float32]:
        """Weighted standardized float32[rows, columns] to measure distances with; a missing value is at the mean."""
        made = np.empty((len(next(iter(values.values()))), self.width), np.float32)
        roots = np.sqrt(self.weights)
        absent = {name: np.isnan(each) for name, each in values.items() if np.isnan(each).any()}
        for j, raw, gone in self._columns(values, absent):
            column = (raw - self.centres[j]) * (roots[j] / self.scales[j])
            made[:, j] = column if gone is None else np.where(gone, 0.0, column)
        return made

    def _columns(
        self, values: Mapping[str, Floats], absent: Mapping[str, NDArray[np.bool_]]
    ) -> Iterator[tuple[int, Any, NDArray[np.bool_] | None]]:
        """Each column of the matrix, in the units of the values (0 and 1 for levels), and where a value is missing."""
        for feature, place in zip(self.features, self.places, strict=True):
            own, gone = values[feature.column.name], absent.get(feature.column.name)
            for level, j in enumerate(range(place.columns.start, place.columns.stop)):
                raw: Any = own == level if feature.column.is_categorical else own
                yield j, raw & ~gone if feature.column.is_categorical and gone is not None else raw, gone
            if place.indicator is not None:
                yield place.indicator, 0.0 if gone is None else gone, None


def layout_of(
    features: Sequence[Feature], values: Mapping[str, Floats], kept: NDArray[np.bool_], weight: float
) -> Layout:
    """The layout of `features`, standardized over the `kept` rows. The responses share `weight`; the other attributes
    share the rest equally, and an attribute's dummies share its part. Without a response, or without another attribute,
    all share alike."""
    places: list[Place] = []
    centres: list[float] = []
    scales: list[float] = []
    weights: list[float] = []
    responses = sum(feature.role != "other" for feature in features)
    others = len(features) - responses
    for feature in features:
        found = values[feature.column.name][kept]
        absent = np.isnan(found)
        known = found[~absent]
        first = len(centres)
        if feature.column.is_categorical:
            counts = np.bincount(known.astype(np.int64), minlength=len(feature.column.levels))
            shares = counts / max(1, len(known))
            centres += shares.tolist()
            scales += np.sqrt(shares * (1 - shares)).tolist()
        else:
            centres.append(float(known.mean()))
            scales.append(float(known.std()))
        columns, indicator = slice(first, len(centres)), None
        if feature.keeps_missing:
            indicator, share = len(centres), float(absent.mean())
            centres.append(share)
            scales.append(float(np.sqrt(share * (1 - share))))
        if responses == 0 or others == 0:
            own = 1.0 / len(features)
        else:
            own = weight / responses if feature.role != "other" else (1.0 - weight) / others
        weights += [own / (len(centres) - first)] * (len(centres) - first)
        places.append(Place(columns, indicator))
    scale = np.array(scales)
    # A column whose values do not vary has no scale; rounding may leave a trace of one.
    scale[scale <= 1e-12 * np.maximum(1.0, np.abs(centres))] = 1.0
    return Layout(tuple(features), tuple(places), np.array(centres), scale, np.array(weights))
