"""The parameters of condensation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from leeward.errors import BadInput
from leeward.fields import BadParameter, Parameter
from leeward.methods.base import Parameters

if TYPE_CHECKING:
    from leeward.analysis.plan import Model

STRATIFIED = ("balanced", "improved")
"""Algorithms that keep strata apart and times as they are."""

LEAST_K = 5
LEAST_K_OTHERS = 10
"""Minimum k with exact times, for `balanced` (pooled covariances) and for all else: from there on the measured
attack finds at most one exact time in k (docs/methods/condensation.md#least-k)."""

SMALL_K = 10
"""Below, a notice says what small groups give away."""


@dataclass(frozen=True, kw_only=True)
class Condensation(Parameters):
    """Groups of at least k similar patients, replaced by synthetic ones (Gal et al. 2014).

    A plan's events become strata and its times are matched by rank. `balanced` never groups patients with and without
    the outcome of a logistic model.

    Examples
    --------
    >>> import leeward as lw
    >>> import polars as pl
    >>> rows = pl.DataFrame({"age": [30 + n % 50 for n in range(200)], "sex": ["f", "m"] * 100})
    >>> cohort = lw.read(rows, format="table")
    >>> result = lw.protect(cohort, lw.Condensation(k=10), "release")
    >>> result.release.table("table.parquet").collect().columns
    ['age', 'sex']
    """

    name: ClassVar[str] = "condensation"
    ON_ENGINE: ClassVar[str] = "each cell"

    k: Annotated[int, Parameter("Minimum number of patients in a group.", ge=2)]
    algorithm: Annotated[
        Literal["balanced", "improved", "condensation", "tfrp", "auto"],
        Parameter(
            "balanced: halving, and each group's own values; improved: Gal et al. 2014; condensation: "
            "Aggarwal and Yu; tfrp: two fixed reference points (Chang et al.); auto: the one that "
            "keeps the plan best on a sample.",
            shown="always",
        ),
    ] = "balanced"
    plan: Annotated[
        tuple[Any, ...],
        Parameter("The recipient's regression models, as in a spec.", metavar="FILE.yaml"),
    ] = field(default=(), hash=False)
    strata: Annotated[
        tuple[str, ...],
        Parameter("Columns whose values are never mixed.", default="the plan's events", metavar="COL[,COL…]"),
    ] = ()
    time: Annotated[
        tuple[str, ...],
        Parameter(
            "Survival times, matched by rank; of several exact times only the first, the others at random "
            "among two groups.",
            default="the plan's times",
            metavar="COL[,COL…]",
        ),
    ] = ()
    response: Annotated[
        tuple[str, ...],
        Parameter(
            "Columns with more weight in the distance.", default="the plan's responses", metavar="COL[,COL…]"
        ),
    ] = ()
    weight: Annotated[
        float | Literal["pilot"],
        Parameter(
            "Weight of the response in the distance. pilot: chosen on a sample (needs a plan).",
            gt=0,
            lt=1,
            metavar="0…1|pilot",
            shown="always",
        ),
    ] = 0.5
    synthesis: Annotated[
        Literal["sampled", "exact"],
        Parameter(
            "Reproduce group means and covariances in expectation (sampled) or exactly.", shown="always"
        ),
    ] = "sampled"
    draw: Annotated[
        Literal["normal", "uniform"], Parameter("Distribution of the components drawn.", shown="always")
    ] = "normal"
    coarsen_time: Annotated[
        bool, Parameter("Publish each group's median time instead of exact times.", shown="always")
    ] = False
    relations: Annotated[
        tuple[str, ...],
        Parameter(
            "Relations that every released row keeps, as in the source: a <= b, a = b, a -> b (a determines b), "
            "a = 0 <=> b = 0, c = v => a = b, c = v => x >= 40. Relations that the run finds are also kept. "
            "none: keep only those given.",
            default="what the run finds",
            flag="--relations",
            metavar="none|TEXT[,TEXT…]",
        ),
    ] = ()
    coarsen_groups: Annotated[
        int | None,
        Parameter(
            "Number of neighbouring groups that share a median time.",
            ge=2,
            metavar="N",
            default="1",
            when=("coarsen_time", True),
        ),
    ] = None
    missing: Annotated[
        Literal["level", "impute"],
        Parameter(
            "level: missing values stay missing. impute: draw them within the group.",
            flag="--missing-as",
            shown="always",
        ),
    ] = "level"
    rare: Annotated[
        Literal["withhold", "keep"],
        Parameter("What to do with levels that fewer than k patients have.", shown="always"),
    ] = "withhold"
    sensitive_columns: Annotated[
        Mapping[str, int] | None,
        Parameter(
            "Always refused: no limit on groups bounds what rows tell; see k-anonymize.",
            metavar="COL:L[,COL:L…]",
            shown="never",
        ),
    ] = field(default=None, hash=False)

    def rules(self) -> None:
        object.__setattr__(self, "plan", tuple(model.to_json() for model in self.models))
        if self.sensitive_columns is not None:
            raise BadParameter(
                "sensitive_columns",
                "must be left out; got a limit on groups, which no released file shows, while rows keep what a column "
                "follows inside a group. `k-anonymize` has limits; here conditional privacy is measured.",
            )
        self._refuse_contradictions()
        self._require_least_k()
        if self.stated:
            from leeward.methods.condensation.relations import relation_of

            parsed = tuple(relation_of(each).text for each in self.stated)
            object.__setattr__(self, "relations", (*self.relations[: -len(parsed)], *parsed))
            if self.algorithm != "balanced":
                raise BadInput("`relations` belong to `algorithm` balanced.")

    def _refuse_contradictions(self) -> None:
        stratified = self.algorithm in (*STRATIFIED, "auto")
        refusals = {
            "`algorithm` auto and `weight` pilot compare candidates on the plan: give the recipient's `plan`.": (
                self.needs_pilot and all(model.kind == "forest" for model in self.models)
            ),
            "`algorithm` tfrp publishes centroids: it takes no `synthesis`.": (
                self.algorithm == "tfrp" and self.synthesis == "exact"
            ),
            f"`coarsen_time`: {self.algorithm} makes times like other columns; leave it out.": (
                self.coarsen_time and not stratified
            ),
            "`coarsen_groups` belongs to `coarsen_time`.": self.coarsen_groups and not self.coarsen_time,
        }
        for message, refused in refusals.items():
            if refused:
                raise BadInput(message)

    def _require_least_k(self) -> None:
        exact = self.algorithm in (*STRATIFIED, "auto") and not self.coarsen_time
        if not exact or not (self.time or any(model.time for model in self.models)):
            return
        least = LEAST_K if self.algorithm == "balanced" else LEAST_K_OTHERS
        if self.k < least:
            raise BadParameter(
                "k",
                f"must be at least {least} with exact times (`algorithm` {self.algorithm}): in smaller "
                f"groups the nearest row may reveal a patient's time; got {self.k}. Choose a larger k "
                f"or `coarsen_time`.",
            )

    @property
    def finds_relations(self) -> bool:
        """Whether relations that the run finds are kept."""
        return self.algorithm == "balanced" and "none" not in self.relations[:1]

    @property
    def stated(self) -> tuple[str, ...]:
        """The relations that were given."""
        return self.relations["none" in self.relations[:1] :]

    @property
    def needs_pilot(self) -> bool:
        """Whether something is to be found out on a sample first."""
        return self.algorithm == "auto" or self.weight == "pilot"

    @property
    def models(self) -> tuple[Model, ...]:
        if not self.plan:
            return ()
        from leeward.analysis.plan import models_of

        return models_of(self.plan)
