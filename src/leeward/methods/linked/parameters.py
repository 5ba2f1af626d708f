"""The parameters of linked tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from leeward.errors import did_you_mean
from leeward.fields import BadParameter, Parameter
from leeward.methods.demographics import WithRecoding

VIEWS = (
    "patients+events",
    "patients+visits",
    "patients+visits+events",
    "patients+events+events",
)
"""The joins that can be protected, each with one row of every table that it names."""

ORDER = ("patients", "visits", "events")


@dataclass(frozen=True, kw_only=True)
class Linked(WithRecoding):
    """Tables of patients, visits and codes under one new patient number, k-anonymous in every view.

    A view is a join that an attacker can do: `patients+events` joins a patient's demographics with one code.

    Examples
    --------
    >>> import leeward as lw
    >>> claims = lw.synth.write_claims("claims.csv", patients=300, codes=100, seed=1)
    >>> codes = [f"diag_{n}" for n in range(1, 11)]
    >>> columns = {"code": codes, "visit": "claim", "age": "age", "patients": ["sex"]}
    >>> cohort = lw.read("claims.csv", columns=columns)
    >>> result = lw.protect(cohort, lw.Linked(k=5, demographics=("sex",)), "release")
    >>> result.verification.passed
    True
    """

    name: ClassVar[str] = "linked"
    PARTS: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "patients+visits+events": VIEWS[:2],
        "patients+events+events": VIEWS[:1],
    }
    """Of a view, the views that whoever knows a row of it knows a row of too."""

    k: Annotated[int, Parameter("Minimum number of patients who share every row of a view.", ge=2)]
    views: Annotated[
        tuple[str, ...],
        Parameter(
            "Joins that an attacker can make, each with one row of every table named: patients+events, "
            "patients+visits, patients+visits+events (a code with its day), patients+events+events (two codes).",
            metavar="VIEW[,VIEW…]",
            shown="always",
        ),
    ] = ("patients+events",)
    days: Annotated[
        int | None,
        Parameter(
            "Release the days since the patient's first visit, in steps of this many days. Needs a view "
            "with visits, and dates.",
            ge=1,
            metavar="N",
        ),
    ] = None

    def rules(self) -> None:
        super().rules()
        views = [_in_order(place, view) for place, view in enumerate(self.views, start=1)]
        if not views:
            raise BadParameter("views", f"is empty; name at least one of {', '.join(VIEWS)}.")
        object.__setattr__(self, "views", tuple(view for view in VIEWS if view in views))
        dated = any("visits" in view for view in views)
        if dated and self.days is None:
            raise BadParameter("views", "has a view with visits, which needs `days`, the length of a step.")
        if self.days is not None and not dated:
            raise BadParameter("days", "would be released in no view; add patients+visits to `views`.")

    @property
    def joins(self) -> tuple[str, ...]:
        """The views with their parts: whoever knows a row of a join knows one of each part."""
        wanted = {part for view in self.views for part in (view, *self.PARTS.get(view, ()))}
        return tuple(view for view in VIEWS if view in wanted)


def _in_order(place: int, view: str) -> str:
    named = [table.strip() for table in view.split("+")]
    known = "+".join(sorted(named, key=lambda table: ORDER.index(table) if table in ORDER else len(ORDER)))
    if known not in VIEWS:
        strange = next((table for table in named if table not in ORDER), None)
        hint = f" There is no table `{strange}`.{did_you_mean(strange, ORDER)}" if strange else ""
        raise BadParameter(f"views[{place}]", f"must be one of {', '.join(VIEWS)}.{hint}")
    return known
