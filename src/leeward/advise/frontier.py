"""Runs grouped into points, and the points that no other beats in both risk and utility (Duncan et al. 2001)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leeward.advise.utility.verdicts import RANK

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Spot:
    """The repeats of one spec for one line of the plan and one attacker.

    risk : the maximum for this attacker, or the mean that was measured. value, low, high : mean, least and greatest of
    the repeats. floor : of the line. verdict : of the worst repeat. runs : how many. knows : what the attacker knows.
    at_least : whether the maximum is at least the risk, as the guarantee is not about this attacker.
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
    knows: str = ""
    at_least: bool = False


def spots_of(rows: Sequence[Row], line: int, risk: str = "risk_maximum") -> list[Spot]:
    """The verified points of a line (from 1) that have a value and a risk (`risk_maximum`, for each attacker that was
    looked at, or `measured_mean`)."""
    groups: dict[tuple[str, str, str, bool], list[tuple[Row, float]]] = {}
    for row in rows:
        if row["status"] == "verified" and row[f"line_{line}"] is not None:
            attackers = [(row["knows"], row[risk], False)]
            if risk == "risk_maximum":
                attackers.append((row["further_knows"], row["further_maximum"], True))
            for knows, chance, at_least in attackers:
                if chance is not None:
                    key = (row["method"], row["spec"], knows, at_least)
                    groups.setdefault(key, []).append((row, chance))
    return [_spot(key, runs, line) for key, runs in groups.items()]


def _spot(key: tuple[str, str, str, bool], runs: Sequence[tuple[Row, float]], line: int) -> Spot:
    method, spec, knows, at_least = key
    values = [float(row[f"line_{line}"]) for row, _ in runs]
    return Spot(
        method=method,
        spec=spec,
        risk=sum(chance for _, chance in runs) / len(runs),
        value=sum(values) / len(values),
        low=min(values),
        high=max(values),
        floor=runs[0][0][f"floor_{line}"],
        verdict=max((row[f"verdict_{line}"] for row, _ in runs), key=RANK.__getitem__),
        runs=len(runs),
        knows=knows,
        at_least=at_least,
    )


def chance_of(spot: Spot) -> str:
    return f"{'at least ' if spot.at_least else ''}{spot.risk:.3g}"


def by_attacker(spots: Sequence[Spot]) -> dict[str, list[Spot]]:
    """The spots of each attacker, by what the attacker knows: risks for different ones cannot be compared."""
    found: dict[str, list[Spot]] = {}
    for spot in spots:
        found.setdefault(spot.knows, []).append(spot)
    return found


def frontier(spots: Sequence[Spot]) -> list[Spot]:
    """Spots, by ascending risk, that no other beats (at most the risk, at least the value, one strictly). The
    value rises with the risk."""
    best: list[Spot] = []
    for spot in sorted(spots, key=lambda each: (each.risk, -each.value)):
        equal = bool(best) and (spot.risk, spot.value) == (best[-1].risk, best[-1].value)
        if not best or spot.value > best[-1].value or equal:
            best.append(spot)
    return best
