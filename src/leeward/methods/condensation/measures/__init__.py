"""What condensation protects and costs: the recipient's models, marginals, conditional privacy, linkage attacks.

Measures: `models` (coefficients before and after, the paper's three metrics, over the repetitions in custody, beside
bootstrap resamples of the original), `marginals`, `correlations`, `survival`, `privacy` (conditional privacy), and
attacks: `exact_times`, `other_times`, `coarse_times`, `membership`, `linkage` (nearest released row from one's own
group) and `closest` (distance to the closest record). Any use: `discernibility`, `generalization`,
`mutual_information`, `range_counts`, `prediction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from leeward.analysis.figures import figures_of
from leeward.cohort.cohort import Cohort
from leeward.methods.condensation.measures import attacks, utility
from leeward.methods.condensation.measures.columns import correlations, marginals, pair_tables
from leeward.methods.condensation.measures.models import models, survival
from leeward.release import Release

MEASURES = (
    models, survival, marginals, correlations, attacks.privacy, attacks.exact_times, attacks.other_times,
    attacks.coarse_times, attacks.membership, attacks.linkage, attacks.closest, utility.discernibility,
    utility.generalization, utility.mutual_information, utility.range_counts, utility.prediction,
)  # fmt: skip
"""Each has its function's name."""

DEFAULTS = tuple(each.__name__ for each in MEASURES)


def measure(release: Release, cohort: Cohort, wanted: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of a condensed or k-anonymous table. BadInput for an unknown measure or option, or a source that is
    not the release's."""
    both = pair_tables(release, cohort.table())
    measures = {each.__name__: partial(each, both) for each in MEASURES}
    return figures_of(release, measures, wanted, apart="models")  # its fits are half of the work
