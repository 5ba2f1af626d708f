"""Random choices, cheap enough for thousands of notes a second: one block of numbers of a stream at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

BLOCK = 256
T = TypeVar("T")


class Dice:
    """Draws from one generator (`leeward.randomness`); the same generator gives the same choices."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._numbers: list[float] = []

    def number(self) -> float:
        """Uniform in [0, 1)."""
        if not self._numbers:
            self._numbers = self._generator.random(BLOCK).tolist()
        return self._numbers.pop()

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.number() < probability

    def below(self, n: int) -> int:
        """Uniform in 0 … n − 1."""
        return int(self.number() * n)

    def between(self, low: int, high: int) -> int:
        """Uniform in `low` … `high`, both included."""
        return low + int(self.number() * (high - low + 1))

    def pick(self, choices: Sequence[T]) -> T:
        """One of `choices`, all alike."""
        return choices[int(self.number() * len(choices))]

    def digits(self, n: int) -> str:
        """`n` digits, the first not 0."""
        low = 10 ** (n - 1)
        return str(low + int(self.number() * 9 * low))

    def letters(self, n: int) -> str:
        """`n` capital letters."""
        return "".join(chr(65 + int(self.number() * 26)) for _ in range(n))
