"""`Condensation`: the parameters, and the way from a table of patients to a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from leeward.analysis.plan import Model, models_of
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

if TYPE_CHECKING:
    from leeward.cohort.lenses.table import Table
    from leeward.engine import Engine
    from leeward.methods.condensation.cell import CellKernel
    from leeward.methods.condensation.grouping import How
    from leeward.methods.condensation.prepare import Prepared

GROUPINGS: dict[str, How] = {
    "balanced": "halving",
    "improved": "kmeans",
    "condensation": "seeds",
    "tfrp": "two-points",
}
STRATIFIED = ("balanced", "improved")
"""Algorithms that keep strata apart and times as they are."""

CELL_ROWS = 1 << 17
"""Halving takes at most about this many rows at a time; the paper's algorithms take a stratum whole."""

REPEATED_ROWS = 50_000
"""Up to this many rows a planned release is measured over `REPETITIONS`, above over itself alone."""
REPETITIONS = 20


@dataclass(frozen=True)
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
        _one_of("algorithm", self.algorithm, (*GROUPINGS, "auto"))
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

    def protect(
        self,
        cohort: Cohort,
        engine: Engine | None = None,
        *,
        randomness: Randomness | None = None,
        population: Any = None,
    ) -> Anonymized:
        """Condense a cohort's table.

        Raises
        ------
        BadInput
            A column that is not there or cannot be released, a missing outcome, text that looks like an identifier.
        GuaranteeUnreachable
            Fewer than k rows, or no stratum of k rows.
        """
        from threadpoolctl import threadpool_limits

        from leeward.engine import make
        from leeward.methods.condensation import guarantee as wording
        from leeward.methods.condensation.run import again, condense

        if population is not None:
            raise BadInput("condensation needs no population; leave `population` out.")
        randomness = randomness or Randomness.of(None)
        engine = make(engine)
        table = cohort.table()
        chosen: Condensation = self
        pilot: dict[str, Any] = {}
        if self.needs_pilot:
            from leeward.methods.condensation.pilot import choose

            chosen, pilot = choose(self, table, randomness)
        prepared, kernel = chosen.ready(table, randomness)
        at_once = chosen.rows_at_once(len(table))
        repetitions = chosen.repeats(len(table))
        # Kernels work in threads of the engine's; BLAS's own would wait for each other at every small matrix.
        with threadpool_limits(1):
            condensed = condense(prepared, kernel, engine, randomness, at_once)
            further = again(prepared, kernel, engine, repetitions, randomness, at_once) if repetitions else []
        return wording.release_of(
            self, chosen, prepared, kernel, condensed, further, pilot, randomness.seeded
        )

    def ready(self, table: Table, randomness: Randomness) -> tuple[Prepared, CellKernel]:
        """The table as features and strata, and the kernel that condenses a cell of it."""
        from leeward.methods.condensation.cell import CellKernel
        from leeward.methods.condensation.layout import layout_of
        from leeward.methods.condensation.prepare import prepare, roles_of

        assert self.algorithm != "auto"  # the pilot has chosen
        assert self.weight != "pilot"
        own = self.algorithm in STRATIFIED
        roles = roles_of(self.models, self.strata, self.time, self.response)
        prepared = prepare(
            table,
            self.models,
            roles,
            self.k,
            stratified=own or bool(self.strata),
            missing=self.missing,
            rare=self.rare,
            sided=self.algorithm == "balanced",
        )
        features = (
            prepared.features if own else tuple(replace(each, role="other") for each in prepared.features)
        )
        layout = layout_of(features, prepared.values, prepared.stratum >= 0, float(self.weight))
        how: How = (
            GROUPINGS[self.algorithm]
            if self.grouping is None
            else GROUPINGS["balanced" if self.grouping == "halving" else "improved"]
        )
        marginals = self.marginals or ("group" if self.algorithm == "balanced" else "nearest")
        kernel = CellKernel(
            layout,
            self.k,
            how,
            "centroid" if self.algorithm == "tfrp" else marginals,
            self.synthesis,
            self.draw,
            own,
            self.coarsen_time,
            randomness,
        )
        return replace(prepared, features=features), kernel

    def rows_at_once(self, rows: int) -> int:
        """Rows that are grouped at a time."""
        if self.cell_rows is not None:
            return self.cell_rows
        halving = self.algorithm == "balanced" if self.grouping is None else self.grouping == "halving"
        return max(CELL_ROWS, 2 * self.k) if halving else rows

    def repeats(self, rows: int) -> int:
        """Further made tables for the measures."""
        if self.repetitions is not None:
            return self.repetitions
        return REPETITIONS - 1 if self.plan and rows <= REPEATED_ROWS else 0

    def parameters(self) -> dict[str, Any]:
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
