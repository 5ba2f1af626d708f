"""A run that is killed at any step leaves nothing that the register does not count."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.register.killed import STEPS
from tests.waiting import LONG

TREE = Path(__file__).resolve().parents[2]


def test_a_kill_at_every_step_is_never_forgotten(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.register.killed", tmp_path, str(len(STEPS))],
        cwd=TREE, capture_output=True, text=True, timeout=4 * LONG, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(found) == len(STEPS) + 1, ran.stdout
    for each in found:
        assert "error" not in each and "failed" not in each, each
        assert each["audit"] is not False, each
        if each["there"]:  # what is published counts
            assert each["status"] in ("intended", "released"), each
    *killed, last = found
    assert sum(each["there"] for each in killed) >= 3  # killed after the release had its place
    assert last["there"] and last["status"] == "released"
    # Each that was entered is known, in whatever state it was left.
    assert len(last["known"]) >= len(STEPS) - 4
    assert set(last["known"]) == {"intended", "released"}
