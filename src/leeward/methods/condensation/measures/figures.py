"""The figures of condensed and k-anonymous tables."""

from __future__ import annotations

from dataclasses import dataclass, field
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
class Moments(Figures):
    """Of a column of numbers; None where every value is missing."""

    mean: float | None
    median: float | None
    sum: float | None
    sd: float | None
    missing: int


@dataclass(frozen=True)
class NumberColumn(Figures):
    """A column of numbers before and after."""

    column: str
    before: Moments
    after: Moments


@dataclass(frozen=True)
class LevelCount(Figures):
    """Rows with a level before and after."""

    column: str
    level: str
    before: int
    after: int


@dataclass(frozen=True)
class Rows(Figures):
    """Rows before and after."""

    before: int
    after: int


@dataclass(frozen=True)
class Marginals(Figures):
    """Columns one by one."""

    rows: Rows
    numbers: tuple[NumberColumn, ...]
    levels: tuple[LevelCount, ...]


@dataclass(frozen=True)
class Correlations(Figures):
    """Pearson correlations of `columns` before and after."""

    columns: tuple[str, ...]
    before: tuple[tuple[float, ...], ...]
    after: tuple[tuple[float, ...], ...]
    mean_difference: float
    largest_difference: float


@dataclass(frozen=True)
class ColumnPrivacy(Figures):
    """Π(original | released) of a column; `bin_width` is None for levels."""

    column: str
    privacy: float
    bin_width: float | None


@dataclass(frozen=True)
class Privacy(Figures):
    """Conditional privacy, and how it was estimated."""

    bins: int
    permutations: int
    pairing: str
    rows: int
    columns: tuple[ColumnPrivacy, ...]


@dataclass(frozen=True)
class Linkage(Figures):
    """How many of the `asked` rows find a released row of their own group nearest, against chance."""

    asked: int
    own_group: float
    chance: float


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


@dataclass(frozen=True)
class OtherTimes(Figures):
    """Of two exact times that a patient has: the share of the `asked` patients for whom the time `read` beside the time
    `told`, which is known, is their own. Of several pairs of times the one that is right most often."""

    told: str
    read: str
    asked: int
    right: float
    k: int


@dataclass(frozen=True)
class CoarseTimes(Figures):
    """How many released rows have a pair of stratum and time that names one group only."""

    rows: int
    one_group: float


@dataclass(frozen=True)
class Membership(Figures):
    """How well an attacker distinguishes patients who are in a table made of half the source from the others.

    auc : the probability that a patient who is in it looks nearer than one who is not (0.5 is chance)
    caught : share of the patients in it that are named while 1 % of the others are
    """

    asked: int
    auc: float
    caught: float


@dataclass(frozen=True)
class Distances(Figures):
    """Quantiles of distances, and the share of rows at distance 0."""

    low: float = field(metadata={"key": "5%"})
    median: float
    zero: float


@dataclass(frozen=True)
class Closest(Figures):
    """Distances to the closest original row, from released rows and from other original rows."""

    asked: int
    released: Distances
    original: Distances
