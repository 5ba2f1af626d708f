"""A note under construction: random choices, text with its spans, and typing errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from leeward.notes.spans import AnnotatedNote, Kind, Span

BLOCK = 256
T = TypeVar("T")


class Dice:
    """Random choices from one generator (`leeward.randomness`); deterministic given the generator."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._numbers: list[float] = []

    def number(self) -> float:
        """Uniform in [0, 1)."""
        if not self._numbers:
            self._numbers = self._generator.random(BLOCK).tolist()
        return self._numbers.pop()

    def chance(self, probability: float) -> bool:
        return self.number() < probability

    def below(self, n: int) -> int:
        """Uniform in 0 … n − 1."""
        return int(self.number() * n)

    def between(self, low: int, high: int) -> int:
        """Uniform in `low` … `high`, both included."""
        return low + int(self.number() * (high - low + 1))

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.number() * len(choices))]

    def digits(self, n: int) -> str:
        """`n` digits, the first not 0."""
        low = 10 ** (n - 1)
        return str(low + int(self.number() * 9 * low))

    def letters(self, n: int) -> str:
        """`n` capital letters."""
        return "".join(chr(65 + int(self.number() * 26)) for _ in range(n))


LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Draft:
    """Text built piece by piece; `slips` is the chance that a plain piece or a health term is mistyped."""

    def __init__(self, dice: Dice, slips: float, terse: bool) -> None:
        self.dice = dice
        self.slips = slips
        self.terse = terse
        self._pieces: list[str] = []
        self._length = 0
        self._spans: list[Span] = []

    def put(self, text: str) -> None:
        """Append text without identity or health term."""
        if self.slips and len(text) > 12 and self.dice.chance(self.slips):
            text = mistype(text, self.dice)
        self._pieces.append(text)
        self._length += len(text)

    def mark(self, text: str, kind: Kind, category: str, concept: str = "", context: str = "") -> None:
        """Append a span. `context`: why a health term is not the patient's own now; empty if it is."""
        source = f"gold:{context}" if context else "gold"
        end = self._length + len(text)
        self._spans.append(Span(self._length, end, kind, category, concept, source, not context))
        self._pieces.append(text)
        self._length = end

    def term(self, text: str, category: str, concept: str, context: str) -> None:
        """Append a health term, sometimes mistyped; capitalized at a beginning and occasionally elsewhere."""
        if text[0].islower() and self.dice.chance(0.8 if self._begins() else 0.12):
            text = text[0].upper() + text[1:]
        if self.slips and len(text) > 5 and self.dice.chance(self.slips):
            text = mistype(text, self.dice)
        self.mark(text, "HMI", category, concept, context)

    def _begins(self) -> bool:
        last = self._pieces[-1].rstrip(" ")[-1:] if self._pieces else "\n"
        return last in "\n.:?-"

    def note(self, name: str, group: str) -> AnnotatedNote:
        return AnnotatedNote(name, "".join(self._pieces), tuple(self._spans), group)


def mistype(text: str, dice: Dice) -> str:
    """Swap two letters of one word, or drop, double or replace one; never its first letter, never a blank."""
    places = [
        i for i in range(1, len(text)) if text[i].isalpha() and text[i].islower() and text[i - 1].isalpha()
    ]
    if not places:
        return text
    place = dice.pick(places)
    slip = dice.below(4)
    if slip == 0 and place + 1 < len(text) and text[place + 1].isalpha():
        return text[:place] + text[place + 1] + text[place] + text[place + 2 :]
    if slip == 1:
        return text[:place] + text[place + 1 :]
    if slip == 2:
        return text[:place] + text[place] + text[place:]
    return text[:place] + dice.pick(LETTERS) + text[place + 1 :]
