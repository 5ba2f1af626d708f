"""The noise is what it says: its figures, its fit, its price, and where it comes from."""

from __future__ import annotations

import ast
import functools
import inspect
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendp.accuracy import discrete_laplacian_scale_to_accuracy
from scipy import stats

import leeward.queries
from leeward.errors import BadInput
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.accounting import MICRO, epsilon_of, micro
from leeward.queries.privacy.mechanism import Noise, sensitivity

DRAWS = 20_000
ONE_IN_A_MILLION = 1e-6
"""Significance of the audits of noise: noise cannot be seeded, so a sound build may fail, so seldom."""


def probability(noise: Noise, value: int) -> float:
    """P(noise = value) of the geometric mechanism."""
    return (1 - noise.alpha) / (1 + noise.alpha) * noise.alpha ** abs(value)


@pytest.mark.parametrize(
    ("epsilon", "expected", "zero"), [(0.1, 9.9834, 0.0500), (0.5, 1.9190, 0.2449), (1, 0.8509, 0.4621)]
)
def test_figures_of_algorithms_7(epsilon: float, expected: float, zero: float) -> None:
    noise = Noise("geometric", micro(epsilon), 1)
    assert mechanism.mean_absolute_noise(noise) == pytest.approx(expected, abs=5e-5)
    assert probability(noise, 0) == pytest.approx(zero, abs=5e-5)


def test_laplace_expectation_is_its_scale() -> None:
    assert mechanism.mean_absolute_noise(Noise("laplace", micro(0.5), 3)) == pytest.approx(6)


def test_geometric_and_laplace_differ_by_four_percent_at_one_half() -> None:
    geometric = mechanism.mean_absolute_noise(Noise("geometric", micro(0.5), 1))
    assert mechanism.mean_absolute_noise(Noise("laplace", micro(0.5), 1)) / geometric == pytest.approx(
        1.0422, abs=1e-4
    )


@given(st.integers(1000, 5_000_000), st.integers(1, 20))
def test_figures_are_those_of_the_distribution(epsilon: int, change: int) -> None:
    noise = Noise("geometric", epsilon, change)
    reach = math.ceil(60 * noise.scale) + 1
    if reach > 20_000:
        return
    mass = {z: probability(noise, z) for z in range(-reach, reach + 1)}
    assert math.fsum(mass.values()) == pytest.approx(1)
    assert math.fsum(abs(z) * p for z, p in mass.items()) == pytest.approx(
        mechanism.mean_absolute_noise(noise)
    )
    assert math.fsum(z * z * p for z, p in mass.items()) == pytest.approx(mechanism.variance(noise))


@given(st.integers(1000, 20_000_000), st.integers(1, 50))
def test_opendp_vouches_for_every_price(epsilon: int, change: int) -> None:
    """The privacy map of the measurement that is used says at most the price, for the stated sensitivity."""
    for kind in mechanism.KINDS:
        scale, measurement = mechanism._vouch(kind, epsilon, change)
        steps = mechanism.STEPS[kind]
        assert measurement.map(change * steps) <= epsilon_of(epsilon)
        assert scale == pytest.approx(change * 1e6 / epsilon, rel=1e-12)


