"""Risk before, utility after: figures for the custodian, computed with the source at hand; never for
`share/`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leeward.errors import BadInput
from leeward.methods import METHODS

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release import Release


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
    row = METHODS.get(release.method)
    module = None if row is None else row.measures_module()
    if module is None:
        if wanted or row is None:
            raise BadInput(f"there are no measures of releases of the method `{release.method}`.")
        return {}
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
