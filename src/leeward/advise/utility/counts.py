"""Counts, prevalences and questions: the share of them that a release gives within the accepted error.

The floor is the same share in bootstrap resamples of the original, exactly: a count of c among n patients is
Binomial(n, c/n) in a resample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leeward.advise.plan import Counts, Query, Within
from leeward.advise.utility.presence import Counter
from leeward.advise.utility.verdicts import Kept, judge
from leeward.analysis.itemsets import mine
from leeward.analysis.policies import constraints, parse
from leeward.analysis.workloads import matching_records
from leeward.arrays import Float64s
from leeward.randomness import Randomness

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.cohort.lenses.code_sets import CodeSets

MOST = 1_000
"""Sets of codes or questions of a line that are counted; of more an even sample, always the same."""

SEED = 20261122
FIGURE = "share of the counts within the accepted error"


@dataclass(frozen=True)
class Asked:
    """The counts of a line, with the truth of the source and the floor.

    codes : what each counts. any : whether one of the codes is enough (a group), or all are needed (a set).
    """

    line: Counts | Query
    codes: list[list[str]]
    any: bool
    true: Float64s
    floor: float | None


def ask(line: Counts | Query, cohort: Cohort) -> Asked:
    """The counts of a line in its cohort: those of at least `from` patients."""
    sets, groups = cohort.code_sets(), False
    if isinstance(line, Query):
        codes, true = _questions(sets, line)
    elif line.together > 1:
        codes, true = _frequent(sets, line.together, line.least, MOST)
    else:
        (codes, true), groups = _groups(sets, line, cohort.vocabulary), True
    return Asked(line, codes, groups, true, floor_of(true, len(sets), line.accepted))


def answer(asked: Asked, counter: Counter | None) -> Kept:
    """How many of the counts come within the accepted error from a release."""
    if counter is None:
        return judge(asked.line, FIGURE, None, asked.floor, reason="the release has no codes to count")
    if not len(asked.true):
        return judge(asked.line, FIGURE, None, None, reason="no count of the source is large enough")
    found = (counter.any_of if asked.any else counter.all_of)(asked.codes)
    errors = np.abs(found - asked.true)
    detail = {
        "counts": len(asked.true),
        "average_relative_error": float(np.mean(errors / asked.true)),
        "median_relative_error": float(np.median(errors / asked.true)),
    }
    within = np.mean(errors <= _limits(asked.true, asked.line.accepted) + 1e-9)
    return judge(asked.line, FIGURE, float(within), asked.floor, detail=detail)


def _limits(true: Float64s, accepted: Within) -> Float64s:
    return np.array([accepted.of(count) for count in true])


def floor_of(true: Float64s, n: int, accepted: Within) -> float | None:
    """The mean probability that a resample's count is within the accepted error."""
    if not len(true):
        return None
    limits = np.floor(_limits(true, accepted) + 1e-9)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])  # logarithms

    def within(count: float, limit: float) -> float:
        if count in (0, n):
            return 1.0
        near = np.arange(max(0, count - limit), min(n, count + limit) + 1, dtype=np.int64)
        chosen = factorials[n] - factorials[near] - factorials[n - near]
        return float(np.exp(chosen + near * np.log(count / n) + (n - near) * np.log1p(-count / n)).sum())

    return float(np.mean([within(*each) for each in zip(true, limits, strict=True)]))


def _groups(sets: CodeSets, line: Counts, vocabulary: str | None) -> tuple[list[list[str]], Float64s]:
    """Codes, or groups of a level, of at least `from` patients, with their counts."""
    parsed = parse(line.of) if isinstance(line.of, str) and line.of != "codes" else None
    if parsed is not None:
        members = constraints(parsed, sets, vocabulary).members()
        groups = [[sets.codes[int(c)] for c in each] for each in members]
        true = np.asarray(matching_records(sets, groups), np.float64)
    else:
        groups = [[code] for code in (sets.codes if line.of == "codes" else line.of)]
        supports = dict(zip(sets.codes, sets.supports().tolist(), strict=True))
        true = np.array([supports.get(code, 0) for (code,) in groups], np.float64)
    large = np.flatnonzero(true >= line.least)
    return [groups[i] for i in large], true[large]


def _questions(sets: CodeSets, line: Query) -> tuple[list[list[str]], Float64s]:
    """Single codes and pairs of at least `from` patients, half and half where there are so many."""
    most = min(line.questions, MOST)
    pairs, of_pairs = _frequent(sets, 2, line.least, most // 2)
    singles, of_singles = _frequent(sets, 1, line.least, most - len(pairs))
    return [*singles, *pairs], np.concatenate([of_singles, of_pairs])


def _frequent(sets: CodeSets, size: int, least: int, most: int) -> tuple[list[list[str]], Float64s]:
    """Sets of `size` codes of at least `least` patients, an even sample of `most`, with their counts."""
    found = mine(sets, least, size)
    of_size = np.flatnonzero(np.diff(found.offsets) == size)
    if len(of_size) > most:
        stream = Randomness.of(SEED).stream("counts of a plan", size)
        of_size = np.sort(stream.permutation(of_size)[:most])
    items = (found.items[found.offsets[i] : found.offsets[i + 1]] for i in of_size)
    queries = [[sets.codes[int(c)] for c in each] for each in items]
    return queries, np.asarray(found.supports[of_size], np.float64)
