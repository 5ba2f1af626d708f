"""`leeward demo`: a verified release within seconds of installing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

LEEWARD = "import sys; from leeward.cli import main; main()"


def run(environment: dict[str, str], *arguments: str) -> str:
    """What a command prints in a process of its own, in which a warning is an error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LEEWARD, *arguments], env=environment, capture_output=True, text=True,
        check=True, timeout=300,
    )  # fmt: skip
    return done.stdout


def test_the_demo_compiles_nothing_and_is_verified(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    out = str(tmp_path / "out")
    told = json.loads(run(environment, "demo", "-o", out, "--json"))
    assert told["records"] == 300
    assert told["verification"]["passed"] and len(told["verification"]["checks"]) > 40
    assert not (tmp_path / "cache").exists()
    run(environment, "verify", out)
    assert [*(tmp_path / "cache/leeward-kernels").iterdir()]
