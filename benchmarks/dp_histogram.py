"""A differentially private histogram of codes and pairs of codes: an opponent for counts (`study_disassociation.py`).

ε protects a patient. Of each patient at most `cap` codes are kept, drawn evenly; half of ε goes into the counts of all
codes of the cohort, half into those of all its pairs, each with two-sided geometric noise (Ghosh, Roughgarden and
Sundararajan 2012) of their L1 sensitivity: `cap` codes, cap·(cap − 1)/2 pairs. Negative counts are read as 0. Larger
sets have no count. Noise is seeded here: figures of a study can be made again, nothing is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leeward.analysis.itemsets import supports_of
from leeward.analysis.workloads import relative_errors
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.randomness import Randomness

CAPS = (2, 3, 5, 8, 12)


def capped(sets: CodeSets, cap: int, stream: np.random.Generator) -> CodeSets:
    """The code sets with at most `cap` codes a patient, drawn evenly."""
    lengths = sets.lengths()
    owner = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((stream.random(len(sets.values)), owner))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(sets.offsets[:-1], lengths)
    kept = rank < cap
    offsets = np.concatenate([[0], np.cumsum(np.minimum(lengths, cap))])
    return replace(sets, offsets=offsets, values=sets.values[kept])


def noise(scale: float, size: int, stream: np.random.Generator) -> np.ndarray[Any, Any]:
    """Two-sided geometric noise, P(z) ∝ e^(−|z|/scale)."""
    p = -np.expm1(-1 / scale)
    found: np.ndarray[Any, Any] = stream.geometric(p, size) - stream.geometric(p, size)
    return found


def histogram_errors(
    sets: CodeSets, workloads: Sequence[list[Any]], epsilon: float, seed: int
) -> list[tuple[float, int]]:
    """For each workload of sets of one or two codes the mean relative error, and the cap that it needs: the one of CAPS
    that is best for this workload, which whoever releases cannot know."""
    found: list[list[tuple[float, int]]] = [[] for _ in workloads]
    for cap in CAPS:
        stream = Randomness.of(seed).stream("histogram", cap)
        kept = capped(sets, cap, stream)
        for queries, errors in zip(workloads, found, strict=True):
            pairs = np.array([len(query) == 2 for query in queries])
            scale = np.where(pairs, cap * (cap - 1) / 2, cap) / (epsilon / 2)
            told = supports_of(kept, queries) + [noise(each, 1, stream)[0] for each in scale.tolist()]
            error = relative_errors(supports_of(sets, queries), np.maximum(told, 0)).mean()
            errors.append((float(error), cap))
    return [min(errors) for errors in found]
