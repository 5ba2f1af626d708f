"""Signs that pictures, pages and terminals must not get."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from leeward.texts import for_terminal, for_xml


@given(st.text())
def test_what_is_for_xml_can_be_parsed_as_xml(text: str) -> None:
    page = "<t>" + for_xml(text).replace("&", "&amp;").replace("<", "&lt;") + "</t>"
    ElementTree.fromstring(page)


def test_only_what_xml_lacks_is_replaced() -> None:
    assert for_xml("a\x00b\x1bc\ufffe") == "a\ufffdb\ufffdc\ufffd"
    assert for_xml("250.01 é 中 \t\n 𝒳") == "250.01 é 中 \t\n 𝒳"


def test_a_terminal_gets_no_control_sequence() -> None:
    assert (
        for_terminal("no column \x1b]0;owned\x07 \x9b31m\u202e")
        == "no column \\x1b]0;owned\\x07 \\x9b31m\\x202e"
    )
    assert for_terminal("two\nlines\té") == "two\nlines\té"
