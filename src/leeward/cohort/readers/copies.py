"""What is not read where it lies: files of an object store or a cluster's file system, and the current rows of a Delta
or Iceberg table. Both are copied into a private folder, which ends with `copies`."""

from __future__ import annotations

import errno
import fnmatch
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from leeward.cohort.readers.files import has_lakehouse, logs_of, require_room
from leeward.errors import BadInput
from leeward.paths import is_folder

STORES = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or the machine's role; AWS_ENDPOINT_URL",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or the machine's account",
    "abfss": "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or the machine's identity",
    "hdfs": "HADOOP_HOME, CLASSPATH, and a Kerberos ticket",
}
"""Stores that pyarrow reads, and where it takes its right to."""
ALSO = {"s3a": "s3", "gcs": "gs", "abfs": "abfss", "viewfs": "hdfs"}
PATTERN = re.compile(r"[*\[]")

_copied: ContextVar[tuple[Path, dict[str, Path]] | None] = ContextVar("copied", default=None)


def is_store(path: Any) -> bool:
    """Whether a path is the address of files, not of a database."""
    scheme = urlsplit(path).scheme if isinstance(path, str) and "://" in path else ""
    return scheme == "file" or ALSO.get(scheme, scheme) in STORES


@contextmanager
def copies() -> Iterator[None]:
    """Inside, whatever `local` copies is copied once."""
    if _copied.get() is not None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="leeward-copy-") as folder:  # for this user alone
        token = _copied.set((Path(folder), {}))
        try:
            yield
        finally:
            _copied.reset(token)


def local(path: Any) -> Any:
    """The path of the copy, inside `copies`, of what is not read where it lies; anything else as it is."""
    if is_store(path) and urlsplit(path).scheme == "file":
        path = unquote(urlsplit(path).path)
    kept = _copied.get()
    if kept is None or not isinstance(path, str | Path) or ("://" in str(path) and not is_store(path)):
        return path
    folder, known = kept
    if str(path) not in known:
        place = folder / str(len(known))
        known[str(path)] = _current(_download(str(path), place) if is_store(path) else Path(path), place)
    return path if known[str(path)] == Path(path) else known[str(path)]


def _download(uri: str, place: Path) -> Path:
    """The copy of a file, of a folder with all that is in it, or of what is at a pattern."""
    from pyarrow import fs

    parts = urlsplit(uri)
    if ":" in parts.netloc.rpartition("@")[0]:
        raise BadInput("The address of a source holds a key; leave it out: it is taken from the environment.")
    scheme = ALSO.get(parts.scheme, parts.scheme)
    name = PurePosixPath(parts.path).name or parts.netloc
    fixed = PATTERN.split(parts.path)[0]
    base = fixed.rstrip("/") if fixed == parts.path else fixed.rpartition("/")[0]
    try:
        store, root = fs.FileSystem.from_uri(parts._replace(scheme=scheme, path=base or "/").geturl())
        root = root.rstrip("/")
        info = store.get_file_info(root)
        if info.type == fs.FileType.File:
            found, root = [info], root.rpartition("/")[0]
        else:  # of what is not there, listing says more
            found = store.get_file_info(fs.FileSelector(root, recursive=True))
            found = [each for each in found if each.type == fs.FileType.File]
        pattern = f"*{parts.path}" if fixed != parts.path else "*"
        found = [each for each in found if fnmatch.fnmatch(f"/{each.path}", pattern)]
        if not found:
            raise FileNotFoundError
        place.mkdir()
        inside = place / PurePosixPath(root).name
        require_room(Path(name), sum(each.size for each in found), shutil.disk_usage(place).free, "copied")
        for each in found:
            target = inside / PurePosixPath(each.path).relative_to(root)
            if ".." in target.parts:
                raise ValueError
            target.parent.mkdir(parents=True, exist_ok=True)
            with store.open_input_stream(each.path) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
    except FileNotFoundError:
        raise BadInput(
            f"{name}: nothing is at this address of {scheme}://; check its bucket and path."
        ) from None
    except (OSError, ValueError) as error:  # texts of theirs may hold requests with their keys
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        found_code = re.search(r"AWS Error ([A-Z_]+)|HTTP status (\d+)", str(error))
        reason = next(filter(None, found_code.groups()), "") if found_code else type(error).__name__
        raise BadInput(
            f"{name}: {scheme}:// does not give it ({reason}); check the address, and the right to read, which is "
            f"taken from {STORES[scheme]}."
        ) from None
    if info.type == fs.FileType.File:
        return inside / name
    return inside / parts.path[len(base) :].lstrip("/") if fixed != parts.path else inside


def _current(table: Path, place: Path) -> Path:
    """The current rows, in a file, of a Delta table or of an Iceberg table (or a `metadata.json` of it); anything else
    as it is, and such tables too where they cannot be read: then reading refuses them."""
    of_log = table.parent.parent if table.name.endswith(".metadata.json") else table
    kinds = [kind for kind, _ in logs_of(of_log)] if is_folder(of_log) else []
    read = next((LAKEHOUSES[kind] for kind in kinds if kind in LAKEHOUSES), None)
    if read is None or not has_lakehouse():
        return table
    import pyarrow.parquet as pq

    folder = place / "current"
    folder.mkdir(parents=True)
    target = folder / f"{of_log.name}.parquet"
    try:
        rows = read(table)
        with pq.ParquetWriter(target, rows.schema, compression="zstd") as writer:
            for batch in rows:
                writer.write_batch(batch)
    except MemoryError:
        raise
    except Exception:  # of two libraries: a log that they do not understand, or cannot find
        return table
    return target


def _of_delta(table: Path) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(table).to_pyarrow_dataset().scanner().to_reader()


def _of_iceberg(table: Path) -> Any:
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(str(table)).scan().to_arrow_batch_reader()


LAKEHOUSES = {"a Delta table": _of_delta, "an Iceberg table": _of_iceberg}
