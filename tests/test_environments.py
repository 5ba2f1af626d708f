"""The environments in which pages are followed hold what a page says to install, and nothing of the checkout."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.console import INSTALL
from tests.environments import ROOT, environment


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted(ROOT.glob("docs/tutorials/*.md"))], ids=lambda page: page.name
)
def test_a_page_says_what_to_install_before_it_is_used(page: Path) -> None:
    before, session, _ = page.read_text(encoding="utf-8").partition("```console")
    assert session and INSTALL.search(before)


def test_an_environment_has_what_was_named_and_nothing_else() -> None:
    def said(programs: Path, code: str) -> str:
        done = subprocess.run(
            [programs / "python", "-c", code],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.stdout + done.stderr

    core, more = environment(), environment("pandas")
    for programs in (core, more):
        assert said(programs, "import leeward; print(leeward.__file__)").startswith(str(programs.parent))
        assert re.search("No module named '?pytest", said(programs, "import pytest"))
    assert "No module named 'pandas'" in said(core, "import pandas")
    assert said(more, "import pandas, polars") == ""
