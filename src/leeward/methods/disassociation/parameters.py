"""The parameters of disassociation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from leeward.errors import BadInput
from leeward.fields import BadParameter, Parameter
from leeward.methods.base import PolicyLike
from leeward.methods.demographics import OF_CLASSES, WithRecoding

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort

PARTITIONINGS = {"fitted": 10, "recut": 2, "paper": 2, "ranked": 20}
"""Ways to form clusters, each with its default `max_cluster` as a multiple of t, the number of patients from which on
codes are counted; for `fitted` it is t · t below 10, since small clusters of few records answer for larger sets.
`ranked` belongs to `attacker: algorithm`."""

RECORDS_A_PARTITION = 250_000
"""On Spark, where their number is not given."""

FITTED_FROM = 3
"""From this t on `fitted` is the default; below, `recut` counts short records of few codes better (pyPheWAS)."""

ALONE = {"nested": True, "safe": True}
"""Values of parameters where each chunk has one code."""

UNFIT = {
    "rules": ("nested", "safe", "repeats", "diversity"),
    "algorithm": (
        "partitioning", "nested", "safe", "sensitive", "diversity",
        "reconstructions", "demographics", "payload", "sensitive_columns",
    ),
}  # fmt: skip
"""Parameters that do not go with chunks of one code each, or that the proof does not cover."""


@dataclass(frozen=True, kw_only=True)
class Disassociation(WithRecoding):
    """Disassociation of sets of diagnosis codes (Loukides et al. 2014).

    For up to `m` codes of a patient, at least one data set that could have produced the release has `k` patients who
    match. No code is suppressed or generalized.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> lw.protect(cohort, lw.Disassociation(k=5, m=2), "release").release.guarantee["k"]
    5
    """

    name: ClassVar[str] = "disassociation"
    ON_ENGINE: ClassVar[str] = (
        "partitions above 250,000 patients or with `partitions`; classes of demographics"
    )

    k: Annotated[int, Parameter("Minimum number of candidate records.", ge=2, shown="always")] = 5
    m: Annotated[
        int, Parameter("Maximum number of a patient's codes that an attacker knows.", ge=1, shown="always")
    ] = 2
    attacker: Annotated[
        Literal["operation", "counts", "rules", "algorithm"],
        Parameter(
            "What the attacker knows of the method. counts: that a counted code has at least k + 1 "
            "patients; operation: not even that, so codes with k patients are counted too (the "
            "paper's guarantee); rules: everything done after clusters are formed (chunks of one "
            "code each); algorithm: everything (single codes with counts, no item chunks, few codes "
            "suppressed).",
            shown="always",
        ),
    ] = "counts"
    policy: Annotated[
        PolicyLike,
        Parameter(
            "Groups of codes to keep analysable.",
            metavar="hierarchy:1|similarity:10|frequency:0.0125|file:PATH",
            shown="always",
            form=r"hierarchy:\d+|similarity:\d+|frequency:[0-9.e-]+|file",
            word="file",
        ),
    ] = field(default=None, hash=False)
    partitioning: Annotated[
        Literal["auto", "fitted", "recut", "paper"],
        Parameter(
            "fitted: large clusters of similar records; paper: HorPart as published; recut: HorPart, then "
            f"records whose codes would all be in an item chunk move to another cluster; auto: for "
            f"few patients the one whose release answers best, otherwise fitted if codes are counted "
            f"from {FITTED_FROM} patients on, below "
            "recut.",
            shown="always",
            word="ranked",
            found=True,
        ),
    ] = "auto"
    max_cluster: Annotated[
        int | None,
        Parameter(
            "Split parts of at least this many records; t = k + 1, or k (`attacker`).",
            ge=2,
            default="min(t, 10)·t (fitted, and half of it for long records), "
            + ", ".join(f"{times}t ({name})" for name, times in PARTITIONINGS.items() if name != "fitted"),
            metavar="N",
            shown="always",
            found=True,
        ),
    ] = None
    nested: Annotated[
        bool,
        Parameter(
            "Allow shared chunks to repeat codes of chunks below, then k-anonymous (Property 1).",
            shown="always",
        ),
    ] = False
    safe: Annotated[
        bool,
        Parameter(
            "No code of a chunk reveals another: covering codes get chunks of their own (the cover problem).",
            shown="always",
        ),
    ] = False
    repeats: Annotated[
        bool, Parameter("Count mentions: the second mention of 250.01 becomes 250.01#2.", shown="always")
    ] = False
    reconstructions: Annotated[
        int, Parameter("Number of reconstructed data sets to publish.", ge=0, metavar="N", shown="always")
    ] = 0
    sensitive: Annotated[
        tuple[str, ...],
        Parameter(
            "Codes unknown to attackers; kept in item chunks. standard: codes of HIV, substance use, mental "
            "health, abuse and reproductive health.",
            metavar="standard|CODE[,CODE…]",
            ascending=True,
        ),
    ] = ()
    diversity: Annotated[
        int | None,
        Parameter(
            "L: at most 1 in L records of a cluster may have the same sensitive code.",
            ge=2,
            metavar="L",
            shown="always",
            when=("sensitive", True),
        ),
    ] = None
    partitions: Annotated[
        int | None,
        Parameter(
            "Number of parts that are disassociated separately.",
            ge=1,
            default="1; on Spark one per 250,000 records",
            metavar="N",
            shown="never",
        ),
    ] = None
    inherited: ClassVar[None]
    payload: Annotated[
        tuple[str, ...],
        Parameter(
            "Columns of the patients to release with demographics, assumed unknown to attackers; their "
            "values are shuffled within each cluster.",
            metavar="COL[,COL…]",
        ),
    ] = ()
    sensitive_columns: Annotated[
        Mapping[str, int] | None,
        Parameter(
            "Columns of the patients that attackers do not know and must not learn; released as counts of "
            "values in each class. L: at most 1 in L records of a class may have the same value.",
            ge=2,
            metavar="COL:L[,COL:L…]",
            when=OF_CLASSES,
        ),
    ] = field(default=None, hash=False)

    def rules(self) -> None:
        super().rules()
        self._check_columns()
        if self.max_cluster is not None and self.max_cluster < self.counted_from:
            raise BadParameter(
                "max_cluster",
                f"must be a whole number of at least {self.counted_from}; got {self.max_cluster}.",
            )
        if self.diversity is not None and not self.sensitive:
            raise BadInput("`diversity` needs the codes in `sensitive`.")
        self._single_codes()
        if self.policy is not None:
            from leeward.analysis.policies import parse

            object.__setattr__(self, "policy", parse(self.policy))

    def _check_columns(self) -> None:
        """Raise BadInput for columns of the patients that contradict each other."""
        if self.sensitive_columns is not None and not self.sensitive_columns:
            raise BadParameter("sensitive_columns", "must name a column with its L; got an empty mapping.")
        if not self.demographics:
            for name in ("payload", "sensitive_columns"):
                if getattr(self, name):
                    raise BadInput(f"`{name}` needs `demographics`: without them only codes are released.")
        elif self.partitions not in (None, 1):
            raise BadInput("with `demographics` each class is its own part; leave `partitions` out.")
        for name in self.sensitive_columns or {}:
            if name in (*self.demographics, *self.payload):
                raise BadInput(
                    f"`{name}` is in `sensitive_columns` and in `demographics` or `payload`, which release "
                    f"it differently. Keep one."
                )

    def _single_codes(self) -> None:
        """Raise BadInput for parameters that do not go with single codes."""
        fields = {each.name: each.default for each in dataclasses.fields(self)}
        for name in UNFIT.get(self.attacker, ()):
            if getattr(self, name) != fields[name]:
                raise BadInput(
                    f"`{name}` and `attacker: {self.attacker}`, which publishes counts of single codes, "
                    f"cannot be combined; leave one out."
                )
        if self.attacker == "algorithm" and self.partitions is not None and self.partitions > 1:
            raise BadInput("`attacker: algorithm` needs one partition; leave `partitions` out.")

    def public(self, **found: Any) -> dict[str, Any]:
        decided = {"partitioning": self.chosen_partitioning, "max_cluster": self.cluster_limit}
        return super().public(**decided, **(ALONE if self.attacker in UNFIT else {}), **found)

    @property
    def counted_from(self) -> int:
        """The least number of patients who share a code that is counted."""
        return self.k + (self.attacker in ("counts", "rules"))

    @property
    def fewest(self) -> int:
        return self.counted_from

    @property
    def chosen_partitioning(self) -> str:
        if self.attacker == "algorithm":
            return "ranked"
        if self.partitioning == "auto":
            return "fitted" if self.counted_from >= FITTED_FROM else "recut"
        return self.partitioning

    @property
    def cluster_limit(self) -> int:
        """Parts of at least this many records are split further."""
        if self.max_cluster is not None:
            return self.max_cluster
        times = PARTITIONINGS[self.chosen_partitioning]
        least = self.counted_from
        return least * (min(least, times) if self.chosen_partitioning == "fitted" else times)

    def over(self, cohort: Cohort) -> tuple[Self, tuple[str, ...]]:
        """`standard` among the sensitive codes gives way to the cohort's codes on the list of that name. BadInput where
        the list knows no code of the cohort's vocabulary."""
        from leeward.vocabulary.sensitive import LISTED, STANDARD

        if STANDARD not in self.sensitive:
            return self, ()
        from leeward.cohort.sensitive import sensitive_of

        found = sensitive_of(cohort, cohort.supports().codes)
        if found is None:
            raise BadInput(
                f"`sensitive: {STANDARD}` is a list of codes of {' and '.join(LISTED)}; {cohort.name} has none of "
                "these. Say which `vocabulary` its codes are of, or name the sensitive codes."
            )
        own = {code for code in self.sensitive if code != STANDARD}.union(*found.values())
        topics = ", ".join(f"{topic} {len(listed)}" for topic, listed in found.items())
        said = f"of the list `{STANDARD}` of sensitive codes the data have {topics or 'none'}"
        return dataclasses.replace(
            self, sensitive=tuple(sorted(own)), diversity=self.diversity if own else None
        ), (said,)

    def uses_engine(self, patients: int) -> bool:
        several = (self.partitions or -(-patients // RECORDS_A_PARTITION)) > 1
        return self.attacker != "algorithm" and (several or bool(self.demographics))

    def can_store(self) -> bool:
        whole = self.demographics or self.repeats or self.diversity or self.reconstructions
        frequent = str(self.policy).startswith("frequency")
        return not whole and not frequent and self.attacker != "algorithm"
