"""Runs grouped into points, and the points that no other beats in both risk and utility (Duncan et al. 2001)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Spot:
    """The repeats of one spec for one line of the plan.

    risk : the guarantee's maximum, or the mean that was measured. value, low, high : mean, least and greatest of the
    repeats. floor : of the line. verdict : of the worst repeat. runs : how many.
    """

    method: str
    spec: str
    risk: float
    value: float
    low: float
    high: float
    floor: float | None
    verdict: str
    runs: int


def spots_of(rows: Sequence[Row], line: int, risk: str = "risk_maximum") -> list[Spot]:
    """The verified points of a line (from 1) that have a value and a risk (`risk_maximum` or `measured_mean`)."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["status"] == "verified" and row[f"line_{line}"] is not None and row[risk] is not None:
            groups.setdefault((row["method"], row["spec"]), []).append(row)
    order = ("does not", "with care", "serves")
    found = []
    for (method, spec), runs in groups.items():
        values = [float(row[f"line_{line}"]) for row in runs]
        found.append(
            Spot(
                method,
                spec,
                sum(float(row[risk]) for row in runs) / len(runs),
                sum(values) / len(values),
                min(values),
                max(values),
                runs[0][f"floor_{line}"],
                min((str(row[f"verdict_{line}"]) for row in runs), key=order.index),
                len(runs),
            )
        )
    return found


def frontier(spots: Sequence[Spot]) -> list[Spot]:
    """Those that no other beats: none with at most the risk and at least the value, one of them strictly.

    By ascending risk; the value rises with it.
    """
    best: list[Spot] = []
    for spot in sorted(spots, key=lambda each: (each.risk, -each.value)):
        if (
            not best
            or spot.value > best[-1].value
            or (spot.risk == best[-1].risk and spot.value == best[-1].value)
        ):
            best.append(spot)
    return best
