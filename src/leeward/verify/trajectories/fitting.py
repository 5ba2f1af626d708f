"""Which released trajectory may be whose by its payload and its demographics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.verify.classes import Classes

Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Classed:
    """The classes of demographics of a release, and the place among them of each record's."""

    classes: Classes
    of_record: Longs


@dataclass
class Fitting:
    """Which records may be whose by payload and demographics.

    payload, of_class : of each record its payload number, and the place of its class; carried, vector : of each patient
    (ascending) the payload number, and the number of the exact demographics
    fits : bool[vectors, classes]
    """

    payload: Longs
    carried: Longs
    of_class: Longs
    vector: Longs
    fits: NDArray[np.bool_]

    def of(self, record: int, patients: Longs) -> NDArray[np.bool_]:
        """Which of some patients a record may be of."""
        same = self.carried[patients] == self.payload[record]
        return same & self.fits[self.vector[patients], self.of_class[record]]


def fitting_of(
    payload: Longs,
    frame: pl.DataFrame,
    carried: pl.DataFrame | None,
    classed: Classed | None,
    values: list[tuple[str, ...]],
) -> Fitting:
    """What payload and demographics say of records and patients, the patients in ascending order."""
    ascending = frame.select("patient").unique().sort("patient")
    n = ascending.height
    own = np.zeros(n, np.int64)
    if carried is not None:
        joined = ascending.join(carried, on="patient", how="left", maintain_order="left")
        own = joined["payload"].fill_null(-1).to_numpy().astype(np.int64)
    if classed is None:
        alone = np.zeros(max(n, len(payload)), np.int64)
        return Fitting(payload, own, alone[: len(payload)], alone[:n], np.ones((1, 1), np.bool_))
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    fits = np.stack([classed.classes.fit(value) for value in numbers])
    vector = np.array([numbers[value] for value in values], np.int64)
    return Fitting(payload, own, classed.of_record, vector, fits)
