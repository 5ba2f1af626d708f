"""`leeward refresh` and `verify --earlier`: exit statuses, what they print, and how NEW is read."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from tests.runs.made_lines import visits

from leeward.cli.main import status_of as main

FLAGS = ["--patient", "patient", "--code", "code", "--visit", "visit"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for number, rows in enumerate(visits(120, 3, 8, 2), 1):
        rows.write_csv(f"q{number}.csv")
    assert main(["visits", "q1.csv", *FLAGS, "--k", "3", "--policy", "none", "-o", "m1"]) == 0
    return tmp_path


def test_versions_of_the_command_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """NEW is read like the source of the first version."""
    capsys.readouterr()
    assert main(["refresh", "m1", "q2.csv", "--wait", "1", "-o", "m2"]) == 0
    assert capsys.readouterr().out.startswith("Version 2: ")
    (files / "gone.txt").write_text("p0001\np0002\n")
    assert main(["refresh", "m2", "q3.csv", *FLAGS, "--withdrawn", "gone.txt", "-o", "m3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["measures"]["refresh"]["withdrawn"] == 2
    for earlier in ("m1", "m2/share"):
        assert main(["verify", "m3/share", "--earlier", earlier]) == 0
    assert main(["show", "m3"]) == 0
    assert main(["verify", "m2", "--earlier", "m3"]) == 4
    assert main(["verify", "m3", "--source", "q3.csv", *FLAGS]) == 2


def test_who_withdrew_is_found_however_the_file_was_saved(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = pl.read_csv("q2.csv")["patient"].unique().sort().to_list()
    (files / "gone.txt").write_text(f"\ufeff{new[0]}\r\n\r\n {new[1]} \r\nnobody\r\n", encoding="utf-8")
    assert main(["refresh", "m1", "q2.csv", "--withdrawn", "gone.txt", "-o", "m2"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Nothing new is released of 3 patients" in told
    assert "1 of those who withdrew are in no version and not in NEW." in told
    published = pl.read_parquet("m2/custody/versions/published.parquet").filter(pl.col("batch") == 2)
    assert not set(new[:2]) & set(published["patient"])


def test_a_version_is_entered(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    register = ["--register", "register.db"]
    assert main(["visits", "q1.csv", *FLAGS, "--k", "3", "--policy", "none", "-o", "r1", *register]) == 0
    assert main(["refresh", "r1", "q2.csv", "-o", "r2", *register]) == 0
    assert "compared with 1 earlier release." in capsys.readouterr().err
    assert main(["refresh", "r1", "q3.csv", "-o", "r3", *register]) == 2
    assert main(["refresh", "r1", "q3.csv", "-o", "r3", *register, "--reason", "agreed"]) == 0
    capsys.readouterr()
    assert main(["refresh", "m1", "q3.csv", "-o", "m2", *register, "--reason", "agreed"]) == 0
    assert "does not have the version before" in capsys.readouterr().out.replace("\n              ", " ")


def test_what_ends_without_a_version(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = (files / "q2.csv").read_text().splitlines()
    (files / "few.csv").write_text("\n".join(rows[:2]) + "\n")
    assert main(["refresh", "m1", "few.csv", "-o", "m2"]) == 3
    assert "2 patients more" in capsys.readouterr().err
    assert main(["refresh", "m1", "q1.csv", "-o", "m2"]) == 3
    assert main(["refresh", "m1", "q2.csv", "--withdrawn", "nobody.txt", "-o", "m2"]) == 2
    assert main(["refresh", "m1", "q2.csv", "--wait", "1", "--records", "kept", "-o", "m1"]) == 2
    (files / "q1.csv").write_text((files / "q1.csv").read_text() + "p0001,401,9999\n")
    assert main(["refresh", "m1", "q2.csv", "-o", "m2"]) == 2
    assert "--published" in capsys.readouterr().err
    assert not (files / "m2").exists()
