"""The parameters of trajectories, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from leeward.analysis.policies import PolicyLike
from leeward.errors import BadInput
from leeward.methods.trajectories import hierarchies, space

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.engine import Engine
    from leeward.randomness import Randomness
    from leeward.release.content import Anonymized

PARTITION = 65_000
"""Largest part that is clustered at once: N² work a part, so that a million records take minutes."""

RESERVED = ("record", "position", "code", "age")


@dataclass(frozen=True, kw_only=True)
class Trajectories:
    """(code, age) trajectories made k-anonymous (LDA; Tamersoy 2011, chapter IV).

    k
        Every published trajectory is published for at least k patients.
    joining
        How a cluster chooses its next record: `normalised` (default; loses least), `size`, `thesis`.
    weights
        (codes, ages), at least 0, sum 1: which attribute is to lose less.
    hierarchy
        Of the codes: `icd9`, `icd10`, or a CSV with the columns node,parent; default the cohort's vocabulary.
    codes
        The list of codes that the hierarchy spans; default a file's whole hierarchy, or the codes that occur.
    ages
        `0-127` (default), `1-128` (the thesis), `hipaa`, or a CSV.
    odd_ages
        Rows without an age inside the hierarchy: `refuse` them, or `leave out` with their row numbers told.
    improve, improve_rounds, improve_seconds
        Local search after clustering, at most so many rounds and seconds in all, on all threads (what the clock
        cuts short differs from run to run; the custodian is told). Keeps groups diverse.
    partition
        Largest number of records clustered at once; 0: all at once.
    payload
        Columns of the patients that ride along unprotected.
    sensitive, sensitive_column, diversity
        No published value is a sensitive code for more than 1 in `diversity` of the codes below it; no value of
        the payload column makes up more than 1 in `diversity` of those published alike.
    policy, widest_age
        A utility policy: codes are generalized together only inside one constraint; no age wider than so many
        years is published.
    """

    name: ClassVar[str] = "trajectories"

    k: int
    joining: Literal["normalised", "size", "thesis"] = "normalised"
    weights: tuple[float, ...] = (0.5, 0.5)
    hierarchy: str | None = None
    codes: tuple[str, ...] = ()
    ages: str = "0-127"
    odd_ages: Literal["refuse", "leave out"] = "refuse"
    improve: bool = False
    improve_rounds: int = 6
    improve_seconds: float = 120.0
    partition: int = PARTITION
    payload: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    sensitive_column: str | None = None
    diversity: int | None = None
    policy: PolicyLike = None
    widest_age: int | None = None

    def __post_init__(self) -> None:
        if self.k < 2:
            raise BadInput(f"`k` must be at least 2; got {self.k}.")
        if self.joining not in ("normalised", "size", "thesis"):
            raise BadInput(f"`joining` must be normalised, size or thesis; got {self.joining}.")
        if len(self.weights) != 2:
            raise BadInput(f"`weights` must be two numbers, of codes and of ages; got {len(self.weights)}.")
        space.exact_weights((float(self.weights[0]), float(self.weights[1])))
        if self.odd_ages not in ("refuse", "leave out"):
            raise BadInput(f"`odd_ages` must be refuse or leave out; got {self.odd_ages}.")
        if self.partition < 0 or 0 < self.partition < 4 * self.k:
            raise BadInput(f"`partition` must be 0 or at least 4k = {4 * self.k}; got {self.partition}.")
        if self.improve_rounds < 1 or self.improve_seconds <= 0:
            raise BadInput("`improve_rounds` must be at least 1 and `improve_seconds` above 0.")
        if (self.diversity is None) != (not self.sensitive and self.sensitive_column is None):
            raise BadInput("`diversity` goes with `sensitive` or `sensitive_column`; give both or neither.")
        if self.diversity is not None and not self.diversity >= 2:
            raise BadInput(f"`diversity` must be at least 2; got {self.diversity}.")
        if self.diversity is not None and self.sensitive_column is not None and self.diversity > self.k:
            raise BadInput(f"`diversity` must be at most k = {self.k} for a column; got {self.diversity}.")
        if self.sensitive_column is not None and self.sensitive_column not in self.payload:
            raise BadInput("`sensitive_column` must be one of the `payload` columns.")
        if self.widest_age is not None and self.widest_age < 1:
            raise BadInput(f"`widest_age` must be at least 1 year; got {self.widest_age}.")
        if any(name in RESERVED for name in self.payload):
            raise BadInput(f"`payload`: a column cannot be called {', '.join(RESERVED)}.")

    def public(self) -> dict[str, Any]:
        """The manifest's parameters: as given, nothing that was found in the data."""
        shown: dict[str, Any] = {"k": self.k, "joining": self.joining, "weights": list(self.weights)}
        shown |= {"ages": self.ages if "-" in self.ages or self.ages == "hipaa" else "custom"}
        shown |= {"hierarchy": self.hierarchy if hierarchies.is_built_in(self.hierarchy) else "custom"}
        for name in ("codes", "payload", "sensitive"):
            if getattr(self, name):
                shown[name] = list(getattr(self, name))
        for name in ("sensitive_column", "diversity", "widest_age"):
            if getattr(self, name) is not None:
                shown[name] = getattr(self, name)
        return shown

    def protect(
        self,
        cohort: Cohort,
        engine: Engine | None = None,
        *,
        randomness: Randomness | None = None,
        population: Cohort | None = None,
    ) -> Anonymized:
        """Cluster the cohort's trajectories and publish each cluster as one trajectory.

        Raises
        ------
        BadInput
            No ages, odd ages (`odd_ages: refuse`), codes that the hierarchy lacks, fewer than k patients.
        GuaranteeUnreachable
            A sensitive value is too frequent for the diversity asked.
        """
        from leeward.methods.trajectories.method import protect

        return protect(self, cohort, engine, randomness=randomness, population=population)
