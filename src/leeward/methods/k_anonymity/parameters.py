"""The parameters of k-anonymity of tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from leeward.fields import Parameter
from leeward.methods.base import Parameters


@dataclass(frozen=True, kw_only=True)
class KAnonymity(Parameters):
    """k-anonymity of a table: in Mondrian groups, quasi-identifiers take the group's typical value.

    It stands in for the commercial tool that Gal et al. (2014) compare with.

    Examples
    --------
    >>> import leeward as lw
    >>> import polars as pl
    >>> rows = pl.DataFrame({"age": [30 + n % 50 for n in range(200)], "sex": ["f", "m"] * 100})
    >>> cohort = lw.read(rows, format="table")
    >>> result = lw.protect(cohort, lw.KAnonymity(k=10, quasi_identifiers=("age", "sex")), "release")
    >>> result.verification.passed
    True
    """

    name: ClassVar[str] = "k-anonymity"

    k: Annotated[int, Parameter("Minimum number of rows that agree on all quasi-identifiers.", ge=2)]
    quasi_identifiers: Annotated[
        tuple[str, ...],
        Parameter(
            "Columns that an attacker may know.",
            default="all columns",
            metavar="COL[,COL…]",
            shown="always",
            found=True,
        ),
    ] = ()
    plan: Annotated[
        tuple[Any, ...],
        Parameter(
            "The recipient's regression models, as in a spec: their events are treated as levels.",
            metavar="FILE.yaml",
        ),
    ] = field(default=(), hash=False)

    def rules(self) -> None:
        if self.plan:
            from leeward.analysis.plan import models_of

            object.__setattr__(self, "plan", tuple(model.to_json() for model in models_of(self.plan)))
