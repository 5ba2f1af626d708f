"""A release that was changed since is told by every reader; what is no file of the share is never opened."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.release.made import made

import leeward as lw
from leeward.cli.main import status_of
from leeward.errors import BadInput
from leeward.release import Release, write
from leeward.verify import verify

EVENTS = pl.DataFrame({"patient": list(range(9)) * 2, "code": ["250.00", "401.9"] * 9})
COHORT = lw.read(EVENTS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "out"
    lw.protect(COHORT, lw.Disassociation(k=3, m=2), out, formats=("parquet", "csv"))
    return out


@pytest.fixture
def out(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "out"))


def cut(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 3])


def zero(file: Path) -> None:
    file.write_bytes(bytes(8) + file.read_bytes()[8:])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def drop_a_column(file: Path) -> None:
    table = pl.read_parquet(file)
    table.drop(table.columns[-1]).write_parquet(file)


READERS: dict[str, Callable[[Path, Path], object]] = {
    "open": lambda out, _: lw.open(out),
    "open the share": lambda out, _: lw.open(out / "share"),
    "estimate": lambda out, _: lw.estimate(out, ["250.00"]),
    "measure": lambda out, _: lw.measure(out, COHORT),
    "compare": lambda out, new: lw.compare([out], new, cohort=COHORT),
    "dossier": lambda out, new: lw.dossier(out, new, cohort=COHORT),
}
COMMANDS = (["estimate", "OUT", "250.00"], ["show", "OUT"], ["measure", "OUT", "--source", "nothing.csv"])


@pytest.mark.parametrize("change", [cut, zero, flip, drop_a_column])
@pytest.mark.parametrize("name", ["chunks.parquet", "nodes.parquet", "codes.parquet"])
def test_every_reader_names_a_file_that_was_changed(
    out: Path, tmp_path: Path, name: str, change: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    change(out / "share" / "data" / name)
    for read in READERS.values():
        with pytest.raises(BadInput, match=f"{name}: not the file that was released"):
            read(out, tmp_path / "new")
    for command in COMMANDS:
        assert status_of([str(out) if each == "OUT" else each for each in command]) == 2
        assert f"{name}: not the file that was released" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert not verify(out).passed


def test_a_changed_copy_in_csv_is_told_too(out: Path) -> None:
    with (out / "share/data/codes.csv").open("a") as file:
        file.write("999.9,,icd9,false\n")
    with pytest.raises(BadInput, match=r"codes\.csv: not the file that was released"):
        lw.open(out)


@pytest.mark.parametrize(
    "entry",
    [5, {"path": 5, "rows": 0, "sha256": ""}, {"path": "data/x", "rows": 0}, {"path": "data/x", "sha256": ""}]
    + [{"path": path, "rows": 0, "sha256": ""} for path in ("/etc/hostname", "../custody/spec.yaml")],
)
def test_what_the_manifest_lists_lies_in_the_share_and_has_a_digest(out: Path, entry: object) -> None:
    file = out / "share/release.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps({**manifest, "files": [entry]}))
    with pytest.raises(BadInput, match="each of `files` needs a path in the share"):
        lw.open(out)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def outside(path: Path) -> None:
    path.symlink_to(__file__)


def listening(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # a socket's name may not be long
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(before)


@pytest.mark.parametrize(
    "name", ["README.md", "release.json", "data/chunks.parquet", "data/more", ".being-written"]
)
@pytest.mark.parametrize("put", [fifo, device, outside, listening])
def test_what_is_no_file_of_the_share_is_never_opened(
    out: Path, name: str, put: Callable[[Path], None]
) -> None:
    place = out / "share" / name
    place.unlink(missing_ok=True)
    put(place)
    words = r"no release\.json|not a release" if name == "release.json" else f"{place.name}: a (pipe|link)"
    if name == "release.json" and put is outside:
        words = "link that leads out"
    for folder in (out, out / "share"):
        for read in (lw.open, verify, lw.verify):
            with pytest.raises(BadInput, match=words):
                read(folder)


def test_a_link_to_a_folder_elsewhere_is_not_entered(out: Path, tmp_path: Path) -> None:
    shutil.move(out / "share" / "data", tmp_path / "elsewhere")
    (out / "share" / "data").symlink_to(tmp_path / "elsewhere")
    for read in (lw.open, verify):
        with pytest.raises(BadInput, match="data: a link that leads out of the folder"):
            read(out)


def test_a_release_is_reached_through_a_link_and_links_inside_of_it_are_files(tmp_path: Path) -> None:
    write(made(), tmp_path / "real")
    (tmp_path / "out").symlink_to(tmp_path / "real")
    (tmp_path / "real/share/data/copy").symlink_to("chunks.parquet")
    assert Release.open(tmp_path / "out").records == 3
    verdict = {check.name: check.passed for check in verify(tmp_path / "out").checks}
    assert not verdict["no_other_files"]


def test_a_pipe_in_custody_is_not_waited_for(out: Path) -> None:
    (out / "custody/spec.yaml").unlink()
    os.mkfifo(out / "custody/spec.yaml")
    assert [check.name for check in verify(out).failures if check.name == "custody_files"] == [
        "custody_files"
    ]


@pytest.mark.parametrize("number", ["9", None, 9.5, [], -1])
def test_records_that_are_no_number_are_told(number: object, out: Path) -> None:
    manifest = json.loads((out / "share/release.json").read_text())
    (out / "share/release.json").write_text(json.dumps({**manifest, "records": number}))
    with pytest.raises(BadInput, match="`records` is not a number of records"):
        _ = Release.open(out).records


@pytest.mark.parametrize(
    "risk", [7, {"maximum": 1}, {"model": [], "maximum": 1}, {"model": "anybody", "prior": "x", "maximum": 1}]
)
def test_a_risk_that_no_guarantee_states_is_told(risk: object, out: Path) -> None:
    manifest = json.loads((out / "share/release.json").read_text())
    manifest["guarantee"]["risk"] = risk
    (out / "share/release.json").write_text(json.dumps(manifest))
    assert status_of(["show", str(out / "share")]) == 2


def test_a_method_that_is_no_text_is_told(out: Path, tmp_path: Path) -> None:
    manifest = json.loads((out / "share/release.json").read_text())
    (out / "share/release.json").write_text(json.dumps({**manifest, "method": {"a": 1}}))
    with pytest.raises(BadInput, match="`method` must be text"):
        lw.compare([out], tmp_path / "new", cohort=COHORT)


@pytest.mark.parametrize("change", [cut, zero, flip])
@pytest.mark.parametrize("arguments", COMMANDS[1:])
def test_figures_of_custody_that_were_changed_are_not_shown(
    arguments: list[str], change: Callable[[Path], None], out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(out / "custody/measures.json")
    EVENTS.write_csv(out.parent / "source.csv")
    asked = [str(out) if each == "OUT" else each for each in arguments]
    asked = [str(out.parent / "source.csv") if each == "nothing.csv" else each for each in asked]
    assert status_of(asked) == 2
    assert "measures.json: not as the run wrote it" in " ".join(capsys.readouterr().err.split())


def test_a_list_of_digests_that_is_none_is_told(out: Path) -> None:
    (out / "custody/digests.json").write_text('{"files": 3}')
    with pytest.raises(BadInput, match=r"digests\.json: no list of files"):
        Release.open(out).custody_json("measures.json")


def test_counts_are_not_told_of_fewer_records_than_there_are(tmp_path: Path) -> None:
    cohort = lw.read(
        EVENTS.with_columns(visit="patient"), columns={"patient": "patient", "code": "code", "visit": "visit"}
    )
    lw.protect(cohort, lw.Visits(k=3), tmp_path / "out")
    manifest = json.loads((tmp_path / "out/share/release.json").read_text())
    (tmp_path / "out/share/release.json").write_text(json.dumps({**manifest, "records": 4}))
    with pytest.raises(BadInput, match=r"more records than release\.json states"):
        lw.estimate(tmp_path / "out", ["250.00"])
