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

LOGS = {
    "_delta_log": ("a Delta table", "DuckDB: COPY (FROM delta_scan('{0}')) TO 'current.parquet'"),
    "metadata/*.metadata.json*": (
        "an Iceberg table",
        "DuckDB: COPY (FROM iceberg_scan('{0}')) TO 'current.parquet'",
    ),
    ".hoodie": ("a Hudi table", "Spark: spark.read.format('hudi').load('{0}').write.parquet('current')"),
}
"""What lies in the folder of a table whose log says which rows are current: its kind, and what exports these."""


def suffix(file: Path) -> str:
    """The ending that names the format, lower case, without a final `.gz`."""
    endings = [ending.lower() for ending in file.suffixes]
    if endings and endings[-1] == ".gz":
        endings.pop()
    return endings[-1] if endings else ""


def is_gzip(file: Path) -> bool:
    """Whether the name says that the file is gzip-compressed."""
    return file.suffix.lower() == ".gz"


def refuse_log(path: str | Path) -> None:
    """BadInput for a folder of Delta, Iceberg or Hudi and whatever lies in one: its files hold deleted rows too."""
    given = Path(path).absolute()
    places = dict.fromkeys((given, *given.parents, given.resolve(), *given.resolve().parents))
    for folder in places:
        for log, (kind, export) in LOGS.items():
            if next(folder.glob(log), None) is not None:
                raise BadInput(
                    f"{folder.name}: {kind} keeps deleted and replaced rows in its files, and its log alone says which "
                    f"rows are current. Export these and give the export, for example with "
                    f"{export.format(folder.name)}."
                )


def find_files(path: str | Path, readable: tuple[str, ...] = READABLE) -> list[Path]:
    """The files that `path` means, in the order of their names, never empty."""
    files = _match_files(path, readable)
    for folder in {place.parent for file in files for place in (file, file.resolve())}:
        refuse_log(folder)
    return files


def _match_files(path: str | Path, readable: tuple[str, ...]) -> list[Path]:
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
        for each in (folder, *folder.iterdir()):
            refuse_log(each)
        raise BadInput(
            f"{folder.name}: the folder has no file that can be read ({', '.join(readable)}, each also .gz)."
        )
    kinds = {suffix(file) in PARQUET for file in files}
    if len(kinds) > 1:
        raise BadInput(
            f"{folder.name}: the folder mixes Parquet and text files; give one kind, for example '*.parquet'."
        )
    return files
