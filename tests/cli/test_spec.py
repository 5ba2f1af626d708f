"""`leeward spec init`: the spec of a command's flags releases what the command releases."""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl
import pytest
import yaml
from tests.cli.conftest import Run
from tests.laws.cases import events as made_events
from tests.laws.cases import table

from leeward.methods import METHODS

COLUMNS = ("--patient", "pid", "--code", "icd", "--visit", "visit", "--age", "age", "--missing", "?")
FLAGS = {
    "censor": ("SAMPLE", *COLUMNS, "--population", "EVENTS", "--k", 3, "--cap", 2, "--caps", "250.0=1",
               "--measure", "repeats"),
    "condense": ("TABLE", "--k", 5, "--strata", "died", "--time", "days", "--domains", "DOMAINS", "--plan", "PLAN",
                 "--measure", "marginals"),
    "constrain": ("EVENTS", *COLUMNS, "--k", 3, "--m", 2, "--policy", "hierarchy:1", "--measure", "mre"),
    "disassociate": ("EVENTS", *COLUMNS, "--k", 3, "--m", 2, "--demographics", "sex", "--keep", "sex:exact",
                     "--measure", "mre"),
    "k-anonymize": ("TABLE", "--k", 5, "--drop", "days"),
    "link": ("EVENTS", *COLUMNS, "--k", 3, "--views", "patients+events"),
    "trajectories": ("EVENTS", *COLUMNS, "--k", 3, "--format", "csv"),
    "visits": ("EVENTS", *COLUMNS, "--k", 3, "--measure", "retention"),
}  # fmt: skip


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Files in the working directory, by the names that FLAGS give them."""
    monkeypatch.chdir(tmp_path)
    frame = made_events().rename({"patient": "pid", "code": "icd"})
    frame = frame.with_columns(sex=pl.col("pid").str.slice(2).cast(pl.Int64) % 2)
    frame.write_csv("events.csv")
    frame.filter(pl.col("pid") < "p20").write_csv("sample.csv")
    table().write_csv("table.csv")
    Path("domains.yaml").write_text("stage: {levels: [I, II, III], ordered: true}\n")
    Path("plan.yaml").write_text("plan:\n- linear: {response: days, covariates: [age, sex]}\n")
    names = {"EVENTS": "events.csv", "SAMPLE": "sample.csv", "TABLE": "table.csv"}
    return {**names, "DOMAINS": "domains.yaml", "PLAN": "plan.yaml"}


def digests(share: Path) -> dict[str, str]:
    return {
        str(each.relative_to(share)): hashlib.sha256(each.read_bytes()).hexdigest()
        for each in share.rglob("*")
        if each.is_file()
    }


def test_every_method_has_flags_to_try() -> None:
    assert set(FLAGS) == {each.command for each in METHODS.values()}


@pytest.mark.parametrize("command", FLAGS)
def test_the_spec_of_the_flags_releases_the_same_bytes(
    leeward: Run, command: str, files: dict[str, str]
) -> None:
    flags = [files.get(str(each), each) for each in (*FLAGS[command], "--seed", 7)]
    written = leeward("spec", "init", command, *flags, "-o", "spec.yaml")
    assert written.status == 0, written.err
    assert leeward(command, *flags, "-o", "one").status == 0
    assert leeward("protect", "spec.yaml", "-o", "two").status == 0
    assert digests(Path("one/share")) == digests(Path("two/share"))
    assert Path("one/custody/spec.yaml").read_text() == Path("two/custody/spec.yaml").read_text()


def test_a_spec_explains_its_keys_and_those_left_out(leeward: Run) -> None:
    shown = leeward("spec", "init", "disassociate", "x.csv", "--patient", "pid", "--k", 5, "--m", 2)
    assert shown.status == 0
    assert "  # Minimum number of candidate records.\n  k: 5\n" in shown.out
    assert "  #   max_cluster: Split parts" in shown.out
    assert yaml.safe_load(shown.out) == {
        "source": {"path": "x.csv", "columns": {"patient": "pid"}},
        "method": {"name": "disassociation", "k": 5, "m": 2},
        "engine": "local",
    }


def test_a_spec_in_another_folder_has_whole_paths(
    leeward: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("specs").mkdir()
    Path("specs/x.csv").touch()  # which a relative path would mean
    Path("x.csv").touch()
    assert leeward("spec", "init", "visits", "x.csv", "--k", 5, "-o", "specs/spec.yaml").status == 0
    assert yaml.safe_load(Path("specs/spec.yaml").read_text())["source"]["path"] == str(tmp_path / "x.csv")


def test_a_password_is_not_written(leeward: Run) -> None:
    shown = leeward("spec", "init", "visits", "postgresql://me:canary@host/db#codes", "--k", 5)
    assert "canary" not in shown.out
    assert "set PGPASSWORD" in shown.out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--k", 1), "`--k` must be a whole number of at least 2"),
        (("--k", 5, "-o", "release"), "a spec ends in .yaml"),
        (("--k", 5, "-o", "here.yaml"), "here.yaml: exists already"),
        (("--k", 5, "--threads", 2), "--threads"),
    ],
)
def test_what_is_no_spec_is_refused(
    leeward: Run, flags: tuple[object, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here.yaml").write_text("")
    shown = leeward("spec", "init", "visits", "x.csv", *flags)
    assert shown.status == 2
    assert said in shown.err
    assert Path("here.yaml").read_text() == ""


def test_flags_say_what_a_spec_says(leeward: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = (
        "--events",
        "drug,condition",
        "--concepts",
        "--attributes",
        "sex,age",
        "--date-format",
        "%d/%m/%y",
        "--table",
        "t",
    )
    shown = leeward("spec", "init", "visits", "omop", "--k", 5, *flags)
    assert yaml.safe_load(shown.out)["source"] == {
        "path": "omop",
        "columns": {"patients": ["sex", "age"]},
        "date_format": "%d/%m/%y",
        "domains": ["drug", "condition"],
        "table": "t",
        "concepts": True,
    }
    table = leeward("spec", "init", "condense", "t.xlsx", "--k", 5, "--table", "t", "--date-format", "%y")
    assert yaml.safe_load(table.out)["source"] == {
        "path": "t.xlsx", "format": "table", "date_format": "%y", "table": "t"
    }  # fmt: skip


def test_events_of_synthea_by_flag(leeward: Run, tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text("Id,BIRTHDATE\np1,1950-01-01\n")
    (tmp_path / "conditions.csv").write_text("START,PATIENT,CODE\n2010-01-01,p1,11\n")
    (tmp_path / "medications.csv").write_text("START,PATIENT,CODE\n2010-01-01,p1,22\n2010-01-01,p1,33\n")
    assert leeward("profile", tmp_path, "--json").json()["source"]["events"] == 1
    assert leeward("profile", tmp_path, "--events", "drug", "--json").json()["source"]["events"] == 2
