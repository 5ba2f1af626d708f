"""`leeward censor` from files to a verified release, and its refusals."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Run
from tests.methods.censoring.frames import POPULATION, SAMPLE

PEOPLE = ["Alan", "Tom", "Bella"]


def write_csv(path: Path, records: list[list[str]], payload: bool = False) -> Path:
    rows = [
        f"canary{number},{code}" + (f",{PEOPLE[number]}" if payload else "")
        for number, record in enumerate(records)
        for code in record
    ]
    path.write_text("\n".join(["pid,icd" + (",dna" if payload else ""), *rows]) + "\n")
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write_csv(tmp_path / "s.csv", SAMPLE, True), write_csv(tmp_path / "p.csv", POPULATION)


COLUMNS = ("--patient", "pid", "--code", "icd")


@pytest.mark.parametrize("scope", ["global", "record"])
def test_a_release_of_figure_1(leeward: Run, files, tmp_path: Path, scope: str) -> None:
    sample, population = files
    out = tmp_path / "out"
    done = leeward(
        "censor", sample, "--population", population, *COLUMNS, "--k", 2, "--caps", "250=2,272=2,724=1",
        "--payload", "dna", "--scope", scope, "-o", out,
    )  # fmt: skip
    assert done.status == 0, done.err
    rows = pl.read_parquet(out / "share/data/records.parquet")
    expected = ["250", "272"] if scope == "global" else ["250", "250", "272"]
    assert rows.filter(pl.col("dna") == "Bella")["codes"].to_list() == [expected]
    everything = b"".join(file.read_bytes() for file in (out / "share").rglob("*") if file.is_file())
    assert b"canary" not in everything
    assert leeward("verify", out).status == 0
    figures = leeward(
        "measure", out, "--source", sample, "--population", population, *COLUMNS, "--json"
    ).json()
    assert figures["risk"]["after"]["smallest"] == 2
    report = (out / "custody/report.html").read_text()
    assert "Somebody who knows the rule" in report and report.count("<svg") == 2
    shown = json.loads((out / "custody/measures.json").read_text())
    assert shown["attack"]["records"] == 3


def test_a_forged_release_fails(leeward: Run, files, tmp_path: Path) -> None:
    sample, population = files
    out = tmp_path / "out"
    assert (
        leeward(
            "censor",
            sample,
            "--population",
            population,
            *COLUMNS,
            "--k",
            2,
            "--cap",
            2,
            "--scope",
            "global",
            "-o",
            out,
        ).status
        == 0
    )
    path = out / "share/data/records.parquet"
    pl.read_parquet(path).with_columns(codes=pl.lit(["272", "272", "724"])).write_parquet(path)
    assert leeward("verify", out).status == 4


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (("--k", 8), 3, "the population has 7 people"),
        (("--k", 1), 2, "`--k` must be a whole number of at least 2"),
        (("--k", 2, "--caps", "250"), 2, "neither CODE=N nor a file"),
        (("--k", 2, "--caps", "250=x"), 2, "entry 1 is not a code with a whole number"),
        (("--k", 2, "--caps", "250=1,250=2"), 2, "occurs twice"),
    ],
)
def test_refusals_write_nothing(leeward: Run, files, tmp_path: Path, flags, status, message) -> None:
    sample, population = files
    refused = leeward("censor", sample, "--population", population, *COLUMNS, *flags, "-o", tmp_path / "out")
    assert (refused.status, message in refused.err) == (status, True), refused.err
    assert not (tmp_path / "out").exists()
    assert "canary" not in refused.err


def test_a_stranger_in_the_sample_is_named_by_row(leeward: Run, files, tmp_path: Path) -> None:
    sample = write_csv(tmp_path / "strange.csv", [["250"], ["272", "999"]])
    refused = leeward(
        "censor",
        sample,
        "--population",
        files[1],
        *COLUMNS,
        "--k",
        2,
        "--scope",
        "global",
        "-o",
        tmp_path / "out",
    )
    assert refused.status == 2
    assert "beginning in rows 2" in refused.err and "999" not in refused.err


def test_caps_from_a_file(leeward: Run, files, tmp_path: Path) -> None:
    (tmp_path / "caps.csv").write_text("code,cap\n250,1\n272,1\n724,1\n")
    sample, population = files
    flags = ("--k", 2, "--scope", "global", "--caps", tmp_path / "caps.csv", "-o", tmp_path / "out")
    assert leeward("censor", sample, "--population", population, *COLUMNS, *flags).status == 0
    rows = pl.read_parquet(tmp_path / "out/share/data/records.parquet")["codes"].to_list()
    assert sorted(rows) == [["250"], ["250", "272"], ["272", "724"]]


def test_synth_repeats(leeward: Run, tmp_path: Path) -> None:
    population, sample = tmp_path / "p.parquet", tmp_path / "s.parquet"
    made = leeward("synth", "repeats", "--patients", 3000, "--seed", 1, "-o", population, "--sample", sample)
    assert made.status == 0, made.err
    assert (
        leeward(
            "censor", sample, "--population", population, "--k", 5, "--cap", 3, "-o", tmp_path / "o"
        ).status
        == 0
    )
    assert leeward("synth", "repeats", "-o", population).status == 2


def test_without_a_population_the_error_says_what_it_is(leeward: Run, files: tuple[Path, Path]) -> None:
    refused = leeward("censor", files[0], *COLUMNS, "--k", 2, "-o", "out")
    assert refused.status == 2
    assert "Missing option '--population'" in refused.err and "everybody from whom" in refused.err
