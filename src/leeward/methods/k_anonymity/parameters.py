"""The parameters of k-anonymity, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from leeward.analysis.plan import models_of
from leeward.errors import BadInput

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.engine import Engine
    from leeward.randomness import Randomness
    from leeward.release.content import Anonymized


@dataclass(frozen=True, kw_only=True)
class KAnonymity:
    """k-anonymity of a table (a stand-in for the commercial tool of Gal et al. 2014).

    k
        The least number of rows that agree on all quasi-identifiers.
    quasi_identifiers
        The columns that an attacker may know; left out: all columns.
    plan
        The recipient's models, as in a spec's `plan:`: their events are levels, whatever they are written as.
    """

    name: ClassVar[str] = "k-anonymity"

    k: int
    quasi_identifiers: tuple[str, ...] = ()
    plan: tuple[Any, ...] = field(default=(), hash=False)

    def __post_init__(self) -> None:
        if self.k < 2:
            raise BadInput(f"`k` must be at least 2; got {self.k}.")
        given = self.quasi_identifiers
        object.__setattr__(self, "quasi_identifiers", (given,) if isinstance(given, str) else tuple(given))
        object.__setattr__(self, "plan", tuple(model.to_json() for model in models_of(self.plan)))

    def protect(
        self,
        cohort: Cohort,
        engine: Engine | None = None,
        *,
        randomness: Randomness | None = None,
        population: Cohort | None = None,
    ) -> Anonymized:
        """Generalize the quasi-identifiers to group values: means of numbers, medians of ordered levels, modes.

        Raises
        ------
        BadInput
            An unknown quasi-identifier.
        GuaranteeUnreachable
            Fewer than k rows.
        """
        from leeward.methods.k_anonymity.method import protect

        return protect(self, cohort, engine, randomness=randomness, population=population)
