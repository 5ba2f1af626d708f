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
    """Measure what a release lost against its source, and the risk before it. For the custodian only.

    Parameters
    ----------
    release : Release, str or Path
        The release, or its folder.
    cohort : Cohort
        Source of the release.
    wanted : sequence, optional
        Measures as in a spec, for example `["mre", {"are": {"queries": 500}}]`. By default, the method's usual
        measures and its attack on the release.
    population : Cohort, optional
        The population, for methods that need one.

    Returns
    -------
    dict
        One key for each measure; can be written as JSON.

    Raises
    ------
    BadInput
        An unknown measure or option, or a method without measures.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> result = lw.protect(cohort, lw.Disassociation(k=5, m=2), "release")
    >>> found = lw.measure("release", cohort, ["are"])
    >>> 0 < found["are"]["workloads"][0]["are"] < 1
    True
    """
    release = open_release(release)
    module = module_of(release)
    if module is None:
        if wanted or release.method not in METHODS:
            raise BadInput(f"no measures exist for the method `{release.method}`.")
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
                "message": f"not measured: {', '.join(dict.fromkeys(names))} ({why})",
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
