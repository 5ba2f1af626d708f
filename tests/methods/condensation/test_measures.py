"""Measures of condensed tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lifelines  # importing it draws from Python's own generator, which tests must not do
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cohort.sources import read_table
from tests.methods.condensation.tables import COVARIATES, OUTCOME, PLAN, lung, no_repetitions  # noqa: F401  # a fixture

from leeward.analysis.plan import Model, design_of, event_rows, median_time, models_of
from leeward.analysis.regression import Fit, fit
from leeward.errors import BadInput
from leeward.methods.condensation import Condensation
from leeward.methods.condensation import method as condensing
from leeward.methods.condensation.measures.attacks import nearest_rows, tree_of, two_distances
from leeward.methods.condensation.measures.models import compare, kaplan_meier, mean_metrics, one_model
from leeward.randomness import Randomness
from leeward.release import Release, write
from leeward.runs.measure import measure

FIT = {"names": ("a", "b", "c", "d")}


def fit_of(coefficients: list[float], p: list[float], error: float = 0.1) -> Fit:
    return Fit(FIT["names"], np.array(coefficients), np.full(4, error), np.array(p))


def test_the_three_metrics() -> None:
    before = fit_of([1.0, -1.0, 0.1, 0.5], [0.0, 0.0, 0.6, 0.01])
    after = fit_of([1.1, 1.0, 0.1, np.nan], [0.0, 0.2, 0.01, np.nan])
    found = compare(before, after)
    # b lost significance, c gained it, d is not estimable any more; b and d turned; of the other three b is outside.
    assert found == {
        "significance": 3 / 4,
        "direction": 2 / 3,
        "outside": 1 / 3,
        "outside_significant": 1 / 2,
        "lost": 1 / 4,
    }
    assert set(compare(before, before).values()) == {0}


def test_no_significant_coefficient_has_no_direction_to_lose() -> None:
    before = fit_of([0.1, 0.1, 0.1, 0.1], [0.5] * 4)
    assert compare(before, fit_of([-0.1] * 4, [0.5] * 4))["direction"] == 0


def test_fits_that_did_not_converge_are_counted_apart() -> None:
    """A covariate that separates the outcome in some tables only: no metric counts it as a changed coefficient."""
    before = fit_of([1.0, -1.0, 0.1, 0.5], [0.0, 0.0, 0.6, 0.01])
    failed = replace(fit_of([np.nan] * 4, [np.nan] * 4), converged=False)
    assert compare(before, failed) is None
    assert compare(failed, before) is None
    assert set(mean_metrics([compare(before, before), compare(before, failed)]).values()) == {0.0}
    assert mean_metrics([None]) is None
    rows = 40
    x = np.arange(rows) % 2
    noise = np.random.default_rng(1).normal(size=rows)
    frame = pl.DataFrame({"y": np.where(np.arange(rows) < 3, 1 - x, x), "x": x.astype(float), "z": noise})
    table = read_table(frame).table()
    separated = frame.with_columns(x=pl.col("y").cast(pl.Float64))
    found = one_model(Model("logistic", ("x", "z"), "y"), table, [separated, frame], 0)
    assert found["did_not_converge"] == {"original": 0, "released": 1}
    assert found["metrics"]["outside"] == 0.0
    backwards = one_model(
        Model("logistic", ("x", "z"), "y"), read_table(separated).table(), [frame, separated], 2
    )
    assert backwards["did_not_converge"]["original"] == 1
    assert backwards["metrics"] is None


def test_models_of_a_time_look_at_the_deceased_and_cut_at_their_median() -> None:
    frame = pl.DataFrame(
        {"t": [1, 2, 3, 4, 9], "e": [0, 0, 0, 1, 1], "x": [1.0, 2, 3, 4, 5], "g": list("aabba")}
    )
    table = read_table(frame).table()
    logistic = Model("logistic", ("x", "g"), None, "t", "e", 0)
    assert median_time(logistic, frame) == 2
    design = design_of(logistic, frame, table.columns, 2.0)
    assert design.names == ("x", "g=b")
    assert design.outcome.tolist() == [0, 0, 1]
    assert design.matrix.tolist() == [[1, 0], [2, 0], [3, 1]]
    cox = design_of(Model("cox", ("x",), None, "t", "e", 0), frame, table.columns)
    assert cox.event.tolist() == [True, True, True, False, False]
    assert event_rows(frame, Model("cox", ("x",), None, "t", "e", 1)).sum() == 2


def test_coefficients_that_cannot_be_estimated() -> None:
    random = np.random.default_rng(1)
    x = random.normal(size=50)
    frame = pl.DataFrame({"y": x + random.normal(size=50), "x": x, "twice": 2 * x, "same": np.ones(50)})
    table = read_table(frame).table()
    found = fit("linear", design_of(Model("linear", ("same", "x", "twice"), "y"), frame, table.columns))
    assert np.isnan(found.coefficients).tolist() == [True, False, True]


def test_formulas_are_checked() -> None:
    assert [model.title for model in models_of(PLAN)] == [
        f"{kind}: SurvInterval, VitalStat = 0" for kind in ("cox", "linear", "logistic")
    ]
    assert models_of([models_of(PLAN)[0].to_json()]) == models_of(PLAN)[:1]
    with pytest.raises(BadInput, match="needs either `response` or `time`"):
        models_of([{"linear": {"covariates": ["x"]}}])


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict:
    cohort = lung(1_500)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(condensing, "REPETITIONS", 3)
        made = Condensation(k=20, plan=PLAN).protect(cohort, randomness=Randomness.of(1))
    out = write(made, tmp_path_factory.mktemp("out") / "release")
    return measure(
        Release.open(out),
        cohort,
        [
            {"models": {"bootstrap": 3}},
            "survival",
            "marginals",
            "correlations",
            {"privacy": {"permutations": 3}},
            "linkage",
            "closest",
        ],
    )


def test_a_poisson_model_of_the_plan_is_kept_and_compared(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    age = random.integers(40, 80, 400)
    frame = pl.DataFrame(
        {"age": age, "visits": random.poisson(np.exp(0.03 * (age - 50))), "sex": ["f", "m"] * 200}
    )
    cohort = read_table(frame)
    plan = [{"poisson": {"response": "visits", "covariates": ["age", "sex"]}}]
    made = Condensation(k=10, plan=plan).protect(cohort, randomness=Randomness.of(1))
    out = write(made, tmp_path / "out")
    assert "poisson: visits on age, sex" in (out / "share/README.md").read_text()
    (found,) = measure(Release.open(out), cohort, [{"models": {"bootstrap": 2}}])["models"]["models"]
    assert (found["kind"], found["title"]) == ("poisson", "poisson: visits")
    assert found["metrics"]["direction"] == 0
    with pytest.raises(BadInput, match="must be a number, and nowhere below 0"):
        Condensation(k=10, plan=plan).protect(read_table(frame.with_columns(visits=-pl.col("visits"))))


def test_every_measure(measured: dict) -> None:
    assert measured["models"]["repetitions"] == 3
    assert [each["kind"] for each in measured["models"]["models"]] == ["cox", "linear", "logistic"]
    for each in measured["models"]["models"]:
        assert each["metrics"]["direction"] <= 0.05
        assert 0 <= each["bootstrap"]["outside"] < 0.5
    stage = [row for row in measured["marginals"]["levels"] if row["column"] == "Stage"]
    assert [row["before"] for row in stage] == [row["after"] for row in stage]
    (curve,) = measured["survival"]
    assert curve["before"] == pytest.approx(curve["after"])
    assert measured["correlations"]["mean_difference"] < 0.05
    privacy = {row["column"]: row["privacy"] for row in measured["privacy"]["columns"]}
    assert 1 <= privacy["Gender"] <= 2
    assert measured["linkage"]["own_group"] > measured["linkage"]["chance"] > 0
    assert measured["closest"]["released"]["median"] >= 0


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 9))
def test_survival_is_that_of_lifelines(seed: int, rows: int, highest: int) -> None:
    generator = np.random.Generator(np.random.Philox(seed))
    times, events = generator.integers(0, highest + 1, rows).astype(float), generator.random(rows) < 0.6
    at = np.linspace(0, highest + 1, 23)
    other = lifelines.KaplanMeierFitter().fit(times, events).survival_function_at_times(at)
    assert kaplan_meier(times, events, at) == pytest.approx(other.to_numpy(), abs=1e-9)


def test_unknown_measures_and_options(tmp_path: Path) -> None:
    cohort = lung(300)
    out = write(Condensation(k=50).protect(cohort, randomness=Randomness.of(1)), tmp_path / "release")
    release = Release.open(out)
    with pytest.raises(BadInput, match="no measure `are` for condensation"):
        measure(release, cohort, ["are"])
    with pytest.raises(BadInput, match="unknown option `bin`"):
        measure(release, cohort, [{"privacy": {"bin": 3}}])
    assert "models" not in measure(release, cohort, ["models"])


@pytest.mark.parametrize("seed", range(4))
def test_nearest_rows_are_those_of_all_pairs_the_first_of_equals(seed: int) -> None:
    generator = np.random.Generator(np.random.Philox(seed))
    rows = generator.normal(size=(700, 3)).astype(np.float32)
    rows[:, 2] = generator.integers(0, 2, 700)
    rows[:200] = generator.integers(0, 3, (200, 3))
    rows = np.concatenate([rows, rows[:40], np.repeat(rows[:1], 200, axis=0)])
    asked = np.concatenate([rows[::9], generator.normal(size=(50, 3)), np.ones((1, 3)) / 2]).astype(
        np.float32
    )
    all_pairs = np.sqrt(((asked[:, None, :].astype(np.float64) - rows) ** 2).sum(axis=2))
    near = two_distances(asked, tree_of(rows))
    assert np.allclose(near, np.sort(all_pairs, axis=1)[:, :2], rtol=1e-15, atol=0)
    assert nearest_rows(asked, rows).tolist() == all_pairs.argmin(axis=1).tolist()


def test_one_row_is_the_nearest() -> None:
    assert nearest_rows(np.zeros((2, 3), np.float32), np.ones((1, 3), np.float32)).tolist() == [0, 0]


def test_a_model_outside_the_plan_is_kept_as_well() -> None:
    """One covariate at a time: coefficients stay inside the original interval or near it."""
    cohort = lung(4_000)
    table = cohort.table()
    made = Condensation(k=100, plan=PLAN).protect(cohort, randomness=Randomness.of(1))
    released = pl.from_arrow(next(iter(made.tables[0].batches())))
    assert isinstance(released, pl.DataFrame)
    outside = 0
    for covariate in COVARIATES:
        model = Model("cox", (covariate,), None, OUTCOME["time"], OUTCOME["event"], OUTCOME["event_value"])
        before, after = (
            fit("cox", design_of(model, frame, table.columns)) for frame in (table.frame, released)
        )
        outside += int(((after.coefficients < before.low) | (after.coefficients > before.high)).sum())
    assert outside <= 1