@given(st.integers(10_000, 10_000_000), st.integers(1, 20), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_interval_is_the_narrowest_that_covers(epsilon: int, change: int, confidence: float) -> None:
    noise = Noise("geometric", epsilon, change)
    width = mechanism.half_width(noise, confidence)
    assert width == int(width) >= 0

    def covered(t: int) -> float:
        return math.fsum(probability(noise, z) for z in range(-t, t + 1))

    assert covered(int(width)) >= confidence - 1e-12
    if width > 0:
        assert covered(int(width) - 1) < confidence
    # OpenDP's accuracy is the smallest a with P(|z| ≥ a) ≤ α: one more than ours, where the two fall on the same step.
    assert width <= discrete_laplacian_scale_to_accuracy(noise.scale, 1 - confidence) <= width + 1 + 1e-6


def test_an_epsilon_that_leaves_no_noise_has_no_width() -> None:
    """e^−900 is 0 as a float."""
    assert mechanism.half_width(Noise("geometric", micro(900), 1)) == 0


def test_laplace_interval() -> None:
    noise = Noise("laplace", micro(1), 1)
    assert mechanism.half_width(noise) == pytest.approx(math.log(20))


# -- a fit that can fail ----


def misfit(noise: Noise, draws: Sequence[float]) -> float:
    """p-value of Pearson's χ² test that `draws` are geometric noise; bins of expected count ≥ 5, tails pooled."""
    reach = 0
    while 2 * len(draws) * probability(noise, reach + 1) / (1 - noise.alpha) >= 10:
        reach += 1
    seen = Counter(max(-reach, min(reach, value)) for value in draws)
    inner = [probability(noise, z) for z in range(-reach + 1, reach)]
    tail = (1 - math.fsum(inner)) / 2
    expected = [len(draws) * p for p in (tail, *inner, tail)]
    observed = [seen.pop(z, 0) for z in range(-reach, reach + 1)]
    if seen:  # values between the whole numbers
        return 0.0
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize(("epsilon", "change"), [(0.1, 1), (0.5, 1), (1, 1), (0.5, 4)])
def test_geometric_noise_fits(epsilon: float, change: int) -> None:
    noise = Noise("geometric", micro(epsilon), change)
    draws = mechanism.draw(noise, DRAWS)
    assert len(draws) == DRAWS >= 10_000
    assert all(isinstance(z, int) for z in draws)
    assert misfit(noise, draws) > ONE_IN_A_MILLION


def test_laplace_noise_fits_and_lies_on_its_grid() -> None:
    noise = Noise("laplace", micro(0.5), 1)
    draws = mechanism.draw(noise, DRAWS)
    assert stats.kstest(draws, stats.laplace(scale=noise.scale).cdf).pvalue > ONE_IN_A_MILLION
    assert all((z * 2**20).is_integer() and 123456 + z - 123456 == z for z in draws)


PLANTED: dict[str, Callable[[list[int]], list[float]]] = {
    "a tenth too little": lambda draws: [math.floor(0.9 * z + 0.5) for z in draws],
    "one-sided": lambda draws: [abs(z) for z in draws],
    "shifted": lambda draws: [z + 1 for z in draws],
    "zero never drawn": lambda draws: [z or 1 for z in draws],
    "tails cut": lambda draws: [max(-6, min(6, z)) for z in draws],
    "not whole": lambda draws: [z + 0.25 for z in draws],
    "none at all": lambda draws: [0 for _ in draws],
}


@pytest.mark.parametrize("bug", PLANTED)
def test_the_fit_catches(bug: str) -> None:
    noise = Noise("geometric", micro(0.5), 1)
    draws = PLANTED[bug]([int(z) for z in mechanism.draw(noise, DRAWS)])
    assert misfit(noise, draws) < ONE_IN_A_MILLION


def test_the_fit_catches_rounded_laplace_noise() -> None:
    """Laplace noise of the same ε, rounded: P(0) is 0.2212, not 0.2449.

    With 20,000 draws the fit misses it once in four runs, with 100,000 once in more than 10^15.
    """
    rounded = [round(z) for z in mechanism.draw(Noise("laplace", micro(0.5), 1), 5 * DRAWS)]
    assert misfit(Noise("geometric", micro(0.5), 1), rounded) < ONE_IN_A_MILLION


# -- sensitivity ----


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"unit": "patient", "counted": "patient"}, 1),
        ({"unit": "patient", "counted": "note"}, 4),
        ({"unit": "note", "counted": "note"}, 1),
        ({"unit": "note", "counted": "patient"}, 1),
        ({"unit": "patient", "counted": "patient", "bins": 12, "one_bin": True}, 1),
        ({"unit": "patient", "counted": "patient", "bins": 12, "one_bin": False}, 4),
        ({"unit": "patient", "counted": "patient", "bins": 3, "one_bin": False}, 3),
        ({"unit": "patient", "counted": "note", "bins": 3, "one_bin": False}, 4),
        ({"unit": "note", "counted": "note", "bins": 3, "one_bin": False}, 2),
        ({"unit": "note", "counted": "note", "bins": 3, "one_bin": False, "bounded": False}, 1),
    ],
)
def test_sensitivity(asked: dict[str, object], expected: int) -> None:
    assert sensitivity(contributions=4, **asked) == expected  # type: ignore[arg-type]  # a table of keywords


@pytest.mark.parametrize("bad", [("gaussian", 1, 1), ("geometric", 0, 1), ("geometric", 1, 0)])
def test_bad_noise(bad: tuple[str, int, int]) -> None:
    with pytest.raises(BadInput):
        Noise(*bad)  # type: ignore[arg-type]  # wrong on purpose


# -- where noise comes from ----

ROOM = Path(inspect.getfile(leeward.queries)).parent
DISTRIBUTIONS = {
    "laplace", "geometric", "normal", "standard_normal", "exponential", "standard_exponential", "gumbel", "gauss",
    "normalvariate", "expovariate", "poisson", "binomial", "negative_binomial", "standard_cauchy", "standard_t", "rvs",
    "triangular", "logistic", "gamma",
}  # fmt: skip


