"""The sections of a report on associations before and after (`analysis.phewas.measure`), of methods whose releases have
codes of patients, with plots (Heatherly et al. 2013, Figures 1 to 12)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

from leeward.report import charts
from leeward.report.charts import Axis, Drawing, decimals, plane, ticks, ticks_from_zero
from leeward.report.sections import Chart, Figures, Section, number, percent, table_of

SMALLEST_P = 1e-300
NAMED = 6
WEAKEST_NAMED = -math.log10(0.05)
"""Number of phenotypes of the smallest p named in a plot, and -log10 of the largest p of a named one."""
NAME_WIDTH, NAME_HEIGHT = 340, 18
"""Space for a name, in pixels."""
WIDEST_CHANGE, BIN = 3.0, 0.25
DOT = 3.0
CATEGORIES = (
    "#1f77b4", "#aec7e8", "#ff7f0e", "#ffbb78", "#2ca02c", "#98df8a", "#d62728", "#ff9896", "#9467bd", "#c5b0d5",
    "#8c564b", "#c49c94", "#e377c2", "#f7b6d2", "#7f7f7f", "#c7c7c7", "#bcbd22", "#dbdb8d", "#17becf", "#9edae5",
)  # fmt: skip
"""Colours of disease categories: D3's twenty."""

RULES = {"p05": "p < 0.05", "bonferroni": "Bonferroni", "fdr": "false discovery rate 5 %"}


def sections(found: Figures | None) -> list[Section]:
    if not found:
        return []
    p05, bonferroni = found["totals"]["p05"], found["totals"]["bonferroni"]
    intro = (
        f"Each of {found['phecodes']['original']:,} phecodes was tested against each predictor "
        f"({found['test']} test, at least {found['min_cases']} cases), in the original data and in the release. At "
        f"p < 0.05, {p05['lost']:,} of {p05['original']:,} associations were lost and "
        f"{p05['false']:,} appeared; after Bonferroni's correction {bonferroni['lost']:,} of "
        f"{bonferroni['original']:,} were lost. Lost: significant in the original only. "
        "False: in the release only."
    )
    if effects := found.get("effects", {}).get("compared"):
        moved, inside = found["effects"]["moved"], percent(found["effects"]["inside"])
        intro += (
            f" The log odds ratios (regression) of {effects:,} of the original's associations moved by {moved:+.3f} on "
            f"average (below 0: towards no effect); {inside} are within the original's 95 % intervals."
        )
    intro += without_regression(found)
    table = table_of(
        "Associations lost and false",
        found["comparison"],
        ("predictor", "predictor", str),
        ("significant by", "rule", RULES.__getitem__),
        ("original", "original", number),
        ("kept", "kept", number),
        ("lost", "lost", number),
        ("false", "false", number),
    )
    plots = [
        plot
        for predictor in dict.fromkeys(row["predictor"] for row in found["tests"])
        for plot in of_predictor(predictor, found["tests"])
    ]
    return [Section("Associations (PheWAS)", (intro, table)), Section("Associations, plotted", tuple(plots))]


def without_regression(found: Figures) -> str:
    """Reasons why regression tests have no p."""
    if found["test"] != "logistic":
        return ""
    parts = []
    for where, of in (("the original", "original"), ("the release", "anonymized")):
        outcomes = found["regressions"][of]
        reasons = [
            f"{number(count)} {words}"
            for count, words in (
                (outcomes["separated"], "because of complete separation (no finite coefficient exists)"),
                (outcomes["collinear"], "because a column is collinear with others among these people"),
                (outcomes["few"], f"because there are fewer than {found['min_cases']} cases or controls"),
            )
            if count
        ]
        if reasons:
            parts.append(
                f" In {where} regressions are missing: {'; '.join(reasons)}. They have no p value and are "
                f"not counted."
            )
    return "".join(parts)


