"""Workloads of COUNT queries on code sets, and what methods and reports say of their errors.

W1: the sets of codes that a share of the patients has; W2: sets drawn from random records (Loukides et al. 2014,
section 6.1; docs/methods/disassociation.md#measures).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.itemsets import Itemsets, TooManyItemsets, mine, owners_of
from leeward.arrays import AnyArray, Float64s, Int64s, count_noun, distinct_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.errors import BadInput
from leeward.randomness import Randomness
from leeward.release import Release


def relative_errors(true: Int64s, expected: Float64s) -> Float64s:
    """|estimate - true| / true of every query with a true count above 0."""
    asked = true > 0
    return np.asarray(np.abs(expected[asked] - true[asked]) / true[asked], np.float64)


def average_relative_error(
    true: Int64s,
    expected: Float64s,
    low: Int64s | None = None,
    high: Int64s | None = None,
) -> dict[str, Any]:
    """ARE and what it rests on; queries with a true count of 0 have no relative error and are counted as skipped.
    `outside_bounds`: true counts outside [low, high]; 0 unless the release or its bounds are wrong."""
    errors = relative_errors(true, expected)
    outside = 0 if low is None or high is None else int(((true < low) | (true > high)).sum())
    return {
        "queries": len(errors),
        "skipped": len(true) - len(errors),
        "are": float(errors.mean()) if len(errors) else 0.0,
        "median": float(np.median(errors)) if len(errors) else 0.0,
        "largest": float(errors.max()) if len(errors) else 0.0,
        "outside_bounds": outside,
    }


WORKLOAD_SEED = 20140901
"""W2 and samples are drawn from a fixed stream: the same cohort gives the same queries on every run."""

RANDOM_SIZES = (1, 2, 3, 4, 5)
"""W2: c = 1 … 4 codes and the extension by one more."""

MOST_ITEMSETS = 250_000
"""W1 asks for smaller sets only where more than this many reach the support: a few records that share 30 codes have
2^30 sets in common."""

MOST_QUERIES = 1_000
"""W1 asks for this many of the frequent sets, drawn evenly with a fixed seed, where there are more and nothing else was
said: beyond, the mean error hardly changes and measuring takes longer than protecting."""

MRE_BOUNDS = (-0.24, -0.21, -0.10, -0.05, -0.025, 0.025, 0.05, 0.10, 0.21, 0.24)
"""Ends of the intervals of the paper's Figs. 19 to 21 (those it names: [-24 %, 5 %), [-21 %, -10 %), [-5 %,
5 %), [-2.5 %, 2.5 %]) and their mirror images; beyond them two open ones."""


@dataclass(frozen=True)
class Frequent:
    """W1: the queries, how many itemsets reach the support (more than were drawn, perhaps), and the most codes of a
    set where larger ones were left out because they are too many."""

    queries: list[AnyArray]
    itemsets: int
    largest: int | None = None


def frequent_queries(
    sets: CodeSets,
    min_support: int | float,
    max_size: int | None = None,
    queries: int | None = None,
    *,
    most: int = MOST_ITEMSETS,
) -> Frequent:
    """W1: every set of codes that `min_support` of the records hold, or `queries` of them, drawn evenly. Where more
    than `most` sets reach it, those of the largest number of codes with which they do not; at least single codes."""
    found, largest = _mine_at_most(sets, min_support, max_size, most)
    chosen = np.arange(len(found))
    if queries is not None and queries < len(found):
        stream = Randomness.of(WORKLOAD_SEED).stream("frequent queries")
        chosen = np.sort(stream.permutation(len(found))[:queries])
    listed = [found.items[found.offsets[i] : found.offsets[i + 1]] for i in chosen]
    return Frequent(listed, len(found), largest)


def _mine_at_most(
    sets: CodeSets, min_support: int | float, max_size: int | None, most: int
) -> tuple[Itemsets, int | None]:
    try:
        return mine(sets, min_support, max_size, limit=most), None
    except TooManyItemsets:
        found, size = mine(sets, min_support, 1), 1
    while True:
        try:
            found, size = mine(sets, min_support, size + 1, limit=most), size + 1
        except TooManyItemsets:
            return found, size


def label_of_frequent(min_support: int | float, found: Frequent) -> str:
    share = f"{min_support:,}" if isinstance(min_support, int) else f"{100 * min_support:g} % of the"
    sets = "sets" if found.largest is None else f"sets of up to {found.largest} codes"
    drawn = len(found.queries)
    sample = f" (a sample of {drawn:,} of {found.itemsets:,})" if drawn < found.itemsets else ""
    return f"{sets} that at least {share} patients have{sample}"


def workloads_of(
    sets: CodeSets,
    errors: Callable[[list[AnyArray]], Mapping[str, Any]],
    *,
    workload: str,
    min_support: int | float,
    max_size: int | None,
    queries: int | None,
    chains: int,
) -> list[dict[str, Any]]:
    """W1 (`frequent`) or W2 (`random`, one workload a size from 1 to 5; `chains` records unless `queries` says
    otherwise), each with the `errors` of its queries, and `largest_set` where larger sets were too many. BadInput
    for another name."""
    if workload == "frequent":
        found = frequent_queries(sets, min_support, max_size, MOST_QUERIES if queries is None else queries)
        asked: dict[str, Any] = {
            "name": "frequent",
            "label": label_of_frequent(min_support, found),
            "min_support": min_support,
            "itemsets": found.itemsets,
        }
        largest = {} if found.largest is None else {"largest_set": found.largest}
        return [{**asked, **largest, **errors(found.queries)}]
    if workload != "random":
        raise BadInput(f"`measure: are`: workload {workload!r} is not known; choose `frequent` or `random`.")
    by_size = random_queries(sets, chains if queries is None else queries)
    return [
        {
            "name": "random",
            "label": f"random sets of {count_noun('code', size)}",
            "size": size,
            **errors(drawn),
        }
        for size, drawn in zip(RANDOM_SIZES, by_size, strict=True)
        if len(drawn)
    ]


def random_queries(sets: CodeSets, queries: int) -> list[list[AnyArray]]:
    """W2, one list a size: `queries` random records of two codes or more are drawn, the codes of each
    shuffled, and its first c codes are a set of size c, so that each set of c + 1 extends one of c. Records
    shorter than a size give no set of it."""
    stream = Randomness.of(WORKLOAD_SEED).stream("random queries")
    lengths = sets.lengths()
    able = np.flatnonzero(lengths >= min(2, int(lengths.max(initial=0))))
    chains = [
        stream.permutation(sets.values[sets.offsets[r] : sets.offsets[r + 1]])[: RANDOM_SIZES[-1]]
        for r in stream.choice(able, queries)
    ]
    return [[chain[:size] for chain in chains if len(chain) >= size] for size in RANDOM_SIZES]


def policy_of(release: Release) -> pl.DataFrame | None:
    return release.custody_table("policy")


def constraints_of(policy: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    grouped = policy.select(pl.col("constraint", "code").cast(pl.String))
    grouped = grouped.group_by("constraint", maintain_order=True).agg("code")
    return grouped["constraint"].to_list(), grouped["code"].to_list()


def matching_records(sets: CodeSets, constraints: list[list[str]]) -> AnyArray:
    """Number of records with at least one code of each constraint; constraints share no code."""
    index = {code: i for i, code in enumerate(sets.codes)}
    constraint_of = np.full(len(sets.codes), -1, np.int64)
    for u, codes in enumerate(constraints):
        constraint_of[[index[code] for code in codes if code in index]] = u
    of_entry, n = constraint_of[sets.values], max(len(constraints), 1)
    keys = distinct_of((owners_of(sets.offsets) * n + of_entry)[of_entry >= 0])
    return np.bincount(keys % n, minlength=len(constraints))


def shares_within(errors: AnyArray) -> dict[str, float]:
    """Shares of the errors of at most 2.5 % and 5 %, either side."""
    ends = {"within_2_5_percent": 0.025, "within_5_percent": 0.05}
    return {
        name: float((np.abs(errors) <= most).mean()) if len(errors) else 0.0 for name, most in ends.items()
    }


def intervals(errors: AnyArray) -> list[dict[str, Any]]:
    """How many errors are in each interval [low, high) of `MRE_BOUNDS`; the two beyond have one end None, and
    [-2.5 %, 2.5 %] is closed, as in the paper."""
    ends: list[float | None] = [None, *MRE_BOUNDS, None]
    # Supports are whole numbers: rounding keeps 0.025 itself inside the middle interval.
    rounded = np.round(errors, 12)
    place = np.searchsorted(MRE_BOUNDS, rounded, side="right")
    place[rounded == 0.025] -= 1
    counts = np.bincount(place, minlength=len(MRE_BOUNDS) + 1)
    return [
        {"low": ends[i], "high": ends[i + 1], "count": int(n), "share": float(n / max(len(errors), 1))}
        for i, n in enumerate(counts)
    ]


NO_POLICY: Mapping[str, Any] = {"policy": "none", "constraints": [], "skipped": 0, "intervals": []}
"""What `matching_errors` is where there is no policy."""


def matching_errors(
    names: Sequence[str], members: Sequence[list[str]], true: AnyArray, estimated: Sequence[float]
) -> dict[str, Any]:
    """(true - estimate) / true of each constraint that some record matches, and how many are small."""
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "codes": len(codes),
            "true": count,
            "estimate": estimate,
            "mre": (count - estimate) / count,
        }
        for name, codes, count, estimate in zip(names, members, true.tolist(), estimated, strict=True)
        if count > 0
    ]
    errors = np.array([each["mre"] for each in found])
    return {
        "policy": f"{len(found)} constraints",
        "constraints": found,
        "skipped": len(members) - len(found),
        "intervals": intervals(errors),
        **shares_within(errors),
    }