def other_noise(source: str) -> list[str]:
    """What in a module's text could draw noise from somewhere else than OpenDP."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            names = [f"{module}.{alias.name}".strip(".") for alias in node.names] + [module]
            found += [
                name
                for name in names
                if name.split(".")[0] == "random" or name.startswith(("numpy.random", "scipy.stats"))
            ]
        elif isinstance(node, ast.Attribute) and (
            node.attr in DISTRIBUTIONS
            or (
                node.attr == "random"
                and isinstance(node.value, ast.Name)
                and node.value.id in {"np", "numpy"}
            )
        ):
            found.append(node.attr)
    return found


def test_no_other_noise_in_the_room() -> None:
    sources = sorted(ROOM.rglob("*.py"))
    assert len(sources) > 10
    typed = "np.random.Generator"  # the type of a stream, in a signature
    assert {
        str(path.relative_to(ROOM)): found
        for path in sources
        if (found := other_noise(path.read_text(encoding="utf-8").replace(typed, "Generator")))
    } == {}


@pytest.mark.parametrize(
    "planted",
    [
        "import random",
        "from random import gauss",
        "import numpy.random",
        "from numpy.random import default_rng",
        "from numpy import random",
        "import numpy as np\nz = np.random.default_rng().laplace()",
        "z = stream.laplace(0, 2)",
        "def f(g):\n    return g.geometric(0.5)",
        "from scipy.stats import laplace",
    ],
)
def test_other_noise_is_caught(planted: str) -> None:
    assert other_noise(planted)


def test_noise_takes_no_seed() -> None:
    for function in (mechanism.draw, mechanism._vouch, Noise.__init__):
        names = set(inspect.signature(function).parameters)
        assert not {name for name in names if "seed" in name or "random" in name or "generator" in name}
    noise = Noise("geometric", micro(0.01), 1)
    assert mechanism.draw(noise, 20) != mechanism.draw(noise, 20)


@settings(max_examples=40, deadline=None)
@given(epsilon=st.integers(50_000, 4_000_000), sensitivity=st.integers(1, 3), values=st.integers(1, 12))
def test_the_interval_of_a_sum_is_exact(epsilon: int, sensitivity: int, values: int) -> None:
    """Against the convolution of the distribution with itself."""
    noise = Noise("geometric", epsilon, sensitivity)
    far = math.ceil(60 * noise.scale)
    z = np.arange(-far, far + 1)
    one = (1 - noise.alpha) / (1 + noise.alpha) * noise.alpha ** np.abs(z)
    sums = functools.reduce(np.convolve, [one] * values)
    middle = len(sums) // 2
    within = np.cumsum(np.r_[sums[middle], 2 * sums[middle + 1 :]])
    assert mechanism.half_width_of_sum(noise, values) == int(np.argmax(within >= 0.95))
    assert mechanism.half_width_of_sum(noise, 1) == mechanism.half_width(noise)


def test_the_interval_of_a_sum_of_laplace_noise_and_of_many_values() -> None:
    """|sum of two| of scale 1 exceeds t with the probability (1 + t/2)·e^-t; a thousand are nearly normal."""
    width = mechanism.half_width_of_sum(Noise("laplace", MICRO, 1), 2)
    assert (1 + width / 2) * math.exp(-width) == pytest.approx(0.05, rel=1e-5)
    many = Noise("geometric", 10_000, 1)
    normal = 1.96 * math.sqrt(1000 * mechanism.variance(many))
    assert mechanism.half_width_of_sum(many, 1000) == pytest.approx(normal, rel=0.01)


def test_all_values_at_once_need_more_room() -> None:
    """Six of ± 20 are all within it in three of four cases; within 29, which is exact, in 95 of 100."""
    noise = Noise("geometric", 150_000, 1)
    inside = 1 - 2 * noise.alpha ** (np.arange(200) + 1) / (1 + noise.alpha)
    width = mechanism.half_width_of_all(noise, 6)
    assert inside[int(width)] ** 6 >= 0.95 > inside[int(width) - 1] ** 6
    assert inside[int(mechanism.half_width(noise))] ** 6 < 0.8
    assert mechanism.half_width_of_all(noise, 1) == mechanism.half_width(noise)


@pytest.mark.parametrize(
    ("epsilon", "factor"), [("0.15", 1.17), ("1", 2.72), ("3.7", 40.5), ("0.0001", 1.01), ("10", 22_100)]
)
def test_the_factor_of_likelihood_is_never_rounded_down(epsilon: str, factor: float) -> None:
    assert mechanism.likelihood(micro(epsilon)) == pytest.approx(factor)
    assert mechanism.likelihood(micro(epsilon)) >= math.exp(float(epsilon))
