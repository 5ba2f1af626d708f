"""Folders of killed runs: only their owner reads them, nobody takes them for a release, the next run removes them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from tests.release.made import made

from leeward.errors import BadInput
from leeward.release import Release, draft, write
from leeward.release import aside as module
from leeward.release.aside import (
    LOCK,
    LOCK_DRAFT,
    UNPUBLISHED,
    new_aside,
    remove,
    remove_abandoned,
    written_aside,
)
from leeward.runs.index import beside
from leeward.runs.protect import verify
from leeward.verify import verify as verify_files

KILLED = """
import os, signal, sys
from tests.release.made import made
from leeward.release import draft
with draft(sys.argv[1]) as pending:
    pending.write(made())
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_a_run(out: Path) -> Path:
    ran = subprocess.run([sys.executable, "-c", KILLED, str(out)], check=False, timeout=300)
    assert ran.returncode == -signal.SIGKILL
    (left,) = out.parent.glob(f"{out.name}.partial-*")
    return left


def test_what_a_killed_run_left_is_private_and_no_release(tmp_path: Path) -> None:
    left = kill_a_run(tmp_path / "out")
    assert (left / "share" / UNPUBLISHED).is_file() and not (left / "share" / "release.json").exists()
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    for folder in (left, left / "share"):
        with pytest.raises(BadInput, match="still being written, or whose run was killed"):
            Release.open(folder)
        with pytest.raises(BadInput, match="it is not verified"):
            verify(folder)


