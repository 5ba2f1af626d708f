"""Atomic writing of a release folder.

Everything is written into `OUT.partial-xxxxxxxx` beside `OUT` (`aside`), flushed to the disk and renamed at the end,
so that `OUT` either is a whole release or is not there. `release.json` gets its name last. Any failure (full disk,
interrupt, refuted guarantee) removes what was written.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.contracts import contract_of
from leeward.contracts.readme import READER, has_copies, reader, readme_of
from leeward.errors import BadInput
from leeward.release.aside import UNPUBLISHED, finish, work_beside
from leeward.release.content import Anonymized, manifest_of
from leeward.release.manifest import DIGESTS, NAME, sha256_of, to_json_text
from leeward.release.tables import SMALL, with_copies, write_table

FORMATS = ("parquet", "csv")
"""What `formats:` may name: Parquet is always written, `csv` adds a copy of it. Where it names neither, the copy is
added if it is small."""

CORRECTED = frozenset({"master.json"})
"""Files of custody that its custodian may correct: where the master of a cohort is now."""

WORLD = {
    errno.ENOSPC: "there is no space left on the disk; free some or choose another place",
    errno.EDQUOT: "the disk quota is used up; free some space or choose another place",
    errno.EACCES: "you may not write there; choose another place or ask for the right to write",
    errno.EPERM: "you may not write there; choose another place or ask for the right to write",
    errno.EROFS: "the disk is read-only; choose another place",
    errno.ENOENT: "no folder can be made there; choose another place",
}
"""Failures that are the disk's and not ours, with what to do."""


@dataclass(frozen=True)
class Draft:
    """A release being written; `folder` becomes `out` when all is done."""

    folder: Path
    out: Path

    @property
    def share(self) -> Path:
        return self.folder / "share"

    @property
    def custody(self) -> Path:
        return self.folder / "custody"

    def write(self, anonymized: Anonymized, *, formats: Sequence[str] = ()) -> None:
        """Write `share/` and the method's `custody/data`; the manifest is published when all is done."""
        for name in formats:
            if name not in FORMATS:
                raise BadInput(f"`formats`: cannot write `{name}`; choose from {', '.join(FORMATS)}.")
        share, custody = self.share, self.custody
        entries = [write_table(table, share / "data", share) for table in anonymized.tables]
        for table in anonymized.custody_tables:
            write_table(table, custody / "data", custody)
        if "csv" in formats:
            entries = with_copies(entries, share)
        elif not formats:
            with suppress(BadInput):  # larger, or with a text that CSV cannot hold: Parquet alone
                entries = with_copies(entries, share, limit=SMALL)
        manifest = manifest_of(anonymized, entries)
        readme = readme_of(manifest, anonymized.readme, contract_of(anonymized.method))
        self.put("share/README.md", readme)
        if has_copies(entry.path for entry in entries):
            (share / READER).write_bytes(reader())
        self.put(f"share/{UNPUBLISHED}", to_json_text(manifest))

    def put(self, path: str, text: str) -> None:
        """Write a text file at `path`, relative to the release folder."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")

    def put_json(self, path: str, content: Mapping[str, Any]) -> None:
        self.put(path, to_json_text(content))

    def put_digests(self) -> None:
        """Write `custody/digests.json`: the SHA-256 of every other file of custody, when all of them are written."""
        files = {
            path.relative_to(self.custody).as_posix(): path
            for path in self.custody.rglob("*")
            if path.is_file()
        }
        digests = {name: sha256_of(path) for name, path in sorted(files.items()) if name not in CORRECTED}
        if digests:
            self.put_json(f"custody/{DIGESTS}", {"files": digests})


def check_out(out: Path) -> None:
    if out.exists() or out.is_symlink():
        raise BadInput(
            f"{out}: exists already; a release is never overwritten. Name another folder with -o, or "
            "remove this one."
        )


@contextmanager
def draft(out: str | Path) -> Iterator[Draft]:
    """Write a release aside; renamed to `out` when the block ends well, else removed. BadInput where `out` exists or
    cannot be written, or the disk is full."""
    out = Path(out).absolute()
    check_out(out)
    with disk_errors(out, "release"), parents(out), work_beside(out) as folder:
        (folder / "share" / "data").mkdir(parents=True)
        mode = stat.S_IMODE((folder / "share").stat().st_mode)  # as the umask says
        (folder / "custody").mkdir(mode=0o700)
        pending = Draft(folder, out)
        yield pending
        if (pending.share / UNPUBLISHED).is_file():  # a release: annotated notes have no manifest to verify
            pending.put_digests()
        flush(folder)
        check_out(out)
        _publish(pending.share)
        finish(folder, out, pending.custody, mode)
        flush_folder(out.parent)


def write(
    anonymized: Anonymized,
    out: str | Path,
    *,
    formats: Sequence[str] = (),
    spec_text: str | None = None,
    custody: Mapping[str, Mapping[str, Any]] | None = None,
) -> Path:
    """Write a release at once, without verifying or measuring it (`leeward.methods` does those too).

    out : a folder that does not exist yet
    formats : `parquet` (always written), `csv`; where empty, `csv` too if it is small
    spec_text : YAML for `custody/spec.yaml`
    custody : file name -> JSON content: further files for `custody/`

    Raises BadInput: `out` exists or cannot be written.
    """
    with draft(out) as pending:
        pending.write(anonymized, formats=formats)
        if spec_text is not None:
            pending.put("custody/spec.yaml", spec_text)
        files = {"measures.json": {"method": dict(anonymized.custody)}, **(custody or {})}
        for name, content in files.items():
            pending.put_json(f"custody/{name}", content)
    return pending.out


@contextmanager
def disk_errors(out: Path, what: str) -> Iterator[None]:
    """Turn the disk's refusals into errors that say what to do."""
    try:
        yield
    except OSError as error:
        reason = WORLD.get(error.errno or 0)
        if reason is None:
            raise
        raise BadInput(f"{out}: cannot write the {what}: {reason}. Nothing was left behind.") from None


@contextmanager
def parents(out: Path) -> Iterator[None]:
    """Make the folders above `out`; take away those made when the block fails."""
    missing = [parent for parent in out.parents if not parent.exists()]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise BadInput(
            f"{out}: this is a file, and a folder is needed; name another folder with -o."
        ) from None
    try:
        yield
    except BaseException:
        for parent in missing:
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()
        raise


def _publish(share: Path) -> None:
    """Give the manifest its name: the last change of a release, when all its files are on the disk."""
    if (share / UNPUBLISHED).is_file():
        (share / UNPUBLISHED).rename(share / NAME)
        flush_folder(share)


def flush(folder: Path) -> None:
    """Wait until a folder and all that is in it are on the disk."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        else:
            flush_folder(path)
    flush_folder(folder)


def flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
