"""Codes by age: how well a release counts patients with sets of (code, age), beside resamples of the original."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leeward.advise.plan import Sequences
from leeward.advise.utility.verdicts import Kept, judge

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release import Release

FIGURE = "1 - average relative error of the counts, 0 at least"
NORMAL_MEAN = 0.7978845608028654
"""E|z| of a standard normal z, the square root of 2/pi."""


def compare(line: Sequences, release: Release, cohort: Cohort) -> Kept:
    """AvgRE of all sets of pairs that the line's share of the patients has (Tamersoy 2011, IV.4).

    The floor is that of a resample at the least frequent set asked for: its count c of n has a mean absolute error of
    sqrt(2/pi c (1 - c/n)).
    """
    if release.method != "trajectories":
        return judge(line, FIGURE, None, None, reason="the release has no ages beside its codes")
    from leeward.methods.trajectories.measures import avgre, pair_records

    found = avgre(pair_records(release, cohort), line.min_support)
    if found["avgre"] is None:
        return judge(line, FIGURE, None, None, reason="no set of codes and ages is so frequent")
    count = line.min_support * release.records
    error = NORMAL_MEAN * ((1 - line.min_support) / count) ** 0.5
    detail = {
        "sets": found["queries"],
        "average_relative_error": found["avgre"],
        "median_relative_error": found["median"],
    }
    return judge(line, FIGURE, max(0.0, 1 - found["avgre"]), max(0.0, 1 - error), detail=detail)
