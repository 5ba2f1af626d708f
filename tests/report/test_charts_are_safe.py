"""Signs that XML lacks end the drawing library's process: charts are drawn without them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import leeward
from leeward.report import painting
from leeward.report.painting import PROGRAM

DRAW = """
import altair as alt, polars as pl
from leeward.report.charts import drawn
rows = pl.DataFrame({"code": ["a" + chr(n) for n in (0, 1, 27, 31, 0xfffe, 0xffff)], "n": [1, 2, 3, 4, 5, 6]})
svg = drawn(alt.Chart(rows, title="\\x00title").mark_bar().encode(x="n:Q", y="code:N"))
assert svg.startswith("<svg") and "\\x00" not in svg
"""


def test_a_control_character_in_a_code_does_not_end_the_process() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", DRAW], capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stderr[-500:]


ABORTS = PROGRAM.replace(
    "answer = [", "__import__('os').abort() if 'abort' in line else None\n        answer = [", 1
)


def test_a_chart_that_aborts_is_a_sentence_and_the_next_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    chart = {
        "mark": "bar",
        "data": {"values": [{"n": 1}]},
        "encoding": {"x": {"field": "n", "type": "quantitative"}},
    }
    painter = painting.Painter()
    monkeypatch.setattr(painting, "PROGRAM", ABORTS)
    monkeypatch.setattr(painting, "PAINTER", painter)
    try:
        assert painting.paint(chart).startswith("<svg")
        first = painter.process
        assert "could not be drawn" in painting.paint({**chart, "title": "abort"})
        assert painting.paint(chart).startswith("<svg") and painter.process is not first
        with pytest.raises(ValueError, match="refused"):
            painting.paint({"mark": 3})
    finally:
        painter.close()


def test_pages_may_load_and_run_nothing() -> None:
    pages = [*Path(leeward.__file__).parent.glob("*/templates/*.html.j2")]
    assert len(pages) >= 2
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "Content-Security-Policy" in text and "default-src 'none'" in text, page.name
        assert "script-src" not in text or "'unsafe-eval'" not in text
