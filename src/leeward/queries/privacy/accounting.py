"""Cost of one answer and of all answers together, in integers; the theorems are OpenDP's.

Two ways of accounting, fixed when a data set gets its budget:

`pure`  the budget is an ε. Answers compose by the sum of their ε (basic composition). Kept in micro-ε.
`zcdp`  the budget is an (ε, δ). An answer that is ε-private is ε²/2-zCDP (Bun & Steinke 2016, Proposition 1.4:
        OpenDP's `make_pureDP_to_zCDP`); ρ adds up; the sum is turned into an ε at the budget's δ by OpenDP's
        `make_zCDP_to_approxDP` (Canonne, Kamath & Steinke 2020, the optimized conversion). Kept in 1e-12 ρ, so that
        the square of a micro-ε is a whole number.

Sums are of Python integers, which never round: a thousand answers at 0.001 cost exactly 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Final, Literal

from leeward.errors import BadInput

Accounting = Literal["pure", "zcdp"]
ACCOUNTINGS: Final = ("pure", "zcdp")

MICRO: Final = 10**6
"""Micro-ε in an ε."""

PICO: Final = 10**12
"""Smallest units of ρ in a ρ."""

LARGEST_EPSILON: Final = 1000
"""Beyond it ε promises nothing; mostly a slip of the decimal point."""


@functools.cache
def opendp_ready() -> None:
    """Switch on the part of OpenDP where the mechanisms for counts are (its proofs are reviewed; `contrib`)."""
    from opendp.mod import enable_features

    enable_features("contrib")


def micro(epsilon: str | int | float | Decimal, name: str = "epsilon") -> int:
    """ε in micro-ε. BadInput unless it is a number above 0 with at most six digits after the point."""
    try:
        exact = Decimal(str(epsilon))
    except InvalidOperation:
        raise BadInput(f"`{name}` must be a number above 0, for example 0.5; got {epsilon!r}.") from None
    if not exact.is_finite() or exact <= 0 or exact > LARGEST_EPSILON or isinstance(epsilon, bool):
        raise BadInput(
            f"`{name}` must be a number above 0 and at most {LARGEST_EPSILON}, for example 0.5; got {epsilon}."
        )
    scaled = exact * MICRO
    if scaled != scaled.to_integral_value():
        raise BadInput(f"`{name}` has at most six digits after the point; got {epsilon}.")
    return int(scaled)


def epsilon_of(micros: int) -> float:
    """The largest float that is not above `micros` micro-ε: what is promised is never rounded up."""
    value = micros / MICRO
    return value if Fraction(value) <= Fraction(micros, MICRO) else math.nextafter(value, 0.0)


def to_epsilon(micros: int) -> float:
    """Micro-ε as the number a person wrote."""
    return float(Decimal(micros) / MICRO)


@dataclass(frozen=True, kw_only=True)
class Budget:
    epsilon: int
    """Micro-ε."""
    accounting: Accounting = "pure"
    delta: float | None = None
    """Only for `zcdp`: the probability with which the ε may be exceeded."""

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise BadInput("`epsilon_total` must be above 0.")
        if self.accounting not in ACCOUNTINGS:
            raise BadInput(f"`accounting` must be pure or zcdp; got {self.accounting!r}.")
        if self.accounting == "pure" and self.delta is not None:
            raise BadInput("`delta` belongs to `accounting: zcdp`; pure accounting has none.")
        if self.accounting == "zcdp" and not (self.delta is not None and 0 < self.delta < 0.1):
            raise BadInput("`delta` must lie between 0 and 0.1 for `accounting: zcdp`, for example 1e-6.")

    @property
    def limit(self) -> int:
        """The budget in smallest units: micro-ε, or 1e-12 ρ."""
        if self.delta is None:
            return self.epsilon
        return _largest_rho(epsilon_of(self.epsilon), self.delta)


def cost(micros: int, accounting: Accounting) -> int:
    """Cost of an answer of `micros` micro-ε in the budget's smallest units, rounded up."""
    if accounting == "pure":
        return micros
    from opendp.combinators import make_pureDP_to_zCDP

    concentrated: Any = make_pureDP_to_zCDP(_count_noise(1 / epsilon_of(micros)))
    return math.ceil(Fraction(concentrated.map(1)) * PICO)


def affordable(left: int, accounting: Accounting) -> int:
    """The largest ε, in micro-ε, of one more answer when `left` smallest units are left."""
    if accounting == "pure" or left <= 0:
        return max(left, 0)
    best = math.isqrt(2 * left)  # OpenDP rounds a cost up: go down until it fits
    while best > 0 and cost(best, "zcdp") > left:
        best -= 1
    return best


def spent_epsilon(spent: int, budget: Budget) -> float:
    """The ε (at the budget's δ) that `spent` smallest units amount to."""
    if budget.delta is None:
        return to_epsilon(spent)
    return 0.0 if spent == 0 else _epsilon_of_rho(spent, budget.delta)


def compose(micros: Iterable[int], accounting: Accounting) -> int:
    """Cost of many answers by OpenDP's composition, in smallest units: the sum that a ledger has to agree with."""
    from opendp.combinators import make_composition, make_pureDP_to_zCDP

    parts = [_count_noise(1 / epsilon_of(each)) for each in micros]
    if not parts:
        return 0
    if accounting == "zcdp":
        parts = [make_pureDP_to_zCDP(part) for part in parts]
    unit = PICO if accounting == "zcdp" else MICRO
    together: Any = make_composition(parts)
    return math.ceil(Fraction(together.map(1)) * unit)


def _count_noise(scale: float) -> Any:
    """OpenDP's geometric measurement on one integer, for its privacy map alone."""
    from opendp.domains import atom_domain
    from opendp.measurements import make_geometric
    from opendp.metrics import absolute_distance

    opendp_ready()
    return make_geometric(atom_domain(T=int), absolute_distance(T=int), scale=scale)


def _epsilon_of_rho(rho: int, delta: float) -> float:
    """ε at `delta` of `rho` (1e-12 ρ), by OpenDP: a discrete Gaussian of that ρ, cast to approximate privacy."""
    from opendp.combinators import make_zCDP_to_approxDP
    from opendp.domains import atom_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import absolute_distance

    opendp_ready()
    wanted = Fraction(rho, PICO)
    scale = math.sqrt(1 / (2 * rho / PICO))
    while True:  # its map may round below the ρ that is asked for; a hair less noise and it does not
        gaussian: Any = make_gaussian(atom_domain(T=int), absolute_distance(T=int), scale=scale)
        if Fraction(gaussian.map(1)) >= wanted:
            approximate: Any = make_zCDP_to_approxDP(gaussian)
            return float(approximate.map(1).epsilon(delta))
        scale = math.nextafter(scale, 0.0)


def _largest_rho(epsilon: float, delta: float) -> int:
    """The largest ρ (in 1e-12) whose ε at `delta` is not above `epsilon`."""
    low, high = 0, math.ceil(epsilon * PICO)  # ρ-zCDP costs at least ρ in ε for every δ of use
    while _epsilon_of_rho(high, delta) <= epsilon:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if _epsilon_of_rho(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    if low == 0:
        raise BadInput("This `epsilon_total` with this `delta` leaves no budget at all; raise one of them.")
    return low
