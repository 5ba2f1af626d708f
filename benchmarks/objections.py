"""What a study's script keeps of its page: sections of other scripts, and the last one, which people write there."""

from __future__ import annotations

from pathlib import Path

from common import SECTION

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "studies"
HEADING = "## What this study cannot say"


def ended(text: str, page: str) -> str:
    """The text of a page with the sections of other scripts and the last section that the page has now."""
    now, last = (FOLDER / f"{page}.md").read_text(encoding="utf-8").split(HEADING)
    others = [each[0] for each in SECTION.finditer(now) if f"<!-- {each[1]} -->" not in text]
    return "\n\n".join([text.split(HEADING)[0].rstrip(), *others, HEADING, last.strip()]) + "\n"
