"""The documentation as a site: no warning, no page that leads nowhere, one page a command and a public name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import leeward as lw
from leeward.cli.main import COMMANDS

TREE = Path(__file__).resolve().parents[1]


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    built = tmp_path / "site"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", str(built)]
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    reference = built / "reference"
    assert {path.stem for path in (reference / "commands").glob("*.html")} == {*COMMANDS, "all"}
    pages = {path.stem.removeprefix("leeward.") for path in (reference / "python").glob("*.html")}
    assert pages == {name for name in lw.__all__ if not name.startswith("__")} - {"releases", "synth"}
    outside = [page for page in built.rglob("*.html") if 'src="http' in page.read_text(encoding="utf-8")]
    assert outside == []  # nothing is fetched: the site opens from a stick
