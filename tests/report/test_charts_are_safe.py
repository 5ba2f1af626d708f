"""Pages of Leeward may load and run nothing."""

from __future__ import annotations

from pathlib import Path

import leeward


def test_pages_may_load_and_run_nothing() -> None:
    pages = [*Path(leeward.__file__).parent.glob("*/templates/*.html.j2")]
    assert len(pages) >= 2
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "Content-Security-Policy" in text and "default-src 'none'" in text, page.name
        assert "script-src" not in text or "'unsafe-eval'" not in text
