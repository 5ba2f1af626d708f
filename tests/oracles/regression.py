"""Cox's partial likelihood with Efron's ties, written out (Efron 1977): slow, for small inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def _terms(beta: Sequence[float], x: Any, time: Any, event: Any) -> list[tuple[list[int], list[int]]]:
    """Each event time's deaths and its risk set."""
    times = sorted({float(t) for t, e in zip(time, event, strict=True) if e})
    rows = range(len(time))
    return [
        ([i for i in rows if event[i] and time[i] == t], [i for i in rows if time[i] >= t]) for t in times
    ]


def cox_log_likelihood(beta: Sequence[float], x: Any, time: Any, event: Any) -> float:
    risk = [math.exp(sum(b * v for b, v in zip(beta, row, strict=True))) for row in x]
    total = 0.0
    for deaths, at_risk in _terms(beta, x, time, event):
        everybody, dying = sum(risk[i] for i in at_risk), sum(risk[i] for i in deaths)
        for number in range(len(deaths)):
            total += math.log(risk[deaths[number]]) - math.log(everybody - number / len(deaths) * dying)
    return total


def cox_gradient(beta: Sequence[float], x: Any, time: Any, event: Any) -> list[float]:
    risk = [math.exp(sum(b * v for b, v in zip(beta, row, strict=True))) for row in x]
    gradient = [0.0] * len(beta)
    for deaths, at_risk in _terms(beta, x, time, event):
        for j in range(len(beta)):
            gradient[j] += sum(float(x[i][j]) for i in deaths)
            for number in range(len(deaths)):
                share = number / len(deaths)
                weight = sum(risk[i] for i in at_risk) - share * sum(risk[i] for i in deaths)
                moment = sum(risk[i] * x[i][j] for i in at_risk) - share * sum(
                    risk[i] * x[i][j] for i in deaths
                )
                gradient[j] -= moment / weight
    return gradient
