"""Noise for counts, from OpenDP's secure sampler and from nowhere else.

`geometric`  two-sided geometric noise, P(z) = (1−α)/(1+α)·α^|z| with α = e^(−ε/Δ), sampled with integers (Ghosh,
             Roughgarden & Sundararajan 2012). The default.
`laplace`    Laplace noise of scale Δ/ε, for replication (Li & Qin 2017, equation 3): two-sided geometric noise in steps
             of 2^-20, which OpenDP's Laplace noise on floats is too. Adding a count to it is exact, so that no
             low-order bit says which count it was.

Noise is drawn for zeros, before a count is known, and added afterwards. It takes no seed: a test that wants known noise
replaces `draw`.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

from leeward.errors import BadInput
from leeward.queries.privacy.accounting import MICRO, epsilon_of, opendp_ready

Kind = Literal["geometric", "laplace"]
Unit = Literal["patient", "note"]

KINDS: Final = ("geometric", "laplace")
UNITS: Final = ("patient", "note")
STEPS: Final[dict[str, int]] = {"geometric": 1, "laplace": 2**20}
"""Steps of the noise in a whole number; divisions by a power of two are exact."""
CONFIDENCE: Final = 0.95
EPSILONS: Final[tuple[int, ...]] = tuple(
    digits * 10**power for power in range(1, 8) for digits in range(10, 100)
)
"""Micro-ε with two significant digits, from 0.0001 to 990, ascending."""


@dataclass(frozen=True)
class Noise:
    """Noise that makes values whose sum of absolute changes is at most `sensitivity` private at `epsilon`."""

    kind: Kind
    epsilon: int
    """Micro-ε."""
    sensitivity: int
    """Most that all values together change (L1) when one patient, or one note, comes or goes."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BadInput(f"`mechanism` must be geometric or laplace; got {self.kind!r}.")
        if self.epsilon <= 0:
            raise BadInput("`epsilon` must be above 0.")
        if self.sensitivity < 1:
            raise BadInput(f"`sensitivity` must be at least 1; got {self.sensitivity}.")

    @property
    def scale(self) -> float:
        """The scale that OpenDP vouches for: Δ/ε, or a hair more where floating point would fall short of ε."""
        return _vouch(self.kind, self.epsilon, self.sensitivity)[0]

    @property
    def alpha(self) -> float:
        """α = e^(−1/scale) of the geometric mechanism."""
        return math.exp(-1 / self.scale)


def sensitivity(
    *,
    unit: Unit,
    counted: Unit,
    contributions: int,
    bins: int = 1,
    one_bin: bool = True,
    bounded: bool = True,
) -> int:
    """The L1 sensitivity of counts.

    `unit` is what is protected, `counted` what is counted, `contributions` the most notes of one patient that are
    kept, `bins` the number of counts that are asked for at once. `one_bin`: a patient lies in one bin only by the
    way the data are made. `bounded`: notes beyond `contributions` were left out, so that the removal of one note can
    let another one in.

    A patient changes a count of patients by 1 in each bin that holds one of the patient's notes, and counts of notes
    by as many as are kept. A note changes one bin by 1; where notes are left out its successor may change a second.
    """
    if unit not in UNITS or counted not in UNITS:
        raise BadInput("`unit` must be patient or note.")
    if unit == "patient":
        if counted == "note":
            return contributions
        return 1 if one_bin or bins == 1 else min(contributions, bins)
    return 2 if bins > 1 and bounded else 1


def draw(noise: Noise, size: int) -> list[int] | list[float]:
    """`size` independent draws, integers (geometric) or floats (Laplace): OpenDP's measurement of as many zeros."""
    steps: list[int] = _vouch(noise.kind, noise.epsilon, noise.sensitivity)[1]([0] * size)
    if noise.kind == "geometric":
        return steps
    return [step / STEPS[noise.kind] for step in steps]


def mean_absolute_noise(noise: Noise) -> float:
    """E|noise|: 2α/(1−α²), or the scale."""
    if noise.kind == "laplace":
        return noise.scale
    return 2 * noise.alpha / (1 - noise.alpha**2)


def variance(noise: Noise) -> float:
    """Var(noise): 2α/(1−α)², or 2·scale²."""
    if noise.kind == "laplace":
        return 2 * noise.scale**2
    return 2 * noise.alpha / (1 - noise.alpha) ** 2


