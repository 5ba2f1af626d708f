"""Parts that reports on codes have in common: names of codes from the list that the release has (`codes.parquet`),
patients at risk, errors of the policy's code groups."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leeward.release import Release
from leeward.report import charts
from leeward.report.sections import Chart, Table, number, percent, table_of

LIST = "codes.parquet"
LONGEST = 44
REMARK = re.compile(r" \([a-z ]{1,12}\)$")
"""What a name is of: `(category)`, or SNOMED's `(disorder)`."""

CONSTRAINTS_SHOWN = 15
BIN, BINS_TO = 0.025, 0.4
"""Width of a bar of the histogram of errors, and where its axis ends."""


def names_of_release(release: Release) -> Mapping[str, str]:
    if LIST not in release.names():
        return {}
    table = release.table(LIST)
    if "name" not in table.collect_schema().names():
        return {}
    rows = table.select("code", "name").collect().iter_rows()
    return {code: name for code, name in rows if name}


def label_code(code: str, names: Mapping[str, str], longest: int = LONGEST) -> str:
    """The code with its name, as far as there is room: `428 Heart failure`; a last remark in brackets is kept."""
    text = f"{code} {names[code]}" if names.get(code) else code
    if len(text) <= longest:
        return text
    remark = REMARK.search(text)
    end = "…" + (remark[0] if remark else "")
    return text[: longest - len(end)].rstrip(" ,;(") + end


def risk_table(caption: str, rows: Iterable[Any], k: int) -> Table:
    """Patients at risk in the source, by the number of codes known: everywhere of all patients."""
    return table_of(
        caption,
        rows,
        ("codes known, up to", "m", str),
        (f"patients at risk: fewer than {k} alike", "below_k", number),
        ("share of all", "below_k_share", percent),
        ("unique", "unique", number),
        ("share of all", "unique_share", percent),
    )


def group_errors(constraints: Sequence[Any], within: float | None, caption: str) -> Chart:
    """A histogram of the code groups' errors; `within`: share of them within ±5 %."""
    return Chart(
        "Error of each code group of the policy",
        f"Histogram of the relative error of {len(constraints):,} code groups; {percent(within)} are within ±5 %.",
        charts.histogram(
            bins([-each["mre"] for each in constraints]),
            x_title="relative error, (estimate − true) / true",
            y_title="code groups",
            mark=(-0.05, 0.05),
        ),
        caption,
    )


def worst_groups(constraints: Sequence[Any], names: Mapping[str, str] | None = None) -> Table:
    worst = sorted(constraints, key=lambda each: (-abs(each["mre"]), -each["true"], each["name"]))[
        :CONSTRAINTS_SHOWN
    ]
    return table_of(
        f"The {len(worst)} code groups with the largest error",
        worst,
        ("code group", "name", lambda name: label_code(name, names or {})),
        ("patients, true", "true", number),
        ("estimated", "estimate", lambda count: number(float(count))),
        ("error", "mre", lambda error: f"{-100 * error:+.1f} %"),
    )


def bins(errors: Sequence[float]) -> list[dict[str, float]]:
    """Counts of errors in steps of `BIN`, to ±`BINS_TO` or, for larger errors, ±100 %; the outermost take the rest."""
    last = round((BINS_TO if all(abs(error) <= BINS_TO for error in errors) else 1.0) / BIN)
    counts = Counter(max(-last, min(last - 1, math.floor(round(error / BIN, 9)))) for error in errors)
    return [{"low": n * BIN, "high": (n + 1) * BIN, "count": counts[n]} for n in range(-last, last)]
