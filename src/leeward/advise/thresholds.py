"""Thresholds of risk that others report (`thresholds.yaml`), and the k that a threshold asks for."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from leeward.errors import BadInput
from leeward.fields import check_keys, nearest
from leeward.release.spec import content_of_yaml

FILE = Path(__file__).parent / "thresholds.yaml"

SMALLEST_K = 2


@dataclass(frozen=True)
class Threshold:
    """A limit on the chance that an attacker is right.

    name : the profile's, or `own`. maximum : the limit, None where the rule names no number. about, rule, reported_by :
    what for, whose, and who says so. read : `primary`, `second-hand`, or `declared` for a custodian's own.
    """

    name: str
    maximum: float | None
    about: str
    rule: str
    reported_by: str
    read: str

    @property
    def cited(self) -> str:
        """The rule as a text may cite it: a number read second-hand is never given as the rule's own."""
        return f"{self.rule}, as reported by {self.reported_by}" if self.read == "second-hand" else self.rule


@functools.cache
def profiles() -> dict[str, Threshold]:
    rows: list[dict[str, Any]] = content_of_yaml(FILE.read_text(encoding="utf-8"))
    return {row["name"]: Threshold(**row) for row in rows}


def threshold_of(asked: str | Mapping[str, Any] | float | None) -> Threshold | None:
    """The threshold of a plan: a number such as 0.075 (or `{max: 0.075}`), a profile's name, or None. BadInput for an
    unknown profile, one without a number, or a limit outside 0 to 1."""
    if asked is None:
        return None
    if isinstance(asked, str):
        known = profiles()
        if asked not in known:
            raise BadInput(f"`threshold`: unknown profile `{asked}`{nearest(asked, known)}")
        if known[asked].maximum is None:
            raise BadInput(
                f"`threshold`: {known[asked].rule} names no number; state the one that you have decided on, as "
                "`threshold: 0.05`."
            )
        return known[asked]
    if isinstance(asked, Mapping):
        check_keys(asked, ("max",), "threshold")
        asked = asked.get("max")
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not 0 < asked < 1:
        raise BadInput(
            "`threshold` is a number above 0 and below 1, such as `0.1`, or the name of a profile: "
            f"{', '.join(profiles())}."
        )
    return Threshold(
        "own", float(asked), "declared in the plan", "the custodian's own limit", "the plan", "declared"
    )


def k_of(maximum: float) -> int:
    """The smallest k with 1/k at most `maximum`, at least 2 (exact: 0.2 gives 5, 0.09 gives 12)."""
    return max(SMALLEST_K, math.ceil(1 / Fraction(str(maximum))))


def limits(own: float | None = None) -> list[float]:
    """The thresholds whose exceeding is measured: one's own and those shipped, ascending."""
    shipped = {each.maximum for each in profiles().values() if each.maximum is not None}
    return sorted(shipped if own is None else {own, *shipped})
