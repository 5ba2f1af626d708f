"""The kernel that says what a release of visits still shows of its source."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]


GONE, EXACT, MERGED, ABOVE = 0, 1, 2, 3
"""What became of a (visit, code) pair: nothing shows it, the code itself, a merged code, a node above it."""


@njit
def classify_pairs(
    source_offsets: Longs, source: Ints, of_code: Ints, kind: Any, up: Ints, offsets: Longs, values: Ints
) -> Any:
    """int8[pairs]: what became of every (visit, code) pair of the source (GONE, EXACT, MERGED, ABOVE).

    of_code : the label of each code (-1: suppressed). kind : EXACT where the label is the code itself, MERGED or ABOVE.
    up : the node of each label, -1 for none (a label may itself be the node).
    """
    found = np.zeros(source.shape[0], np.int8)
    for v in range(source_offsets.shape[0] - 1):
        low, high = offsets[v], offsets[v + 1]
        for i in range(source_offsets[v], source_offsets[v + 1]):
            label = of_code[source[i]]
            if label < 0:
                continue
            node = up[label]
            for j in range(low, high):
                if values[j] == label:
                    found[i] = kind[source[i]]
                    break
            else:
                if node >= 0:
                    for j in range(low, high):
                        if values[j] == node:
                            found[i] = ABOVE
                            break
    return found
