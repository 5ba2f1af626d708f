"""What is at a path. A path that no file system takes (too long, with a NUL) has nothing at it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from leeward.errors import BadInput


def exists(path: str | Path) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def is_file(path: str | Path) -> bool:
    return exists(path) and Path(path).is_file()


def is_folder(path: str | Path) -> bool:
    return exists(path) and Path(path).is_dir()


def require_plain_files(folder: str | Path) -> None:
    """BadInput where a folder that others may have made holds a pipe, a device, a socket, or a link that leads out of
    it: reading one waits for ever, or reads what is not theirs to name. Asked before anything in it is opened."""
    root = os.path.realpath(folder)
    for place, folders, files in os.walk(root):
        for path in (Path(place, name) for name in (*folders, *files)):
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode) and not Path(os.path.realpath(path)).is_relative_to(root):
                kind = "a link that leads out of the folder"
            elif stat.S_IFMT(mode) not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                kind = "a pipe, device or socket"
            else:
                continue
            where = Path(folder) / path.relative_to(root)
            raise BadInput(f"{where}: {kind}, where only files may be; nothing of the folder was read.")


def require_new(path: str | Path, what: str = "file", *, option: str | None = "-o") -> None:
    """BadInput where something is at `path`: nothing is ever overwritten."""
    if exists(path) or Path(path).is_symlink():
        with_option = f" with {option}" if option else ""
        raise BadInput(f"{path}: exists already; name another {what}{with_option}, or remove this one.")


def text_of(path: Path, what: str) -> str:
    """The text of a file that a person wrote, such as a `spec`. BadInput where it is missing or not UTF-8."""
    if not is_file(path):
        raise BadInput(f"{str(path)[:200]}: there is no such {what} file.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8 text; save the {what} as UTF-8.") from None
