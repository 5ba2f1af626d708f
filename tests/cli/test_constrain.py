"""`leeward constrain` from a file of codes to a verified release."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from tests.methods.constraints.test_apriori import icd_records

from leeward.cli.main import status_of


def write_events(path: Path, records: list[list[str]]) -> str:
    rows = [(f"secret-{p}", code) for p, record in enumerate(records) for code in record]
    pl.DataFrame(rows, schema=["pid", "icd"], orient="row").write_csv(path)
    return str(path)


def constrain(*flags: str) -> int:
    return status_of(["constrain", "--patient", "pid", "--code", "icd", "--vocabulary", "icd9", *flags])


def test_a_release_is_written_verified_measured_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = write_events(tmp_path / "events.csv", icd_records(400, 2))
    out = tmp_path / "out"
    assert constrain(events, "--k", "4", "--m", "2", "--policy", "hierarchy:2", "-o", str(out), "--json") == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["verification"]["passed"]
    assert figures["verification"]["with_source"]
    assert {"are", "mre", "codes", "risk"} <= set(figures["measures"])
    report = (out / "custody" / "report.html").read_text()
    assert "Fate of the codes" in report
    assert "secret-" not in report
    shared = b"".join(f.read_bytes() for f in (out / "share").rglob("*") if f.is_file())
    assert b"secret-" not in shared
    assert (out / "custody" / "data" / "policy.parquet").is_file()
    assert status_of(["verify", str(out)]) == 0


@pytest.mark.parametrize("algorithm", ["ugaclip", "coat", "apriori"])
def test_every_algorithm_has_its_flag(tmp_path: Path, algorithm: str) -> None:
    events = write_events(tmp_path / "events.csv", icd_records(300, 2))
    policy = [] if algorithm == "apriori" else ["--policy", "hierarchy:1"]
    cap = ["--max-suppressed", "0.5"] if algorithm == "coat" else []
    out = tmp_path / "out"
    status = constrain(
        events, "--algorithm", algorithm, "--k", "4", "--m", "1", *policy, *cap, "-o", str(out)
    )
    assert status == 0
    manifest = json.loads((out / "share" / "release.json").read_text())
    assert manifest["parameters"]["algorithm"] == algorithm


def test_an_earlier_mapping_is_applied_to_later_data(tmp_path: Path) -> None:
    first = write_events(tmp_path / "first.csv", icd_records(400, 2))
    flags = ("--policy", "hierarchy:2", "--k", "3", "--m", "2")
    assert constrain(first, *flags, "-o", str(tmp_path / "one")) == 0
    mapping = str(tmp_path / "one" / "share" / "data" / "codes.parquet")
    later = write_events(tmp_path / "later.csv", icd_records(400, 2) + icd_records(400, 2))
    assert constrain("--mapping", mapping, later, "-o", str(tmp_path / "two")) == 0
    guarantee = json.loads((tmp_path / "two" / "share" / "release.json").read_text())["guarantee"]
    assert (guarantee["k"], guarantee["m"]) == (3, 2)


def test_a_mapping_that_does_not_protect_later_data_ends_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write_events(tmp_path / "first.csv", [["250.00"]] * 5 + [["401.0"]] * 5)
    assert constrain(first, "--k", "3", "--m", "2", "-o", str(tmp_path / "one")) == 0
    mapping = str(tmp_path / "one" / "share" / "data" / "codes.parquet")
    later = write_events(tmp_path / "later.csv", [["250.00"]] * 5 + [["401.0"]])
    assert constrain("--mapping", mapping, later, "-o", str(tmp_path / "two")) == 3
    assert "does not protect this cohort" in capsys.readouterr().err
    assert not (tmp_path / "two").exists()


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (["--m", "2"], 2, "k` is missing"),
        (["--k", "5"], 2, "either `--m`"),
        (["--k", "500", "--m", "2"], 3, "fewer than k = 500"),
        (["--k", "5", "--m", "2", "--policy", "hierachy:1"], 2, "nearest is 'hierarchy'"),
        (["--k", "5", "--privacy", "nowhere.txt"], 2, "cannot be read"),
        (["--mapping", "nowhere.parquet"], 2, "this mapping is not in a release"),
        (["--k", "5", "--m", "2", "--mapping", "nowhere.parquet"], 2, "no mapping that can be read"),
    ],
)
def test_bad_usage_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], status: int, message: str
) -> None:
    events = write_events(tmp_path / "events.csv", icd_records(50, 2))
    assert constrain(events, *flags, "-o", str(tmp_path / "out")) == status
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
