"""What is at a path. A path that no file system takes (too long, with a NUL) has nothing at it."""

from __future__ import annotations

from pathlib import Path

from leeward.errors import BadInput


def exists(path: str | Path) -> bool:
    """Whether something is there."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def is_file(path: str | Path) -> bool:
    """Whether a regular file is there."""
    return exists(path) and Path(path).is_file()


def is_folder(path: str | Path) -> bool:
    """Whether a folder is there."""
    return exists(path) and Path(path).is_dir()


def require_new(path: str | Path, what: str = "file", *, option: str | None = "-o") -> None:
    """BadInput where something is at `path`: nothing is ever overwritten."""
    if exists(path) or Path(path).is_symlink():
        with_option = f" with {option}" if option else ""
        raise BadInput(f"{path}: exists already; name another {what}{with_option}, or remove this one.")


def text_of(path: Path, what: str) -> str:
    """The text of a file that a person wrote, such as a `spec`.

    Raises
    ------
    BadInput
        There is no such file, or it is not UTF-8.
    """
    if not is_file(path):
        raise BadInput(f"{str(path)[:200]}: there is no such {what} file.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8 text; save the {what} as UTF-8.") from None
