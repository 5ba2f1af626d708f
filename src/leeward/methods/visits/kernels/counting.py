"""The kernel that counts what a release of visits still shows of its source."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]


@njit(cache=True, nogil=True)
def count_kept(
    source_offsets: Longs, source: Ints, of_code: Ints, alone: Any, up: Ints, offsets: Longs, values: Ints
) -> tuple[int, int, int]:
    """(visit, code) pairs of the source that the release still shows: (as they were, inside a merged code, as a node).

    of_code : the label of each code (-1: suppressed). alone : 1 where the label is the code itself, 2 where it is a
    merged one, 0 where it is a node. up : the node of each label, -1 for none (a label may itself be the node).
    """
    exact, inside, above = 0, 0, 0
    for v in range(source_offsets.shape[0] - 1):
        low, high = offsets[v], offsets[v + 1]
        for i in range(source_offsets[v], source_offsets[v + 1]):
            label = of_code[source[i]]
            if label < 0:
                continue
            node = up[label]
            for j in range(low, high):
                if values[j] == label:
                    if alone[source[i]] == 1:
                        exact += 1
                    elif alone[source[i]] == 2:
                        inside += 1
                    else:
                        above += 1
                    break
            else:
                if node >= 0:
                    for j in range(low, high):
                        if values[j] == node:
                            above += 1
                            break
    return exact, inside, above