@functools.lru_cache(maxsize=4096)
def half_width(noise: Noise, confidence: float = CONFIDENCE) -> float:
    """The smallest t with P(|noise| ≤ t) ≥ `confidence`: P(|Z| > t) = 2α^(t+1)/(1+α) for whole t ≥ 0 of geometric
    noise, e^(−t/scale) for Laplace noise."""
    outside = 1 - confidence
    if noise.kind == "laplace":
        return noise.scale * math.log(1 / outside)
    # log α is −1/scale, also where α is too small for a float.
    width = max(0, math.ceil(-noise.scale * math.log(outside * (1 + noise.alpha) / 2)) - 1)
    while _outside(noise, width) > outside:  # the logarithms may round a whole number down
        width += 1
    while width > 0 and _outside(noise, width - 1) <= outside:
        width -= 1
    return width


def half_width_of_all(noise: Noise, values: int) -> float:
    """The smallest t that all of so many independent draws keep to at once, with the probability `CONFIDENCE`."""
    return half_width(noise, CONFIDENCE ** (1 / values))


@functools.lru_cache(maxsize=4096)
def half_width_of_sum(noise: Noise, values: int) -> float:
    """The smallest t with P(|sum of so many independent draws| ≤ t) ≥ `CONFIDENCE`, exactly, to a step of the noise."""
    steps = STEPS[noise.kind]
    alpha = math.exp(-1 / (noise.scale * steps))
    weights = _weights_of_sum(alpha, values)
    low, high = -1, 1
    while 2 * _sum_above(high, alpha, weights) > 1 - CONFIDENCE:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if 2 * _sum_above(middle, alpha, weights) > 1 - CONFIDENCE:
            low = middle
        else:
            high = middle
    return high if steps == 1 else high / steps


def _weights_of_sum(alpha: float, values: int) -> list[float]:
    """Above 0 the sum of n two-sided geometric draws is a mixture of negative binomials of n−j successes, j < n. The
    weight of each is the coefficient of v^j in ((1−(1−α)v)/(1+α−v))^n: partial fractions of the generating function
    (1−α)^2n/((1−αz)(1−α/z))^n around z = 1/α."""
    found = [(1 + alpha) ** -values]
    before, rest = 0.0, 1 - alpha
    for j in range(values - 1):
        grown = (values * alpha**2 + (1 + rest * (1 + alpha)) * j) * found[j] - rest * (j - 1) * before
        before = found[j]
        found.append(grown / ((1 + alpha) * (j + 1)))
    return found


def _sum_above(limit: int, alpha: float, weights: list[float]) -> float:
    """P(sum > limit), limit ≥ 0. A negative binomial of m successes is above where fewer than m successes come before
    the failure number limit + 1."""
    term = below = alpha ** (limit + 1)
    tails = [below]
    for i in range(1, len(weights)):
        term *= (limit + i) / i * (1 - alpha)
        below += term
        tails.append(below)
    return sum(weight * tail for weight, tail in zip(weights, reversed(tails), strict=True))


def likelihood(micros: int) -> float:
    """e^ε, rounded up to three digits: no answer is more than so many times as likely with one unit as without it."""
    exact = math.exp(min(micros / MICRO, 700))
    digit = 10.0 ** (math.floor(math.log10(exact)) - 2)
    return math.ceil(exact / digit) * digit


def epsilon_within(kind: Kind, sensitivity: int, width: float) -> int:
    """The least ε of two significant digits (micro-ε) whose half-width is at most `width`; BadInput where none is up
    to LARGEST_EPSILON."""
    if not width >= 0:
        raise BadInput("the wanted precision must be a number from 0.")
    place = bisect_left(EPSILONS, -width, key=lambda epsilon: -half_width(Noise(kind, epsilon, sensitivity)))
    if place == len(EPSILONS):
        raise BadInput(f"no answer is as precise as within ± {width:g}; ask for less precision.")
    return EPSILONS[place]


def _outside(noise: Noise, width: int) -> float:
    """P(|noise| > width)."""
    return float(2 * noise.alpha ** (width + 1) / (1 + noise.alpha))


@functools.lru_cache(maxsize=256)
def _vouch(kind: Kind, epsilon: int, sensitivity: int) -> tuple[float, Any]:
    """The scale and OpenDP's measurement, whose own privacy map says at most `epsilon` for `sensitivity`."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_geometric
    from opendp.metrics import l1_distance

    opendp_ready()
    limit = epsilon_of(epsilon)
    steps = STEPS[kind]
    scale = float(Fraction(sensitivity * MICRO, epsilon))
    while True:
        measurement: Any = make_geometric(
            vector_domain(atom_domain(T=int)), l1_distance(T=int), scale=scale * steps
        )
        promised = measurement.map(sensitivity * steps)
        if promised <= limit:
            return scale, measurement
        scale = max(math.nextafter(scale, math.inf), scale * (promised / limit))
