"""One table inside a `.zip`, unpacked into a private folder for as long as it is read."""

from __future__ import annotations

import errno
import lzma
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from leeward.cohort.readers.files import READABLE, WHOLE, suffix
from leeward.errors import BadInput, did_you_mean
from leeward.memory import free_memory
from leeward.paths import is_file


@contextmanager
def unpack(path: str | Path, table: str | None) -> Iterator[tuple[str | Path, str | None]]:
    """The path of the file to read, and the table in it: of a `.zip` the one file with a table, or `table`."""
    file = Path(path)
    if suffix(file) != ".zip" or not is_file(file):
        yield path, table
        return
    with tempfile.TemporaryDirectory(prefix="leeward-zip-") as folder:  # for this user alone
        yield _member(file, table, Path(folder)), None


def _member(file: Path, table: str | None, folder: Path) -> Path:
    try:
        with zipfile.ZipFile(file) as archive:
            entry = _choose_member(file, archive, table)
            if entry.flag_bits & 1:
                raise BadInput(f"{file.name}: '{entry.filename}' is encrypted; unpack it first.")
            require_room(file, entry.file_size, shutil.disk_usage(folder).free)
            target = folder / PurePosixPath(entry.filename).name
            with archive.open(entry) as packed, target.open("wb") as whole:
                shutil.copyfileobj(packed, whole)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError):
        raise damage_error(
            file
        ) from None  # the last: a compression or an encryption that this Python does not know
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # a full or failing disk
            raise
        raise damage_error(
            file
        ) from None  # damaged bzip2 has no error of its own, and a directory may lie nowhere
    return target


def _choose_member(file: Path, archive: zipfile.ZipFile, table: str | None) -> zipfile.ZipInfo:
    inside = {
        entry.filename: entry
        for entry in archive.infolist()
        if not entry.is_dir() and not any(part.startswith((".", "__")) for part in entry.filename.split("/"))
    }
    if table is not None:
        if table not in inside:
            raise BadInput(f"{file.name}: no file '{table}' in it.{did_you_mean(table, inside)}")
        return inside[table]
    tables = [name for name in inside if suffix(Path(name)) in (*READABLE, *WHOLE)] or list(inside)
    if len(tables) != 1:
        named = f": {', '.join(sorted(tables)[:10])}{', …' if len(tables) > 10 else ''}" if tables else ""
        raise BadInput(
            f"{file.name}: {len(tables)} files in it{named}. Name one with --table, or unpack them."
        )
    return inside[tables[0]]


def require_room(file: Path, size: int, free: int | None) -> None:
    """BadInput where what is packed is larger than what is free."""
    if free is not None and size > free:
        raise BadInput(f"{file.name}: unpacked it has {size / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free.")


def require_memory(file: Path) -> None:
    """BadInput where a packed file, such as a workbook, is larger than the memory that is free."""
    try:
        with zipfile.ZipFile(file) as archive:
            require_room(file, sum(entry.file_size for entry in archive.infolist()), free_memory())
    except (zipfile.BadZipFile, OSError):
        raise damage_error(file) from None


def damage_error(file: Path) -> BadInput:
    """The error for a file that is cut short, or another kind of file than its name says."""
    return BadInput(f"{file.name}: this is not a readable {suffix(file)} file (damaged, or another format).")
