"""Risk after release: candidates of code sets, counted from the files (Loukides et al. 2014, Fig. 12)."""

from __future__ import annotations

import itertools

import numpy as np

from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.disassociation.measures.draw_kernels import draw_sets
from leeward.methods.disassociation.measures.estimates import estimates_of_numbers
from leeward.methods.disassociation.measures.figures import Candidates
from leeward.methods.disassociation.measures.published import Array, Published
from leeward.randomness import Randomness

SETS_DRAWN, SETS_COUNTED = 20_000, 1_000
"""Code sets drawn from records, and those with the rarest codes, whose candidates are counted."""


def risk_after(published: Published, sets: CodeSets, *, seed: int) -> Candidates:
    """The smallest number of candidate records over sets of up to m codes that occur in the source.

    Sets are drawn from random records, and of them those whose rarest code is in fewest chunks are looked
    at; a set's candidates are the upper bound of its estimate (docs/methods/disassociation.md#estimating-counts). For
    an attacker who knows the algorithm an item-chunk code has at most k - 1 records in its cluster. Sets that the
    release shows nowhere, because a code was suppressed, have none, and are not counted as below k.
    """
    stream = Randomness.of(seed).stream("risk after")
    number = published.number
    translate = np.array([number.get(code, -1) for code in sets.codes], np.int32)
    holders = np.diff(published.at).tolist()
    records = stream.integers(0, len(sets), SETS_DRAWN)
    ends, drawn = draw_sets(stream, records, sets.offsets, translate[sets.values], published.m)
    codes, bounds = drawn.tolist(), [0, *ends.tolist()]
    distinct = dict.fromkeys(tuple(codes[low:high]) for low, high in itertools.pairwise(bounds) if low < high)
    rarest = sorted(distinct, key=lambda query: min(holders[code] for code in query))[:SETS_COUNTED]
    queries: list[Array] = [np.array(query, np.int32) for query in rarest]
    high = estimates_of_numbers(published, queries, "one").high
    known = estimates_of_numbers(published, queries, "one", item_most=published.k - 1).high
    there = high > 0
    high, known = high[there], known[there]
    return Candidates(
        sets=len(queries),
        largest_set=published.m,
        smallest_candidates=int(high.min()) if len(high) else 0,
        below_k=int((high < published.k).sum()),
        smallest_candidates_algorithm_known=int(known.min()) if len(known) else 0,
        below_k_algorithm_known=int((known < published.k).sum()),
    )
