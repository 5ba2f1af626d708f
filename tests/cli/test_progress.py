"""What a run says while it works, and that a figure that cannot be had undoes no release."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Run

import leeward as lw
import leeward.methods.disassociation.trial  # takes the function before a test replaces it
from leeward.analysis import workloads
from leeward.analysis.itemsets import TooManyItemsets
from leeward.compiling import Compilations
from leeward.runs import progress
from leeward.runs.progress import STAGES, Stages, duration, watch


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_stages_are_counted_and_the_rest_is_estimated_from_their_usual_shares() -> None:
    clock = Clock()
    state = Stages(STAGES, clock)
    assert state.say("Reading the source")
    assert state.line == "1 of 5: Reading the source"
    assert state.left is None
    clock.now = 20.0
    assert state.say("Protecting a.csv (visits)")
    assert (state.line, state.left) == ("2 of 5: Protecting a.csv (visits)", pytest.approx(80.0))
    assert not state.say("12 of 40 groups")
    assert state.line == "2 of 5: Protecting a.csv (visits) (12 of 40 groups)"
    clock.now = 30.0
    assert state.left == pytest.approx(70.0)
    assert state.say("Verifying the written files, measuring what was lost")
    assert state.line.startswith("4 of 5: Verifying")
    assert not state.say("Reading again")  # a stage never comes back


def test_a_long_run_without_a_terminal_gets_a_dated_line_per_stage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.0)
    with watch(None, STAGES) as say:
        for text in ("Reading the source", "Protecting x", "1 of 9", "2 of 9", "Writing the report"):
            say(text)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("leeward: ")[2] for line in lines] == [
        "1 of 5: Reading the source",
        "2 of 5: Protecting x",
        "5 of 5: Writing the report",
    ]
    assert lines[0][:2] == "20"


def test_a_short_run_without_a_terminal_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with watch(None, STAGES) as say:
        say("Reading the source")
    assert not capsys.readouterr().err


def test_durations_are_read_easily() -> None:
    assert [duration(s) for s in (7.6, 65, 3_700)] == ["8 s", "1 min 05 s", "1 h 01 min"]


def small() -> pl.DataFrame:
    rows = [(p, c) for p in range(40) for c in ("a", "b", "c", str(p % 7))]
    return pl.DataFrame(rows, schema=["patient", "code"], orient="row")


def test_a_measure_that_cannot_run_is_a_notice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def too_many(*args: object, **options: object) -> None:
        raise TooManyItemsets("more sets than can be listed")

    monkeypatch.setattr(workloads, "frequent_queries", too_many)
    result = lw.protect(lw.read(small()), lw.Disassociation(k=3, m=2), tmp_path / "out")
    assert "not measured: are (more sets than can be listed)" in {
        n["message"] for n in result.measures["notices"]
    }
    assert {each["name"] for each in result.measures["are"]["workloads"]} == {"random"}
    assert result.verification.passed


def test_an_unknown_measure_is_an_error(leeward: Run, tmp_path: Path) -> None:
    small().write_csv(tmp_path / "in.csv")
    shown = leeward(
        "disassociate", tmp_path / "in.csv", "--k", 3, "--m", 2, "--measure", "bleu", "-o", tmp_path / "o"
    )
    assert shown.status == 2
    assert not (tmp_path / "o").exists()


def test_frequent_sets_beyond_a_thousand_are_sampled_and_said(tmp_path: Path) -> None:
    everybody = pl.DataFrame(
        {"patient": [p for p in range(50) for _ in range(12)], "code": list("abcdefghijkl") * 50}
    )
    result = lw.protect(lw.read(everybody), lw.Disassociation(k=3, m=1), tmp_path / "out", measures=["are"])
    (workload,) = result.measures["are"]["workloads"]
    assert (workload["queries"], workload["itemsets"]) == (1_000, 2**12 - 1)
    assert workload["label"].endswith("(a sample of 1,000 of 4,095)")


def test_compiling_is_shown_and_is_not_part_of_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    compiling = Compilations()
    monkeypatch.setattr("leeward.compiling.time.monotonic", lambda: now[0])
    monkeypatch.setattr("leeward.runs.progress.compilations", compiling)
    state = Stages({"Reading": 0.5, "Writing": 0.5}, lambda: now[0])
    state.say("Reading")
    compiling.known = 60
    compiling.begin()
    now[0] = 90.0
    assert compiling.line == "compiling kernel 1 of at most 60, once for this machine"
    compiling.end()
    assert compiling.line == ""
    now[0] = 100.0
    state.say("Writing")
    assert (state.elapsed, state.left) == (100.0, pytest.approx(10.0))
