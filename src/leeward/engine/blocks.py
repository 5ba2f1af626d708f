"""A workload cut into blocks for kernels that release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")

BLOCKS_A_THREAD = 4
SMALLEST_BLOCK = 16


def over_blocks(work: Callable[[int, int], Result], n: int) -> list[Result]:
    """`work(low, high)` over 0 … n in blocks, in order; on as many threads as the process may use
    processors."""
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    size = max(SMALLEST_BLOCK, -(-n // (threads * BLOCKS_A_THREAD)))
    bounds = [(low, min(low + size, n)) for low in range(0, n, size)] or [(0, 0)]
    if threads == 1 or len(bounds) == 1:
        return [work(low, high) for low, high in bounds]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda each: work(*each), bounds))
