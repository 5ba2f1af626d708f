"""`leeward --help` answers at once: nothing heavy is imported on the way (by module, not by a clock)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from leeward.cli import main

HEAVY = (
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
class Absent:
    @staticmethod
    def find_spec(name, *_):
        if name in {absent!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent)
from leeward.cli import main
status = 0
try:
    main({arguments!r})
except SystemExit as stop:
    status = stop.code or 0
print("\\n" + json.dumps([status, sorted({{name.split(".")[0] for name in sys.modules}})]))
"""


def imported_by(arguments: list[str], absent: tuple[str, ...] = ()) -> set[str]:
    """Top-level names of the modules that are loaded when the command with these arguments has ended well, with
    `absent` not installed."""
    ran = subprocess.run(
        [sys.executable, "-c", REPORT.format(arguments=arguments, absent=absent)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    status, names = json.loads(ran.stdout.splitlines()[-1])
    assert status == 0, ran.stderr
    assert any(word in ran.stdout for word in ("Usage", "leeward", "released", "patient"))
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
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert sorted(set(json.loads(ran.stdout)) & set(HEAVY)) == []


def test_a_manifest_is_read_and_written_without_frames() -> None:
    """What `leeward query --json` needs of a release is text: frames would take half of its time."""
    code = (
        "import json, sys; from leeward.release.manifest import to_json_text; "
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert {"polars", "pyarrow", "numpy"}.isdisjoint(json.loads(ran.stdout))


def test_commands_need_nothing_that_only_tests_and_spark_have(tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_text("pid,code\n" + "".join(f"{i},{c}\n" for i in range(40) for c in ("250.00", "401.9")))
    out = str(tmp_path / "out")
    arguments = [
        "disassociate",
        str(events),
        "--patient",
        "pid",
        "--code",
        "code",
        "--k",
        "5",
        "--m",
        "2",
        "-o",
        out,
    ]
    absent = ("lifelines", "matplotlib", "pandas", "statsmodels")
    names = imported_by(arguments, absent)
    assert "numba" in names
    assert sorted(names & {"multiprocessing", "narwhals"}) == []
    for command in (["verify", out], ["estimate", out, "401.9"]):
        assert "numba" in imported_by(command, absent), command


FRAMES_AND_KERNELS = {
    "alembic", "duckdb", "jinja2", "lifelines", "matplotlib", "multiprocessing", "narwhals", "numba",
    "pandas", "polars", "pydantic", "scipy", "sklearn", "statsmodels", "yaml",
}  # fmt: skip


def test_a_question_to_an_index_imports_neither_frames_nor_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a count needs: the index (Arrow, bitmaps), its ledger (SQLAlchemy) and the noise (OpenDP)."""
    monkeypatch.setenv("LEEWARD_STATE", str(tmp_path / "state"))
    events = tmp_path / "events.csv"
    events.write_text("pid,code\n" + "".join(f"{i},{c}\n" for i in range(40) for c in ("250.00", "401.9")))
    index = str(tmp_path / "index")
    main_of = ["index", str(events), "--patient", "pid", "--code", "code", "--vocabulary", "icd9"]
    with pytest.raises(SystemExit):
        main([*main_of, "--epsilon-total", "5", "-o", index])
    question = ["query", index, "401.9", "--epsilon", "1"]
    for command in (question, question, ["budget", index]):  # a new question, a stored answer, what was spent
        assert sorted(imported_by(command) & FRAMES_AND_KERNELS) == [], command


def ran(code: str) -> str:
    """What a process with this code prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout


def test_who_imports_the_library_may_import_pandas_later() -> None:
    """pyarrow takes the search for pandas as done and, where it found none, refuses its columns."""
    code = (
        "from leeward.engine import make; make('local')\n"
        "import pandas, polars\n"
        "frame = pandas.DataFrame({'a': pandas.array([1, None], dtype='Int64')})\n"
        "print(polars.from_pandas(frame)['a'].to_list())"
    )
    assert ran(code) == "[1, None]\n"
