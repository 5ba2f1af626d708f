"""The page of an exploration or comparison: risk against utility for each line of the plan, and the table beside it.

One HTML file that opens offline: no script, no external resource. Hover shows a point's spec; the switch between the
guarantee's maximum and the mean that was measured is a pair of radio buttons.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from leeward.advise.frontier import Row, Spot, by_attacker, chance_of, frontier, spots_of
from leeward.advise.utility.verdicts import RULE
from leeward.fields import declarations
from leeward.methods import METHODS
from leeward.pages import template_of
from leeward.report import charts as drawing
from leeward.report.charts import Drawing, Scale
from leeward.report.sections import number, percent
from leeward.report.summary import sentence
from leeward.report.writing import to_html
from leeward.texts import for_xml

WIDTH, HEIGHT, BELOW, LEFT, TOP = 900, 400, 52, 74, 16
LOW = 250
"""Height of a chart where a line has several, one an attacker."""

COLORS = {
    "disassociation": "#0072B2",
    "constraints": "#D55E00",
    "visits": "#009E73",
    "censoring": "#CC79A7",
    "trajectories": "#E69F00",
    "condensation": "#0072B2",
    "k-anonymity": "#D55E00",
}
MARKS = (
    '<circle r="6"',
    '<polygon points="-6,-6 6,-6 6,6 -6,6"',
    '<polygon points="0,-7.8 7.8,0 0,7.8 -7.8,0"',
    '<polygon points="0,-7.2 7.2,6 -7.2,6"',
    '<polygon points="-6,-2 -2,-2 -2,-6 2,-6 2,-2 6,-2 6,2 2,2 2,6 -2,6 -2,2 -6,2"',
)
"""Circle, square, diamond, triangle and cross: one for each method, in the order of the legend."""

ATTACKERS_SHOWN = 3
"""A method's attackers differ with its parameters."""

GREY, BEATEN = "var(--soft, #566273)", "#8A8F98"


def render(rows: Sequence[Row], lines: Sequence[str], settings: Mapping[str, Any]) -> str:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    panels = [
        _panel(rows, place, title, methods, settings.get("threshold")) for place, title in enumerate(lines, 1)
    ]
    return template_of("leeward.advise", "explore.html.j2", marked=to_html).render(
        settings=settings,
        panels=panels,
        rule=RULE,
        methods=[(name, _attackers(rows, name), legend(name, methods)) for name in methods],
        table=[_table_row(row, len(lines)) for row in rows],
        lines=list(enumerate(lines, 1)),
        failed=[row for row in rows if row["status"] != "verified"],
        verified=sum(row["status"] == "verified" for row in rows),
        repeats=max((row["seed"] or 0 for row in rows), default=0),
    )


def _panel(
    rows: Sequence[Row], line: int, title: str, methods: Sequence[str], threshold: float | None
) -> dict[str, Any]:
    means = by_attacker(spots_of(rows, line, "measured_mean"))
    attackers = by_attacker(spots_of(rows, line))
    height = HEIGHT if len(attackers) == 1 else LOW
    frontiers = [
        {
            "knows": knows,
            "maximum": chart(spots, methods, threshold, "maximum risk for this attacker", height),
            "mean": chart(
                means.get(knows, ()), methods, None, "mean risk for this attacker, measured", height
            ),
            "alt": _in_words(spots, frontier(spots)),
            "best": _best_in_words(spots, threshold),
        }
        for knows, spots in attackers.items()
    ]
    verified = [row for row in rows if row["status"] == "verified"]
    absent = {(row["method"], _reason(row, line)) for row in verified if row[f"line_{line}"] is None}
    floors = (row[f"floor_{line}"] for row in rows if row[f"floor_{line}"] is not None)
    return {
        "title": title[:1].upper() + title[1:],
        "frontiers": frontiers,
        "absent": sorted(absent),
        "floor": next(floors, None),
    }


def _best_in_words(spots: Sequence[Spot], threshold: float | None) -> str | None:
    most = math.inf if threshold is None else threshold + 1e-12
    within = [spot for spot in spots if not spot.at_least and spot.risk <= most]
    top = max(within, key=lambda spot: (spot.value, -spot.risk), default=None)
    if top is None:
        return None
    kept = percent(top.value).replace(" %", "\u00a0%")  # not broken before the sign
    return f"{describe_spec(top.spec)}: {kept} ({top.verdict})"


def chart(
    spots: Sequence[Spot], methods: Sequence[str], threshold: float | None, x_title: str, height: int
) -> str:
    """Risk for one attacker (logarithmic) against a line's figure: points with spread, the frontier, the threshold."""
    made = Drawing()
    risks = [spot.risk for spot in spots] + ([] if threshold is None else [threshold])
    low, high = (min(risks), max(risks)) if risks else (0.05, 0.5)
    x = Scale(low / 1.25, min(high * 1.25, 1.0) if high < 1 else 1.0, LEFT, WIDTH - 20, math.log)
    y = Scale(0.0, 1.0, height - BELOW, TOP)
    at = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    drawing.axis_left(made, y, LEFT, WIDTH - 20, at, drawing.percentages(at), "kept")
    marks = sorted({round(spot.risk, 4) for spot in spots}) or [low]
    drawing.axis_below(made, x, height - BELOW, _apart(marks, x), lambda value: f"{value:.3g}", x_title)
    _draw_floor(made, spots, y, at)
    if threshold is not None:
        made.line([(x(threshold), TOP), (x(threshold), height - BELOW)], "#D55E00", 1.5, "6 4")
        words, color = f"threshold {threshold:g}", "var(--warn, #9a4a00)"
        made.text(x(threshold) - 5, height - BELOW - 8, words, anchor="end", color=color)
    _draw_spots(made, spots, methods, x, y)
    if not spots:
        made.text(WIDTH / 2, height / 2, "not measured for this attacker", anchor="middle", color=GREY)
    return made.svg(WIDTH, height)


