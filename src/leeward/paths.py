"""What is at a path. A path that no file system takes (too long, with a NUL) has nothing at it."""

from __future__ import annotations

from pathlib import Path


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
