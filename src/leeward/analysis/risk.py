"""Risk of re-identification by diagnosis codes before release (Loukides et al. 2014, Fig. 12)."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from leeward.analysis.itemsets import owners_of, postings
from leeward.arrays import AnyArray, Int32s, Int64s, UInt64s
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.engine import over_blocks
from leeward.randomness import Randomness

MOST_SUBSETS = 4_000_000
"""Occurrences of code sets of one size that are held at once; beyond, an even sample of the sets is taken,
each counted in full."""

TABLE_CELLS = 1 << 26
"""Pairs are counted in a table where it has no more cells."""

SEED = 20140901
"""Of the samples: profile and all reports draw the same, so that a figure is one figure."""

PATIENTS_SAMPLED = 1_000
"""Patients whose rarest code sets are looked for where not every set can be held."""

WIDEST = 16
"""Of a sampled patient's codes, at most so many are combined, the rarest."""

LARGEST_M = 5

NEVER = 2**62
"""Support of the rarest set of m codes of a patient with fewer codes."""


def risk_before(sets: CodeSets, k: int, *, seed: int, largest_m: int = LARGEST_M) -> dict[str, Any]:
    """How many records share m codes, m = 1 … `largest_m`, and how many patients that makes recognisable.

    Returns
    -------
    dict
        `by_m`: for each m, of the distinct sets of m codes that some record holds: `sets` (counted),
        `sets_in_one_record_share`, `sets_below_k_share`, `sets_by_support`, and `exact` (False:
        `sampled_share` of the sets was taken, evenly); `patients`: those with at least m codes. `unique` and
        `below_k`: the patients of whom somebody who knows up to m codes may know a set that no other, or fewer than
        k patients have, with `unique_share` and `below_k_share` of all patients; they never fall as m grows.
        `patients_exact` False: extrapolated from `patients_sampled` of them. `whole_set`: patients by their whole
        code set.
    """
    n = len(sets)
    lengths = sets.lengths()
    rows: list[dict[str, Any]] = []
    sampled: AnyArray | None = None
    rarest_so_far = np.full(n, NEVER)
    exact = True
    unique = below = 0
    for m in range(1, largest_m + 1):
        enough = lengths >= m
        if not enough.any():
            break
        row, rarest = (
            _pairs(sets, m, k)
            if m <= 2 and len(sets.codes) ** 2 <= TABLE_CELLS
            else _subsets(sets, m, k, seed)
        )
        if rarest is None:
            exact = False
            if sampled is None:
                sampled = np.minimum.accumulate(_sample_patients(sets, largest_m, seed), axis=1)
            held = sampled[:, m - 1]
            scale = n / len(held)
            row["patients_sampled"] = len(held)
        else:
            np.minimum(rarest_so_far, rarest, out=rarest_so_far)
            held, scale = rarest_so_far, 1.0
        # Who knows up to m codes knows up to m - 1: a sample must not say less than a smaller m does.
        unique = max(unique, min(n, round(int((held == 1).sum()) * scale)))
        below = max(below, min(n, round(int((held < k).sum()) * scale)))
        rows.append(
            {
                **row,
                "patients": int(enough.sum()),
                "unique": unique,
                "unique_share": unique / n,
                "below_k": below,
                "below_k_share": below / n,
                "patients_exact": exact,
            }
        )
    return {"k": k, "patients": n, "by_m": rows, "whole_set": whole_sets(sets, k)}


def _pairs(sets: CodeSets, m: int, k: int) -> tuple[dict[str, Any], AnyArray]:
    """The figures of single codes or of pairs from a table, and the support of each record's rarest one."""
    from leeward.analysis import kernels

    supports = sets.supports()
    if m == 1:
        rarest = np.full(len(sets), 2**62)
        for first, block in sets.blocks():
            np.minimum.at(rarest, first + owners_of(block.offsets), supports[block.values])
        return _figures(1, np.bincount(supports), k, 1.0), rarest
    table = kernels.pair_supports(sets.offsets, sets.values, len(sets.codes))
    rarest = kernels.rarest_pair(sets.offsets, sets.values, table)
    np.fill_diagonal(table, 0)
    return _figures(2, np.bincount(table[table > 0]), k, 1.0), rarest


