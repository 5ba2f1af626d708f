"""Pictures of the study of condensation: bars of the paper's Figs. 1–4, lines of its Figs. 5–8."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "studies" / "condensation"
COLORS = {
    "balanced": "#0072B2",
    "improved": "#E69F00",
    "condensation": "#009E73",
    "r-microhybrid": "#F0E442",
    "tfrp": "#CC79A7",
    "k-anonymity, known columns": "#8A8F98",
    "trees, leaf 100": "#D55E00",
    "copula": "#56B4E9",
    "bootstrap": "#1D2733",
}
"""Of Okabe and Ito; the bootstrap, which is no method, nearly black."""

MODELS = ("linear", "logistic", "cox")
WIDTH = 780


def bars(name: str, rows: Sequence[dict[str, Any]], title: str, *, percent: bool = True) -> str:
    """Upright bars by set and method, with intervals and a panel a model where rows have them; returns Markdown."""
    import altair as alt
    import polars as pl

    sets = list(dict.fromkeys(row["set"] for row in rows))
    methods = [method for method in COLORS if any(row["method"] == method for row in rows)]
    frame = pl.DataFrame(list(rows))
    if "half" in frame.columns:
        bounds = {
            "low": pl.max_horizontal(pl.col("value") - pl.col("half"), 0),
            "high": pl.col("value") + pl.col("half"),
        }
        frame = frame.with_columns(**bounds)
    at = alt.Chart(frame).encode(
        x=alt.X("set:N", sort=sets, title=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("method:N", sort=methods),
    )
    axis = alt.Axis(format="%" if percent else "~g", tickCount=4)
    y_title = None if percent else title
    base: Any = at.mark_bar().encode(y=alt.Y("value:Q", title=y_title, axis=axis), color=color(methods))
    if "half" in frame.columns:
        ends = at.mark_rule(color="black").encode(y=alt.Y("low:Q", title=y_title), y2="high:Q")
        base = alt.layer(base, ends.transform_filter("datum.half > 0"), data=frame)
    base = base.properties(width=WIDTH, height=130)
    if "model" in rows[0]:
        base = base.facet(row=alt.Row("model:N", sort=list(MODELS), title=None), spacing=12)
    return drawn(name, base, title)


def lines(name: str, rows: Sequence[dict[str, Any]], title: str, x: str) -> str:
    """Processor seconds along one parameter, both on logarithmic axes; returns the picture's Markdown."""
    import altair as alt
    import polars as pl

    methods = list(dict.fromkeys(row["method"] for row in rows))
    at = sorted({row["at"] for row in rows})
    chart = (
        alt.Chart(pl.DataFrame(list(rows)))
        .mark_line(point=True)
        .encode(
            x=alt.X("at:Q", title=x, scale=alt.Scale(type="log"), axis=alt.Axis(values=at, format=",d")),
            y=alt.Y(
                "seconds:Q",
                title="processor seconds",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~g"),
            ),
            color=color(methods),
        )
        .properties(width=WIDTH - 260, height=260)
    )
    return drawn(name, chart, title)


def color(methods: Sequence[str]) -> Any:
    """One colour a method; steps of a method take the palette in its order."""
    import altair as alt

    known = [COLORS.get(method, list(COLORS.values())[place]) for place, method in enumerate(methods)]
    return alt.Color(
        "method:N", title=None, sort=list(methods), scale=alt.Scale(domain=list(methods), range=known)
    )


def drawn(name: str, chart: Any, title: str) -> str:
    """Write the picture and say where it is."""
    import vl_convert

    FOLDER.mkdir(parents=True, exist_ok=True)
    styled = (
        chart.properties(background="white", padding=8)
        .configure(font="system-ui, Segoe UI, Helvetica, Arial, sans-serif")
        .configure_view(stroke=None)
        .configure_legend(orient="top", labelFontSize=12, columnPadding=20, labelLimit=400)
    )
    (FOLDER / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(styled.to_json()), encoding="utf-8")
    return f"![{title}](condensation/{name}.svg)"
