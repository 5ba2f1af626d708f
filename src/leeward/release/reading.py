"""Reading a release back: by its recipient (`share/` alone) or its custodian (the whole folder)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from leeward.errors import BadInput
from leeward.paths import is_file, require_plain_files
from leeward.release.aside import UNPUBLISHED, is_written_here, refuse_unfinished
from leeward.release.manifest import DIGESTS, NAME, parse, sha256_of
from leeward.version import refuse_other_format


def manifest_name(folder: str | Path) -> str:
    """The manifest's file name: another one while this process writes the release. BadInput while another does."""
    refuse_unfinished(Path(folder))
    return UNPUBLISHED if is_written_here(Path(folder)) else NAME


@dataclass
class Release:
    """A release on disk. `open` reads one.

    Attributes
    ----------
    share : Path
        Folder for the recipient.
    custody : Path or None
        Folder of the custodian; None if only `share/` is there.
    manifest : mapping
        Content of `release.json`.
    method : str
        Name of the method, for example `disassociation`.
    parameters : mapping
        Public parameters of the method.
    guarantee : mapping
        The guarantee claimed: `name`, `attacker`, `not_protected` and its numbers.
    seeded : bool
        Whether somebody chose the seed: such a release is for tests and studies only.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> result = lw.protect(cohort, lw.Disassociation(k=5, m=2), "release")
    >>> release = lw.open("release")
    >>> release.method, release.guarantee["k"]
    ('disassociation', 5)
    >>> release.table("nodes.parquet").collect()["records"].sum() >= 300
    True
    """

    share: Path
    custody: Path | None
    manifest: Mapping[str, Any]
    method: str = field(init=False)
    parameters: Mapping[str, Any] = field(init=False)
    guarantee: Mapping[str, Any] = field(init=False)
    seeded: bool = field(init=False)

    def __post_init__(self) -> None:
        self.method = str(self.manifest.get("method"))
        self.parameters, self.guarantee = (self.manifest.get(key, {}) for key in ("parameters", "guarantee"))
        self.seeded = bool(self.manifest.get("seeded"))

    @staticmethod
    def open(path: str | Path, *, compare: bool = True) -> Release:
        """Open a release folder, or its `share/` folder alone.

        Parameters
        ----------
        compare : whether the data files are compared with their digests; a verifier does so by other code

        Raises
        ------
        BadInput
            The folder is not a release, was written by a newer Leeward, or is damaged: a data file is not the one that
            was released, or what lies there is not a file.
        """
        folder = Path(path)
        if not folder.exists():
            raise BadInput(
                f"{folder}: there is no such folder; name the folder that `leeward protect … -o` wrote."
            )
        if not folder.is_dir():
            raise BadInput(f"{folder}: not a folder; name the release's folder, not a file in it.")
        name = manifest_name(folder)
        share = folder if (folder / name).is_file() else folder / "share"
        if not (share / name).is_file():
            raise BadInput(
                f"{folder}: not a release (neither {NAME} nor share/{NAME} is there); name the folder that "
                "`leeward protect … -o` wrote."
            )
        custody = share.parent / "custody"
        for part in (share, custody):
            require_plain_files(part)
        try:
            text = (share / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise BadInput(f"{share / name}: not UTF-8 text; the release is damaged.") from None
        found = Release(share, custody if custody.is_dir() else None, parse(text, str(share / name)))
        if compare and not is_written_here(folder):
            found.compare_digests()
        return found

    def require_format(self) -> None:
        """BadInput for a release of an earlier format, which can be read but neither checked nor compared."""
        refuse_other_format(self.manifest, str(self.share))

    @property
    def demographics(self) -> tuple[str, ...]:
        """The demographic columns that are released generalized; empty without."""
        return tuple(str(name) for name in self.parameters.get("demographics") or ())

    @property
    def records(self) -> int:
        """Number of released records."""
        records = self.manifest["records"]
        if not isinstance(records, int) or records < 0:
            raise BadInput(
                f"{self.share / NAME}: `records` is not a number of records; the release is damaged."
            )
        return records

    def names(self) -> tuple[str, ...]:
        """The data files, relative to `share/data/`, in the manifest's order."""
        return tuple(str(entry["path"]).removeprefix("data/") for entry in self.manifest["files"])

    def compare_digests(self) -> None:
        """BadInput that names a data file that is there and is not the one that was released."""
        for entry in self.manifest["files"]:
            file = self.share / entry["path"]
            if is_file(file) and sha256_of(file) != entry["sha256"]:
                raise BadInput(
                    f"{file}: not the file that was released (its SHA-256 is another than in {NAME}): it was changed "
                    "or cut short since. Get the release again."
                )

    def path(self, name: str) -> Path:
        """The file of the table `name` (relative to `share/data/`).

        Raises
        ------
        BadInput
            The manifest or the disk does not have it.
        """
        if name not in self.names():
            raise BadInput(f"{self.share}: the manifest names no `{name}`; it has {', '.join(self.names())}.")
        path = self.share / "data" / name
        if not path.is_file():
            raise BadInput(f"{path}: named by the manifest but not there; the release is incomplete.")
        return path

    def custody_file(self, name: str) -> Path | None:
        """A file of the custodian's folder (`data/records.parquet`); None where it is not there.

        Raises
        ------
        BadInput
            By the digests of custody, it is not as the run wrote it.
        """
        if self.custody is None or not (self.custody / name).is_file():
            return None
        digests = self.custody / DIGESTS
        if digests.is_file():
            try:
                known = json.loads(digests.read_bytes())["files"].get(name)
            except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
                raise BadInput(f"{digests}: no list of files with their digests; it is damaged.") from None
            if known is not None and known != sha256_of(self.custody / name):
                raise BadInput(
                    f"{self.custody / name}: not as the run wrote it (its SHA-256 is another than in {DIGESTS}): it "
                    "was changed or cut short since. Take the folder from a copy, or make the release again."
                )
        return self.custody / name

    def custody_json(self, name: str) -> dict[str, Any] | None:
        """The content of a JSON file of the custodian's folder; None where it is not there. BadInput as above."""
        file = self.custody_file(name)
        content: dict[str, Any] | None = None if file is None else json.loads(file.read_bytes())
        return content

    def custody_table(self, name: str) -> pl.DataFrame | None:
        """The table `data/{name}.parquet` of the custodian's folder; None where it is not there. BadInput as above."""
        file = self.custody_file(f"data/{name}.parquet")
        return None if file is None else pl.read_parquet(file)

    def table(self, name: str) -> pl.LazyFrame:
        """The table `name` (for example `chunks.parquet`), lazily; CSV columns are read as text."""
        path = self.path(name)
        if path.suffix == ".csv":
            return pl.scan_csv(path, infer_schema=False)
        return pl.scan_parquet(path)

    def __repr__(self) -> str:
        guarantee = ", ".join(
            f"{key} = {self.guarantee[key]}"
            for key in ("k", "m", "epsilon", "delta")
            if key in self.guarantee
        )
        return f"Release({self.share}: {self.method}, {self.records:,} records, {guarantee})"
