"""What condensation protects and costs: the recipient's models, marginals, conditional privacy, linkage attacks.

Measures: `models` (coefficients before and after, the paper's three metrics, over the repetitions in custody, beside
bootstrap resamples of the original), `marginals`, `correlations`, `survival`, `privacy` (conditional privacy), and
attacks: `exact_times`, `other_times`, `coarse_times`, `membership`, `linkage` (nearest released row from one's own
group) and `closest` (distance to the closest record).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leeward.analysis.figures import Figures, check_options
from leeward.cohort.cohort import Cohort
from leeward.engine import beside
from leeward.errors import BadInput
from leeward.methods.condensation.measures.attacks import (
    closest,
    coarse_times,
    exact_times,
    linkage,
    other_times,
)
from leeward.methods.condensation.measures.both import both_of
from leeward.methods.condensation.measures.columns import correlations, marginals
from leeward.methods.condensation.measures.membership import membership
from leeward.methods.condensation.measures.models import models, survival
from leeward.methods.condensation.measures.privacy import privacy
from leeward.release import Release

DEFAULTS: tuple[dict[str, dict[str, Any]], ...] = (
    {"models": {}},
    {"survival": {}},
    {"marginals": {}},
    {"correlations": {}},
    {"privacy": {}},
    {"exact_times": {}},
    {"other_times": {}},
    {"coarse_times": {}},
    {"membership": {}},
    {"linkage": {}},
    {"closest": {}},
)
MEASURES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "models": (models, ("bootstrap", "most_rows")),
    "survival": (survival, ("points",)),
    "marginals": (marginals, ()),
    "correlations": (correlations, ()),
    "privacy": (privacy, ("bins", "permutations")),
    "exact_times": (exact_times, ("sample",)),
    "other_times": (other_times, ()),
    "coarse_times": (coarse_times, ()),
    "membership": (membership, ("most_rows", "sample")),
    "linkage": (linkage, ("sample",)),
    "closest": (closest, ("sample",)),
}
"""Measure -> its function and its options."""


def measure(release: Release, cohort: Cohort, wanted: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of a condensed or k-anonymous table.

    Raises
    ------
    BadInput
        An unknown measure or option, or a source that is not the release's.
    """
    asked = {name: options for each in wanted for name, options in each.items()}
    for name, options in asked.items():
        _check_options(name, options)
    both = both_of(release, cohort)
    with beside() as other:  # the models' fits, half of the work; the rest shares its dummies
        fitted = {
            name: other.submit(models, both, **options) for name, options in asked.items() if name == "models"
        }
        figures = {
            name: MEASURES[name][0](both, **options) for name, options in asked.items() if name not in fitted
        }
        figures |= {name: later.result() for name, later in fitted.items()}
    return {name: _plain(figures[name]) for name in asked if figures[name] is not None}


def _check_options(name: str, options: dict[str, Any]) -> None:
    if name not in MEASURES:
        raise BadInput(f"`measure`: no measure `{name}` for tables; known: {', '.join(MEASURES)}.")
    check_options(name, options, MEASURES[name][1])


def _plain(found: Figures | tuple[Figures, ...]) -> Any:
    return found.to_json() if isinstance(found, Figures) else [each.to_json() for each in found]
