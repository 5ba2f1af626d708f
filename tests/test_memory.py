"""What a run needs is said before it begins; one that finds less ends with a sentence and leaves nothing."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import leeward as lw
from leeward import engine, memory
from leeward.cli.main import status_of
from leeward.errors import BadInput
from leeward.methods import METHODS, Memory
from leeward.runs import memory as runs_memory

GIGABYTE = 10**9


def a_cohort(patients: int = 30) -> lw.Cohort:
    return lw.read(
        pl.DataFrame({"patient": list(range(patients)) * 2, "code": ["250.00", "401.9"] * patients})
    )


def test_the_need_grows_with_patients_and_rows() -> None:
    assert Memory(100, 10, 1).bytes(5, 7) == 100_000_057
    for method in METHODS.values():
        assert 200 < method.memory.megabytes < 2_000
        assert method.memory.a_patient + method.memory.a_row > 10


def test_a_run_that_cannot_fit_is_refused_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_memory, "free_memory", lambda: 100 * 10**6)
    monkeypatch.setattr(runs_memory, "memory_in_use", lambda: 200 * 10**6)
    method = lw.Disassociation(k=3, m=2)
    with pytest.raises(
        BadInput, match=r"disassociation of 30 patients with 60 rows needs about \d\.\d GB .* 0\.3 GB are"
    ) as found:
        lw.protect(a_cohort(), method, tmp_path / "OUT")
    assert "--allow-memory" in str(found.value) and "split" not in str(
        found.value
    )  # no part would fit either
    assert list(tmp_path.iterdir()) == []
    assert lw.protect(a_cohort(), method, tmp_path / "OUT", allow_memory=True).release.records == 30


def test_the_ways_that_are_named_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_memory, "memory_in_use", lambda: 0)
    monkeypatch.setattr(runs_memory, "free_memory", lambda: 2 * GIGABYTE)
    monkeypatch.setattr(runs_memory, "size_of", lambda cohort: (0, 10_000_000))
    monkeypatch.setattr(runs_memory, "ON_SPARK", Memory(1_000, 0, 90))
    monkeypatch.setitem(METHODS, "visits", replace(METHODS["visits"], memory=Memory(500, 0, 400)))
    with pytest.raises(
        BadInput, match=r"needs about 4.5 GB .* 2.0 GB .*--parts 3\).*--engine spark"
    ) as found:
        runs_memory.require_memory("visits", a_cohort())
    assert Memory(500, 0, 400).bytes(0, 10_000_000 // 3) <= 2 * GIGABYTE
    monkeypatch.setattr(runs_memory, "ON_SPARK", Memory(1_000, 0, 110))
    with pytest.raises(BadInput) as found:
        runs_memory.require_memory("visits", a_cohort())
    assert "--engine spark" not in str(found.value) and "--partitions" not in str(found.value)
    monkeypatch.setattr(runs_memory, "ON_SPARK", Memory(1_000, 0, 90))
    with pytest.raises(BadInput) as found:
        runs_memory.require_memory("visits", a_cohort(), on_spark=False)
    assert "--engine spark" not in str(found.value)
    monkeypatch.setattr(runs_memory, "ON_SPARK", Memory(1_000, 0, 110))
    with pytest.raises(BadInput, match=r"as one release \(--partitions N\)"):
        runs_memory.require_memory("disassociation", a_cohort())


def test_with_little_memory_verifier_and_measures_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    side_by_side = engine.beside

    def beside(**options: bool) -> Any:
        seen.extend(options.values())  # none where figures are drawn, which need little
        return side_by_side(**options)

    monkeypatch.setattr("leeward.engine.beside", beside)
    need = METHODS["disassociation"].memory.bytes(30, 60)
    monkeypatch.setattr(runs_memory, "memory_in_use", lambda: 0)
    for free in (need + 1, 2 * need):
        monkeypatch.setattr(runs_memory, "free_memory", lambda free=free: free)
        lw.protect(a_cohort(), lw.Disassociation(k=3, m=2), tmp_path / str(free), seed=1)
    assert seen == [False, True]
    first, second = (
        (tmp_path / str(free) / "custody" / "measures.json").read_bytes() for free in (need + 1, 2 * need)
    )
    assert first == second


def test_a_file_that_cannot_be_read_is_refused_before_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_memory, "free_memory", lambda: 0)
    monkeypatch.setattr(runs_memory, "memory_in_use", lambda: 0)
    pl.DataFrame({"patient": [1, 2], "code": ["250.00"] * 2}).write_parquet(tmp_path / "e.parquet")
    spec = {"source": {"path": str(tmp_path / "e.parquet")}, "method": {"name": "disassociation", "k": 2}}
    (tmp_path / "s.yaml").write_text(str(spec))
    with pytest.raises(BadInput, match=r"reading 2 rows of e.parquet needs about"):
        lw.run(tmp_path / "s.yaml", tmp_path / "OUT")


@pytest.mark.parametrize("version", [1, 2])
def test_the_tightest_group_above_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    limit, usage = (
        ("memory.limit_in_bytes", "memory.usage_in_bytes")
        if version == 1
        else ("memory.max", "memory.current")
    )
    above, own = tmp_path / "jobs", tmp_path / "jobs" / "ours"
    own.mkdir(parents=True)
    for folder, most, used in ((above, 3 * GIGABYTE, 1 * GIGABYTE), (own, 9 * GIGABYTE, GIGABYTE // 2)):
        (folder / limit).write_text(f"{most}\n")
        (folder / usage).write_text(f"{used}\n")
        (folder / "memory.stat").write_text("anon 5\ninactive_file 1000\nactive_file 24\n")
    (tmp_path / limit).write_text("max\n" if version == 2 else f"{2**63 - 4096}\n")
    (tmp_path / usage).write_text("0\n")
    (tmp_path / "cgroup").write_text(
        "5:cpu:/jobs\n4:memory:/jobs/ours\n" if version == 1 else "0::/jobs/ours\n"
    )
    true = Path

    def moved(path: str) -> Path:
        return true(tmp_path / "cgroup" if path == "/proc/self/cgroup" else path)

    monkeypatch.setattr(memory, "Path", moved)
    monkeypatch.setattr(memory, "GROUPS", [(tmp_path, "memory" if version == 1 else "", limit, usage)])
    assert memory._of_groups() == 2 * GIGABYTE + 1024


def test_what_a_limit_of_the_data_segment_leaves_is_free_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    held = memory._status("VmData")
    assert held is not None
    limits = {resource.RLIMIT_DATA: held + 5 * 10**8}
    monkeypatch.setattr(
        resource, "getrlimit", lambda kind: (limits.get(kind, resource.RLIM_INFINITY),) * 2
    )  # another one in this process would bind all tests after it
    assert 0 < (memory.free_memory() or 0) < 6 * 10**8


def test_a_verification_that_cannot_fit_is_refused_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lw.protect(a_cohort(), lw.Disassociation(k=3, m=2), tmp_path / "OUT")
    capsys.readouterr()
    monkeypatch.setattr(runs_memory, "free_memory", lambda: 40 * 10**6)
    monkeypatch.setattr(runs_memory, "memory_in_use", lambda: 60 * 10**6)
    assert status_of(["verify", str(tmp_path / "OUT")]) == 2
    told = capsys.readouterr().err
    assert "needs about 0.3 GB of memory, and 0.1 GB are free here: use a machine with more" in told
    assert "failed" not in told and "--allow-memory" not in told


EATS = """
import sys, time
import leeward.cli.main
cli = sys.modules['leeward.cli.main']
from leeward import engine, memory
from leeward.release import draft
free = iter([10**10] * 5)
memory.free_memory = lambda: next(free, 0)
def eat(*args, **kwargs):
    with draft(sys.argv[1]) as pending:
        pending.put("share/x.txt", "half")
        time.sleep(600)
cli.leeward.main = eat
cli.main(["x"])
"""


def test_a_run_that_finds_no_more_memory_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", EATS, str(tmp_path / "OUT")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 2, ran.stderr
    assert "out of memory; nothing was left behind" in ran.stderr and "--engine spark" in ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("limit", "megabytes"), [("RLIMIT_AS", 700), ("RLIMIT_DATA", 240)])
def test_little_space_of_either_kind_is_a_sentence(tmp_path: Path, limit: str, megabytes: int) -> None:
    code = (
        f"import resource; resource.setrlimit(resource.{limit}, ({megabytes} * 2**20,) * 2)\n"
        "from leeward.cli.main import main; main(['demo', '-o', 'OUT'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
    )
    assert ran.returncode == 2, ran.stderr[-300:]
    assert "out of memory" in ran.stderr or "are free here" in ran.stderr
    assert list(tmp_path.iterdir()) == []
