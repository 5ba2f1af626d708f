"""The parameters of censoring, checked when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from leeward.errors import BadInput

if TYPE_CHECKING:
    from pathlib import Path

    from leeward.cohort.cohort import Cohort
    from leeward.engine import Engine
    from leeward.randomness import Randomness
    from leeward.release.content import Anonymized

MOST_MENTIONS = 65_535


@dataclass(frozen=True, kw_only=True)
class Censoring:
    """Repeated codes censored to a k-map of a population (Tamersoy 2011, chapter III).

    k
        Every released record is contained in at least k records of the population.
    caps
        The most mentions of each code that a record may keep, by code.
    cap
        The same for every code that `caps` does not name. Neither given: the highest count in the sample. `caps` alone:
        other codes are censored altogether, with a notice.
    scope
        `global`: Greedy Code Censoring, caps that fall for all records alike. `record`: every record on its own keeps
        the largest part that k people share (ours).
    payload
        Columns of the sample's patients that ride along unprotected.
    """

    name: ClassVar[str] = "censoring"

    k: int
    caps: Mapping[str, int] | None = field(default=None, hash=False)
    cap: int | None = None
    scope: Literal["global", "record"] = "global"
    payload: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.k < 2:
            raise BadInput(f"`k` must be at least 2; got {self.k}.")
        if self.cap is not None and not 1 <= self.cap <= MOST_MENTIONS:
            raise BadInput(f"`cap` must be between 1 and {MOST_MENTIONS:,}; got {self.cap}.")
        if self.scope not in ("global", "record"):
            raise BadInput(f"`scope` must be global or record; got {self.scope}.")
        object.__setattr__(
            self, "payload", (self.payload,) if isinstance(self.payload, str) else tuple(self.payload)
        )
        for code, cap in (self.caps or {}).items():
            if not isinstance(code, str):
                raise BadInput('`caps`: codes must be text; quote them, as in `{"250": 2}`.')
            if not isinstance(cap, int) or isinstance(cap, bool) or not 0 <= cap <= MOST_MENTIONS:
                raise BadInput(f"`caps`: every cap must be a whole number from 0 to {MOST_MENTIONS:,}.")

    def public(self) -> dict[str, Any]:
        """The manifest's parameters: as given, nothing that was found in the data."""
        shown: dict[str, Any] = {"k": self.k, "scope": self.scope}
        if self.cap is not None:
            shown["cap"] = self.cap
        if self.caps is not None:
            shown["caps"] = dict(sorted(self.caps.items()))
        if self.payload:
            shown["payload"] = list(self.payload)
        return shown

    def protect(
        self,
        cohort: Cohort,
        engine: Engine | None = None,
        *,
        randomness: Randomness | None = None,
        population: Cohort | str | Path | None = None,
    ) -> Anonymized:
        """Censor the sample `cohort` until every record is contained in at least k records of `population`.

        Raises
        ------
        BadInput
            No population, a record of the sample that no population record contains, a patient who stands twice in
            the population, an unknown payload column.
        GuaranteeUnreachable
            k is above the number of people in the population.
        """
        from leeward.methods.censoring.method import protect

        return protect(self, cohort, engine, randomness=randomness, population=population)
