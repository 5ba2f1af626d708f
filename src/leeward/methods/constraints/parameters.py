"""The parameters of generalization under constraints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from leeward.errors import BadInput
from leeward.fields import Parameter
from leeward.methods.base import POLICIES_SHOWN, PolicyLike
from leeward.methods.demographics import WithRecoding

Algorithm = Literal["cba", "ugaclip", "coat", "apriori"]


@dataclass(frozen=True, kw_only=True)
class Constraints(WithRecoding):
    """Generalization under utility and privacy constraints (CBA, UGACLIP, COAT), and Apriori for k^m-anonymity.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> result = lw.protect(cohort, lw.Constraints(k=5, m=2, policy="hierarchy:1"), "release")
    >>> result.verification.passed
    True
    """

    name: ClassVar[str] = "constraints"
    ON_ENGINE: ClassVar[str] = "counts of code sets"

    algorithm: Annotated[
        Algorithm,
        Parameter(
            "cba: the merge that loses least; ugaclip: the rarest code first; coat: as ugaclip, and list "
            "the constraints that lost more than `cap`; apriori: recode full subtrees of the "
            "vocabulary.",
            shown="always",
            word="mapping",
        ),
    ] = "ugaclip"
    k: Annotated[int, Parameter("Minimum number of records that hold each protected code set.", ge=2)]
    m: Annotated[
        int | None, Parameter("Protect every set of up to m codes (k^m-anonymity).", ge=1, metavar="M")
    ] = None
    privacy: Annotated[
        str | None,
        Parameter(
            "Instead of `m`: a file of the code sets to protect, one per line. Nothing else is protected.",
            metavar="FILE",
            form="listed",
            word="listed",
        ),
    ] = None
    policy: Annotated[
        PolicyLike,
        Parameter(
            "Groups of codes to keep analysable: only codes of one group are merged; codes in no group are "
            "never merged.",
            metavar="hierarchy:1|similarity:10|frequency:0.0125|file:PATH",
            form=POLICIES_SHOWN,
        ),
    ] = field(default=None, hash=False)
    cap: Annotated[
        float | None,
        Parameter(
            "coat: largest share of a utility constraint's codes that may be suppressed.",
            ge=0,
            le=1,
            metavar="SHARE",
            flag="--max-suppressed",
        ),
    ] = None
    weights: Annotated[
        Literal["none", "leaves"],
        Parameter(
            "leaves: merging codes that are far apart in the vocabulary costs more.",
        ),
    ] = "none"
    mapping: Annotated[
        str | None,
        Parameter(
            "codes.parquet of an earlier release: apply it to this cohort. Codes it does not contain are suppressed.",
            metavar="CODES.parquet",
            shown="never",
        ),
    ] = None

    def can_store(self) -> bool:
        return not self.demographics

    def rules(self) -> None:
        super().rules()
        if self.mapping is not None:
            if self.demographics:
                raise BadInput(
                    "`mapping` and `demographics` cannot be combined: each class gets its own labels."
                )
            if self.weights != "none":
                raise BadInput("`weights` has no meaning with `mapping`: no new merges are made.")
        if (self.m is None) == (self.privacy is None):
            raise BadInput(
                "give either `m` (protect every set of up to m codes) or `privacy` (a file of code sets)."
            )
        if self.cap is not None and self.algorithm != "coat":
            raise BadInput(f"`cap` belongs to the algorithm coat; got {self.algorithm}.")
        if self.algorithm == "apriori" and any((self.privacy, self.policy, self.weights != "none")):
            raise BadInput(
                "`algorithm` apriori takes `k` and `m` only: no utility policy, no privacy file and no weights."
            )
        if self.policy is not None:
            from leeward.analysis.policies import parse

            object.__setattr__(self, "policy", parse(self.policy))

    def public(self, **found: Any) -> dict[str, Any]:
        """The public parameters; with a `mapping`, the algorithm is "mapping"."""
        return super().public(**({} if self.mapping is None else {"algorithm": "mapping"}), **found)
