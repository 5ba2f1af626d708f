"""Charts as inline SVG: made by Altair, rendered by vl-convert, without a browser, a network or JavaScript.

Colours are those of Okabe and Ito (2008), which colour-blind readers can tell apart; they also differ in lightness.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from leeward.texts import all_for_xml

BLUE, ORANGE, VERMILION, GREY = "#0072B2", "#E69F00", "#D55E00", "#8A8F98"
INK, LINE = "#1d2733", "#d9dee5"
WIDTH = 760
"""Pixels of the drawing inside the axes: with them, the width of a page's text."""

FONT = "system-ui, Segoe UI, Helvetica, Arial, sans-serif"

Rows = Sequence[dict[str, Any]]


def grouped_bars(
    rows: Rows, *, x: str, y: str, group: str, x_title: str, y_title: str, colors: dict[str, str]
) -> str:
    """Upright bars side by side (shares), one group a colour."""
    import altair as alt

    base = alt.Chart(_frame(rows)).encode(
        x=alt.X(f"{x}:N", title=x_title, sort=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset(f"{group}:N", sort=list(colors)),
        y=alt.Y(f"{y}:Q", title=y_title, axis=alt.Axis(format="%", tickCount=5)),
    )
    fill = alt.Color(
        f"{group}:N",
        title=None,
        sort=list(colors),
        scale=alt.Scale(domain=list(colors), range=list(colors.values())),
        legend=alt.Legend(
            orient="top", symbolType="square", labelFontSize=13, labelLimit=400, columnPadding=24
        ),
    )
    text = base.mark_text(dy=-7, fontSize=11, color=INK).encode(text=alt.Text(f"{y}:Q", format=".1%"))
    return _svg(alt.layer(base.mark_bar().encode(color=fill), text), WIDTH, 240)


def stacked(
    rows: Rows, *, y: str, x: str, part: str, x_title: str, colors: dict[str, str], share: bool = False
) -> str:
    """Horizontal bars, one per value of `y`, stacked by `part`."""
    import altair as alt

    names = list(dict.fromkeys(str(row[y]) for row in rows))
    order = {name: place for place, name in enumerate(colors)}
    ordered = [{**row, "order": order[row[part]]} for row in rows]
    chart = (
        alt.Chart(_frame(ordered))
        .mark_bar()
        .encode(
            y=alt.Y(f"{y}:N", title=None, sort=names, axis=alt.Axis(labelLimit=220)),
            x=alt.X(
                f"{x}:Q",
                title=x_title,
                axis=alt.Axis(format="%" if share else ",d", tickCount=8),
                stack="normalize" if share else "zero",
            ),
            color=alt.Color(
                f"{part}:N",
                title=None,
                sort=list(colors),
                scale=alt.Scale(domain=list(colors), range=list(colors.values())),
                legend=alt.Legend(
                    orient="top", symbolType="square", labelFontSize=13, labelLimit=400, columnPadding=24
                ),
            ),
            order=alt.Order("order:Q"),
        )
    )
    return _svg(chart, WIDTH - 60, max(60, 21 * len(names)))


def histogram(bins: Rows, *, x_title: str, y_title: str, mark: tuple[float, float] | None = None) -> str:
    """Bars of `count` from `low` to `high` (shares); the span `mark` is shaded behind them."""
    import altair as alt

    base = (
        alt.Chart(_frame(bins))
        .mark_bar(color=BLUE, stroke="white", strokeWidth=1)
        .encode(
            x=alt.X("low:Q", bin="binned", title=x_title, axis=alt.Axis(format="+.0%", tickCount=9)),
            x2="high:Q",
            y=alt.Y("count:Q", title=y_title, axis=alt.Axis(tickCount=5)),
        )
    )
    if mark is None:
        return _svg(base, WIDTH, 220)
    span = (
        alt.Chart(_frame([{"from": mark[0], "to": mark[1]}]))
        .mark_rect(color=ORANGE, opacity=0.25)
        .encode(x="from:Q", x2="to:Q")
    )
    return _svg(alt.layer(span, base), WIDTH, 220)


def _frame(rows: Rows) -> pl.DataFrame:
    return pl.DataFrame(list(rows), infer_schema_length=None)


def _svg(chart: Any, width: int, height: int) -> str:
    """The chart as SVG that scales with the page; its labels stay text, to be searched and read out."""
    styled = (
        chart.properties(width=width, height=height, background="transparent", padding=4)
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_axis(
            labelFontSize=12,
            titleFontSize=13,
            titleFontWeight="normal",
            titlePadding=10,
            labelColor=INK,
            titleColor=INK,
            gridColor=LINE,
            domainColor=GREY,
            tickColor=GREY,
        )
        .configure_axisY(domain=False, ticks=False)
    )
    return drawn(styled)


def drawn(chart: Any) -> str:
    """A chart of Altair's as SVG.

    The drawing library ends the process at a sign that XML lacks, so it gets none (`for_xml`).
    """
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(all_for_xml(chart.to_dict()))
    return svg
