"""Parts that reports on code sets have in common: patients at risk, errors of the policy's code groups."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from leeward.report import charts
from leeward.report.names import called
from leeward.report.sections import Chart, Table, number, percent

CONSTRAINTS_SHOWN = 15
BIN, BINS_TO = 0.025, 0.4
"""Width of a bar of the histogram of errors, and where its axis ends."""


class Matched(Protocol):
    """A code group of the policy: patients with one of its codes, true and estimated, and the relative error."""

    @property
    def name(self) -> str: ...
    @property
    def true(self) -> int: ...
    @property
    def estimate(self) -> float: ...
    @property
    def mre(self) -> float: ...


class RiskRow(Protocol):
    """Patients whom up to m of their codes single out."""

    @property
    def m(self) -> int: ...
    @property
    def below_k(self) -> int: ...
    @property
    def unique(self) -> int: ...
    @property
    def below_k_share(self) -> float:
        """Of all patients."""
        ...

    @property
    def unique_share(self) -> float:
        """Of all patients."""
        ...


def risk_table(caption: str, rows: Sequence[RiskRow], k: int) -> Table:
    """Patients at risk in the source, by the number of codes known: everywhere of all patients."""
    return Table(
        caption,
        (
            "codes known, up to",
            f"patients at risk: fewer than {k} alike",
            "share of all",
            "unique",
            "share of all",
        ),
        tuple(
            (
                str(row.m),
                number(row.below_k),
                percent(row.below_k_share),
                number(row.unique),
                percent(row.unique_share),
            )
            for row in rows
        ),
    )


def group_errors(constraints: Sequence[Matched], within: float | None, caption: str) -> Chart:
    """A histogram of the code groups' errors; `within`: share of them within ±5 %."""
    return Chart(
        "Error of each code group of the policy",
        f"Histogram of the relative error of {len(constraints):,} code groups; {percent(within)} are within ±5 %.",
        charts.histogram(
            bins([-each.mre for each in constraints]),
            x_title="relative error, (estimate − true) / true",
            y_title="code groups",
            mark=(-0.05, 0.05),
        ),
        caption,
    )


def worst_groups(constraints: Sequence[Matched], names: Mapping[str, str] | None = None) -> Table:
    """The code groups with the largest error."""
    worst = sorted(constraints, key=lambda each: (-abs(each.mre), -each.true, each.name))[:CONSTRAINTS_SHOWN]
    return Table(
        f"The {len(worst)} code groups with the largest error",
        ("code group", "patients, true", "estimated", "error"),
        tuple(
            (
                called(each.name, names or {}),
                number(each.true),
                number(float(each.estimate)),
                f"{-100 * each.mre:+.1f} %",
            )
            for each in worst
        ),
    )


def bins(errors: Sequence[float]) -> list[dict[str, float]]:
    """Counts of errors in steps of `BIN`, to ±`BINS_TO`, or to ±100 % where errors are larger; the outermost bins take
    what is beyond."""
    last = round((BINS_TO if all(abs(error) <= BINS_TO for error in errors) else 1.0) / BIN)
    counts = Counter(max(-last, min(last - 1, math.floor(round(error / BIN, 9)))) for error in errors)
    return [{"low": n * BIN, "high": (n + 1) * BIN, "count": counts[n]} for n in range(-last, last)]
