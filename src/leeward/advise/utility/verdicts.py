"""A line of the plan measured on a release: one figure from 0 to 1, the floor beside it, and a verdict by one rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Verdict = Literal["serves", "with care", "does not"]

RANK: dict[str, int] = {"serves": 0, "with care": 1, "does not": 2}
SERVES, CARE = 0.95, 0.8
RULE = (
    "The bar is the floor or 0.95, whichever is lower. At the bar or above: serves. At 0.8 of the bar or above: with "
    "care. Below: does not."
)
"""The floor is what a bootstrap resample of the original itself would reach: no release has to be better than that."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What a release keeps of a line.

    line, kind : the line. figure : what `value` is, in words. value : 0 to 1; None: the release cannot serve the line.
    floor : the same of bootstrap resamples of the original. verdict : by `RULE`. reason : why there is no value.
    """

    line: str
    kind: str
    figure: str
    value: float | None
    floor: float | None
    verdict: str
    reason: str = ""
    detail: Any = None


def verdict_of(value: float | None, floor: float | None) -> Verdict:
    """`serves`, `with care` or `does not`, by `RULE`."""
    if value is None:
        return "does not"
    bar = SERVES if floor is None else min(floor, SERVES)
    return "serves" if value >= bar else "with care" if value >= CARE * bar else "does not"


def judge(line: Any, figure: str, value: float | None, floor: float | None, **more: Any) -> Kept:
    return Kept(
        line=line.title,
        kind=line.kind,
        figure=figure,
        value=None if value is None else float(value),
        floor=None if floor is None else float(floor),
        verdict=verdict_of(value, floor),
        **more,
    )
