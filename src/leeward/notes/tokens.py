"""Tokens of a note for the learned annotators: runs of letters, runs of digits, single signs, line breaks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

PIECES = re.compile(r"([^\W\d_]+|\d+|[^\w\s]|_|\n)")


@dataclass(frozen=True)
class Tokens:
    """Token `i` is `text[starts[i]:ends[i]]`."""

    text: str
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @cached_property
    def words(self) -> list[str]:
        """The tokens' words."""
        return [self.text[a:b] for a, b in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]


def tokens_of(text: str) -> Tokens:
    """Split a text; every character that is not white space belongs to exactly one token."""
    pieces = PIECES.split(text)  # gap, token, gap, token, …, gap
    bounds = np.cumsum(np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces)))
    return Tokens(text, bounds[:-1:2].copy(), bounds[1::2].copy())
