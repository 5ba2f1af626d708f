"""Figs. 9–15 of the study of trajectories, drawn from the tables of its page.

    python benchmarks/study_trajectories_figures.py

Reads docs/studies/trajectories.md, writes docs/studies/trajectories/*.svg and puts the pictures below their headings.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from common import SECTION

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "trajectories.md"
COLOURS = ["#8a8f98", "#e69f00", "#56b4e9", "#0072b2", "#009e73"]

Rows = list[dict[str, Any]]


def number(cell: str) -> float | None:
    """The first number of a cell; of a percentage its share."""
    found = re.match(r"-?[\d.]+", cell)
    if found is None:
        return None
    return float(found[0]) / (100 if "%" in cell else 1)


def tables(text: str) -> list[tuple[str, list[str], list[list[str]]]]:
    """(heading above, head, rows) of each table of a page."""
    found: list[tuple[str, list[str], list[list[str]]]] = []
    heading = ""
    block: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            block.append([cell.strip() for cell in line.strip("|").split("|")])
            continue
        if block:
            found.append((heading, block[0], block[2:]))
            block = []
        if line.startswith("#"):
            heading = line.lstrip("# ")
    return found


def long(head: list[str], rows: list[list[str]], **more: str) -> Rows:
    """A row a cell: the first column's value, the column, the number."""
    return [
        {"row": row[0], "column": column, "value": value, **more}
        for row in rows
        for column, cell in zip(head[1:], row[1:], strict=True)
        if (value := number(cell)) is not None
    ]


def lines(rows: Rows, x: str, y: str, panel: str) -> Any:
    """Lines over `row`, one a column, side by side by `set`."""
    import altair as alt

    order = list(dict.fromkeys(each["column"] for each in rows))
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("x:Q", title=x),
            y=alt.Y("value:Q", title=y),
            color=alt.Color(
                "column:N", sort=order, scale=alt.Scale(range=COLOURS), legend=alt.Legend(title=None)
            ),
            column=alt.Column("set:N", title=None, sort=None) if panel else alt.Undefined,
        )
        .properties(width=230, height=200)
    )


def bars(rows: Rows, y: str) -> Any:
    """Bars by level, one a column, side by side by `set`."""
    import altair as alt

    levels = list(dict.fromkeys(each["row"] for each in rows))
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("row:N", sort=levels, title=None),
            xOffset="column:N",
            y=alt.Y("value:Q", title=y, axis=alt.Axis(format="%")),
            color=alt.Color("column:N", scale=alt.Scale(range=COLOURS[1:]), legend=alt.Legend(title=None)),
            column=alt.Column("set:N", title=None, sort=None),
        )
        .properties(width=230, height=200)
    )


def drawn(name: str, chart: Any, title: str) -> str:
    """The chart as a file, and the line that shows it."""
    import vl_convert

    folder = PAGE.with_suffix("")
    folder.mkdir(exist_ok=True)
    svg = vl_convert.vegalite_to_svg(chart.properties(background="white").to_json())
    (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
    return f"![{title}](trajectories/{name}.svg)"


def pictures(text: str) -> dict[str, list[str]]:
    """Heading -> the lines of its pictures. Sections of other scripts have none."""
    found = tables(SECTION.sub("", text))
    losses, answers, weights = [], [], []
    levels: dict[str, Rows] = {"code": [], "age": []}
    for heading, head, rows in found:
        if len(head) > 1 and head[1] == "Baseline":
            losses += [
                {**each, "x": int(each["row"].removeprefix("k = "))}
                for each in long(head[:-1], [row[:-1] for row in rows], set=heading)
            ]
        elif heading.startswith("Values by level"):
            name, _, kind = head[0].partition(", ")
            levels[kind] += long(head, rows, set=name)
        elif heading.startswith("Answers"):
            for each in long(head, rows):
                name, _, joining = each["row"].partition(", ")
                answers.append(
                    {**each, "x": int(each["column"].removeprefix("k = ")), "column": joining, "set": name}
                )
        elif heading.startswith("Weights"):
            weights += [{**each, "x": float(each["row"].split(" / ")[0])} for each in long(head, rows)]
    return {
        "## Information lost (Figs. 9–11)": [
            drawn("losses", lines(losses, "k", "ILM + ALM", "set"), "ILM + ALM against k")
        ],
        "## Values by level at k = 5 (Figs. 13 and 14)": [
            drawn("codes", bars(levels["code"], "share of codes"), "Codes by level"),
            drawn("ages", bars(levels["age"], "share of ages"), "Ages by level"),
        ],
        "## Answers to queries (Fig. 12)": [
            drawn("answers", lines(answers, "k", "AvgRE", "set"), "AvgRE against k")
        ],
        "## Weights (Fig. 15)": [
            drawn(
                "weights", lines(weights, "weight of codes", "loss", ""), "Losses against the weight of codes"
            )
        ],
    }


def main() -> None:
    """Draw, and show the pictures in the page."""
    text = re.sub(r"!\[[^\]]*\]\(trajectories/[^)]*\)\n\n?", "", PAGE.read_text(encoding="utf-8"))
    for heading, shown in pictures(text).items():
        text = text.replace(f"{heading}\n", f"{heading}\n\n" + "\n\n".join(shown) + "\n", 1)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
