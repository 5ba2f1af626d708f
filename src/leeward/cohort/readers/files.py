"""Which files a path means: one file, a folder, a glob, or one table inside a `.zip`, unpacked into a private folder as
long as it is read."""

from __future__ import annotations

import errno
import glob
import itertools
import lzma
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from leeward.errors import BadInput, did_you_mean, listed
from leeward.memory import free_memory
from leeward.paths import exists, is_file, is_folder

DELIMITED = (".csv", ".tsv", ".tab", ".txt")
PARQUET = (".parquet", ".pq")
READABLE = DELIMITED + PARQUET
WORKBOOKS = (".xlsx", ".xlsm")
STATISTICS = (".sas7bdat", ".xpt", ".dta", ".sav", ".zsav", ".por")
WHOLE = WORKBOOKS + STATISTICS
"""Files that are read at once (`readers.whole`)."""

LAKEHOUSE = " Delta and Iceberg tables are read by leeward[lakehouse]: pip install 'leeward[lakehouse]'."

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What stands for null in the name of a folder."""

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
    return file.suffix.lower() == ".gz"


def refuse_log(path: str | Path) -> None:
    """BadInput for a folder of Delta, Iceberg or Hudi and whatever lies in one: its files hold deleted rows too."""
    given = Path(path).absolute()
    places = dict.fromkeys((given, *given.parents, given.resolve(), *given.resolve().parents))
    for folder in places:
        for kind, export in logs_of(folder):
            raise BadInput(
                f"{folder.name}: {kind} keeps deleted and replaced rows in its files; only its log "
                f"identifies the current ones. Export these and give the export, for example with "
                f"{export.format(folder.name)}.{'' if has_lakehouse() else LAKEHOUSE}"
            )


def has_lakehouse() -> bool:
    """Whether the extra that reads Delta and Iceberg tables is installed."""
    return find_spec("deltalake") is not None and find_spec("pyiceberg") is not None


def logs_of(folder: Path) -> list[tuple[str, str]]:
    """The kinds of table, with what exports them, whose logs a folder has."""
    return [LOGS[log] for log in LOGS if next(folder.glob(log), None) is not None]


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


def keys_of(file: Path) -> dict[str, str | None]:
    """The columns that Hive and Spark write into the names of folders (`year=2024`), from the outermost on."""
    folders = list(itertools.takewhile(lambda folder: "=" in folder.name, file.absolute().parents))
    named = [folder.name.partition("=") for folder in reversed(folders)]
    return {unquote(key): None if value == NO_VALUE else unquote(value) for key, _, value in named}


def readable_files(folder: Path, readable: tuple[str, ...] = READABLE) -> Iterator[Path]:
    """The files of a folder, and of those below it that are called `key=value`."""
    for entry in folder.iterdir():
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir() and "=" in entry.name:
            yield from readable_files(entry, readable)
        elif entry.is_file() and suffix(entry) in readable:
            yield entry


def _files_of_folder(folder: Path, readable: tuple[str, ...]) -> list[Path]:
    files = sorted(readable_files(folder, readable))
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
    except OSError as error:  # damaged bzip2 has no error of its own, and a directory may lie nowhere
        if error.errno not in (None, errno.EINVAL):  # a full or failing disk
            raise
        raise damage_error(file) from None
    # The last: a compression or an encryption that this Python does not know.
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError):
        raise damage_error(file) from None
    return target


def _choose_member(file: Path, archive: zipfile.ZipFile, table: str | None) -> zipfile.ZipInfo:
    shown = re.compile(r"(?!(.*/)?(\.|__)).*[^/]", re.DOTALL)  # no folder, and no part of the path hidden
    inside = {each.filename: each for each in archive.infolist() if shown.fullmatch(each.filename)}
    tables = [name for name in inside if suffix(Path(name)) in (*READABLE, *WHOLE)] or list(inside)
    if table is None and len(tables) == 1:
        return inside[tables[0]]
    if table is None:
        named = f": {listed(sorted(tables))}" if tables else ""
        raise BadInput(
            f"{file.name}: {len(tables)} files in it{named}. Name one with --table, or unpack them."
        )
    if table not in inside:
        raise BadInput(f"{file.name}: no file '{table}' in it.{did_you_mean(table, inside)}")
    return inside[table]


def require_room(file: Path, size: int, free: int | None, how: str = "unpacked") -> None:
    """BadInput where what is packed, or elsewhere, is larger than what is free."""
    if free is not None and size > free:
        raise BadInput(f"{file.name}: {how} it has {size / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free.")


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
