"""The figures of condensed and k-anonymous tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leeward.analysis.figures import Figures


@dataclass(frozen=True)
class Metrics(Figures):
    """Shares of coefficients, as in Figs. 1–3 of the paper (docs/methods/condensation.md#metrics).

    significance : of all, those whose significance changed; direction : of the significant, those whose sign changed;
    outside, outside_significant : of all and of the significant, those outside the original 95 % interval
    """

    significance: float
    direction: float
    outside: float
    outside_significant: float


@dataclass(frozen=True)
class Estimate(Figures):
    """A coefficient with its 95 % interval; None where it is not estimable."""

    coefficient: float | None
    low: float | None
    high: float | None
    p: float | None


@dataclass(frozen=True)
class Coefficient(Figures):
    """A coefficient before and after; `spread` is the covariate's standard deviation (1 for levels)."""

    name: str
    spread: float
    before: Estimate
    after: Estimate


@dataclass(frozen=True)
class NotConverged(Figures):
    """How many fits did not converge."""

    original: int
    released: int
    bootstrap: int | None = None


@dataclass(frozen=True)
class FittedModel(Figures):
    """A model of the plan: metrics are means over the fits that converged, None where none did."""

    title: str
    kind: str
    coefficients: tuple[Coefficient, ...]
    metrics: Metrics | None
    did_not_converge: NotConverged
    bootstrap: Metrics | None = None


@dataclass(frozen=True)
class Models(Figures):
    """The recipient's models: made tables and bootstrap resamples that the means are over."""

    repetitions: int
    bootstrap: int
    models: tuple[FittedModel, ...]


@dataclass(frozen=True)
class Curve(Figures):
    """Kaplan–Meier curves before and after, at the times `at`."""

    time: str
    event: str | None
    event_value: Any
    at: tuple[float, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]


@dataclass(frozen=True)
class ExactTimes(Figures):
    """Shares of the `asked` patients whose exact time is guessed right: by the nearest row, by a random row of the
    stratum (`chance`), by a random row of the patient's own group (`in_group`, above 1/k where times tie)."""

    time: str
    asked: int
    right: float
    chance: float
    k: int
    in_group: float | None = None

    @property
    def above(self) -> bool:
        """Whether the guesses are right more often than 1/k or a random row of the group, by two standard errors."""
        allowed = max(1 / self.k, self.in_group or 0.0)
        return bool(self.right > allowed + 2 * (allowed * (1 - allowed) / self.asked) ** 0.5)
