"""The parameters of condensation, checked when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from leeward.analysis.plan import Model, models_of
from leeward.errors import BadInput

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.engine import Engine
    from leeward.randomness import Randomness
    from leeward.release.content import Anonymized

ALGORITHMS = ("balanced", "improved", "condensation", "tfrp", "auto")
STRATIFIED = ("balanced", "improved")
"""Algorithms that keep strata apart and times as they are."""


@dataclass(frozen=True, kw_only=True)
class Condensation:
    """Groups of at least k similar patients replaced by synthetic ones (Gal et al. 2014).

    k
        The least number of patients in a group.
    algorithm
        `balanced` (ours): halving, synthesis, each group's own marginals. `improved`: the paper's. `condensation`:
        Aggarwal and Yu's. `tfrp`: Chang et al.'s. `auto`: what keeps the plan best on a sample.
    plan
        The recipient's models, as in a spec's `plan:`. Their events become strata, their times are matched by rank, and
        `balanced` groups no patient with the outcome of a logistic model with one without.
    strata, time, response
        The same without a plan, or beside it: columns never mixed, columns matched by rank, columns with more weight.
    weight
        Of the response in the distance, between 0 and 1; `pilot` tries some on a sample (needs a plan).
    grouping
        `halving` or `kmeans`, in place of the algorithm's own.
    synthesis
        `sampled`: a group's mean and covariance hold in expectation. `exact`: they are reproduced.
    marginals
        `group`: the group's own values by rank. `nearest`: the nearest permissible value. Left out: the algorithm's.
    draw
        Components drawn `normal` or `uniform`.
    coarsen_time
        Publish each group's median time in place of exact times.
    missing
        `level`: missing values stay missing. `impute`: they are drawn inside the group.
    rare
        `withhold` levels that fewer than k patients have, or `keep` them.
    cell_rows
        Rows that are grouped at a time.
    repetitions
        Further made tables that stay in custody, to measure the plan over; left out: 20 with a plan, up to 50,000 rows.
    """

    name: ClassVar[str] = "condensation"

    k: int
    algorithm: Literal["balanced", "improved", "condensation", "tfrp", "auto"] = "balanced"
    plan: tuple[Any, ...] = field(default=(), hash=False)
    strata: tuple[str, ...] = ()
    time: tuple[str, ...] = ()
    response: tuple[str, ...] = ()
    weight: float | Literal["pilot"] = 0.5
    grouping: Literal["halving", "kmeans"] | None = None
    synthesis: Literal["sampled", "exact"] = "sampled"
    marginals: Literal["group", "nearest"] | None = None
    draw: Literal["normal", "uniform"] = "normal"
    coarsen_time: bool = False
    missing: Literal["level", "impute"] = "level"
    rare: Literal["withhold", "keep"] = "withhold"
    cell_rows: int | None = None
    repetitions: int | None = None

    def __post_init__(self) -> None:
        if self.k < 2:
            raise BadInput(f"`k` must be at least 2; got {self.k}.")
        for each in ("strata", "time", "response"):
            given = getattr(self, each)
            object.__setattr__(self, each, (given,) if isinstance(given, str) else tuple(given))
        object.__setattr__(self, "plan", tuple(_shown(each) for each in self.plan))
        models_of(self.plan)
        _one_of("algorithm", self.algorithm, ALGORITHMS)
        _one_of("grouping", self.grouping, (None, "halving", "kmeans"))
        _one_of("synthesis", self.synthesis, ("sampled", "exact"))
        _one_of("marginals", self.marginals, (None, "group", "nearest"))
        _one_of("draw", self.draw, ("normal", "uniform"))
        _one_of("missing", self.missing, ("level", "impute"))
        _one_of("rare", self.rare, ("withhold", "keep"))
        if self.weight != "pilot" and not (not isinstance(self.weight, str) and 0 < self.weight < 1):
            raise BadInput(f"`weight` must be between 0 and 1, or `pilot`; got {self.weight}.")
        if self.needs_pilot and not self.plan:
            raise BadInput(
                "`algorithm: auto` and `weight: pilot` try models out: give the recipient's `plan`."
            )
        if self.grouping and self.algorithm not in STRATIFIED:
            raise BadInput(f"`grouping` belongs to the algorithms {' and '.join(STRATIFIED)}.")
        if self.algorithm == "tfrp" and (self.synthesis == "exact" or self.marginals):
            raise BadInput("`tfrp` publishes centroids: it takes neither `synthesis` nor `marginals`.")
        if self.coarsen_time and self.algorithm not in (*STRATIFIED, "auto"):
            raise BadInput(f"`coarsen_time`: {self.algorithm} makes times like other columns; leave it out.")
        if self.cell_rows is not None and self.cell_rows < 2 * self.k:
            raise BadInput(f"`cell_rows` must be at least 2k = {2 * self.k}; got {self.cell_rows}.")
        if self.repetitions is not None and self.repetitions < 0:
            raise BadInput(f"`repetitions` must be at least 0; got {self.repetitions}.")

    @property
    def needs_pilot(self) -> bool:
        """Whether something is to be found out on a sample first."""
        return self.algorithm == "auto" or self.weight == "pilot"

    @property
    def models(self) -> tuple[Model, ...]:
        """The recipient's models."""
        return models_of(self.plan)

    def public(self) -> dict[str, Any]:
        """The manifest's parameters: as given, nothing that was found in the data."""
        shown: dict[str, Any] = {"k": self.k, "algorithm": self.algorithm}
        if self.plan:
            shown["plan"] = list(self.plan)
        for each in ("strata", "time", "response"):
            if getattr(self, each):
                shown[each] = list(getattr(self, each))
        for each in ("weight", "synthesis", "draw", "coarsen_time", "missing", "rare"):
            shown[each] = getattr(self, each)
        for each in ("grouping", "marginals", "cell_rows"):
            if getattr(self, each) is not None:
                shown[each] = getattr(self, each)
        return shown

    def protect(
        self,
        cohort: Cohort,
        engine: Engine | None = None,
        *,
        randomness: Randomness | None = None,
        population: Cohort | None = None,
    ) -> Anonymized:
        """Condense a cohort's table.

        Raises
        ------
        BadInput
            A column that is not there or cannot be released, a missing outcome, text that looks like an identifier.
        GuaranteeUnreachable
            Fewer than k rows, or no stratum of k rows.
        """
        from leeward.methods.condensation.method import protect

        return protect(self, cohort, engine, randomness=randomness, population=population)


def _shown(entry: Any) -> Any:
    """A plan's entry as plain mappings."""
    if isinstance(entry, Model):
        return entry.to_json()
    if isinstance(entry, Mapping):
        return {key: dict(value) if isinstance(value, Mapping) else value for key, value in entry.items()}
    return entry


def _one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        listed = ", ".join(str(each) for each in choices if each is not None)
        raise BadInput(f"`{name}` must be one of {listed}; got {value}.")
