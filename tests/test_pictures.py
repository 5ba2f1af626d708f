"""The pictures of the documentation are those that the worked examples give now, and can be read on a telephone."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
SPEC = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
assert SPEC is not None
assert SPEC.loader is not None
pictures = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(pictures)
ALL = pytest.mark.parametrize("drawn", pictures.PICTURES, ids=lambda drawn: drawn.__name__)
PLACES = {
    "disassociation": ["methods/disassociation.md"],
    "candidates": ["methods/disassociation.md", "choosing.md"],
    "visits": ["methods/visits.md"],
    "trajectories": ["methods/trajectories.md"],
    "condensation": ["methods/condensation.md"],
    "budget": ["methods/queries.md"],
}


@ALL
def test_a_picture_is_what_the_example_gives_now(drawn, tmp_path: Path) -> None:
    """After a change: `python -m docs.pictures`, and look at them."""
    kept = DOCS / "images" / f"{drawn.__name__}.svg"
    assert pictures.picture(drawn, tmp_path) == kept.read_text(encoding="utf-8")


@ALL
def test_a_picture_is_small_has_words_and_fetches_nothing(drawn) -> None:
    kept = DOCS / "images" / f"{drawn.__name__}.svg"
    text = kept.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert len(text) <= 20_000
    assert float(root.attrib["viewBox"].split()[2]) <= 420
    assert min(int(size) for size in re.findall(r"font(?:-size)?:(\d+)px", text)) >= 11
    assert not re.search(r"href|url\(|@import|@font-face", text)
    title, about = (root.findtext("{http://www.w3.org/2000/svg}" + each) for each in ("title", "desc"))
    assert title
    assert about


@ALL
def test_a_picture_stands_on_its_pages_with_a_sentence_in_its_place(drawn) -> None:
    for place in PLACES[drawn.__name__]:
        page = DOCS / place
        found = re.findall(r"^!\[([^\]]+\.)\]\((\S+)\)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert DOCS / "images" / f"{drawn.__name__}.svg" in [
            (page.parent / path).resolve() for _, path in found
        ]