def _draw_floor(made: Drawing, spots: Sequence[Spot], y: Scale, ticks: Sequence[float]) -> None:
    floor = next((spot.floor for spot in spots if spot.floor is not None), None)
    if floor is None:
        return
    made.line([(LEFT, y(floor)), (WIDTH - 20, y(floor))], GREY, 1.2, "2 4")
    crossed = min(y(floor) - y(value) for value in ticks if value >= floor) < 20
    made.text(LEFT + 6, y(floor) + (14 if crossed else -5), "floor: a resample of the original", color=GREY)


def _draw_spots(made: Drawing, spots: Sequence[Spot], methods: Sequence[str], x: Scale, y: Scale) -> None:
    """The frontier as steps, and a mark for each spot: grey where another beats it."""
    from markupsafe import escape

    best = frontier(spots)
    steps: list[tuple[float, float]] = []
    for spot in best:
        steps += [(x(spot.risk), steps[-1][1])] if steps else []
        steps.append((x(spot.risk), y(spot.value)))
    if len(steps) > 1:
        made.line(steps, "var(--ink, #1d2733)", 1.5)
    for spot in sorted(spots, key=lambda each: each in best):
        at, level = x(spot.risk), y(spot.value)
        color = COLORS.get(spot.method, BEATEN) if spot in best else BEATEN
        if spot.high - spot.low > 1e-9:
            made.line([(at, y(spot.low)), (at, y(spot.high))], color, 2)
        if spot.at_least:
            made.text(at + 12, level + 4, "at least →", color=GREY)
        words = (
            f"{describe_spec(spot.spec)}: risk {chance_of(spot)}, {percent(spot.value)} kept, {spot.verdict}"
        )
        mark = _mark(spot.method, methods, at, level, color)
        made.marks.append(f"<g>{mark}<title>{escape(for_xml(words))}</title></g>")


def _mark(method: str, methods: Sequence[str], x: float, y: float, color: str) -> str:
    shape = MARKS[list(methods).index(method) % len(MARKS)]
    return f'{shape} transform="translate({drawing.number(x)} {drawing.number(y)})" fill="{color}"/>'


def legend(name: str, methods: Sequence[str]) -> str:
    mark = _mark(name, methods, 9, 9, COLORS.get(name, BEATEN))
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="18" height="18" aria-hidden="true">{mark}</svg>'


def describe_spec(spec: str) -> str:
    """A spec's one line for a person: `disassociation, k = 5, m = 2`, without what is its method's default."""
    parameters = json.loads(spec)
    usual = {
        each.name: each.default
        for each in declarations(METHODS[parameters["name"]].parameters_class())
        if each.name not in ("k", "m")
    }
    rest = [
        f"{key} = {value}"
        for key, value in parameters.items()
        if key not in ("name", "folder") and value not in (None, False, [], {}) and value != usual.get(key)
    ]
    folder = f"{parameters['folder']}: " if "folder" in parameters else ""
    return folder + ", ".join([parameters["name"], *rest])


def _apart(marks: Sequence[float], scale: Scale) -> list[float]:
    kept: list[float] = []
    for value in marks:
        if not kept or scale(value) - scale(kept[-1]) > 40:
            kept.append(value)
    return kept


def _reason(row: Row, line: int) -> str:
    detail = row[f"detail_{line}"]
    return str((json.loads(detail) if detail else {}).get("reason", "it cannot"))


def _attackers(rows: Sequence[Row], method: str) -> str:
    told = dict.fromkeys(
        sentence(str(row["attacker"])) for row in rows if row["method"] == method and row["attacker"]
    )
    shown = list(told)[:ATTACKERS_SHOWN]
    return " Or: ".join(shown) + (" …" if len(told) > len(shown) else "") or "no release was made"


def _in_words(spots: Sequence[Spot], best: Sequence[Spot]) -> str:
    first, last = best[0], best[-1]
    return (
        f"{len(spots)} points; the frontier goes from {percent(first.value)} kept at a risk of {first.risk:.3g} to "
        f"{percent(last.value)} at {last.risk:.3g}."
    )


def _table_row(row: Row, lines: int) -> dict[str, Any]:
    return {
        "spec": describe_spec(row["spec"]),
        "seed": row["seed"],
        "status": row["status"],
        "risk": row["risk_in_words"] or number(row["risk_maximum"]),
        "mean": number(row["measured_mean"]),
        "lines": [
            (percent(row[f"line_{place}"]), row[f"verdict_{place}"] or "") for place in range(1, lines + 1)
        ],
    }
