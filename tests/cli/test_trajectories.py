"""`leeward trajectories` and `leeward synth trajectories`, by their exit status and what they leave behind."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from leeward.cli.main import COMMANDS, LazyGroup
from leeward.cli.synth import trajectories as synth
from leeward.errors import LeewardError


def run(*words):
    group = LazyGroup("leeward", table=COMMANDS)
    return CliRunner().invoke(group, [str(word) for word in words])


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    file = tmp_path_factory.mktemp("events") / "events.csv"
    made = CliRunner().invoke(
        synth, ["--patients", "200", "--shape", "d4-smp", "--seed", "1", "-o", str(file)]
    )
    assert made.exit_code == 0 and "pairs" in made.output
    return file


def test_release_as_json(events, tmp_path):
    done = run("trajectories", events, "--age", "age", "--vocabulary", "icd9", "--k", 4, "-o", tmp_path / "out",
               "--threads", 1, "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert figures["guarantee"]["k"] == 4 and figures["verification"]["passed"]
    assert 0 < figures["measures"]["loss"]["total"] < 2


def test_ages_outside_are_refused_and_nothing_is_written(tmp_path):
    file = tmp_path / "events.csv"
    file.write_text(
        "patient,code,age\n" + "".join(f"{p},401.9,{30 + p}\n" for p in range(9)) + "9,401.9,130\n"
    )
    done = run("trajectories", file, "--age", "age", "--vocabulary", "icd9", "--k", 3, "-o", tmp_path / "out")
    assert isinstance(done.exception, LeewardError) and done.exception.exit_code == 2
    assert "rows 10" in str(done.exception) or "row 10" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_bad_weights_are_a_usage_error(events, tmp_path):
    done = run("trajectories", events, "--age", "age", "--k", 3, "--weights", "half", "-o", tmp_path / "out")
    assert isinstance(done.exception, LeewardError) and done.exception.exit_code == 2
    assert str(done.exception) == "`--weights[1]` must be a number of at least 0; got text."
