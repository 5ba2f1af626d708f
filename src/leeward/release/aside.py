"""A folder beside its final place: written there, renamed when it is whole, gone when it is not.

While it is written only its owner may read it, and it holds a lock with the process, the host and the final name. A
run that was killed leaves it behind; the next run with the same name removes it, and nothing opens it as a release:
the lock forbids it, and its manifest has another name until everything else is written (`UNPUBLISHED`). The lock is
there before anything else and goes after it: a folder without a whole one holds nothing.

Modes are given to each folder and file: the umask is the whole process's, and another thread may be writing.
"""

from __future__ import annotations

import glob
import json
import os
import secrets
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from leeward.errors import BadInput

LOCK = ".being-written"
"""The file that says that a folder is not whole yet, and who writes it."""

UNPUBLISHED = "release.json.unpublished"
"""The manifest's name until the release is verified, measured and on the disk."""

WORK = ".work"
"""The file that says what is done in a folder: a digest of it."""

OPEN: set[Path] = set()
"""The folders that this process writes now."""

LOCK_DRAFT = f"{LOCK}.draft"
"""The lock's name until it is whole."""


def own_file(path: Path) -> Path:
    """The path, with an empty file at it that only its owner may read: for what is written there next."""
    path.touch(mode=0o600)
    return path


@contextmanager
def alone_in(folder: Path, *, wait: bool = True) -> Iterator[bool]:
    """Lock a folder for one process, where the system can; yields whether this process has it. Its end unlocks."""
    if os.name != "posix":
        yield True
        return
    import fcntl

    lock = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        except BlockingIOError:
            alone = False
        yield alone
    finally:
        os.close(lock)


def make_private(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)


def new_aside(out: Path) -> Path:
    """Make the folder in which `out` is written; folders that killed runs left for the same `out` are removed."""
    remove_abandoned(out)
    while True:
        folder = out.with_name(f"{out.name}.partial-{secrets.token_hex(4)}")
        folder.mkdir(mode=0o700)
        try:
            OPEN.add(folder)
            if _lock(folder, out):
                return folder
        except BaseException:
            remove(folder)
            raise


@contextmanager
def written_aside(out: Path) -> Iterator[Path]:
    """A folder beside `out` that becomes `out`, its owner's alone, when the block ends well; else it is removed."""
    with work_beside(out) as folder:
        yield folder
        finish(folder, out.absolute(), folder)


@contextmanager
def work_beside(out: Path, of: str | None = None) -> Iterator[Path]:
    """A folder beside `out` for the owner alone, removed at the end, or by the next run of that name. `of`: a digest of
    what is done there; what a killed run of the same name left of the same work is gone on with."""
    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = (None if of is None else _take_over(out, of)) or new_aside(out)
    try:
        if of is not None:
            own_file(folder / WORK).write_text(of)
        yield folder
    finally:
        remove(folder)


def finish(folder: Path, out: Path, private: Path, mode: int = 0o700) -> None:
    """Make a part of the folder its owner's alone, and give the folder its name; from then on others may enter it as
    `mode` says.

    The lock goes last: it does not count in a folder of the name that it states, so that a process killed in between
    leaves either a folder aside, locked, or a whole one.
    """
    make_private(private)
    rename(folder, out)
    OPEN.discard(folder)
    out.chmod(mode)
    (out / LOCK).unlink(missing_ok=True)


def rename(folder: Path, out: Path) -> None:
    """Give a folder its name. BadInput where something has it by now: two runs were told to write it."""
    try:
        folder.rename(out)
    except OSError:
        if not os.path.lexists(out):
            raise
        raise BadInput(f"{out}: exists by now, another run wrote it; name another folder with -o.") from None


def remove(folder: Path) -> None:
    """Remove a folder aside, its lock last: where this is cut short too, the next run knows whose the rest is."""
    for path in folder.glob("*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != LOCK:
            with suppress(OSError):
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    OPEN.discard(folder)


def is_written_here(folder: Path) -> bool:
    """Whether this process writes the folder, or the one above it, now."""
    return not OPEN.isdisjoint((folder.absolute(), folder.absolute().parent))


def remove_own() -> None:
    """Remove every folder that this process writes: for a process that ends now."""
    for folder in tuple(OPEN):
        remove(folder)


def _take_over(out: Path, of: str) -> Path | None:
    """Lock a folder that a killed run left of the same work; None where there is none. Nobody else could write there:
    what is read from it is trusted."""
    for folder in sorted(out.parent.glob(f"{glob.escape(out.name)}.partial-*")):
        work, kind = folder / WORK, folder.lstat()
        own = os.name == "posix" and kind.st_uid == os.geteuid() and kind.st_mode == stat.S_IFDIR | 0o700
        if own and work.is_file() and work.read_text() == of:
            with alone_in(folder, wait=False) as alone:
                if alone and _is_abandoned(folder) and _lock(folder, out):
                    OPEN.add(folder)
                    return folder
    return None


def remove_abandoned(out: Path) -> int:
    """Remove what runs of this host that are no more have left beside `out`; returns how many folders."""
    removed = 0
    for folder in out.parent.glob(f"{glob.escape(out.name)}.partial-*"):
        if folder.is_dir() and not folder.is_symlink():
            if _is_abandoned(folder):
                remove(folder)
                removed += 1
            else:
                removed += _remove_unlocked(folder)
    return removed


def refuse_unfinished(folder: Path) -> None:
    """BadInput where `folder`, or the release that it is the share of, is still being written by another process."""
    for each in (folder, folder.parent):
        writer = _writer(each)
        if writer is not None and writer.get("out") != each.absolute().name and not is_written_here(each):
            raise BadInput(
                f"{folder}: a release that is still being written, or whose run was killed; it is not verified. Run "
                "it again, or remove the folder."
            )


def _lock(folder: Path, out: Path) -> bool:
    """Lock a new folder, at once or not at all; False where another run took it for one of a killed run."""
    draft = folder / LOCK_DRAFT
    try:
        own = {"host": socket.gethostname(), "process": os.getpid(), "started": _start_time(os.getpid())}
        own_file(draft).write_text(json.dumps({**own, "out": out.name}), encoding="utf-8")
        draft.rename(folder / LOCK)
    except FileNotFoundError:
        return False
    return True


def _remove_unlocked(folder: Path) -> bool:
    """Remove a folder whose only content is an unfinished lock: its run was killed before it wrote anything. Not by
    rmtree: a run that locks it now keeps it, or finds it gone and makes another."""
    try:
        held = {path.name for path in folder.iterdir()}
        if not held <= {LOCK, LOCK_DRAFT} or _writer(folder):
            return False
        for name in held:
            (folder / name).unlink()
        folder.rmdir()
    except OSError:
        return False
    return True


def _start_time(process: int) -> str | None:
    """When a process began, as the system counts it; None where the system does not say."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else None


def _writer(folder: Path) -> dict[str, object] | None:
    """What the lock of a folder says; None without one, empty where it cannot be read."""
    lock = folder / LOCK
    if lock.is_symlink() or not lock.is_file():  # a pipe of that name is not waited for
        return None
    try:
        content = json.loads(lock.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_abandoned(folder: Path) -> bool:
    """Whether the process that wrote the folder was of this host and is no more."""
    writer = _writer(folder)
    if writer is None or writer.get("host") != socket.gethostname():
        return False
    process = writer.get("process")
    if not isinstance(process, int) or process <= 0:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:  # another user's
        return False
    return _start_time(process) != writer.get("started")
