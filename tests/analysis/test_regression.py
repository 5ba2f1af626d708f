"""Fits at the maximum of the likelihood, or a fit that says it did not converge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import statsmodels.api  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.regression import cox_gradient, cox_log_likelihood

from leeward.analysis.plan import Design
from leeward.analysis.regression import fit, maximum


def heavy_tails(seed: int, rows: int = 400) -> Design:
    """Two covariates with a few very large values, as assays have them: where Newton without halving runs away."""
    random = np.random.default_rng(seed)
    x = np.column_stack(
        [
            random.normal(60, 10, rows),
            np.exp(1.5 * random.normal(size=rows)),
            np.exp(2 * random.normal(size=rows)),
            (random.random(rows) < 0.02).astype(float),
        ]
    )
    x[0, 1], x[1, 2] = 400, 900
    risk = 0.08 * (x[:, 0] - 60) + 0.3 * np.log(x[:, 1])
    time = np.ceil(1000 * random.exponential(size=rows) * np.exp(-risk))
    censored = random.uniform(0, 2000, rows)
    return Design(("a", "b", "c", "d"), x, np.minimum(time, np.ceil(censored)), time < censored)


@pytest.mark.parametrize("seed", [6, 9, 1])
def test_a_cox_fit_is_at_the_maximum_where_newton_without_halving_is_not(seed: int) -> None:
    """lifelines returns coefficients with gradients of 659 and 968 for the first two without an error."""
    from statsmodels.duration.hazard_regression import PHReg

    design = heavy_tails(seed)
    found = fit("cox", design)
    assert found.converged
    spread = design.matrix.std(axis=0)
    standardized = (design.matrix - design.matrix.mean(axis=0)) / spread
    other = PHReg(design.outcome, standardized, status=design.event, ties="efron")
    assert np.abs(other.score(found.coefficients * spread)).max() < 1e-6
    fitted = other.fit(start_params=found.coefficients * spread)  # from 0 its own Newton runs away too
    assert found.coefficients * spread == pytest.approx(fitted.params, abs=1e-5)
    assert found.errors * spread == pytest.approx(fitted.bse, rel=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(8, 40), st.integers(1, 6))
def test_the_gradient_is_the_oracles(seed: int, rows: int, times: int) -> None:
    """Efron's gradient written out, and the likelihood is nowhere greater nearby."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 2))
    time = random.integers(1, times + 1, rows).astype(float)
    event = random.random(rows) < 0.7
    if not event.any():
        event[0] = True
    found = fit("cox", Design(("a", "b"), x, time, event))
    if not found.converged or np.isnan(found.coefficients).any():
        return
    assert max(abs(each) for each in cox_gradient(found.coefficients, x, time, event)) < 1e-6
    best = cox_log_likelihood(found.coefficients, x, time, event)
    for step in random.normal(scale=0.05, size=(5, 2)):
        assert cox_log_likelihood(found.coefficients + step, x, time, event) <= best + 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_rounding_of_the_likelihood_of_many_rows_halves_no_step(seed: int) -> None:
    rows, random, asked = 5_000_000, np.random.default_rng(seed), []

    def rounded(at: Any) -> Any:
        asked.append(at)
        share = 1 / (1 + np.exp(-at[0]))
        value = rows * (0.8 * at[0] - np.log1p(np.exp(at[0])))
        rounding = 1 + random.normal() * np.finfo(float).eps * np.sqrt(rows)
        return value * rounding, np.array([rows * (0.8 - share)]), np.array([[rows * share * (1 - share)]])

    found = maximum(rounded, 1, rows)
    assert found is not None and found[0][0] == pytest.approx(np.log(4))
    assert len(asked) < 10


