"""Kernels over blocks, in the engine's threads."""

from __future__ import annotations

from collections.abc import Callable

from leeward.engine import available_threads, over_blocks, pool

SMALLEST_BLOCK = 2048


class Workers:
    """Runs kernels over blocks of an index range in threads (the kernels release the interpreter lock).

    Threads change nothing: they share work out in blocks whose results do not depend on who computes them.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or available_threads()

    def blocks(self, n: int, run: Callable[[int, int], object]) -> list[object]:
        """`run(lo, hi)` over blocks of 0…n-1; results in block order."""
        return over_blocks(run, n, threads=self.threads, smallest=SMALLEST_BLOCK) if n else []

    def tasks(self, runs: list[Callable[[], object]]) -> None:
        """Independent tasks, the first ones first."""
        with pool(min(self.threads, len(runs))) as threads:
            for done in [threads.submit(run) for run in runs]:
                done.result()
