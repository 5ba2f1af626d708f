"""The parameters of censoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from leeward.fields import Parameter
from leeward.methods.demographics import Hierarchies, WithDemographics

MOST_MENTIONS = 65_535


@dataclass(frozen=True, kw_only=True)
class Censoring(WithDemographics):
    """Repeated codes censored to a k-map of a population (GCCens; Tamersoy 2011, chapter III).

    `protect` needs the `population` that the sample comes from.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> sample = lw.Cohort(events=cohort.events.filter(cohort.events["patient"] <= 100))
    >>> result = lw.protect(sample, lw.Censoring(k=5), "release", population=cohort)
    >>> result.release.records
    100
    """

    name: ClassVar[str] = "censoring"
    ON_ENGINE: ClassVar[str] = "counts of the population, with `scope` global or record and no demographics"

    k: Annotated[
        int,
        Parameter(
            "Minimum number of people of the population whose record contains each released record.", ge=2
        ),
    ]
    scope: Annotated[
        Literal["global", "raise", "record", "groups"],
        Parameter(
            "groups: publish what a group of k people of the population shares; the rule ignores the "
            "sample, so knowing it does not help. global: lower the same caps for all records "
            "(GCCens). raise: raise the same caps one by one as far as possible, which keeps more. "
            "record: keep the largest part of each record that k people share; an attacker who knows "
            "this rule can exploit it.",
            shown="always",
        ),
    ] = "groups"
    cap: Annotated[
        int | None,
        Parameter(
            "Largest number of mentions of a code in a record, for codes without a cap of their own.",
            ge=1,
            le=MOST_MENTIONS,
            default="the highest count in the population (other scopes than groups: in the sample); 0 where `caps` is "
            "given",
            metavar="N",
        ),
    ] = None
    caps: Annotated[
        Mapping[str, Annotated[int, Parameter(ge=0, le=MOST_MENTIONS)]] | None,
        Parameter(
            "Caps of single codes. Without `cap`, codes that are not named are censored completely.",
            metavar="CODE=N[,…]|FILE",
            ascending=True,
        ),
    ] = field(default=None, hash=False)
    inherited: ClassVar[None]
    hierarchies: Hierarchies = field(default=None, hash=False)
    payload: Annotated[
        tuple[str, ...],
        Parameter("Columns of the sample's patients to release unprotected.", metavar="COL[,COL…]"),
    ] = ()

    def can_store(self) -> bool:
        return not self.demographics and not self.payload

    def uses_engine(self, patients: int) -> bool:
        return self.scope in ("global", "record") and not self.demographics
