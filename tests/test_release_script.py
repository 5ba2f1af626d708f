"""What scripts/release.py does to texts, and that version, changelog and citation agree."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from leeward.version import __version__

TREE = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_script", TREE / "scripts" / "release.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_unreleased_gets_the_version_and_the_day(release: ModuleType) -> None:
    text = "# Changelog\n\n## [Unreleased]\n\n### Fixed\n\n- This.\n\n## [0.1.0]\n\n- That.\n"
    assert release.move_unreleased(text, "0.2.0", "2026-11-27") == text.replace(
        "## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2026-11-27\n"
    )
    with pytest.raises(ValueError, match=r"has a section 0\.1\.0 already"):
        release.move_unreleased(text, "0.1.0", "2026-11-27")
    for nothing in ("# Changelog\n", "## [Unreleased]\n", "## [Unreleased]\n\n## [0.1.0]\n\n- That.\n"):
        with pytest.raises(ValueError, match="nothing under"):
            release.move_unreleased(nothing, "0.2.0", "2026-11-27")


def test_a_distribution_is_left_out_with_its_hashes(release: ModuleType) -> None:
    first, last = "# Title.\na==1 \\\n    --hash=sha256:1\n", "b==2\n"
    lock = f"{first}pyspark[sql]==4 \\\n    --hash=sha256:2 \\\n    --hash=sha256:3\n{last}"
    assert release.leave_out(lock, ("pyspark",)) == first + last
    whole = (TREE / "requirements" / "all.txt").read_text(encoding="utf-8")
    left = release.leave_out(whole, release.SOURCE_ONLY)
    pins = [re.findall(r"^([\w.-]+)==", each, re.MULTILINE) for each in (whole, left)]
    assert sorted(set(pins[0]) - set(pins[1])) == sorted(release.SOURCE_ONLY)
    assert left.count("--hash") > 100


def test_the_version_is_one_everywhere() -> None:
    citation = yaml.safe_load((TREE / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    changelog = (TREE / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(\d[^\]]*)\] - (\S+)$", changelog, re.MULTILINE)
    assert versions[0] == (__version__, str(citation["date-released"]))
    assert citation["version"] == __version__


def test_a_change_is_one_line() -> None:
    changelog = (TREE / "CHANGELOG.md").read_text(encoding="utf-8")
    assert [line for line in changelog.splitlines() if len(line) > 120 or re.match(r"\s+\S", line)] == []
