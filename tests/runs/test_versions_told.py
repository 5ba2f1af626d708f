"""Report and dossier of a later version: which one it is, and what was verified when it was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.runs.made_lines import cohort, visits

import leeward as lw

QUARTERS = visits(200, 3, 10, 7)
FIRST = cohort(QUARTERS[0])


@pytest.fixture(name="line")
def three_versions(tmp_path: Path) -> Path:
    method, handover = lw.Visits(k=3, policy="none"), {"line": "quarters", "recipient": "uni"}
    register = tmp_path / "register.db"
    lw.protect(FIRST, method, tmp_path / "1", register=register, handover=handover, seed=1)
    for number in (2, 3):
        new, before = cohort(QUARTERS[number - 1]), tmp_path / f"{number - 1}"
        lw.refresh(before, new, tmp_path / f"{number}", published=FIRST, register=register, seed=1)
    return tmp_path


def entries(folder: Path, **options: Any) -> dict[str, Any]:
    parts = lw.dossier(folder, folder.with_name("dossier"), **options).content["parts"]
    return {each["label"]: each.get("value") for part in parts for each in part["entries"]}


def test_a_report_says_which_version_the_batch_joins(line: Path) -> None:
    page = (line / "3" / "custody" / "report.html").read_text()
    assert "joins version 3 of the line <code>quarters</code>" in page
    assert "of the batch that joins version 3</p>" in page  # on the first screen
    assert "VERSION3 --earlier VERSION2" in page
    assert "joins version" not in (line / "1" / "custody" / "report.html").read_text()


def test_a_dossier_says_which_version_it_is_and_that_all_was_verified(line: Path) -> None:
    found = entries(line / "3")
    assert found["Line of versions"] == "quarters" and found["Version of its line"] == 3
    new = [found[f"Of these, new in version {number}"] for number in (1, 2, 3)]
    assert sum(new) == found["Released records"] and all(new)
    assert found["Each batch was compared with its source when it was added, and passed"] is True
    assert found["The version was compared with the one before when it was made, and passed"] is True


@pytest.mark.parametrize(
    ("file", "label"),
    [
        (
            "batches/2/verification.json",
            "Each batch was compared with its source when it was added, and passed",
        ),
        ("verification.json", "The version was compared with the one before when it was made, and passed"),
    ],
)
def test_a_dossier_says_what_custody_does_not_show(line: Path, file: str, label: str) -> None:
    path = line / "3" / "custody" / file
    told = json.loads(path.read_text())
    checks = [each for each in told["checks"] if each["name"] != "rows_stay"]
    path.write_text(json.dumps({**told, "checks": checks, "with_source": False}))
    for digests in (line / "3" / "custody").rglob("digests.json"):
        digests.unlink()
    assert entries(line / "3")[label] is False


def test_a_recipients_dossier_names_no_line(line: Path) -> None:
    text = json.dumps(entries(line / "3", audience="recipient"))
    assert "quarters" not in text and "Beside release" not in text and "Of these, new in version 3" in text
