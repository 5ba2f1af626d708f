"""`leeward condense` and `leeward synth registry`, from the command line to the report."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do

from leeward.cli.main import status_of
from leeward.methods.condensation import method as condensing

PLAN = """
plan:
  - cox: {time: SurvInterval, event: VitalStat, event_value: 0, covariates: [DiagAge, Gender, Stage]}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(condensing, "REPETITIONS", 2)
    assert status_of(["synth", "registry", "--patients", "700", "--seed", "1", "-o", "registry.csv"]) == 0
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path


def test_a_release_with_its_report(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--k", "30", "--plan", "plan.yaml", "--seed", "1"]
    assert status_of(["condense", "registry.csv", *flags, "-o", "out", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verification"]["passed"]
    assert told["guarantee"]["k"] == 30
    assert "Exact survival times" in told["guarantee"]["not_protected"][0]
    assert "Exact survival times" in (here / "out/share/README.md").read_text()
    report = (here / "out/custody/report.html").read_text()
    for words in (
        "The recipient",
        "Survival before and after",
        "Correlations",
        "Attacks",
        "Exact survival times",
    ):
        assert words in report
    assert report.count("<svg") >= 2
    original, released = pl.read_csv("registry.csv"), pl.read_parquet("out/share/data/table.parquet")
    assert released.schema == original.schema
    assert status_of(["verify", "out"]) == 0
    assert status_of(["verify", "out", "--source", "registry.csv"]) == 0
    assert status_of(["measure", "out", "--source", "registry.csv", "--measure", "marginals"]) == 0


def test_a_spec_with_plan_drop_and_domains(here: Path) -> None:
    (here / "spec.yaml").write_text(
        "source: {path: registry.csv, format: table, drop: [Race], domains: {DiagAge: {low: 18, high: 110}}}\n"
        "method: {name: condensation, k: 30}\n"
        f"measure: [marginals]\nseed: 2\n{PLAN}"
    )
    assert status_of(["protect", "spec.yaml", "-o", "out"]) == 0
    assert "Race" not in pl.read_parquet("out/share/data/table.parquet").columns
    manifest = json.loads((here / "out/share/release.json").read_text())
    assert manifest["parameters"]["plan"][0]["cox"]["time"] == "SurvInterval"
    assert status_of(["verify", "out"]) == 0


def test_k_anonymity_by_spec(here: Path) -> None:
    (here / "spec.yaml").write_text(
        "source: {path: registry.csv, format: table}\nmethod: {name: k-anonymity, k: 30}\nmeasure: [marginals]\n"
    )
    assert status_of(["protect", "spec.yaml", "-o", "out"]) == 0


@pytest.mark.parametrize(
    ("flags", "status", "words"),
    [
        (["--k", "1"], 2, "`--k` must be a whole number of at least 2"),
        (["--k", "701"], 3, "700 rows are fewer than k = 701"),
        (["--k", "30", "--time", "Surv"], 2, "Did you mean 'SurvInterval'"),
        (
            ["--k", "30", "--weight", "much"],
            2,
            "`--weight` must be a number above 0 and below 1 or",
        ),
        (["--k", "30", "--plan", "none.yaml"], 2, "there is no such file"),
        (["--k", "30", "--drop", "Rase"], 2, "no column 'Rase'"),
    ],
)
def test_mistakes_write_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], flags: list[str], status: int, words: str
) -> None:
    assert status_of(["condense", "registry.csv", *flags, "-o", "out"]) == status
    assert words in capsys.readouterr().err
    assert not (here / "out").exists()


def test_limits_of_sensitive_columns(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--k", "5", "--sensitive-columns", "Stage:2", "--closeness", "SurvInterval:0.2"]
    assert status_of(["k-anonymize", "registry.csv", *flags, "-o", "out", "--seed", "1"]) == 0
    assert "At most 1 in 2" in (here / "out/share/README.md").read_text()
    assert status_of(["condense", "registry.csv", *flags[:4], "-o", "no"]) == 2
    assert "`--sensitive-columns` must be left out" in capsys.readouterr().err


def test_a_plan_without_an_events_value_is_released(here: Path) -> None:
    """The README and the verifier write it alike."""
    (here / "plan.yaml").write_text(PLAN.replace("event_value: 0, ", ""))
    flags = ["--k", "30", "--plan", "plan.yaml", "--measure", "marginals"]
    assert status_of(["condense", "registry.csv", *flags, "-o", "out"]) == 0
