"""Risk before, utility after: figures for the custodian, computed with the source at hand; never for
`share/`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from leeward.errors import BadInput

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release import Release

__all__ = ["MEASURES", "measure"]

MEASURES: dict[str, str] = {
    "constraints": "leeward.methods.constraints.measures",
    "censoring": "leeward.methods.censoring.measures",
    "condensation": "leeward.methods.condensation.measures",
    "disassociation": "leeward.methods.disassociation.measures",
    "k-anonymity": "leeward.methods.condensation.measures",
    "trajectories": "leeward.methods.trajectories.measures",
    "visits": "leeward.methods.visits.measures",
}
"""Method of the manifest -> module with `DEFAULTS` and `measure(release, cohort, wanted) -> dict`."""


def measure(
    release: Release, cohort: Cohort, wanted: Sequence[Any] = (), population: Cohort | None = None
) -> dict[str, Any]:
    """Measure a release against its source.

    Parameters
    ----------
    release : Release
    cohort : Cohort
        The source of the release.
    wanted : sequence of str or mapping
        As in a spec's `measure:`, for example `["mre", {"are": {"workload": "random", "queries": 500}}]`;
        empty: the method's `DEFAULTS`.
    population : Cohort, optional
        For methods whose model speaks of one (their module has `NEEDS_POPULATION = True`).

    Returns
    -------
    dict
        JSON-able; one key a measure.

    Raises
    ------
    BadInput
        Unknown measure or option, or no measures for the method.
    """
    if release.method not in MEASURES:
        raise BadInput(
            f"No measures for releases of the method {release.method!r}; known: {', '.join(MEASURES)}."
        )
    module = import_module(MEASURES[release.method])
    asked = [_normal(each) for each in wanted] or [dict(each) for each in module.DEFAULTS]
    further = {"population": population} if getattr(module, "NEEDS_POPULATION", False) else {}
    figures: dict[str, Any] = module.measure(release, cohort, asked, **further)
    return figures


def _normal(each: Any) -> dict[str, dict[str, Any]]:
    """`mre` and `{mre: null}` mean `{mre: {}}`."""
    if isinstance(each, str):
        return {each: {}}
    if isinstance(each, dict) and all(isinstance(o, dict | None) for o in each.values()):
        return {str(name): dict(options or {}) for name, options in each.items()}
    raise BadInput("`measure`: each entry is a name or a mapping of one name to its options.")
