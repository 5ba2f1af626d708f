"""The parameters of k-anonymity of tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from leeward.errors import BadInput
from leeward.fields import BadParameter, Parameter
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
            default="all columns that are not sensitive",
            metavar="COL[,COL…]",
            shown="always",
            found=True,
        ),
    ] = ()
    sensitive_columns: Annotated[
        Mapping[str, int] | None,
        Parameter(
            "Columns that attackers do not know and must not learn. L: at most 1 in L of the rows that agree on all "
            "quasi-identifiers may have the same value.",
            ge=2,
            metavar="COL:L[,COL:L…]",
        ),
    ] = field(default=None, hash=False)
    closeness: Annotated[
        Mapping[str, float] | None,
        Parameter(
            "Sensitive columns whose values are at most T from the whole table's in the rows that agree on all "
            "quasi-identifiers (t-closeness).",
            gt=0,
            lt=1,
            metavar="COL:T[,COL:T…]",
        ),
    ] = field(default=None, hash=False)
    plan: Annotated[
        tuple[Any, ...],
        Parameter(
            "The recipient's regression models, as in a spec: their events are treated as levels.",
            metavar="FILE.yaml",
        ),
    ] = field(default=(), hash=False)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The sensitive columns."""
        return tuple(dict.fromkeys([*(self.sensitive_columns or {}), *(self.closeness or {})]))

    def rules(self) -> None:
        for given, limit in (("sensitive_columns", "L"), ("closeness", "T")):
            if getattr(self, given) == {}:
                raise BadParameter(given, f"must name a column with its {limit}; got an empty mapping.")
        both = [name for name in self.unknown if name in self.quasi_identifiers]
        if both:
            raise BadInput(
                f"`{both[0]}` is sensitive and in `quasi_identifiers`: an attacker knows it, or does not. Keep one."
            )
        if self.plan:
            from leeward.analysis.plan import models_of

            object.__setattr__(self, "plan", tuple(model.to_json() for model in models_of(self.plan)))