def of_predictor(predictor: str, tests: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """QQ, change of p, volcano and Manhattan plot of one predictor."""
    rows = [_row(test) for test in tests if test["predictor"] == predictor]
    first = [row for row in rows if row["original"] is not None]
    both, effects = ([row for row in first if row[of] is not None] for of in ("anonymized", "effect"))
    moved = sum(abs(row["original"] - row["anonymized"]) > 0.05 for row in both)
    charts_of = (
        (
            "p before and after",
            f"Each dot a phecode; {moved:,} of {len(both):,} lie off the diagonal by more than 0.05.",
            "On the diagonal an association is as strong in the release as in the original data.",
            _qq,
            both,
        ),
        (
            "change of p",
            f"Histogram of the change of -log10 p over {len(both):,} phecodes.",
            "Left of zero associations got weaker.",
            _changes,
            both,
        ),
        (
            "volcano plot, original data",
            "Effect (log odds) against -log10 p; the line is p = 0.05.",
            "",
            _dots,
            effects,
        ),
        (
            "by disease category",
            "Manhattan plot: phecodes in order, coloured by category, -log10 p in the original data.",
            "Filled: original data. Rings: release.",
            _manhattan,
            first,
        ),
    )
    return [
        Chart(f"{predictor}: {title}", alt, draw(shown), caption)
        for title, alt, caption, draw, shown in charts_of
        if shown
    ]


def _row(test: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "phecode": test["phecode"],
        "phenotype": test["phenotype"] or test["phecode"],
        "category": test["category"],
        "effect": test["effect"],
        "original": _minus_log(test["p_original"]),
        "anonymized": _minus_log(test["p_anonymized"]),
        "order": float(test["phecode"]),
    }


def _minus_log(p: float | None) -> float | None:
    return None if p is None else -math.log10(max(p, SMALLEST_P))


def _qq(rows: list[dict[str, Any]]) -> str:
    top = max(max(row["original"], row["anonymized"]) for row in rows) * 1.02 + 0.05
    at = ticks(0, top, 8)
    x, y = (Axis(f"-log10 p, {of}", 0, top, at, decimals(at)) for of in ("original", "release"))
    drawing, along, up = plane(x, y, charts.WIDTH, 340, 10)
    drawing.line([(along(0), up(0)), (along(top), up(top))], charts.GREY, width=2)
    for row in rows:
        drawing.dot(along(row["original"]), up(row["anonymized"]), DOT, charts.BLUE)
    _name_strongest(drawing, rows, lambda row: (along(row["original"]), up(row["anonymized"])))
    return drawing.svg(along.end + 30, up(0) + 48)


def _changes(rows: list[dict[str, Any]]) -> str:
    last = round(WIDEST_CHANGE / BIN)
    moved = [math.floor((row["anonymized"] - row["original"]) / BIN) for row in rows]
    bins = Counter(max(-last, min(last, each)) for each in moved)
    return charts.histogram(
        [{"low": n * BIN, "high": (n + 1) * BIN, "count": bins[n]} for n in range(-last, last + 1)],
        x_title=f"change of -log10 p (beyond ±{WIDEST_CHANGE:g} counted there)",
        y_title="phecodes",
        written=decimals((0, 1), signed=True),
        logarithmic=True,
    )


def _dots(rows: list[dict[str, Any]]) -> str:
    x = Axis.around("log odds ratio per allele or unit", [row["effect"] for row in rows])
    limit = -math.log10(0.05)
    drawing, along, up = plane(
        x, _strength([limit, *(row["original"] for row in rows)]), charts.WIDTH, 280, 10
    )
    drawing.line([(along.start, up(limit)), (along.end, up(limit))], charts.VERMILION)
    for row in rows:
        drawing.dot(along(row["effect"]), up(row["original"]), DOT, charts.BLUE)
    _name_strongest(drawing, rows, lambda row: (along(row["effect"]), up(row["original"])))
    return drawing.svg(along.end + 30, up(0) + 48)


def _strength(values: Sequence[float]) -> Axis:
    at = ticks_from_zero(max(values), 6)
    return Axis("-log10 p", 0, at[-1], at, decimals(at))


def _manhattan(rows: list[dict[str, Any]]) -> str:
    ordered = sorted(rows, key=lambda row: row["order"])
    colors = dict(zip(sorted({row["category"] for row in rows}), cycle(CATEGORIES), strict=False))
    x = Axis("phecodes in order", -1, len(rows), (), str)
    shown = [row[of] for row in rows for of in ("original", "anonymized") if row[of] is not None]
    drawing, along, up = plane(x, _strength(shown), charts.WIDTH, 280, 10)
    for place, row in enumerate(ordered):
        color = colors[row["category"]]
        drawing.dot(along(place), up(row["original"]), DOT, color)
        if row["anonymized"] is not None:
            drawing.dot(along(place), up(row["anonymized"]), DOT, color, ring=True)
    place_of = {row["phecode"]: place for place, row in enumerate(ordered)}
    _name_strongest(drawing, rows, lambda row: (along(place_of[row["phecode"]]), up(row["original"])))
    below = drawing.legend(along.start, up(0) + 68, colors, along.end)
    return drawing.svg(along.end + 30, below + 12)


def _name_strongest(
    drawing: Drawing,
    rows: Sequence[dict[str, Any]],
    at: Callable[[dict[str, Any]], tuple[float, float]],
) -> None:
    """Name the associations (p < 0.05) strongest in the original or the release, each beside
    its dot (`at`: x and y), on the side with space, without overlap."""
    dots = [at(row) for row in rows]
    middle = (min(x for x, _ in dots) + max(x for x, _ in dots)) / 2
    named: list[tuple[float, float]] = []
    strength = [max(row["original"], row["anonymized"] or 0) for row in rows]
    for place in sorted(range(len(rows)), key=lambda place: -strength[place]):
        x, y = dots[place]
        near = any(abs(other - y) < NAME_HEIGHT and abs(left - x) < NAME_WIDTH for left, other in named)
        if not near and len(named) < NAMED and strength[place] > WEAKEST_NAMED:
            named.append((x, y))
            beside, anchor = (x - 6, "end") if x > middle else (x + 6, "start")
            drawing.text(beside, y + 4, rows[place]["phenotype"], size=11, anchor=anchor)
