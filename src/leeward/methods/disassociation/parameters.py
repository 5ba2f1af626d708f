"""The parameters of disassociation, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from leeward.analysis.policies import Policy, PolicyLike, parse
from leeward.errors import BadInput

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.engine import Engine
    from leeward.randomness import Randomness
    from leeward.release.content import Anonymized

PARTITIONINGS = {"settled": 10, "paper": 2}
"""Ways to form clusters, each with its default `max_cluster` as a multiple of k."""

SETTLED_MAX_PASSES = 24
"""Default `max_passes` of `settled`: later passes find a few per cent of the joins and grow in number with the data."""

SETTLED_FROM_K = 4
"""From this k on `settled` beats `paper` on both measures (docs/benchmarks.md); below, pairs suffer."""

SETTLED_MAX_JOINT = 80
"""Default `max_joint` of `settled`, as a multiple of k: larger joint clusters blur which codes go together."""

PRIORS = ("cubic", "graded", "one", "uniform")


@dataclass(frozen=True, kw_only=True)
class Disassociation:
    """Disassociation of sets of diagnosis codes (Loukides et al. 2014; docs/methods/disassociation.md).

    Whoever knows up to `m` codes of a patient has at least `k` candidate records in some data set that could have
    given the release (Guarantee 1). No code is suppressed or generalized.
    """

    name: ClassVar[str] = "disassociation"

    k: int = 5
    """Fewest candidate records, at least 2."""
    m: int = 2
    """Most codes that an attacker knows, at least 1; the longest record's length protects against full knowledge."""
    policy: PolicyLike = None
    """Codes to keep together: `hierarchy:1`, `similarity:10`, `frequency:0.0125`, `file:PATH`, or a mapping."""
    partitioning: str = "auto"
    """`settled`: records choose a better cluster after the split (ours); `paper`: HorPart as published; `auto`: what
    answers counts better on the sets measured, `settled` from k = 4 on."""
    max_cluster: int | None = None
    """Parts of at least this many records are split further. Default: 10k for `settled`, 2k for `paper`."""
    recut: bool = True
    """Records that would lie wholly in an item chunk move to a cluster that keeps one of their codes."""
    refine: bool = True
    """Shared chunks for codes that stand in the item chunks of several clusters."""
    max_joint: int | None = None
    """Joint clusters of more records are not made. Default: 80k for `settled`, no limit for `paper`."""
    max_passes: int | None = None
    """Passes of Refine over all clusters. Default: 24 for `settled`, until nothing changes for `paper`."""
    nested: bool = False
    """Allow shared chunks with codes that stand in chunks below, k-anonymous then (Property 1)."""
    safe: bool = False
    """No code of a chunk reveals another: covering codes get chunks of their own (the cover problem)."""
    sensitive: tuple[str, ...] = ()
    """Codes that an attacker does not know: always in item chunks."""
    diversity: int | None = None
    """l: at most one record in l of a cluster holds a given sensitive code."""
    repeats: bool = False
    """Count mentions: the second mention of 250.01 becomes the code 250.01#2."""
    reconstructions: int = 0
    """Reconstructed data sets to publish with the chunks."""
    prior: str = "cubic"
    """P(n) of an item-chunk code's count, for reconstructions: `cubic` (n^-3), `graded`, `one`, `uniform`."""
    partitions: int | None = None
    """Partitions that are disassociated apart. Default: 1, on Spark one for every 250,000 records."""

    _parsed: Policy | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        for name, least in (("k", 2), ("m", 1), ("reconstructions", 0)):
            _whole(name, getattr(self, name), least)
        for name, least in (
            ("max_cluster", self.k),
            ("max_joint", self.k),
            ("max_passes", 1),
            ("diversity", 2),
            ("partitions", 1),
        ):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), least)
        _one_of("partitioning", self.partitioning, ("auto", *PARTITIONINGS))
        _one_of("prior", self.prior, PRIORS)
        sensitive = (self.sensitive,) if isinstance(self.sensitive, str) else tuple(self.sensitive)
        if self.diversity is not None and not sensitive:
            raise BadInput("`diversity` needs `sensitive`: the codes that it is about.")
        object.__setattr__(self, "sensitive", sensitive)
        object.__setattr__(self, "_parsed", parse(self.policy))

    @property
    def chosen_partitioning(self) -> str:
        """`partitioning`, with `auto` decided."""
        if self.partitioning == "auto":
            return "settled" if self.k >= SETTLED_FROM_K else "paper"
        return self.partitioning

    @property
    def cluster_limit(self) -> int:
        """Parts of at least this many records are split further."""
        return (
            self.max_cluster
            if self.max_cluster is not None
            else PARTITIONINGS[self.chosen_partitioning] * self.k
        )

    @property
    def joint_limit(self) -> int | None:
        """Joint clusters of more records are not made; None: no limit."""
        if self.max_joint is None and self.chosen_partitioning == "settled":
            return SETTLED_MAX_JOINT * self.k
        return self.max_joint

    @property
    def pass_limit(self) -> int | None:
        """Passes of Refine; None: until nothing changes."""
        if self.max_passes is None and self.chosen_partitioning == "settled":
            return SETTLED_MAX_PASSES
        return self.max_passes

    def public(self) -> dict[str, Any]:
        """The manifest's `parameters`: no path, no seed."""
        policy = self._parsed
        found: dict[str, Any] = {
            "k": self.k,
            "m": self.m,
            "policy": None if policy is None else policy.kind if policy.kind == "file" else str(policy),
            "partitioning": self.chosen_partitioning,
            "max_cluster": self.cluster_limit,
            "max_joint": self.joint_limit,
            "max_passes": self.pass_limit,
            "recut": self.recut,
            "refine": self.refine,
            "nested": self.nested,
            "safe": self.safe,
            "repeats": self.repeats,
            "reconstructions": self.reconstructions,
            "prior": self.prior,
        }
        if self.sensitive:
            found["sensitive"] = sorted(self.sensitive)
            found["diversity"] = self.diversity
        return found

    def protect(
        self,
        cohort: Cohort,
        engine: Engine | None = None,
        *,
        randomness: Randomness | None = None,
        population: Cohort | None = None,
    ) -> Anonymized:
        """Disassociate the cohort's code sets.

        Raises GuaranteeUnreachable with fewer than k records or when `diversity` would empty a record, BadInput for
        a policy or sensitive code that the data lacks.
        """
        from leeward.methods.disassociation.method import protect

        return protect(self, cohort, engine, randomness)


def _whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadInput(f"`{name}` must be a whole number, at least {least}; got {value}.")


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise BadInput(f"`{name}` must be one of {', '.join(known)}; got {value!r}.")
