"""Features as columns of a matrix: standardized numbers, dummies of levels, indicators of missing values.

See docs/methods/condensation.md#preparation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leeward.cohort.lenses.table import Floats
from leeward.methods.condensation.prepare import Feature


@dataclass(frozen=True)
class Place:
    """Where a feature is in the matrix.

    columns : its columns (one, or one a level); indicator : the column that is 1 where the value is missing, or None
    """

    columns: slice
    indicator: int | None


@dataclass(frozen=True)
class Layout:
    """The matrix's columns.

    centres, scales : float64[columns] mean and standard deviation of each (0 becomes 1)
    weights : float64[columns] of the squared distance; they add up to 1
    """

    features: tuple[Feature, ...]
    places: tuple[Place, ...]
    centres: Floats
    scales: Floats
    weights: Floats

    @property
    def width(self) -> int:
        """Number of columns."""
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
        rows = len(next(iter(values.values())))
        made = np.empty((rows, self.width))
        for feature, place in zip(self.features, self.places, strict=True):
            name = feature.column.name
            gone = absent.get(name)
            for j in range(place.columns.start, place.columns.stop):
                raw = values[name]
                if feature.column.is_categorical:
                    raw = raw == j - place.columns.start
                    raw = raw if gone is None else raw & ~gone
                made[:, j] = (raw - self.centres[j]) / self.scales[j]
            if place.indicator is not None:
                j = place.indicator
                made[:, j] = ((0.0 if gone is None else gone) - self.centres[j]) / self.scales[j]
        return made

    def points(self, values: Mapping[str, Floats]) -> NDArray[np.float32]:
        """Weighted standardized float32[rows, columns] to measure distances with; a missing value is at the mean."""
        rows = len(next(iter(values.values())))
        made = np.empty((rows, self.width), np.float32)
        roots = np.sqrt(self.weights)
        for feature, place in zip(self.features, self.places, strict=True):
            found = values[feature.column.name]
            absent = np.isnan(found)
            for j in range(place.columns.start, place.columns.stop):
                raw = found if not feature.column.is_categorical else (found == j - place.columns.start)
                column = (raw - self.centres[j]) * (roots[j] / self.scales[j])
                made[:, j] = np.where(absent, 0.0, column) if absent.any() else column
            if place.indicator is not None:
                j = place.indicator
                made[:, j] = (absent - self.centres[j]) * (roots[j] / self.scales[j])
        return made


def layout_of(
    features: Sequence[Feature], values: Mapping[str, Floats], kept: NDArray[np.bool_], weight: float
) -> Layout:
    """The layout of `features`, standardized over the `kept` rows.

    The responses share `weight`; the other attributes share the rest equally, and an attribute's dummies share its
    part. Without a response, or without another attribute, all share alike.
    """
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
            shares = np.bincount(known.astype(np.int64), minlength=len(feature.column.levels)) / max(
                1, len(known)
            )
            centres += shares.tolist()
            scales += np.sqrt(shares * (1 - shares)).tolist()
        else:
            centres.append(float(known.mean()))
            scales.append(float(known.std()))
        columns = slice(first, len(centres))
        indicator = None
        if feature.keeps_missing:
            indicator = len(centres)
            share = float(absent.mean())
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
