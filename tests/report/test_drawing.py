"""Charts drawn here: their marks are where their figures are, and their labels are whole."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.report import charts
from leeward.report.charts import Drawing, percentages, ticks, ticks_from_zero

SVG = "{http://www.w3.org/2000/svg}"


def marks(svg: str, kind: str) -> list[dict[str, str]]:
    """The attributes of all elements of a kind; text under `text`."""
    return [{**each.attrib, "text": each.text or ""} for each in ElementTree.fromstring(svg).iter(SVG + kind)]


def test_bars_are_as_high_as_their_shares() -> None:
    rows = [("1 code", 0.1, "before"), ("1 code", 0.0, "after"), ("2 codes", 0.4, "before")]
    svg = charts.bars_by_group(
        rows, x_title="known", y_title="at risk",
        colors={"before": "#111111", "after": "#222222"},
    )  # fmt: skip
    before = [float(each["height"]) for each in marks(svg, "rect") if each["fill"] == "#111111"]
    heights = sorted(before)
    assert heights[-1] == pytest.approx(4 * heights[-2], rel=1e-3)
    assert heights[-1] == 240  # 40 % is the top of its axis
    words = [each["text"] for each in marks(svg, "text")]
    assert {"1 code", "2 codes", "10.0 %", "0.0 %", "40.0 %", "before", "after", "at risk"} <= set(words)


def test_long_names_below_narrow_bars_are_broken_and_one_colour_has_no_legend() -> None:
    rows = [("the code itself", 0.5, "Codes")]
    rows += [(f"{n} up", 0.1, "Codes") for n in range(15)]
    svg = charts.bars_by_group(rows, x_title="level", y_title="share", colors={"Codes": "#000"})
    texts = [element.text for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")]
    assert "the code itself" not in texts and {"the", "code", "itself", "3 up"} <= set(texts)
    assert "Codes" not in texts


def test_parts_of_a_stacked_bar_follow_each_other() -> None:
    rows = [
        {"code": "250", "n": 30, "kind": "a"},
        {"code": "250", "n": 10, "kind": "b"},
        {"code": "401", "n": 20, "kind": "b"},
    ]
    svg = charts.stacked_bars(
        rows, y="code", x="n", part="kind", x_title="patients", colors={"a": "#111111", "b": "#222222"}
    )
    bars = [each for each in marks(svg, "rect") if float(each["height"]) > 11.5]
    first, second, other = ((float(each["x"]), float(each["width"])) for each in bars)
    assert first[0] + first[1] == pytest.approx(second[0], abs=0.02)
    assert first[0] == other[0]
    assert first[1] == pytest.approx(3 * second[1], rel=1e-3)
    assert other[1] == pytest.approx(2 * second[1], rel=1e-3)


def test_a_share_takes_the_whole_width() -> None:
    rows = [{"what": "all", "n": n, "kind": kind} for kind, n in (("a", 2), ("b", 6))]
    svg = charts.stacked_bars(
        rows, y="what", x="n", part="kind", x_title="", colors={"a": "#1", "b": "#2"}, share=True
    )
    widths = [float(each["width"]) for each in marks(svg, "rect") if float(each["height"]) > 11.5]
    assert sum(widths) == pytest.approx(charts.WIDTH - 60, abs=0.1)
    assert widths[1] == pytest.approx(3 * widths[0], rel=1e-3)


def test_steps_rise_where_the_next_count_is() -> None:
    rows = [
        {"people": 1, "share": 0.5, "records": "before"},
        {"people": 100, "share": 1.0, "records": "before"},
    ]
    svg = charts.steps(
        rows, x="people", y="share", group="records", x_title="people", y_title="share",
        colors={"before": "#111111"}, at=10,
    )  # fmt: skip
    (path,) = [each["d"] for each in marks(svg, "path") if each["stroke"] == "#111111"]
    points = [tuple(map(float, pair.split())) for pair in re.split("[ML]", path)[1:]]
    (a, b), (c, d), (e, f) = points
    assert b == d and c == e and f < d and a < c  # along, then up
    (limit,) = [each["d"] for each in marks(svg, "path") if "stroke-dasharray" in each]
    assert float(limit[1:].split()[0]) == pytest.approx((a + c) / 2, abs=0.02)  # 10 is half way from 1 to 100


def test_a_histogram_shades_the_span_behind_its_bars() -> None:
    bins = [{"low": -0.1, "high": 0.0, "count": 3}, {"low": 0.0, "high": 0.1, "count": 6}]
    svg = charts.histogram(bins, x_title="error", y_title="groups", mark=(-0.05, 0.05))
    span, first, second = marks(svg, "rect")
    assert span["fill"] == charts.ORANGE
    assert float(second["height"]) == pytest.approx(2 * float(first["height"]), rel=1e-3)
    assert {"-10 %", "0 %", "+10 %"} <= {each["text"] for each in marks(svg, "text")}


@pytest.mark.parametrize("code", ["<script>", "a&b", "\x00\x1b", "￾", '"'])
def test_a_label_is_text_whatever_its_signs(code: str) -> None:
    svg = charts.stacked_bars(
        [{"y": code, "x": 1, "p": "a"}], y="y", x="x", part="p", x_title="", colors={"a": "#1"}
    )
    assert len(marks(svg, "text")) > 2
    assert "<script>" not in svg


@settings(max_examples=200)
@given(st.floats(1e-6, 1e9), st.integers(2, 10))
def test_an_axis_holds_its_data_with_few_round_marks(high: float, about: int) -> None:
    at = ticks_from_zero(high, about)
    assert at[0] == 0 and at[-1] >= high * (1 - 1e-9) and at[-2] < high * (1 + 1e-9)
    assert 2 <= len(at) <= 2.5 * about + 2
    mantissa = f"{at[1]:e}".split("e")[0].rstrip("0").rstrip(".")
    assert mantissa in {"1", "2", "5"}


def test_neighbours_of_an_axis_are_told_apart() -> None:
    at = ticks(0, 0.004, 5)
    written = percentages(at)
    assert len({written(value) for value in at}) == len(at)


def test_a_point_stands_on_its_interval_and_the_line_at_zero_between_signs() -> None:
    rows = [
        {"name": "x", "group": "before", "value": -1.0, "low": -2.0, "high": 0.0},
        {"name": "x", "group": "after", "value": 1.0, "low": 0.0, "high": 2.0},
    ]
    colors = {"before": "#111111", "after": "#222222"}
    svg = charts.intervals(rows, ["x", "<none>"], x_title="coefficient", colors=colors)
    (zero,) = [each["d"] for each in marks(svg, "path") if "stroke-dasharray" in each]
    middle = float(zero[1:].split()[0])
    for color, sign in (("#111111", -1), ("#222222", 1)):
        (line,) = [each["d"] for each in marks(svg, "path") if each["stroke"] == color]
        (a, y), (b, _) = (tuple(map(float, pair.split())) for pair in re.split("[ML]", line)[1:])
        (dot,) = [each for each in marks(svg, "circle") if each["fill"] == color]
        assert float(dot["cx"]) == pytest.approx((a + b) / 2, abs=0.02) and float(dot["cy"]) == y
        assert sign * (float(dot["cx"]) - middle) > 0
    assert {"x", "<none>", "coefficient", "before", "after"} <= {each["text"] for each in marks(svg, "text")}
    assert marks(charts.intervals([], ["x"], x_title="", colors=colors), "text")


def test_few_beside_thousands_are_seen_by_logarithm() -> None:
    bins = [{"low": 0.0, "high": 1.0, "count": 1}, {"low": 1.0, "high": 2.0, "count": 5000}]
    for logarithmic, visible in ((False, 1), (True, 10)):
        svg = charts.histogram(bins, x_title="", y_title="", written=str, logarithmic=logarithmic)
        few, many = (float(each["height"]) for each in marks(svg, "rect"))
        assert (few > visible) is logarithmic and many > 100


def test_a_legend_takes_further_rows_where_one_is_too_short() -> None:
    drawing = Drawing()
    assert drawing.legend(0, 14, {"a": "#1", "b": "#2"}) == 14
    assert drawing.legend(0, 14, {f"category {n}": "#1" for n in range(9)}, 400) > 34
    ends = [float(each["x"]) for each in marks(drawing.svg(400, 100), "rect")]
    assert max(ends) < 400
