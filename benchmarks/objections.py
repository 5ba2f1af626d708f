"""The last section of every study page, which people write there: what the study cannot say."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "studies"
HEADING = "## What this study cannot say"


def ended(text: str, page: str) -> str:
    """The text of a page with the last section that the page has now."""
    kept = (FOLDER / f"{page}.md").read_text(encoding="utf-8").split(HEADING)[1].strip()
    return f"{text.split(HEADING)[0].rstrip()}\n\n{HEADING}\n\n{kept}\n"
