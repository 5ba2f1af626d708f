"""What earlier versions wrote is read, or a sentence names the version that checks it; nobody is told it is wrong.

`earlier/COMMIT.tar.xz` has a release of each method, a cohort, an index and its catalogue, made at that commit with
k = 3 (condensation 5), m = 2 of the 60 made-up patients beside them, without reports.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import polars as pl
import pytest

from leeward.cli.main import status_of
from leeward.runs.estimate import COUNTED
from leeward.version import RELEASE_FORMAT, __version__

ARCHIVES = sorted((Path(__file__).parent / "earlier").glob("*.tar.xz"))


def names_of(archive: Path) -> list[str]:
    """The releases in an archive."""
    with tarfile.open(archive) as kept:
        return sorted(name.split("/")[1] for name in kept.getnames() if name.endswith("share/release.json"))


RELEASES = [(archive, name) for archive in ARCHIVES for name in names_of(archive)]
OTHER_FORMAT = (
    f"Leeward 0.1.0 made this release in format 1; this is Leeward {__version__}, which checks format "
    f"{RELEASE_FORMAT}: verify it with the Leeward 0.1.0 that made it, or make it again."
)


@pytest.fixture
def unpacked(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an archive, which is the working folder: specs name their sources by relative paths."""
    with tarfile.open(request.param) as kept:
        kept.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEEWARD_STATE", str(tmp_path / "state"))
    return tmp_path


def test_releases_of_every_method_are_kept() -> None:
    from leeward.methods import METHODS

    for archive in ARCHIVES:
        kept = set(names_of(archive))
        assert kept >= {*METHODS, "cohort", "notes"} - {"linked"}  # came after the first of them
        assert archive.stat().st_size < 100_000
    assert "linked" in {name for _, name in RELEASES} and len(RELEASES) == 19


@pytest.mark.parametrize(("unpacked", "name"), RELEASES, indirect=["unpacked"])
def test_a_release_is_shown_and_counted_and_checked_by_its_own_version(
    unpacked: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(["show", name]) == 0
    assert "Verified" in capsys.readouterr().out
    for command in (
        ["verify", name],
        ["verify", f"{name}/share"],
        ["compare", name, name, "-o", "compared"],
        ["dossier", name, "-o", "written"],
    ):
        assert status_of(command) == 2
        told = capsys.readouterr()
        last = told.err.splitlines()[-1]
        assert last == f"leeward: {name}/share: {OTHER_FORMAT}"
        assert not any(word in told.out + told.err for word in ("failed", "refuted", "Do not share"))
    assert not (unpacked / "compared").exists() and not (unpacked / "written").exists()
    method = json.loads((unpacked / name / "share/release.json").read_text())["method"]
    status = status_of(["estimate", f"{name}/share", "250.0", "--json"])
    told = capsys.readouterr()
    assert status == (0 if method in COUNTED else 2)
    if status == 0:
        (found,) = json.loads(told.out)["estimates"]
        assert found["low"] <= patients_with(name, "250.0") <= found["high"]


def patients_with(name: str, code: str) -> int:
    """How many patients of the source of a release have a code."""
    held = pl.read_csv("sample.csv" if name == "censoring" else "events.csv")
    if name == "cohort":
        held = held.join(pl.read_csv("chosen.csv"), on="patient", how="semi")
    return held.filter(pl.col("code") == float(code))["patient"].n_unique()


@pytest.mark.parametrize("unpacked", ARCHIVES, indirect=True)
def test_a_master_names_its_version_and_an_index_and_its_ledger_go_on(
    unpacked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(["cohort", "visits", "--select", "chosen.csv", "-o", "drawn"]) == 2
    assert OTHER_FORMAT in capsys.readouterr().err and not (unpacked / "drawn").exists()
    assert (
        status_of(["query", "index", "250.0", "--epsilon", "1", "--json"]) == 0
    )  # asked before, by its version
    told = capsys.readouterr()
    assert "costs nothing" in told.err and json.loads(told.out)["answer"] == 46
    assert status_of(["query", "index", "401.0", "--epsilon", "1"]) == 0
    assert status_of(["audit", "index"]) == 0
