"""Every study page ends with what the study cannot say; pages made from kept figures are up to date."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STUDIES = ROOT / "docs" / "studies"


@pytest.fixture(autouse=True)
def studies_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def test_every_page_ends_with_three_objections() -> None:
    from objections import HEADING

    for path in STUDIES.glob("*.md"):
        if path.stem != "README":
            _, *last = path.read_text(encoding="utf-8").split(HEADING)
            assert len(last) == 1 and len(re.findall(r"^- \*", last[0], re.MULTILINE)) == 3, path.name


def test_a_page_written_again_keeps_sections_of_other_scripts() -> None:
    from objections import HEADING, ended

    now = (STUDIES / "queries.md").read_text(encoding="utf-8")
    again = ended("# Anew\n\n<!-- seasons -->\nanew\n<!-- end of seasons -->", "queries")
    assert again.count("<!-- seasons -->") == 1 and "<!-- extraction -->" in again
    assert again.split(HEADING)[1] == now.split(HEADING)[1]
    assert ended(now, "queries") == now


def test_pictures_of_trajectories_are_of_the_page_s_own_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page has tables of other scripts too, under headings alike."""
    import study_trajectories_figures as figures

    monkeypatch.setattr(figures, "drawn", lambda name, chart, title: name)
    shown = figures.pictures(figures.PAGE.read_text(encoding="utf-8"))
    assert [*itertools.chain(*shown.values())] == ["losses", "codes", "ages", "answers", "weights"]


def test_the_page_of_disassociation_is_what_its_figures_and_words_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import study_disassociation_page as page

    sections = {
        name: (title, table, plot and (lambda found: ""))
        for name, (title, table, plot) in page.SECTIONS.items()
    }
    monkeypatch.setattr(page, "SECTIONS", sections)
    (tmp_path / "disassociation").mkdir()
    found = json.loads((STUDIES / "disassociation" / "figures.json").read_text(encoding="utf-8"))
    page.write_page(found, tmp_path)
    made = (tmp_path / "disassociation.md").read_text(encoding="utf-8")
    assert made == (STUDIES / "disassociation.md").read_text(encoding="utf-8")


def test_words_of_whole_pages_are_those_of_their_studies() -> None:
    """What a run would write is what the page says, so that no word is lost when a study runs again."""
    import study_condensation_words
    import study_queries_words
    from study_censoring import READING

    for words, page in (
        (READING, "censoring"),
        (study_condensation_words.READING, "condensation"),
        (study_queries_words.TAIL, "queries"),
    ):
        assert words.strip() in (STUDIES / f"{page}.md").read_text(encoding="utf-8")
