"""Standardized, weighted columns (docs/methods/condensation.md#preparation)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from tests.cohort.sources import read_table

from leeward.methods.condensation import Condensation
from leeward.methods.condensation.condense import ready
from leeward.methods.condensation.prepare import Layout, Prepared
from leeward.randomness import Randomness

FRAME = pl.DataFrame(
    {
        "time": [1.0, 2.0, 3.0, 6.0] * 3,
        "age": [20, 40, 60, 80] * 3,
        "site": ["a", "a", "b", "c"] * 3,
        "same": [5] * 12,
    }
)


def laid_out(frame: pl.DataFrame, **parameters: object) -> tuple[Prepared, Layout]:
    method = Condensation(k=2, **{"coarsen_time": "algorithm" not in parameters, **parameters})  # type: ignore[arg-type]  # parameters by name
    prepared, kernel = ready(method, read_table(frame).table(), Randomness.of(1))
    return prepared, kernel.layout


def test_the_response_has_weight_w_and_the_others_share_the_rest() -> None:
    _, layout = laid_out(FRAME, time="time", weight=0.4)
    by_name = {f.column.name: p.columns for f, p in zip(layout.features, layout.places, strict=True)}
    assert layout.weights.sum() == pytest.approx(1)
    assert layout.weights[by_name["time"]].tolist() == pytest.approx([0.4])
    assert layout.weights[by_name["age"]].tolist() == pytest.approx([0.2])
    # An attribute's dummies (full one-hot) share its part.
    assert layout.weights[by_name["site"]].tolist() == pytest.approx([0.2 / 3] * 3)


def test_condensation_and_tfrp_weigh_all_attributes_alike() -> None:
    for algorithm in ("condensation", "tfrp"):
        _, layout = laid_out(FRAME, time="time", weight=0.4, algorithm=algorithm)
        by_name = {f.column.name: p.columns for f, p in zip(layout.features, layout.places, strict=True)}
        assert {layout.weights[by_name[name]].sum() for name in by_name} == {0.25}


def test_plain_euclid_of_points_is_the_weighted_distance() -> None:
    prepared, layout = laid_out(FRAME, time="time")
    points = layout.points(prepared.values)
    times, ages = FRAME["time"].to_numpy(), FRAME["age"].to_numpy()
    shares = np.array([0.5, 0.25, 0.25])
    expected = 0.5 * ((times[0] - times[2]) / times.std()) ** 2
    expected += 0.5 / 3 * ((ages[0] - ages[2]) / ages.std()) ** 2
    # From level a to level b: both dummies differ by 1, each in its own standard deviations.
    expected += (0.5 / 3 / 3) * (1 / (shares[0] * (1 - shares[0])) + 1 / (shares[1] * (1 - shares[1])))
    assert ((points[0] - points[2]) ** 2).sum() == pytest.approx(expected, rel=1e-5)


def test_a_column_of_one_value_has_scale_one_and_moves_nothing() -> None:
    prepared, layout = laid_out(FRAME)
    by_name = {f.column.name: p.columns for f, p in zip(layout.features, layout.places, strict=True)}
    assert layout.scales[by_name["same"]].tolist() == [1.0]
    assert not layout.points(prepared.values)[:, by_name["same"]].any()


def test_ordered_levels_are_ranks() -> None:
    cohort = read_table(FRAME, domains={"site": {"levels": ["c", "b", "a"], "ordered": True}})
    prepared, kernel = ready(Condensation(k=2), cohort.table(), Randomness.of(1))
    assert prepared.values["site"].tolist() == [2, 2, 1, 0] * 3
    assert kernel.layout.width == 4
