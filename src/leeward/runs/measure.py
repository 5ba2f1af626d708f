"""Risk before, utility after: figures for the custodian, computed with the source at hand; never for `share/`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from leeward.analysis.figures import plain
from leeward.analysis.itemsets import TooManyItemsets
from leeward.errors import BadInput
from leeward.methods import METHODS
from leeward.release import Release
from leeward.release.spec import measure_of
from leeward.runs.specs import open_release

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort

TRIED = "tried"
"""The measure of every method that has an attack: what it came to."""


def measure(
    release: Release | str | Path,
    cohort: Cohort,
    wanted: Sequence[Any] = (),
    population: Cohort | None = None,
) -> dict[str, Any]:
    """What a release lost, against its source, and the risk before: for the custodian only.

    Parameters
    ----------
    cohort : the source of the release
    wanted : as in a spec's `measure:`, for example `["mre", {"are": {"workload": "random", "queries": 500}}]`;
        empty: the method's `DEFAULTS`, and `tried`, the method's attack on the release
    population : for methods whose model speaks of one (their module has `NEEDS_POPULATION = True`)

    Returns
    -------
    One key a measure, JSON-able.

    Raises
    ------
    BadInput
        Unknown measure or option, or no measures for the method.
    """
    release = open_release(release)
    module = module_of(release)
    if module is None:
        if wanted or release.method not in METHODS:
            raise BadInput(f"there are no measures of releases of the method `{release.method}`.")
        return {}
    asked = measures_asked(release, wanted)
    others = [each for each in asked if TRIED not in each]
    further = {"population": population} if getattr(module, "NEEDS_POPULATION", False) else {}
    figures: dict[str, Any] = module.measure(release, cohort, others, **further) if others else {}
    attack = getattr(METHODS[release.method].reidentification(), "attack", None)
    if attack is not None and (not wanted or len(others) < len(asked)):
        figures[TRIED] = plain(attack(release, cohort, population))
    return figures


def measure_what_runs(
    release: Release, cohort: Cohort, wanted: Sequence[Any] = (), population: Cohort | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The figures, and a notice of each measure that cannot run: a verified release is not given up for a figure. Only
    a measure or option that was asked for by name and does not exist is an error."""
    cannot: tuple[type[Exception], ...] = (MemoryError, ArithmeticError, TooManyItemsets)
    failures: tuple[type[Exception], ...] = cannot if wanted else (*cannot, BadInput)
    try:
        return measure(release, cohort, wanted, population), []
    except failures:
        kept: list[Any] = []
        reasons: dict[str, list[str]] = {}
        for each in measures_asked(release, wanted):
            try:
                measure(release, cohort, [each], population)
                kept.append(each)
            except failures as problem:
                reasons.setdefault(str(problem) or type(problem).__name__, []).extend(each)
        notices = [
            {
                "kind": "measure",
                "message": f"not measured: {', '.join(names)} ({why})",
                "count": 1,
                "rows": [],
            }
            for why, names in reasons.items()
        ]
        return (measure(release, cohort, kept, population) if kept else {}), notices


def measures_asked(release: Release, wanted: Sequence[Any]) -> list[dict[str, dict[str, Any]]]:
    """What was asked for, or else the method's `DEFAULTS`; one mapping a measure."""
    asked = wanted or getattr(module_of(release), "DEFAULTS", ())
    return [{name: options} for name, options in map(measure_of, asked)]


def module_of(release: Release) -> ModuleType | None:
    row = METHODS.get(release.method)
    return None if row is None else row.measures_module()