def _subsets(sets: CodeSets, m: int, k: int, seed: int) -> tuple[dict[str, Any], AnyArray | None]:
    """The figures of sets of m codes, and the support of each record's rarest one (None when sets are sampled)."""
    from leeward.analysis import kernels

    total = sum(int(count) * comb(length, m) for length, count in enumerate(np.bincount(sets.lengths())))
    sampled = total > MOST_SUBSETS
    share = MOST_SUBSETS / total / 1.5 if sampled else 1.0
    exact_keys = len(sets.codes) ** m < 2**63
    salt = np.uint64(Randomness.of(seed).number("risk", m))
    threshold = np.uint64(min(int(share * 2**64), 2**64 - 1))
    keys = np.empty(min(total, MOST_SUBSETS), np.uint64)
    owners = np.empty(0 if sampled else len(keys), np.int32)
    base = np.uint64(len(sets.codes))
    while True:
        found = kernels.subset_keys(
            sets.offsets, sets.values, m, base, exact_keys, salt, threshold, keys, owners
        )
        if found <= len(keys):
            break
        threshold = threshold // np.uint64(2)  # frequent leading pairs were drawn: take fewer
        share /= 2
    rarest = np.full(0 if sampled else len(sets), NEVER)
    by_support = count_keys(keys[:found], owners[:found], rarest)
    return _figures(m, by_support, k, share), None if sampled else rarest


def count_keys(keys: UInt64s, owners: Int32s, smallest: Int64s) -> Int64s:
    """How many distinct keys occur once, twice, …, int64[most often + 1]; `smallest[owner]` is lowered to the least
    number of times that a key of the owner occurs (not where `owners` is empty)."""
    if not len(owners):
        return np.bincount(run_lengths(np.sort(keys, kind="stable")), minlength=1)
    order = np.argsort(keys, kind="stable")  # three times as fast where keys ascend in each record
    counts = run_lengths(keys[order])
    np.minimum.at(smallest, owners[order], np.repeat(counts, counts))
    return np.bincount(counts, minlength=1)


def run_lengths(ordered: AnyArray) -> Int64s:
    """How often each distinct key of the sorted `ordered` occurs."""
    heads = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return np.diff(heads, prepend=0, append=len(ordered)) if len(ordered) else heads


def _figures(m: int, by_support: AnyArray, k: int, share: float) -> dict[str, Any]:
    supports = np.flatnonzero(by_support[1:]) + 1
    sets = by_support[supports]
    found = int(sets.sum())
    count = max(found, 1)
    by_size = np.bincount(np.log2(supports).astype(np.int64), sets).astype(np.int64)
    return {
        "m": m,
        "sets": found,
        "sets_in_one_record_share": int(sets[supports == 1].sum()) / count,
        "sets_below_k_share": int(sets[supports < k].sum()) / count,
        "sets_by_support": [
            {"from": 2**i, "to": 2 ** (i + 1) - 1, "share": int(c) / count}
            for i, c in enumerate(by_size)
            if c
        ],
        "exact": share == 1.0,
        "sampled_share": share,
    }


def _sample_patients(sets: CodeSets, largest_m: int, seed: int) -> AnyArray:
    """Support of the rarest set of 1 … `largest_m` codes of randomly chosen patients, int64[patients, largest_m]."""
    from leeward.analysis import kernels

    chosen = Randomness.of(seed).stream("risk of patients").permutation(len(sets))[:PATIENTS_SAMPLED]
    starts, holders = postings(sets.offsets, sets.values, len(sets.codes))
    return np.concatenate(
        over_blocks(
            lambda low, high: kernels.rarest_subsets(
                sets.offsets, sets.values, starts, holders, chosen[low:high], largest_m, WIDEST
            ),
            len(chosen),
        )
    )


def whole_sets(sets: CodeSets, k: int) -> dict[str, Any]:
    """Patients whose whole code set no other patient, or fewer than k patients, have."""
    words = np.random.Generator(np.random.Philox(key=SEED)).integers(0, 2**64, len(sets.codes), np.uint64)
    sums = np.zeros(len(sets), np.uint64)
    for first, block in sets.blocks():
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words[block.values])])  # modulo 2^64
        sums[first : first + len(block)] = total[block.offsets[1:]] - total[block.offsets[:-1]]
    alike = run_lengths(np.sort(sums))
    n = max(len(sets), 1)
    unique, below = int((alike == 1).sum()), int(alike[alike < k].sum())
    return {"unique": unique, "unique_share": unique / n, "below_k": below, "below_k_share": below / n}
