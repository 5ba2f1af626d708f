"""Conditional privacy Π(A|B) = 2^h(A|B) (Agrawal and Aggarwal 2001).

See docs/methods/condensation.md#conditional-privacy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.cohort.lenses.table import Floats
from leeward.errors import BadInput
from leeward.methods.condensation.measures.both import SEED, Both, Longs

PAIRED = 100_000
"""Rows that conditional privacy is estimated from: of a larger table as many groups as have about so many."""


def privacy(both: Both, bins: int = 20, permutations: int = 20) -> dict[str, Any] | None:
    """Π(original | released) of each column: rows paired inside their groups by random permutations, averaged.

    A number has `bins` equal bins over the original's range (their width is stated); levels give 1 … number of levels.
    """
    if bins < 2 or permutations < 1:
        raise BadInput("`measure.privacy`: `bins` must be at least 2 and `permutations` at least 1.")
    if both.group is None or both.source_row is None or both.source_group is None:
        return None
    random = np.random.Generator(np.random.Philox(SEED))
    chosen = _some_groups(both.group, random)
    source = np.flatnonzero(chosen[both.source_group])
    source = source[np.argsort(both.source_group[source], kind="stable")]
    order = both.source_row[source]
    made = np.flatnonzero(chosen[both.group])
    # Groups are whole numbers: adding a number below 1 shuffles inside them.
    pairings = [made[np.argsort(both.group[made] + random.random(len(made)))] for _ in range(permutations)]
    rows = []
    for each in both.table.columns:
        column, before, after = both.columns(each.name)
        before = before[order]
        known = ~np.isnan(before)
        if not known.any():
            continue
        found = []
        width = None
        for pairing in pairings:
            a, b = before, after[pairing]
            both_known = known & ~np.isnan(b)
            value, width = conditional_privacy(
                a[both_known], b[both_known], bins=None if column.kind in ("levels", "ordered") else bins
            )
            found.append(value)
        rows.append({"column": column.name, "privacy": float(np.mean(found)), "bin_width": width})
    return {
        "bins": bins,
        "permutations": permutations,
        "pairing": "within groups, at random",
        "rows": len(made),
        "columns": rows,
    }


def _some_groups(group: Longs, random: np.random.Generator) -> NDArray[np.bool_]:
    """Groups with about `PAIRED` rows between them, at random; all of a smaller table."""
    sizes = np.bincount(group)
    chosen = np.zeros(len(sizes), bool)
    if len(group) <= PAIRED:
        chosen[:] = True
    else:
        chosen[random.choice(len(sizes), max(1, len(sizes) * PAIRED // len(group)), replace=False)] = True
    return chosen


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


def _entropy(a: np.ndarray, b: np.ndarray) -> float:
    """Conditional entropy H(A|B) in bits; `a` and `b` number categories from 0."""
    if not len(a):
        return 0.0
    span = int(b.max()) + 1
    counts_together, counts_alone = np.bincount(a * span + b), np.bincount(b)
    joint = counts_together[counts_together > 0] / len(a)
    alone = counts_alone[counts_alone > 0] / len(b)
    return float(-(joint * np.log2(joint)).sum() + (alone * np.log2(alone)).sum())
