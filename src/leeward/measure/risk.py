"""Risk of re-identification by diagnosis codes, before release and after (Loukides et al. 2014, Fig. 12)."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from leeward.cohort.lenses import CodeSets
from leeward.measure.estimates import estimates_of_numbers
from leeward.measure.published import Array, Published
from leeward.randomness import Randomness

MOST_SUBSETS = 25_000_000
"""Code sets of one size that are held at once; beyond, an even sample of the sets is taken, each counted in full."""

MOST_QUERIES = 20_000
"""Code sets whose candidates are counted after release."""

LARGEST_M = 5


def risk_before(sets: CodeSets, k: int, *, seed: int, largest_m: int = LARGEST_M) -> dict[str, Any]:
    """How many records share m codes, m = 1 … `largest_m`, and how many patients that makes recognisable.

    Returns
    -------
    dict
        `by_m`: for each m, of the distinct sets of m codes that some record holds: `sets`, `sets_in_one_record_share`,
        `sets_below_k_share`, `exact` (False: `sampled_share` of the sets was taken, evenly); of the patients with at
        least m codes (`patients`): `unique` and `below_k` hold a set of m codes that no other, or fewer than k
        patients hold, with `unique_share` and `below_k_share` of all patients. Where not every set could be counted,
        patients are a lower bound (`patients_exact` False): who is at risk with m - 1 codes and has one more, is
        with m.
        `whole_set`: patients by their whole code set.
    """
    n = len(sets)
    lengths = sets.lengths()
    rows: list[dict[str, Any]] = []
    rarest: Array = np.full(n, n, np.int64)
    whole = True
    for m in range(1, largest_m + 1):
        if not (lengths >= m).any():
            break
        row, found = _risk_of(sets, m, k, seed)
        whole = whole and found is not None
        enough = lengths >= m
        # Supports fall as sets grow, so the bound of m - 1 codes holds for m where m could not be counted whole.
        rarest = found if found is not None else rarest
        unique, below = int((enough & (rarest == 1)).sum()), int((enough & (rarest < k)).sum())
        rows.append(
            {
                **row,
                "patients": int(enough.sum()),
                "unique": unique,
                "unique_share": unique / n,
                "below_k": below,
                "below_k_share": below / n,
                "patients_exact": found is not None,
            }
        )
    return {"k": k, "patients": n, "by_m": rows, "whole_set": whole_sets(sets, k)}


def subsets_of_size(sets: CodeSets, m: int) -> int:
    """Number of (record, set of m of its codes)."""
    by_length = np.bincount(sets.lengths())
    return sum(int(count) * comb(length, m) for length, count in enumerate(by_length))


def _risk_of(sets: CodeSets, m: int, k: int, seed: int) -> tuple[dict[str, Any], Array | None]:
    """The figures of sets of m codes, and each record's rarest such set's support (None when sampled)."""
    from leeward.measure import _risk_kernels as kernels

    total = subsets_of_size(sets, m)
    sampled = total > MOST_SUBSETS
    share = MOST_SUBSETS / total / 1.5 if sampled else 1.0
    exact_keys = len(sets.codes) ** m < 2**63
    salt = np.uint64(Randomness.of(seed).number("risk", m))
    threshold = np.uint64(min(int(share * 2**64), 2**64 - 1))
    keys = np.empty(min(total, MOST_SUBSETS), np.uint64)
    owners = np.empty(0 if sampled else len(keys), np.int32)
    base = np.uint64(len(sets.codes))
    while True:
        found = kernels.subset_keys(sets.offsets, sets.values, m, base, exact_keys, salt, threshold, keys, owners)
        if found <= len(keys):
            break
        threshold = threshold // np.uint64(2)  # a frequent leading pair was drawn: take fewer
        share /= 2
    rarest = None
    if sampled:
        ordered = np.sort(keys[:found])
    else:
        order = np.argsort(keys[:found])
        ordered = keys[order]
        rarest = kernels.rarest_of_owner(ordered, owners[order], len(sets))
    runs, ones, short, by_size = kernels.run_lengths(ordered, k)
    return {
        "m": m,
        "sets": int(runs),
        "sets_in_one_record_share": ones / max(runs, 1),
        "sets_below_k_share": short / max(runs, 1),
        "sets_by_support": [
            {"from": 2**i, "to": 2 ** (i + 1) - 1, "share": float(c / max(runs, 1))} for i, c in enumerate(by_size) if c
        ],
        "exact": not sampled,
        "sampled_share": share,
    }, rarest


def whole_sets(sets: CodeSets, k: int) -> dict[str, Any]:
    """Patients whose whole code set no other patient, or fewer than k patients, have."""
    from leeward.measure import _risk_kernels as kernels

    keys = kernels.record_keys(sets.offsets, sets.values)
    _, inverse, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    alike = counts[inverse.ravel()]
    n = max(len(sets), 1)
    unique, below = int((alike == 1).sum()), int((alike < k).sum())
    return {"unique": unique, "unique_share": unique / n, "below_k": below, "below_k_share": below / n}


def risk_after(published: Published, sets: CodeSets, *, seed: int) -> dict[str, Any]:
    """The smallest number of candidate records over sets of up to m codes that occur in the source.

    Sets are drawn from random records; a set's candidates are the upper bound of its estimate (section 1.7).
    """
    stream = Randomness.of(seed).stream("risk after")
    number = published.number
    translate = np.array([number.get(code, -1) for code in sets.codes], np.int32)
    drawn: list[Array] = []
    for r in stream.integers(0, len(sets), MOST_QUERIES):
        codes = translate[sets.values[sets.offsets[r] : sets.offsets[r + 1]]]
        size = int(stream.integers(1, published.m + 1))
        drawn.append(np.sort(stream.permutation(codes[codes >= 0])[:size]))
    queries = [query for query in drawn if len(query)]
    high = estimates_of_numbers(published, queries, "one").high
    return {
        "sets": len(queries),
        "largest_set": published.m,
        "smallest_candidates": int(high.min()) if len(high) else 0,
        "below_k": int((high < published.k).sum()),
    }
