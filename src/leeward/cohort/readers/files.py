"""Which files a path means: one file, a folder, or a glob."""

from __future__ import annotations

import glob
from pathlib import Path

from leeward.errors import BadInput
from leeward.paths import exists, is_folder

DELIMITED = (".csv", ".tsv", ".tab", ".txt")
PARQUET = (".parquet", ".pq")
READABLE = DELIMITED + PARQUET
WORKBOOKS = (".xlsx", ".xlsm")
STATISTICS = (".sas7bdat", ".xpt", ".dta", ".sav", ".zsav", ".por")
WHOLE = WORKBOOKS + STATISTICS
"""Files that are read at once (`readers.whole`)."""


def suffix(file: Path) -> str:
    """The ending that names the format, lower case, without a final `.gz`."""
    endings = [ending.lower() for ending in file.suffixes]
    if endings and endings[-1] == ".gz":
        endings.pop()
    return endings[-1] if endings else ""


def is_gzip(file: Path) -> bool:
    """Whether the name says that the file is gzip-compressed."""
    return file.suffix.lower() == ".gz"


def find_files(path: str | Path, readable: tuple[str, ...] = READABLE) -> list[Path]:
    """The files that `path` means, in the order of their names, never empty."""
    given = Path(path)
    if is_folder(given):
        return _files_of_folder(given, readable)
    if exists(given):
        if not given.is_file():
            raise BadInput(
                f"{given.name}: a pipe or a device, not a file; it is read more than once, so save it to a file first."
            )
        return [given]
    if any(sign in str(path) for sign in "*?["):
        if "\0" in str(path):
            raise BadInput("the path holds a NUL character; no file has such a name.")
        found = glob.glob(str(path), recursive=True)  # noqa: PTH207  # Path.glob takes no absolute pattern
        matches = sorted(Path(match) for match in found if Path(match).is_file())
        if not matches:
            raise BadInput(f"{given.name}: no file matches this pattern.")
        return matches
    raise BadInput(f"{given.name[:200]}: no such file or folder.")


def _files_of_folder(folder: Path, readable: tuple[str, ...]) -> list[Path]:
    files = sorted(
        file
        for file in folder.iterdir()
        if file.is_file() and not file.name.startswith((".", "_")) and suffix(file) in readable
    )
    if not files:
        raise BadInput(
            f"{folder.name}: the folder has no file that can be read ({', '.join(readable)}, each also .gz)."
        )
    kinds = {suffix(file) in PARQUET for file in files}
    if len(kinds) > 1:
        raise BadInput(
            f"{folder.name}: the folder mixes Parquet and text files; give one kind, for example '*.parquet'."
        )
    return files