def test_complete_separation_is_a_fit_that_did_not_converge() -> None:
    """A covariate that is 1 for those who die first has no finite Cox or logistic estimate."""
    rows = 60
    random = np.random.default_rng(2)
    x = np.column_stack([np.arange(rows) < 30, random.normal(size=rows)]).astype(float)
    time = np.where(x[:, 0] == 1, random.uniform(1, 2, rows), random.uniform(3, 4, rows))
    cox = fit("cox", Design(("first", "noise"), x, time, x[:, 0] == 1))
    logistic = fit("logistic", Design(("first", "noise"), x, x[:, 0], None))
    for found in (cox, logistic):
        assert not found.converged
        assert np.isnan(found.coefficients).all()
        assert not found.significant.any()


def test_a_model_without_events_is_not_estimable_which_is_another_thing() -> None:
    x = np.random.default_rng(3).normal(size=(20, 1))
    found = fit("cox", Design(("x",), x, np.arange(20.0), np.zeros(20, bool)))
    assert found.converged
    assert np.isnan(found.coefficients).all()


@pytest.mark.parametrize("seed", range(4))
def test_least_squares_are_those_of_statsmodels(seed: int) -> None:
    import statsmodels.api as sm

    design = heavy_tails(seed)
    found = fit("linear", design)
    other = sm.OLS(design.outcome, sm.add_constant(design.matrix)).fit()
    assert found.coefficients == pytest.approx(other.params[1:], rel=1e-8)
    assert found.errors == pytest.approx(other.bse[1:], rel=1e-8)
    assert found.p == pytest.approx(other.pvalues[1:], rel=1e-6)


def test_logistic_is_statsmodels() -> None:
    import statsmodels.api as sm

    design = heavy_tails(4)
    outcome = (design.outcome > np.median(design.outcome)).astype(float)
    found = fit("logistic", Design(design.names, design.matrix, outcome, None))
    other = sm.Logit(outcome, sm.add_constant(design.matrix)).fit(disp=0, maxiter=100)
    assert found.coefficients == pytest.approx(other.params[1:], rel=1e-6, abs=1e-9)
    assert found.errors == pytest.approx(other.bse[1:], rel=1e-6)
    assert found.p == pytest.approx(other.pvalues[1:], rel=1e-5)


@pytest.mark.parametrize("scale", [0.2, 1.0, 400.0])
def test_poisson_is_statsmodels(scale: float) -> None:
    import statsmodels.api as sm

    random = np.random.default_rng(8)
    x = np.column_stack([random.normal(60, 10, 500), random.random(500) < 0.3]).astype(float)
    counts = random.poisson(scale * np.exp(0.03 * (x[:, 0] - 60) + 0.5 * x[:, 1])).astype(float)
    found = fit("poisson", Design(("age", "smokes"), x, counts, None))
    other = sm.GLM(counts, sm.add_constant(x), family=sm.families.Poisson()).fit(tol=1e-12)
    assert found.coefficients == pytest.approx(other.params[1:], rel=1e-6)
    assert found.errors == pytest.approx(other.bse[1:], rel=1e-6)
    assert found.p == pytest.approx(other.pvalues[1:], rel=1e-4, abs=1e-12)


def test_a_level_without_any_event_has_no_finite_poisson_estimate() -> None:
    x = np.column_stack([np.arange(40) % 2, np.random.default_rng(3).normal(size=40)]).astype(float)
    found = fit("poisson", Design(("level", "x"), x, np.where(x[:, 0] == 1, 0.0, 3.0), None))
    assert not found.converged
    assert np.isnan(fit("poisson", Design(("level", "x"), x, np.zeros(40), None)).coefficients).all()


def test_units_of_a_column_do_not_matter() -> None:
    design = heavy_tails(6)
    scale = np.array([1e-6, 1.0, 1e6, 1.0])
    one = fit("cox", design)
    two = fit("cox", Design(design.names, design.matrix * scale + 1e3, design.outcome, design.event))
    assert two.coefficients * scale == pytest.approx(one.coefficients, rel=1e-6)
    assert two.p == pytest.approx(one.p, rel=1e-5, abs=1e-12)
