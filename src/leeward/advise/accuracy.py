"""Epsilon from the accuracy that a recipient needs: the exact law of two-sided geometric noise.

P(|Z| > w) = 2a^(w+1)/(1+a) for whole w, a = e^(-epsilon/sensitivity) (Ghosh, Roughgarden & Sundararajan 2012;
docs/methods/queries.md). The noise is the one that queries draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from leeward.errors import BadInput
from leeward.queries.privacy.accounting import MICRO
from leeward.queries.privacy.mechanism import CONFIDENCE, Noise, half_width

WIDEST = 10**7


@dataclass(frozen=True)
class Accuracy:
    """What a number of counts costs.

    epsilon : of one count. total : of all of them (pure composition adds up). half_width : in patients. questions : how
    many counts.
    """

    epsilon: float
    total: float
    half_width: int
    questions: int


def posterior(epsilon: float, prior: float = 0.5) -> float:
    """The greatest p e^epsilon / (1 - p + p e^epsilon) that an attacker's belief can reach."""
    odds = math.log(prior / (1 - prior)) + epsilon
    return 1 / (1 + math.exp(-odds))


def micro_epsilon_of(width: int, sensitivity: int = 1) -> int:
    """The smallest epsilon, in millionths, at which 95 of 100 counts are off by at most `width`. BadInput for a width
    below 0 or above ten million."""
    if not 0 <= width <= WIDEST:
        raise BadInput(f"a half-width must be a whole number from 0 to {WIDEST:,}; got {width}.")
    low, high = 1, 40 * MICRO * sensitivity
    while low < high:
        middle = (low + high) // 2
        noise = Noise("geometric", middle, sensitivity)
        if 1 / noise.scale >= 1e-9 and half_width(noise, CONFIDENCE) <= width:
            high = middle
        else:
            low = middle + 1
    return low


def accuracy_of(width: int, questions: int = 1) -> Accuracy:
    """What `questions` counts within `width` patients cost, each with a share of its own of epsilon."""
    one = micro_epsilon_of(width)
    return Accuracy(one / MICRO, one * questions / MICRO, width, questions)
