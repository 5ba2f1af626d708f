"""Conditional privacy Π(A|B) = 2^h(A|B) (Agrawal and Aggarwal 2001; ALGORITHMS §6.6)."""

from __future__ import annotations

import numpy as np

from leeward.cohort.lenses.table import Floats


def conditional_privacy(a: Floats, b: Floats, bins: int | None = 20) -> tuple[float, float | None]:
    """Π(A|B) by the plug-in estimate from pairs (a, b), and the width of A's bins.

    With `bins` both are numbers: A's and B's bins are equal, over the range of A (B's outliers join the outer bins),
    and h(A|B) = −Σ p_ab log2(p_ab / Δ) + Σ p_b log2 p_b. Without, both are levels and Π = 2^H(A|B). Compare at equal
    Δ only.
    """
    if bins is None:
        return 2.0 ** _entropy(a.astype(np.int64), b.astype(np.int64)), None
    low, high = float(a.min()), float(a.max())
    if high <= low:
        return 0.0, 0.0  # A is a constant: nothing is left to learn
    width = (high - low) / bins
    binned = [np.clip(((values - low) / width).astype(np.int64), 0, bins - 1) for values in (a, b)]
    return width * 2.0 ** _entropy(*binned), width


def binned_privacy(a: np.ndarray, b: np.ndarray, width: float) -> float:
    """Π(A|B) of numbers that are already in bins of width `width`."""
    return float(width * 2.0 ** _entropy(a, b))


def _entropy(a: np.ndarray, b: np.ndarray) -> float:
    """H(A|B) in bits, of numbers from 0."""
    if not len(a):
        return 0.0
    span = int(b.max()) + 1
    counts_together, counts_alone = np.bincount(a * span + b), np.bincount(b)
    joint = counts_together[counts_together > 0] / len(a)
    alone = counts_alone[counts_alone > 0] / len(b)
    return float(-(joint * np.log2(joint)).sum() + (alone * np.log2(alone)).sum())