WATCHED = """
import shutil, sys
from pathlib import Path
import polars as pl
import leeward as lw
place, kept = Path(sys.argv[1]), Path(sys.argv[2])
cohort = lw.read(pl.DataFrame({"patient": [*range(9)] * 2, "code": ["250.00", "401.9"] * 9}))
seen, looking = [[]], False

def look(event, arguments):
    global looking
    if looking or not event.startswith(("open", "os.")):
        return
    looking = True
    try:
        now = sorted((str(path), path.stat().st_size) for path in place.rglob("*"))
        if now != seen[-1]:
            seen.append(now)
            shutil.copytree(place, kept / f"{len(seen):03d}")
    except FileNotFoundError:
        pass  # another thread was faster: the next event looks again
    finally:
        looking = False

sys.addaudithook(look)
lw.protect(cohort, lw.Disassociation(k=3, m=2), place / "out", seed=1)
"""


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What a run of `protect` has on the disk whenever a file changes: what is left when it is killed there."""
    place, kept = tmp_path_factory.mktemp("run"), tmp_path_factory.mktemp("moments")
    watched = [sys.executable, "-c", WATCHED, str(place), str(kept)]
    subprocess.run(watched, check=True, stderr=subprocess.DEVNULL, timeout=600)
    shutil.copytree(place, kept / "999")
    return sorted(kept.iterdir())


def test_wherever_a_run_is_killed_there_is_a_whole_release_or_none(moments: list[Path]) -> None:
    from leeward.portal.pages.custody import _folders

    whole = [moment for moment in moments if (moment / "out").exists()]
    assert whole and len(moments) > len(whole) + 15
    for moment in whole:
        assert verify(moment / "out").passed
    for moment in moments[: -len(whole)]:
        (aside,) = moment.iterdir()
        shares = [aside, aside / "share"]
        if not (aside / "share" / "release.json").exists():
            (moment / "copied").mkdir()  # without the lock
            (aside / "share").is_dir() and shutil.copytree(aside / "share", moment / "copied" / "share")
            shares += [moment / "copied", moment / "copied" / "share"]
            assert _folders(moment, "share/release.json", set()) == []
            with pytest.raises(BadInput, match=r"no release\.json"):
                verify_files(aside)
        for folder in shares:
            for opens in (Release.open, verify):
                with pytest.raises(BadInput):
                    opens(folder)


def test_the_manifest_is_the_last_file_of_a_share(moments: list[Path]) -> None:
    last = {path.relative_to(moments[-1] / "out") for path in (moments[-1] / "out").rglob("*")}
    for moment in moments:
        for manifest in moment.rglob("release.json"):
            there = {path.relative_to(manifest.parents[1]) for path in manifest.parents[1].rglob("*")}
            assert there - {Path(LOCK)} == last


def test_the_next_run_of_that_name_removes_it(tmp_path: Path) -> None:
    left, other = kill_a_run(tmp_path / "out"), kill_a_run(tmp_path / "out2")
    write(made(), tmp_path / "out")
    assert not left.exists() and other.exists()
    assert not (tmp_path / "out" / LOCK).exists()
    assert Release.open(tmp_path / "out").records


def test_a_run_that_is_at_work_or_elsewhere_keeps_its_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with draft(out) as pending:
        pending.write(made())
        assert Release.open(pending.folder).records  # the run itself reads it, to verify it
        assert remove_abandoned(out) == 0
        lock = json.loads((pending.folder / LOCK).read_text())
    elsewhere = tmp_path / "out.partial-0123abcd"
    elsewhere.mkdir()
    (elsewhere / LOCK).write_text(json.dumps({**lock, "host": "another", "process": 2**22 + 1}))
    assert remove_abandoned(out) == 0
    (elsewhere / LOCK).write_text(json.dumps({**lock, "started": "0"}))  # our number, another process
    assert remove_abandoned(out) == 1


@pytest.mark.parametrize("left", [{}, {LOCK_DRAFT: '{"ho'}, {LOCK: ""}, {LOCK: '{"ho'}, {LOCK: "[]"}])
def test_what_was_killed_before_its_lock_was_whole_is_removed_by_the_next_run(
    tmp_path: Path, left: dict[str, str]
) -> None:
    folder = tmp_path / "out.partial-deadbeef"
    folder.mkdir(mode=0o700)
    for name, text in left.items():
        (folder / name).write_text(text)
    write(made(), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_with_content_and_without_a_lock_is_not_a_runs(tmp_path: Path) -> None:
    folder = tmp_path / "out.partial-mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("all of it")
    assert remove_abandoned(tmp_path / "out") == 0
    assert (folder / "thesis.txt").read_text() == "all of it"


def test_a_folder_that_another_run_took_for_a_killed_ones_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, real, seen = tmp_path / "out", module.own_file, []

    def own_file(path: Path) -> Path:
        seen.append(path.parent)
        if len(seen) == 1:
            assert remove_abandoned(out) == 1
        return real(path)

    monkeypatch.setattr(module, "own_file", own_file)
    folder = new_aside(out)
    assert len(seen) == 2 and list(tmp_path.iterdir()) == [folder] == [seen[1]]
    assert json.loads((folder / LOCK).read_text())["process"] == os.getpid()
    remove(folder)


def test_a_removal_that_is_cut_short_leaves_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = new_aside(tmp_path / "out")
    for name in ("a", "b"):
        (folder / name).mkdir()

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", stopped)
        remove(folder)
    assert (folder / LOCK).is_file()
    remove(folder)
    assert not folder.exists()


@pytest.mark.parametrize("aside", [written_aside, draft, beside])
def test_of_two_runs_to_one_name_the_second_is_told_that_it_exists_by_now(
    tmp_path: Path, aside: type[AbstractContextManager[object]]
) -> None:
    out = tmp_path / "out"
    with pytest.raises(BadInput, match=r"out: exists (by now|already)"), aside(out) as second:
        if isinstance(second, Path):
            second.mkdir(exist_ok=True)
        out.mkdir()
        (out / "of the first").write_text("1")
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "of the first"]


def test_runs_in_threads_leave_the_umask_alone_and_each_file_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import leeward as lw

    def forbidden(mask: int) -> int:
        raise AssertionError("the umask is the whole process's")

    before = os.umask(0o022)
    try:
        monkeypatch.setattr(os, "umask", forbidden)
        cohort = lw.read(pl.DataFrame({"patient": list(range(9)) * 2, "code": ["250.00", "401.9"] * 9}))
        together, failed = threading.Barrier(2, timeout=120), []

        def run(out: Path) -> None:
            try:
                together.wait(timeout=120)
                lw.protect(cohort, lw.Disassociation(k=3, m=2), out)
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=run, args=(tmp_path / name,)) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=300)
    finally:
        monkeypatch.undo()
        assert os.umask(before) == 0o022
    assert not failed
    for path in (path for path in tmp_path.rglob("*")):
        private = "custody" in path.relative_to(tmp_path).parts
        wanted = (0o700 if private else 0o755) if path.is_dir() else (0o600 if private else 0o644)
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path.name


def test_custody_is_its_owners_alone_file_by_file(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        write(made(), tmp_path / "out", spec_text="a: 1\n")
    finally:
        os.umask(before)
    modes = {
        path.relative_to(tmp_path / "out").as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "out").rglob("*")
    }
    assert modes["custody"] == 0o700
    assert {mode & 0o077 for name, mode in modes.items() if name.startswith("custody")} == {0}
    assert modes["share"] & 0o005 == 0o005


@pytest.mark.parametrize("text", ["=1+1", "@SUM(1)", "+1+1", "-1+2", "=cmd|' /C calc'!A0", "\t=1"])
def test_texts_that_a_spreadsheet_runs_are_not_written_as_csv(tmp_path: Path, text: str) -> None:
    from leeward.release.tables import _cell

    with pytest.raises(BadInput, match="which spreadsheets run"):
        _cell(Path("x.csv"), pa.field("code", pa.string()), pa.array(["250", text]))
    with pytest.raises(BadInput, match="which spreadsheets run"):
        _cell(Path("x.csv"), pa.field("code", pa.list_(pa.string())), pa.array([["250", text]]))


def test_other_texts_are_written_as_csv() -> None:
    from leeward.release.tables import _cell

    texts = pa.array(["250.00", "-", "-5", "-5.25", "E812", "(a,b)", None, ""])
    assert _cell(Path("x.csv"), pa.field("code", pa.string()), texts).equals(texts)


def test_an_index_that_was_killed_is_removed_by_the_next(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from leeward.runs.index import beside\n"
        "with beside(Path(sys.argv[1])) as folder:\n"
        "    folder.mkdir(); (folder / 'bitmaps.bin').write_bytes(b'x'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "index")], check=False, timeout=120)
    (left,) = tmp_path.iterdir()
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    with beside(tmp_path / "index") as folder:
        assert not left.exists()
        folder.mkdir()
        (folder / "bitmaps.bin").write_bytes(b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    assert stat.S_IMODE((tmp_path / "index" / "bitmaps.bin").stat().st_mode) & 0o077 == 0


def test_every_file_of_custody_of_a_whole_run_is_its_owners_alone(tmp_path: Path) -> None:
    import leeward as lw

    cohort = lw.read(pl.DataFrame({"patient": list(range(9)) * 2, "code": ["250.00", "401.9"] * 9}))
    before = os.umask(0o000)
    try:
        lw.protect(cohort, lw.Disassociation(k=3, m=2), tmp_path / "out")
    finally:
        os.umask(before)
    custody = [*(tmp_path / "out" / "custody").rglob("*")]
    assert "report.html" in {path.name for path in custody}
    assert {path.name for path in custody if stat.S_IMODE(path.stat().st_mode) & 0o077} == set()


def test_the_files_of_a_source_are_listed_with_their_digests(tmp_path: Path) -> None:
    import hashlib

    import leeward as lw

    for part in ("a", "b"):
        rows = "".join(f"{part}{i},{code}\n" for i in range(5) for code in ("250.00", "401.9"))
        (tmp_path / f"part-{part}.csv").write_text("patient,code\n" + rows)
    (tmp_path / "spec.yaml").write_text(
        f"source: {{path: '{tmp_path}/part-*.csv'}}\nmethod: {{name: disassociation, k: 3, m: 2}}\n"
    )
    lw.run(tmp_path / "spec.yaml", tmp_path / "out")
    listed = json.loads((tmp_path / "out" / "custody" / "source_files.json").read_text())["files"]
    assert [each["name"] for each in listed] == ["part-a.csv", "part-b.csv"]
    for each in listed:
        data = (tmp_path / each["name"]).read_bytes()
        assert each["bytes"] == len(data) and each["sha256"] == hashlib.sha256(data).hexdigest()
    assert not (tmp_path / "out" / "share" / "source_files.json").exists()
