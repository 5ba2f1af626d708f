"""A plan measured: what the source says of each line is found once, and compared with any number of releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leeward.advise.plan import Counts, Line, Phewas, Query, Regression, Sequences
from leeward.advise.utility import counts, models, scans
from leeward.advise.utility.presence import counter_of
from leeward.advise.utility.verdicts import Kept, judge

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release import Release


SEQUENCES = "1 - average relative error of the counts, 0 at least"
NORMAL_MEAN = 0.7978845608028654
"""E|z| of a standard normal z, the square root of 2/pi."""


@dataclass(frozen=True)
class Prepared:
    cohort: Cohort
    lines: tuple[Line, ...]
    known: Mapping[int, Any]


def prepare(lines: Sequence[Line], cohort: Cohort) -> Prepared:
    """Counts, fits and scans of the source for each line, with their floors. BadInput for a line that does not fit the
    cohort."""
    known: dict[int, Any] = {}
    for place, line in enumerate(lines):
        if isinstance(line, Counts | Query) and cohort.events is not None:
            known[place] = counts.ask(line, cohort)
        elif isinstance(line, Regression) and cohort.events is None:
            known[place] = models.fit_original(line, cohort)
        elif isinstance(line, Phewas) and cohort.events is not None:
            known[place] = scans.scan_original(line, cohort)
    return Prepared(cohort, tuple(lines), known)


def utility_of(prepared: Prepared, release: Release) -> tuple[Kept, ...]:
    found = []
    counts_any = any(isinstance(each, Counts | Query) for each in prepared.lines)
    counter = counter_of(release, prepared.cohort) if counts_any else None
    for place, line in enumerate(prepared.lines):
        if isinstance(line, Sequences):
            found.append(_compare_sequences(line, release, prepared.cohort))
        elif place not in prepared.known:
            found.append(judge(line, "", None, None, reason="the source has nothing of the kind"))
        elif isinstance(line, Regression):
            found.append(models.compare(prepared.known[place], release))
        elif isinstance(line, Phewas):
            found.append(scans.compare(prepared.known[place], release))
        else:
            found.append(counts.answer(prepared.known[place], counter))
    return tuple(found)


def _compare_sequences(line: Sequences, release: Release, cohort: Cohort) -> Kept:
    """AvgRE of all sets of pairs that the line's share of the patients has (Tamersoy 2011, IV.4).

    The floor is that of a resample at the least frequent set asked for: its count c of n has a mean absolute error of
    sqrt(2/pi c (1 - c/n)).
    """
    if release.method != "trajectories":
        return judge(line, SEQUENCES, None, None, reason="the release has no ages beside its codes")
    from leeward.methods.trajectories.measures import avgre, pair_records

    found = avgre(pair_records(release, cohort), line.min_support)
    if found["avgre"] is None:
        return judge(line, SEQUENCES, None, None, reason="no set of codes and ages is so frequent")
    count = line.min_support * release.records
    error = NORMAL_MEAN * ((1 - line.min_support) / count) ** 0.5
    detail = {
        "sets": found["queries"],
        "average_relative_error": found["avgre"],
        "median_relative_error": found["median"],
    }
    return judge(line, SEQUENCES, max(0.0, 1 - found["avgre"]), max(0.0, 1 - error), detail=detail)
