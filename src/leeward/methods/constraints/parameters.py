"""The parameters of constraints, checked when they are made."""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from leeward.analysis.policies import Policy, parse
from leeward.errors import BadInput

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.engine import Engine
    from leeward.randomness import Randomness
    from leeward.release.content import Anonymized

Algorithm = Literal["cba", "ugaclip", "coat", "apriori"]

GREEDY = ("cba", "ugaclip", "coat")


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Generalization under utility and privacy constraints (CBA, UGACLIP, COAT), and Apriori k^m.

    algorithm
        `cba`: the merge that loses least; `ugaclip`: the rarest code first; `coat`: as `ugaclip`, and says
        which utility constraints lost more codes than `cap`; `apriori`: full-subtree recoding along the
        vocabulary.
    k
        Every privacy constraint that occurs is held by at least k records.
    m
        Protect every set of up to m codes (k^m-anonymity).
    privacy
        In place of m: a file of the code sets to protect, one a line. Nothing else is protected.
    policy
        Utility policy; codes are merged inside its constraints only, codes in none are never merged.
    cap
        COAT: largest share of a utility constraint's codes that may be suppressed.
    weights
        `leaves`: merges are weighed by how far apart codes are in the vocabulary; `none`: all alike.
    mapping
        The `codes.parquet` of an earlier release: apply it to this cohort instead of finding a new one.
        Codes that it does not know are suppressed.
    """

    name: ClassVar[str] = "constraints"

    algorithm: Algorithm = "cba"
    k: int
    m: int | None = None
    privacy: str | None = None
    policy: str | MappingOf[str, Any] | Policy | None = None
    cap: float | None = None
    weights: Literal["none", "leaves"] = "none"
    mapping: str | None = None

    def __post_init__(self) -> None:
        _require(
            self.algorithm in (*GREEDY, "apriori"),
            "algorithm",
            "cba, ugaclip, coat or apriori",
            self.algorithm,
        )
        _require(_whole(self.k) and self.k >= 2, "k", "a whole number of at least 2", self.k)
        if (self.m is None) == (self.privacy is None):
            raise BadInput(
                "give either `m` (protect every set of up to m codes) or `privacy` (a file of code sets)."
            )
        _require(
            self.m is None or (_whole(self.m) and self.m >= 1), "m", "a whole number of at least 1", self.m
        )
        _require(self.cap is None or 0 <= self.cap <= 1, "cap", "a share between 0 and 1", self.cap)
        _require(self.weights in ("none", "leaves"), "weights", "none or leaves", self.weights)
        if self.cap is not None and self.algorithm != "coat":
            raise BadInput(f"`cap` belongs to the algorithm coat; got {self.algorithm}.")
        if self.algorithm == "apriori" and (self.privacy or self.policy or self.weights != "none"):
            raise BadInput(
                "apriori takes `k` and `m` only: it knows no utility policy, no privacy file and no weights."
            )
        if self.mapping is not None and self.weights != "none":
            raise BadInput("`weights` has no meaning with `mapping`: nothing is merged anew.")
        object.__setattr__(self, "policy", parse(self.policy))

    def public(self) -> dict[str, Any]:
        """The manifest's parameters: as given, files by name only."""
        from pathlib import Path

        shown: dict[str, Any] = {
            "algorithm": self.algorithm if self.mapping is None else "mapping",
            "k": self.k,
        }
        if self.m is not None:
            shown["m"] = self.m
        else:
            shown["privacy"] = "listed"
        if isinstance(self.policy, Policy):
            path = self.policy.path
            shown["policy"] = str(self.policy) if path is None else f"file:{Path(path).name}"
        if self.cap is not None:
            shown["cap"] = self.cap
        if self.weights != "none":
            shown["weights"] = self.weights
        return shown

    def protect(
        self,
        cohort: Cohort,
        engine: Engine | None = None,
        *,
        randomness: Randomness | None = None,
        population: Cohort | None = None,
    ) -> Anonymized:
        """Generalize and suppress codes until every privacy constraint is held by 0 or at least k records.

        Raises
        ------
        BadInput
            A vocabulary is missing, a file of constraints or a mapping is wrong, a population was given.
        GuaranteeUnreachable
            Fewer than k records, or an earlier mapping that does not protect this cohort.
        """
        from leeward.methods.constraints.method import protect

        return protect(self, cohort, engine, randomness=randomness, population=population)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _require(holds: bool, name: str, wanted: str, value: object) -> None:
    if not holds:
        raise BadInput(f"`{name}` must be {wanted}; got {value}.")
