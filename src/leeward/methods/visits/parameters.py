"""The parameters of visits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from leeward.errors import BadInput
from leeward.fields import Parameter
from leeward.methods.base import POLICIES_SHOWN, PolicyLike
from leeward.methods.demographics import WithRecoding


@dataclass(frozen=True, kw_only=True)
class Visits(WithRecoding):
    """Codes of a population's visits, merged and suppressed until k patients share them (Heatherly et al. 2013).

    Examples
    --------
    >>> import leeward as lw
    >>> claims = lw.synth.write_claims("claims.csv", patients=300, codes=100, seed=1)
    >>> codes = [f"diag_{n}" for n in range(1, 11)]
    >>> columns = {"code": codes, "visit": "claim", "age": "age", "patients": ["sex"]}
    >>> cohort = lw.read("claims.csv", columns=columns)
    >>> result = lw.protect(cohort, lw.Visits(k=5), "release")
    >>> result.release.records
    300
    """

    name: ClassVar[str] = "visits"

    k: Annotated[int, Parameter("Minimum number of patients who share what an attacker may know.", ge=2)]
    level: Annotated[
        Literal["code", "codes", "containment", "visit"],
        Parameter(
            "What k patients share. visit: exactly the set of codes of each visit. containment: the set within the "
            "union of a patient's visits (needs `merge_visits`). codes: any `m` codes of a visit. code: each code.",
            shown="always",
        ),
    ] = "visit"
    m: Annotated[
        int,
        Parameter(
            "Number of codes of one visit that an attacker may know, for `level` codes.",
            ge=2,
            shown="always",
            when=("level", "codes"),
        ),
    ] = 2
    policy: Annotated[
        PolicyLike,
        Parameter(
            "Which codes may be merged: a utility policy, phecode, or none.",
            metavar="hierarchy:1|phecode[:FILE]|file:PATH|none",
            shown="always",
            form=rf"{POLICIES_SHOWN}|phecode(:[^/\\]+)?",
        ),
    ] = field(default="hierarchy:1", hash=False)
    vocabulary: Annotated[str | None, Parameter("The cohort's vocabulary.", form=r"[^/\\]+", found=True)] = (
        field(default=None, init=False)
    )
    key: Annotated[
        Literal["absolute", "relative"],
        Parameter(
            "Which code to delete first from a rare set: the one that the fewest patients lose (absolute), "
            "or that the smallest share of its patients loses (relative, keeps more distinct codes).",
            flag="--delete-first",
            shown="always",
            when=("level", "visit"),
        ),
    ] = "absolute"
    enforce: Annotated[
        Literal["delete", "generalize"],
        Parameter(
            "What to do with rare sets: delete codes, or generalize them first, to their chapter.",
            shown="always",
            when=("level", "visit"),
        ),
    ] = "delete"
    rescue: Annotated[
        bool, Parameter("Merge codes that stay rare into the least frequent code of their group.")
    ] = False
    merge_visits: Annotated[bool, Parameter("One set of codes per patient instead of one per visit.")] = False
    inherited: ClassVar[None]
    payload: Annotated[
        tuple[str, ...], Parameter("Columns of the patients to release unprotected.", metavar="COL[,COL…]")
    ] = ()
    extract: Annotated[bool, Parameter("A cohort drawn from a release of a population.", found=True)] = field(
        default=False, init=False
    )
    population: Annotated[
        int,
        Parameter("Number of its patients.", ge=2, shown="always", when=("extract", True), found=True),
    ] = field(default=0, init=False)
    membership_is_secret: Annotated[
        str | None,
        Parameter(
            "Why nobody knows who is in the cohort.", form=r"\S[\s\S]*", when=("extract", True), found=True
        ),
    ] = field(default=None, init=False)

    def can_store(self) -> bool:
        return not (self.demographics or self.payload)

    def rules(self) -> None:
        from leeward.methods.visits.bins import check_policy

        super().rules()
        if self.level == "containment" and not self.merge_visits:
            raise BadInput(
                "`level` containment protects nobody if visits are separate: only one patient may have a "
                "visit's exact set. Add `merge_visits`, or use `level` visit."
            )
        if self.enforce == "generalize" and self.level != "visit":
            raise BadInput("`enforce` generalize is only for `level` visit; leave it out.")
        object.__setattr__(self, "policy", check_policy(self.policy))
