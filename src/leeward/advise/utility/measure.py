"""A plan measured: what the source says of each line is found once, and compared with any number of releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leeward.advise.plan import Counts, Line, Phewas, Query, Regression, Sequences
from leeward.advise.utility import counts, models, scans, sequences
from leeward.advise.utility.presence import counter_of
from leeward.advise.utility.verdicts import Kept, judge

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release import Release


@dataclass(frozen=True)
class Prepared:
    """The lines of a plan with what the source says of each."""

    cohort: Cohort
    lines: tuple[Line, ...]
    known: Mapping[int, Any]


def prepare(lines: Sequence[Line], cohort: Cohort) -> Prepared:
    """Counts, fits and scans of the source for each line, with their floors.

    Raises
    ------
    BadInput
        A line that does not fit the cohort: a column that is not there, codes without a vocabulary.
    """
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
    """What a release keeps of each line."""
    found = []
    counter = (
        counter_of(release, prepared.cohort)
        if any(isinstance(e, Counts | Query) for e in prepared.lines)
        else None
    )
    for place, line in enumerate(prepared.lines):
        if isinstance(line, Sequences):
            found.append(sequences.compare(line, release, prepared.cohort))
        elif place not in prepared.known:
            found.append(judge(line, "", None, None, reason="the source has nothing of the kind"))
        elif isinstance(line, Regression):
            found.append(models.compare(prepared.known[place], release))
        elif isinstance(line, Phewas):
            found.append(scans.compare(prepared.known[place], release))
        else:
            found.append(counts.answer(prepared.known[place], counter))
    return tuple(found)
