"""Which kernel is being compiled, for those who show how far a run is: without Numba, which not every command loads."""

from __future__ import annotations

import time


class Compilations:
    """How many kernels this process has imported (`known`) and compiled (`count`), and the seconds of compiling."""

    def __init__(self) -> None:
        self.count = 0
        self.known = 0
        self._depth = 0
        self._since = 0.0
        self._over = 0.0

    def begin(self) -> None:
        """A kernel is compiled from now on, maybe for one that calls it."""
        if self._depth == 0:
            self._since = time.monotonic()
        self._depth += 1
        self.count += 1

    def end(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._over += time.monotonic() - self._since

    @property
    def seconds(self) -> float:
        return self._over + (time.monotonic() - self._since if self._depth else 0.0)

    @property
    def line(self) -> str:
        return (
            f"compiling kernel {self.count} of at most {self.known}, once for this machine"
            if self._depth
            else ""
        )


compilations = Compilations()
