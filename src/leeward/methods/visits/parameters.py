"""The parameters of visits, checked when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from leeward.analysis.policies import Policy
from leeward.errors import BadInput
from leeward.methods.visits.groups import PHECODE, checked

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.engine import Engine
    from leeward.randomness import Randomness
    from leeward.release.content import Anonymized

LEVELS = ("code", "containment", "visit")
KEYS = ("absolute", "relative")


@dataclass(frozen=True, kw_only=True)
class Visits:
    """Codes of a population's visits, merged and suppressed until k patients share them (Heatherly et al. 2013).

    k
        At least k patients share what an attacker may know.
    level
        `visit`: every released visit set is held exactly by k patients (the paper's privacy section). `containment`:
        every visit set is part of what k patients have over all their visits (its overview); only with `merge_visits`.
        `code`: every code occurs in k patients (all that its procedure enforces).
    policy
        Which codes may merge: a utility policy (`hierarchy:1`), `phecode`, `phecode:FILE`, or `none`.
    key
        Which code leaves a set that too few hold: after the violations that are left, the one that the fewest patients
        lose altogether (`absolute`) or the smallest share of its patients (`relative`: keeps more distinct codes).
    enforce
        `delete`, or `generalize`: a code climbs to its node of hierarchy level `climb_to` before it is deleted.
    rescue
        Codes that stay below k after merging join the least frequent code of their group, instead of being lost.
    merge_visits
        One set a patient instead of visits.
    payload
        Columns of the patients that ride along unprotected.
    """

    name: ClassVar[str] = "visits"

    k: int
    level: Literal["code", "containment", "visit"] = "visit"
    policy: str | Mapping[str, Any] | Policy | None = field(default="hierarchy:1", hash=False)
    key: Literal["absolute", "relative"] = "absolute"
    enforce: Literal["delete", "generalize"] = "delete"
    climb_to: int = 3
    rescue: bool = False
    merge_visits: bool = False
    payload: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 2:
            raise BadInput(f"`k` must be at least 2; got {self.k}.")
        for name, choices in (("level", LEVELS), ("key", KEYS), ("enforce", ("delete", "generalize"))):
            if getattr(self, name) not in choices:
                raise BadInput(f"`{name}` must be one of {', '.join(choices)}; got {getattr(self, name)}.")
        if self.level == "containment" and not self.merge_visits:
            raise BadInput(
                "`level: containment` protects nobody while visits stay apart: a visit's set may still be held exactly "
                "by one patient. Add `merge_visits: true`, or take `level: visit`."
            )
        if self.enforce == "generalize" and self.level != "visit":
            raise BadInput("`enforce: generalize` is for `level: visit` only; leave it out.")
        if self.climb_to < 1:
            raise BadInput(f"`climb_to` must be at least 1; got {self.climb_to}.")
        object.__setattr__(self, "policy", checked(self.policy))
        given = (self.payload,) if isinstance(self.payload, str) else tuple(self.payload)
        object.__setattr__(self, "payload", given)

    def public(self, vocabulary: str | None) -> dict[str, Any]:
        """The manifest's parameters: as given, nothing that was found in the data; files by name, without a path."""
        shown: dict[str, Any] = {"k": self.k, "level": self.level, "policy": self._policy_text()}
        if vocabulary is not None:
            shown["vocabulary"] = Path(vocabulary).name
        if self.level == "visit":
            shown |= {"key": self.key, "enforce": self.enforce}
        if self.enforce == "generalize":
            shown["climb_to"] = self.climb_to
        shown |= {name: True for name in ("rescue", "merge_visits") if getattr(self, name)}
        if self.payload:
            shown["payload"] = list(self.payload)
        return shown

    def _policy_text(self) -> str:
        """The policy with file names only: a path is the custodian's."""
        kind, _, value = str(self.policy or "none").partition(":")
        return (
            f"{kind}:{Path(value).name}"
            if kind in (PHECODE, "file") and value
            else str(self.policy or "none")
        )

    def protect(
        self,
        cohort: Cohort,
        engine: Engine | None = None,
        *,
        randomness: Randomness | None = None,
        population: Cohort | None = None,
    ) -> Anonymized:
        """Anonymize all patients of `cohort`; extracts of the release are drawn by `leeward cohort`.

        Raises
        ------
        BadInput
            A population (it is the cohort itself here), no visits, an unknown payload column, a policy that does not
            fit the codes.
        GuaranteeUnreachable
            Fewer than k patients.
        """
        from leeward.methods.visits.method import protect

        return protect(self, cohort, engine, randomness=randomness, population=population)
