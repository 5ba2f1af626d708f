"""The review page."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from leeward.notes.review import Reviewed, describe_values, page, pieces
from leeward.notes.spans import Span

ROW: dict[str, Any] = {
    "visit_month": 4,
    "visit_year": 2009,
    "visit_source": "text",
    **dict.fromkeys(("age", "sex", "race", "zip", "place")),
    **{f"{name}_source": None for name in ("age", "sex", "race", "zip", "place")},
    "terms": ["LW1"],
    "disagrees": ["visit"],
}


def test_the_page_shows_spans_and_hides_nothing_of_the_text() -> None:
    text = "Amy <b>denies</b> fever & has a rash."
    spans = [
        Span(0, 3, "EID", "name", source="rules"),
        Span(18, 23, "HMI", "symptom", "LW1", "dictionary", asserted=False),
    ]
    html = page([Reviewed(7, ROW, text, spans)], 1, {"LW1": "a <name>"}, {"EID/name": 1})
    assert '<mark class="EID" data-c="name" title="EID, name, by rules">Amy</mark>' in html
    assert 'class="HMI not"' in html
    assert "&lt;b&gt;denies&lt;/b&gt;" in html and "<b>" not in html
    assert "a &lt;name&gt;" in html
    assert "2009-04" in html and "disagrees" in html


def test_the_page_runs_its_own_script_only_and_has_a_place_for_the_record() -> None:
    html = page([Reviewed(7, ROW, "Amy </script> x", [])], 1, {}, {"EID/name": 1})
    script = re.findall(r"<script>(.*?)</script>", html, re.S)
    assert len(script) == 1 and html.count("<script") == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'" in html
    )
    for part in ('id="kind"', 'id="words"', 'id="next"', 'id="who"', 'id="save"', "Note 7 checked", "Remark"):
        assert part in html
    used = set(re.findall(r'byId\("(\w+)"\)', script[0]))
    assert used <= set(re.findall(r'id="(\w+)"', html))
    assert "://" not in html and "name (identity) 1" in html


def test_what_the_table_does_not_have_is_not_shown() -> None:
    assert describe_values(ROW) == [("visit", "2009-04", "text", True)]


@given(st.text(max_size=40), st.data())
def test_the_pieces_are_the_text(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    spans = [Span(a, b, "QID", "age") for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    cut = pieces(text, spans)
    assert "".join(words for words, _ in cut) == text
    assert [span for _, span in cut if span is not None] == spans
