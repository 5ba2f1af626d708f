"""`leeward --help` answers at once: nothing heavy is imported on the way (by module, not by a clock)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = (
    "altair",
    "lifelines",
    "matplotlib",
    "numba",
    "pandas",
    "pyspark",
    "scipy",
    "sklearn",
    "statsmodels",
    "polars",
)

REPORT = """
import json, sys
from leeward.cli import main
status = 0
try:
    main({arguments!r})
except SystemExit as stop:
    status = stop.code or 0
print("\\n" + json.dumps([status, sorted({{name.split(".")[0] for name in sys.modules}})]))
"""


def imported_by(arguments: list[str]) -> set[str]:
    """Top-level names of the modules that are loaded when the command with these arguments has ended well."""
    ran = subprocess.run(
        [sys.executable, "-c", REPORT.format(arguments=arguments)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    status, names = json.loads(ran.stdout.splitlines()[-1])
    assert status == 0, ran.stderr
    assert "Usage" in ran.stdout or "leeward" in ran.stdout
    return set(names)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["disassociate", "--help"]], ids=" ".join)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    names = imported_by(arguments)
    assert "leeward" in names and "click" in names
    assert sorted(names & set(HEAVY)) == []


def test_importing_the_library_imports_nothing_heavy() -> None:
    code = (
        "import json, sys, leeward; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert sorted(set(json.loads(ran.stdout)) & set(HEAVY)) == []


def test_a_manifest_is_read_and_written_without_frames() -> None:
    """What `leeward query --json` needs of a release is text: frames would take half of its time."""
    code = (
        "import json, sys; from leeward.release.manifest import to_json_text; "
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert {"polars", "pyarrow", "numpy"}.isdisjoint(json.loads(ran.stdout))
