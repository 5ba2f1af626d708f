"""Counts, prevalences and questions: the share of them that a release gives within the accepted error.

The floor is the same share in bootstrap resamples of the original, exactly: a count of c among n patients is
Binomial(n, c/n) in a resample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leeward.advise.plan import Counted, Counts, Query, Within
from leeward.advise.utility.presence import Counter, sets_as_codes
from leeward.advise.utility.verdicts import Kept, judge
from leeward.analysis.itemsets import mine
from leeward.analysis.policies import constraints, parse
from leeward.analysis.workloads import matching_records
from leeward.arrays import AnyArray, Bools, Float64s
from leeward.errors import BadInput
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

    line: Counted
    codes: list[list[str]]
    any: bool
    true: Float64s
    floor: float | None
    accepted: Within


def ask(line: Counted, cohort: Cohort) -> Asked:
    """The counts of a line in its cohort: those of at least `from` patients."""
    sets = cohort.code_sets()
    if isinstance(line, Query):
        codes, true = _questions(sets, line)
        return _question(line, codes, False, true, len(sets))
    if isinstance(line.of, str) and line.of != "codes":
        parsed = parse(line.of)
        if parsed is None:
            raise BadInput(f"`{line.kind}.of`: {line.of} names no groups.")
        found = constraints(parsed, sets, cohort.vocabulary)
        groups = [[sets.codes[int(c)] for c in members] for members in found.members()]
        true = np.asarray(matching_records(sets, groups), np.float64)
        return _enough(line, groups, True, true, len(sets))
    if line.together == 1:
        wanted = sets.codes if line.of == "codes" else line.of
        supports = dict(zip(sets.codes, sets.supports().tolist(), strict=True))
        true = np.array([supports.get(code, 0) for code in wanted], np.float64)
        return _enough(line, [[code] for code in wanted], True, true, len(sets))
    queries, true = _frequent(sets, line.together, line.least, MOST)
    return _question(line, sets_as_codes(sets, queries), False, true, len(sets))


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
    return judge(
        asked.line,
        FIGURE,
        float(np.mean(_within(errors, asked.true, asked.accepted))),
        asked.floor,
        detail=detail,
    )


def _within(errors: Float64s, true: Float64s, accepted: Within) -> Bools:
    limits = np.array([accepted.of(count) for count in true])
    return np.asarray(errors <= limits + 1e-9)


def _enough(line: Counts, codes: list[list[str]], any_of: bool, true: Float64s, n: int) -> Asked:
    large = np.flatnonzero(true >= line.least)
    return _question(line, [codes[int(i)] for i in large], any_of, true[large], n)


def _question(line: Counted, codes: list[list[str]], any_of: bool, true: Float64s, n: int) -> Asked:
    return Asked(line, codes, any_of, true, floor_of(true, n, line.accepted), line.accepted)


def floor_of(true: Float64s, n: int, accepted: Within) -> float | None:
    """The mean probability that a resample's count is within the accepted error."""
    from scipy.stats import binom

    if not len(true):
        return None
    limits = np.floor(np.array([accepted.of(count) for count in true]) + 1e-9)
    share = true / n
    return float(np.mean(binom.cdf(true + limits, n, share) - binom.cdf(true - limits - 1, n, share)))


def _questions(sets: CodeSets, line: Query) -> tuple[list[list[str]], Float64s]:
    """Single codes and pairs of at least `from` patients, half and half where there are so many."""
    most = min(line.questions, MOST)
    pairs, of_pairs = _frequent(sets, 2, line.least, most // 2)
    singles, of_singles = _frequent(sets, 1, line.least, most - len(pairs))
    return sets_as_codes(sets, [*singles, *pairs]), np.concatenate([of_singles, of_pairs])


def _frequent(sets: CodeSets, size: int, least: int, most: int) -> tuple[list[AnyArray], Float64s]:
    """Sets of `size` codes of at least `least` patients, an even sample of `most`, with their counts."""
    found = mine(sets, least, size)
    lengths = np.diff(found.offsets)
    of_size = np.flatnonzero(lengths == size)
    if len(of_size) > most:
        stream = Randomness.of(SEED).stream("counts of a plan", size)
        of_size = np.sort(stream.permutation(of_size)[:most])
    queries = [found.items[found.offsets[i] : found.offsets[i + 1]] for i in of_size]
    return queries, np.asarray(found.supports[of_size], np.float64)
