"""The other commands, and the command line as a whole."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Run

import leeward as lw
from leeward.cli.main import COMMANDS, SECTIONS, status_of
from leeward.cli.main import leeward as group
from leeward.cli.options import INPUT
from leeward.errors import BadInput
from leeward.methods.disassociation import Disassociation


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(leeward: Run, command: str) -> None:
    shown = leeward(command, "--help")
    assert shown.status == 0
    assert f"leeward {command}" in shown.out.split("Options:")[0].split("\n", 2)[2]


def test_the_table_of_commands_names_what_is_there() -> None:
    for name in COMMANDS:
        found = group.get_command(None, name)  # type: ignore[arg-type]  # the context is not looked at
        assert found is not None and found.name == name


def test_help_lists_commands_by_what_they_are_for(leeward: Run) -> None:
    shown = leeward("--help").out
    places = [shown.index(f"\n{heading}:\n") for heading in SECTIONS]
    assert places == sorted(places) and "\nCommands:" not in shown
    assert sorted(COMMANDS) == sorted(name for section in SECTIONS.values() for name in section)
    for name in COMMANDS:
        assert f"\n  {name} " in shown


def test_an_unknown_command_names_the_nearest(leeward: Run) -> None:
    shown = leeward("protet", "spec.yaml")
    assert shown.status == 2
    assert "did you mean `protect`?" in shown.err


@pytest.mark.parametrize(
    "args",
    [
        ["protect"],
        ["protect", "spec.yaml"],
        ["disassociate", "x.csv", "-o", "o"],
        ["--nonsense"],
        ["profile"],
    ],
)
def test_wrong_usage_is_status_2(leeward: Run, args: list[str]) -> None:
    shown = leeward(*args)
    assert shown.status == 2
    assert shown.out == ""


def test_verify_takes_the_source_that_the_spec_names(
    leeward: Run, spec: Path, events: Path, tmp_path: Path
) -> None:
    leeward("protect", spec, "-o", tmp_path / "out")
    shown = leeward("verify", tmp_path / "out")
    assert shown.status == 0
    assert f"source {events}" in shown.err
    assert "Passed: " in shown.out
    assert "counts_of_at_least_k" not in shown.out
    assert "passed  counts_of_at_least_k" in leeward("verify", tmp_path / "out", "--all").out
    events.unlink()
    shown = leeward("verify", tmp_path / "out", "--json")
    assert "no longer exists" in shown.err
    assert shown.json()["passed"] is True
    assert shown.json()["with_source"] is False


def test_verify_with_a_source_given(leeward: Run, spec: Path, events: Path, tmp_path: Path) -> None:
    leeward("protect", spec, "-o", tmp_path / "out")
    args = (
        "verify",
        tmp_path / "out/share",
        "--source",
        events,
        "--patient",
        "pid",
        "--code",
        "icd",
        "--json",
    )
    assert leeward(*args).json()["with_source"] is True
    shown = leeward("verify", tmp_path / "out/share", "--patient", "pid")
    assert shown.status == 2
    assert "give --source FILE" in shown.err


def test_verify_refutes_a_changed_release(leeward: Run, spec: Path, tmp_path: Path) -> None:
    leeward("protect", spec, "-o", tmp_path / "out")
    manifest = tmp_path / "out/share/release.json"
    manifest.write_text(manifest.read_text().replace('"k": 5', '"k": 61'))
    shown = leeward("verify", tmp_path / "out", "--json")
    assert shown.status == 4
    assert shown.json()["passed"] is False
    assert "Do not share this release" in shown.err


def test_verify_needs_a_release(leeward: Run, tmp_path: Path) -> None:
    shown = leeward("verify", tmp_path)
    assert shown.status == 2
    assert "not a release" in shown.err


def test_measure_prints_what_the_run_wrote(leeward: Run, spec: Path, events: Path, tmp_path: Path) -> None:
    leeward("protect", spec, "-o", tmp_path / "out")
    args = ("measure", tmp_path / "out", "--source", events, "--patient", "pid", "--code", "icd")
    assert leeward(*args, "--json").json() == {"share": 2 / 52}
    assert leeward(*args).json() == {"share": 2 / 52}  # a method without a report has no tables either


def test_profile_counts_and_warns(leeward: Run, events: Path) -> None:
    events.write_text(events.read_text() + "canary-9999,\n")
    args = ("profile", events, "--patient", "pid", "--code", "icd")
    figures = leeward(*args, "--json").json()
    assert figures["source"]["patients"] == 60
    assert figures["codes"]["frequent"][0] == {
        "code": "250.00",
        "name": "Diabetes mellitus (category)",
        "patients": 60,
        "share": 1.0,
    }
    by_m = figures["risk"]["by_m"]
    assert [row["m"] for row in by_m] == [1, 2, 3]
    # Codes E800 to E809 are had by two patients each, the other forty by one.
    assert by_m[0]["below_k"] == 60
    assert by_m[0]["unique"] == 40
    assert any(181 in notice["rows"] for notice in figures["notices"])
    shown = leeward(*args)
    assert "60 patients" in shown.out
    assert "canary" not in shown.out + shown.err


def test_profile_marks_commonly_sensitive_codes(leeward: Run, tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    rows = [(p, code) for p in range(9) for code in ("250.00", "311", *(["296.30", "042"] * (p < 2)))]
    events.write_text("patient,code\n" + "".join(f"canary-{p},{code}\n" for p, code in rows))
    figures = leeward("profile", events, "--vocabulary", "icd9", "--json").json()
    assert figures["sensitive"] == [
        {"topic": "mental health", "codes": 2, "patients": 9},
        {"topic": "HIV", "codes": 1, "patients": 2},
    ]
    shown = leeward("profile", events, "--vocabulary", "icd9").out
    assert "mental health" in shown and "9 patients  2 codes" in shown
    events.write_text("patient,code\n" + "a,250.00\nb,250.00\n")
    assert "keeps them apart): none" in leeward("profile", events, "--vocabulary", "icd9").out
    events.write_text("patient,code\n" + "a,Q\nb,Q\n")
    assert leeward("profile", events, "--vocabulary", "none", "--json").json()["sensitive"] is None


def test_synth_codes_writes_a_cohort(leeward: Run, tmp_path: Path) -> None:
    args = ("synth", "codes", "--patients", 50, "--codes", 30, "--seed", 3, "-o", tmp_path / "a.csv")
    assert leeward(*args).status == 0
    assert pl.read_csv(tmp_path / "a.csv")["patient"].n_unique() == 50
    again = leeward(*args)
    assert again.status == 2
    assert "exists already" in again.err


def test_input_flags_that_contradict_are_told(leeward: Run, events: Path) -> None:
    shown = leeward("profile", events, "--lines", "--patient", "pid")
    assert shown.status == 2
    assert "--lines reads files without columns" in shown.err
    shown = leeward("profile", events, "--code", "a,,b")
    assert shown.status == 2
    assert "between the commas is empty" in shown.err


def test_the_installed_command_answers() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "from leeward.cli import main; main()", "--version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert ran.stdout.startswith("leeward, version ")


def test_an_interrupted_run_leaves_nothing(spec: Path, tmp_path: Path) -> None:
    """SIGTERM in the middle of a run: status 143, and the half-written folder is gone."""
    code = (
        "import os, signal, sys, pytest\nfrom tests.cli import fake\nfrom leeward.cli.main import "
        "status_of\npatch = pytest.MonkeyPatch(); "
        "fake.install(patch)\npatch.setattr('leeward.runs.protect.write_report', lambda folder: "
        f"os.kill(os.getpid(), signal.SIGTERM))\nsys.exit(status_of(['protect', {str(spec)!r}, '-o', "
        f"{str(tmp_path / 'out')!r}]))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 143, ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize(("sign", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_interrupt_does_not_wait_for_what_is_measured_beside(
    spec: Path, tmp_path: Path, sign: str, status: int
) -> None:
    code = (
        "import os, signal, sys, threading, time, pytest\nfrom tests.cli import fake\nfrom leeward.cli import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # whatever started the tests may ignore it
        "patch = pytest.MonkeyPatch(); fake.install(patch)\n"
        "def measured(*given):\n"
        f"    threading.Timer(0.2, os.kill, (os.getpid(), signal.{sign})).start(); time.sleep(600)\n"
        "patch.setattr('leeward.runs.protect.measure_release', measured)\n"
        f"sys.argv[1:] = ['protect', {str(spec)!r}, '-o', {str(tmp_path / 'out')!r}, '--threads', '2']\nmain()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == status, ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize(("sign", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_interrupt_in_a_callback_ends_the_run_too(sign: str, status: int) -> None:
    """Python ignores what a callback raises, as those that its imports end with."""
    code = (
        "import os, signal, sys, time, weakref\nfrom leeward.cli import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # whatever started the tests may ignore it
        "class Thing: pass\n"
        "def run(*given, **more):\n"
        f"    thing = Thing(); seen = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.{sign}))\n"
        "    del thing; time.sleep(20); return 0\n"
        "module = sys.modules['leeward.cli.main']\nmodule.leeward.main = run\nmain()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == status, ran.stderr
    assert ran.stderr.count("\n") == (status == 130)


def test_the_default_release_name_of_the_demo_is_in_its_help(leeward: Run) -> None:
    assert "leeward-demo" in leeward("demo", "--help").out


def test_json_output_is_the_only_thing_on_stdout(leeward: Run, spec: Path, tmp_path: Path) -> None:
    shown = leeward("protect", spec, "-o", tmp_path / "out", "--json")
    assert json.loads(shown.out)["records"] == 2


def test_the_shortcut_has_a_flag_for_each_parameter() -> None:
    """And for nothing else but the flags that every shortcut shares."""
    command = group.get_command(None, "disassociate")  # type: ignore[arg-type]  # the context is not looked at
    assert command is not None
    flags = {option.name for option in command.params}
    parameters = {field.name for field in dataclasses.fields(Disassociation) if field.init}
    shared = {
        "path",
        *INPUT,
        "out",
        "engine",
        "engine_config",
        "threads",
        "seed",
        "formats",
        "measure",
        "as_json",
        "allow_memory",
        "recipient",
        "purpose",
        "reason",
        "register",
    }
    assert flags == parameters | shared


PAIRS = {("--cap", "--caps"), ("--code", "--codes"), ("--weight", "--weights")}
"""Flags that differ by an s and mean different things of different kinds."""


def test_no_command_has_two_flags_for_one_thing_or_flags_that_differ_by_an_s() -> None:
    for name in COMMANDS:
        command = group.get_command(None, name)  # type: ignore[arg-type]  # the context is not looked at
        assert command is not None
        flags = {flag for each in command.params for flag in each.opts if flag.startswith("--")}
        for flag in flags:
            assert f"{flag}s" not in flags or (flag, f"{flag}s") in PAIRS, (name, flag)


def test_the_end_of_a_file_is_not_told_as_an_interruption(
    leeward: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(context: object) -> None:
        raise EOFError

    monkeypatch.setattr(group, "invoke", fail)
    result = leeward("methods")
    assert result.status == 1
    assert "a bug in Leeward (EOFError in test_commands.py" in result.err and "interrupted" not in result.err


@pytest.mark.parametrize("name", ["a\nleeward: all is well.csv", "a\x1b[31m\r.csv", "a\u2028\u0085b.csv"])
def test_a_file_name_makes_no_line_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = tmp_path / name
    file.write_text("who,what\n1,401.9\n")
    assert status_of(["profile", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.splitlines() == error.splitlines()[:1] and "no column 'patient'" in error
    with pytest.raises(BadInput) as raised:
        lw.read(file)
    assert str(raised.value).isprintable()
    file.write_bytes("patient,code\n1,401.9\n2,Größe\n".encode("cp1252"))
    assert status_of(["profile", str(file)]) == 0
    told = capsys.readouterr()
    assert not any(line.startswith(("leeward: all", "b.csv")) for line in (told.out + told.err).splitlines())
    assert (
        all(each.message.isprintable() for each in lw.read(file).notices) and lw.read(file).name.isprintable()
    )


@pytest.mark.parametrize("name", ["a" * 5000, "x\udcff"])
@pytest.mark.parametrize(
    "command",
    ["profile {}", "split {} --parts 2 -o new", "split {events} --parts 2 -o {}", "compare {} {} -o new",
     "disassociate {events} --k 2 --m 1 -o {}", "verify {}", "show {}", "dossier {} -o new", "estimate {} a",
     "index {} --epsilon-total 1 -o new", "index {events} --epsilon-total 1 -o {}", "query {} a --epsilon 1",
     "audit {}", "notes annotate {events} -o {}", "vocabulary add omop {}", "synth claims --patients 3 -o {}"],
)  # fmt: skip
def test_names_that_no_file_has(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    name: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.csv").write_text("patient,code\n" + "1,401.9\n2,401.9\n3,401.9\n4,401.9\n")
    assert status_of([part.format(name, events="events.csv") for part in command.split()]) == 2
    said = capsys.readouterr().err
    assert "fault" not in said and len(said.splitlines()[-1]) < 1000
    assert [path.name for path in tmp_path.iterdir()] == ["events.csv"]


def test_profile_says_that_a_release_will_be_refused(leeward: Run, tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_text("patient,code\n" + "a,250.00\nb,250.00\nc,canary\n")
    args = (events, "--vocabulary", "icd9")
    shown = leeward("profile", *args)
    assert "Commands that release this file will refuse it. This is 33 % of 3 entries" in shown.out
    refused = leeward("disassociate", *args, "--k", 2, "--m", 2, "-o", tmp_path / "out")
    assert refused.status == 2 and "This is 33 % of 3 entries" in refused.err
    assert "canary" not in refused.err
    assert "refuse" not in leeward("profile", *args, "--accept-unknown").out
