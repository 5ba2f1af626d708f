"""`leeward protect`: the folder, the errors, nothing half-written, no identifiers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import yaml
from tests.cli import fake
from tests.cli.conftest import Run


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_spec_becomes_a_verified_release(leeward: Run, spec: Path, tmp_path: Path) -> None:
    done = leeward("protect", spec, "-o", tmp_path / "out")
    assert done.status == 0, done.err
    assert set(tree(tmp_path / "out")) == {
        "share/release.json",
        "share/README.md",
        "share/leeward-read.R",
        "share/data/counts.parquet",
        "share/data/counts.csv",
        "custody/digests.json",
        "custody/report.html",
        "custody/measures.json",
        "custody/verification.json",
        "custody/source_files.json",
        "custody/spec.yaml",
    }
    assert str(tmp_path / "out/custody/report.html") in done.out
    assert "checks of the written files passed" in done.out


def test_custody_holds_the_figures_and_the_spec_as_run(leeward: Run, spec: Path, tmp_path: Path) -> None:
    leeward("protect", spec, "-o", tmp_path / "out")
    custody = tmp_path / "out/custody"
    measures = json.loads((custody / "measures.json").read_text())
    assert measures["source"] == {
        "name": "events.csv",
        "vocabulary": measures["source"]["vocabulary"],
        "patients": 60,
        "events": 180,
        "codes": 52,
    }
    assert measures["method"] == {"left out": 50}
    assert measures["share"] == 2 / 52
    assert "a notice of the method" in [notice["message"] for notice in measures["notices"]]
    verification = json.loads((custody / "verification.json").read_text())
    assert verification["passed"] is True
    assert "counts_of_at_least_k" in [check["name"] for check in verification["checks"]]
    as_run = yaml.safe_load((custody / "spec.yaml").read_text())
    assert as_run["source"]["path"] == str(spec.parent / "events.csv")
    assert as_run["method"] == {"name": "counting", "k": 5, "broken": False}
    assert as_run["seed"] == 7
    assert as_run["versions"]["leeward"]


def test_json_has_the_whole_outcome(leeward: Run, spec: Path, tmp_path: Path) -> None:
    done = leeward("protect", spec, "-o", tmp_path / "out", "--json")
    figures = done.json()
    assert figures["guarantee"]["k"] == 5
    assert figures["verification"]["passed"] is True
    assert figures["measures"]["share"] == 2 / 52
    assert Path(figures["report"]).is_file()


def test_same_seed_same_bytes_another_seed_others(leeward: Run, spec: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert leeward("protect", spec, "-o", tmp_path / name, "--threads", 1 + (name == "b")).status == 0
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_a_seeded_release_says_so_and_never_names_the_seed(leeward: Run, spec: Path, tmp_path: Path) -> None:
    spec.write_text(spec.read_text().replace("seed: 7", "seed: 918273645"))
    done = leeward("protect", spec, "-o", tmp_path / "out")
    assert json.loads((tmp_path / "out/share/release.json").read_text())["seeded"] is True
    assert "seed" in done.out
    for path in (tmp_path / "out/share").rglob("*"):
        if path.is_file():
            assert b"918273645" not in path.read_bytes()


def test_without_a_seed_the_manifest_says_nothing(leeward: Run, spec: Path, tmp_path: Path) -> None:
    spec.write_text(spec.read_text().replace("seed: 7", ""))
    assert leeward("protect", spec, "-o", tmp_path / "out").status == 0
    assert "seeded" not in (tmp_path / "out/share/release.json").read_text()


def test_no_identifier_is_released_or_said(leeward: Run, spec: Path, tmp_path: Path) -> None:
    done = leeward("protect", spec, "-o", tmp_path / "out", "--json")
    assert "canary" not in done.out + done.err
    for path in (tmp_path / "out").rglob("*"):
        if path.is_file():
            assert b"canary" not in path.read_bytes(), path


def test_the_recipients_part_names_no_source(leeward: Run, spec: Path, tmp_path: Path) -> None:
    leeward("protect", spec, "-o", tmp_path / "out")
    for path in (tmp_path / "out/share").rglob("*"):
        if path.is_file():
            assert b"events.csv" not in path.read_bytes()
            assert str(tmp_path).encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("old", "new", "status", "message"),
    [
        ("k: 5", "k: 1", 2, "`method.k` must be a whole number of at least 2; got 1."),
        ("k: 5", "k: 61", 3, "`k` is 61, but the cohort has 60 patients"),
        ("k: 5", "kk: 5", 2, "unknown key `kk` in `method`; did you mean `k`?"),
        ("k: 5", "k: 5, brokn: true", 2, "did you mean `broken`?"),
        ("k: 5", "k: five", 2, "`method.k` must be a whole number of at least 2; got text."),
        ("counting", "countin", 2, "`method`: unknown `countin`; did you mean `counting`?"),
        ("events.csv", "gone.csv", 2, "gone.csv"),
        ("patient: pid", "patient: pidd", 2, "pid"),
        (
            "formats: [parquet, csv]",
            "formats: [xls]",
            2,
            "`formats[1]` must be `parquet` or `csv`; got `xls`.",
        ),
        ("seed: 7", "sed: 7", 2, "unknown key `sed`; did you mean `seed`?"),
        ("k: 5", "k: 5, broken: true", 4, "counts_of_at_least_k: 50 counts below k."),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_left(
    leeward: Run, spec: Path, tmp_path: Path, old: str, new: str, status: int, message: str
) -> None:
    spec.write_text(
        spec.read_text().replace(old, new, 1) if old != "k: 5" else spec.read_text().replace(old, new)
    )
    done = leeward("protect", spec, "-o", tmp_path / "out")
    assert done.status == status, done.err
    assert message in done.err
    assert done.out == ""
    assert "canary" not in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize(
    ("content", "status"), [(b"", 2), (b"pid,icd\n", 2), (b"pid,icd\n1,\x81\xfe\n", 2), (b"a,b\n1,2\n", 2)]
)
def test_unusable_sources_are_told(
    leeward: Run, spec: Path, events: Path, tmp_path: Path, content: bytes, status: int
) -> None:
    events.write_bytes(content)
    done = leeward("protect", spec, "-o", tmp_path / "out")
    assert done.status == status
    assert "events.csv" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_an_existing_folder_is_refused_before_any_work(leeward: Run, spec: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    spec.write_text(spec.read_text().replace("events.csv", "gone.csv"))
    done = leeward("protect", spec, "-o", tmp_path / "out")
    assert done.status == 2
    assert "exists already" in done.err
    assert list((tmp_path / "out").iterdir()) == []


def test_a_full_disk_leaves_nothing(
    leeward: Run, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full when the report is written: last of all, after the data."""

    def full(folder: Path) -> Path:
        with Path("/dev/full").open("w") as device:
            device.write("report")
        return folder

    monkeypatch.setattr("leeward.runs.protect.write_report", full)
    done = leeward("protect", spec, "-o", tmp_path / "out")
    assert done.status == 2
    assert "no space left" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_fault_of_ours_is_one_line_without_data(
    leeward: Run, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(self: object, *args: object, **kwargs: object) -> None:
        raise RuntimeError("canary-0001 has code 401.9")

    monkeypatch.delenv("LEEWARD_DEBUG", raising=False)
    monkeypatch.setattr(fake.Counting, "protect", fault)
    done = leeward("protect", spec, "-o", tmp_path / "out")
    assert done.status == 1
    assert done.err.count("\n") == 1
    assert "RuntimeError" in done.err
    assert "LEEWARD_DEBUG=1" in done.err
    assert "canary" not in done.err
    monkeypatch.setenv("LEEWARD_DEBUG", "1")
    assert "Traceback" in leeward("protect", spec, "-o", tmp_path / "out").err
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
