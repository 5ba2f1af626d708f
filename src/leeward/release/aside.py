"""A folder beside its final place: written there, renamed when it is whole, gone when it is not.

While it is written only its owner may read it, and it holds a lock with the process, the host and the final name. A
run that was killed leaves it behind; the next run with the same name removes it, and nothing opens it as a release:
the lock forbids it, and its manifest has another name until everything else is written (`UNPUBLISHED`).
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leeward.errors import BadInput

LOCK = ".being-written"
"""The file that says that a folder is not whole yet, and who writes it."""

UNPUBLISHED = "release.json.unpublished"
"""The manifest's name until the release is verified, measured and on the disk."""

OPEN: set[Path] = set()
"""The folders that this process writes now."""

OWNER_ONLY = 0o077
"""The umask under which custody is written."""


@contextmanager
def owner_only() -> Iterator[None]:
    """Files and folders made inside are the owner's alone."""
    before = os.umask(OWNER_ONLY)
    try:
        yield
    finally:
        os.umask(before)


def new_aside(out: Path) -> Path:
    """Make the folder in which `out` is written; folders that killed runs left for the same `out` are removed."""
    remove_abandoned(out)
    folder = out.with_name(f"{out.name}.partial-{secrets.token_hex(4)}")
    folder.mkdir(mode=0o700)
    OPEN.add(folder)
    try:
        with owner_only():
            (folder / LOCK).write_text(json.dumps({**_self(), "out": out.name}), encoding="utf-8")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


@contextmanager
def work_beside(out: Path) -> Iterator[Path]:
    """A folder beside `out` for the owner alone, removed at the end, or by the next run of that name."""
    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = new_aside(out)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        OPEN.discard(folder)


def finish(folder: Path, out: Path) -> None:
    """Give the folder its name; from then on others may enter it as the umask says.

    The lock goes last: it does not count in a folder of the name that it states, so that a process killed in between
    leaves either a folder aside, locked, or a whole one.
    """
    umask = os.umask(0)
    os.umask(umask)
    try:
        folder.rename(out)
    except OSError:
        if not out.exists():
            raise
        raise BadInput(f"{out}: another run wrote a folder of this name; name another one with -o.") from None
    OPEN.discard(folder)
    out.chmod(0o777 & ~umask)
    (out / LOCK).unlink(missing_ok=True)


def is_written_here(folder: Path) -> bool:
    """Whether this process writes the folder, or the one above it, now."""
    return not OPEN.isdisjoint((folder.absolute(), folder.absolute().parent))


def remove_own() -> None:
    """Remove every folder that this process writes: for a process that ends now."""
    for folder in tuple(OPEN):
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(out: Path) -> int:
    """Remove what runs of this host that are no more have left beside `out`; returns how many folders."""
    removed = 0
    for folder in out.parent.glob(f"{_literal(out.name)}.partial-*"):
        if folder.is_dir() and not folder.is_symlink() and _abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
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


def _self() -> dict[str, object]:
    return {"host": socket.gethostname(), "process": os.getpid(), "started": _started(os.getpid())}


def _started(process: int) -> str | None:
    """When a process began, as the system counts it; None where the system does not say."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else None


def _writer(folder: Path) -> dict[str, object] | None:
    """What the lock of a folder says; None without one, empty where it cannot be read."""
    try:
        content = json.loads((folder / LOCK).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _abandoned(folder: Path) -> bool:
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
    return _started(process) != writer.get("started")


def _literal(name: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)
