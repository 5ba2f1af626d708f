"""The release folder as an outsider reads it, the checks that every method's release must pass, and the custodian's
folder as evidence: whether its files are as the run wrote them (`custody/digests.json`).

A change in custody is found that came by accident, or from somebody who did not restate the digests. Whoever may write
into custody can restate them.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import yaml

from leeward.contracts.contract import LARGEST
from leeward.contracts.readme import READER, has_copies
from leeward.errors import BadInput
from leeward.verify.checks import Check, of_count
from leeward.verify.flat import Words
from leeward.version import refuse_other_format

REQUIRED_KEYS = ("leeward", "format", "method", "parameters", "guarantee", "records", "files")
GUARANTEE_KEYS = (
    "name", "k", "m", "epsilon", "delta", "unit", "attacker", "not_protected", "facts", "risk"
)  # fmt: skip
FILE_KEYS = ("path", "rows", "sha256")

NAME = "release.json"
README = "README.md"


@dataclass(frozen=True)
class Share:
    """A shared folder and its manifest, a file called `name`; nothing else of the release is read, but for what the
    custodian keeps beside it."""

    folder: Path
    manifest: dict[str, Any]
    name: str = NAME
    _tables: dict[str, pl.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    @property
    def method(self) -> str:
        return str(self.manifest["method"])

    @property
    def paths(self) -> list[str]:
        """The files that the manifest lists, in its order."""
        return [str(entry["path"]) for entry in self.manifest["files"]]

    def data(self, name: str) -> Path:
        return self.folder / "data" / name

    def table(self, name: str) -> pl.DataFrame:
        """The data file `name`, read once for all checks."""
        if name not in self._tables:
            self._tables[name] = pl.read_parquet(self.data(name))
        return self._tables[name]

    @property
    def custody(self) -> Path | None:
        """The custodian's folder, where it is at hand."""
        custody = self.folder.parent / "custody"
        return custody if self.folder.name == "share" and custody.is_dir() else None

    def kept(self, name: str) -> Path | None:
        """The custodian's data file `name`, where it is at hand."""
        file = self.folder.parent / "custody" / "data" / name
        return file if self.folder.name == "share" and file.is_file() else None

    def guarantee(self, key: str) -> int:
        """An integer of the manifest's guarantee (`k`, `m`)."""
        value = self.manifest["guarantee"].get(key)
        if type(value) is not int or value < 1:
            raise BadInput(f"release.json: guarantee.{key} must be a whole number of at least 1.")
        return value


def open_share(path: str | Path, name: str = NAME) -> Share:
    """The share of a release folder (`OUT` or `OUT/share`); BadInput without a readable manifest of this format."""
    folder = Path(path)
    if (folder / "share" / name).is_file():
        folder = folder / "share"
    if not (folder / name).is_file():
        raise BadInput(f"{path}: no release.json; give a release's folder or its share folder.")
    require_files(folder)
    return Share(folder, _read_manifest(folder / name, str(path)), name)


def _read_manifest(file: Path, release: str) -> dict[str, Any]:
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise BadInput(f"{file.name}: not JSON; the manifest is damaged.") from None
    if not isinstance(manifest, dict):
        manifest = {}
    if "leeward" in manifest:
        refuse_other_format(manifest, release)
    missing = [key for key in REQUIRED_KEYS if key not in manifest]
    if missing:
        raise BadInput(f"release.json lacks {', '.join(missing)}.")
    if not isinstance(manifest["guarantee"], dict) or not isinstance(manifest["files"], list):
        raise BadInput("release.json: `guarantee` must be an object and `files` a list.")
    if not all(map(_is_entry, manifest["files"])):
        raise BadInput("release.json: each of `files` needs a path, its rows and its sha256.")
    return manifest


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and set(FILE_KEYS) <= set(entry)


def read_spec(share: Share) -> dict[str, Any] | None:
    """The custodian's spec of the run; None without it, empty where it cannot be read as one."""
    file = None if share.custody is None else share.custody / "spec.yaml"
    if file is None or not file.is_file():
        return None
    try:
        spec = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    return spec if isinstance(spec, dict) and isinstance(spec.get("method"), dict) else {}


def require_files(folder: Path) -> None:
    """BadInput where the share holds a link that leads out of it, or what is no file: reading that may never end."""
    root = os.path.realpath(folder)
    for path in folder.rglob("*"):
        leads_out = not Path(os.path.realpath(path)).is_relative_to(root)
        if leads_out or not (path.is_symlink() or path.is_file() or path.is_dir()):
            kind = "a link that leads out of the folder" if leads_out else "a pipe, device or socket"
            raise BadInput(f"{path}: {kind}, which no release has; nothing of it was read.")


def is_text(value: Any) -> bool:
    """A text that a file can be called, or a line of the README hold."""
    return isinstance(value, str) and value.isprintable()


def is_whole(value: Any) -> bool:
    """A whole number from 0 on; true and false are none."""
    return type(value) is int and 0 <= value <= LARGEST


def is_number(value: Any) -> bool:
    """A finite number from 0 on."""
    return type(value) in (int, float) and 0 <= value <= LARGEST


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


def is_versions(value: Any) -> bool:
    """What a release that grows states of its batches, the first one first."""
    return isinstance(value, list) and bool(value) and all(map(_is_version, value, range(1, len(value) + 1)))


def _is_version(value: Any, batch: int) -> bool:
    if not isinstance(value, dict) or list(value) != ["batch", "rows", "sha256", "records"]:
        return False
    rows = value["rows"]
    fits = isinstance(rows, dict) and all(map(is_text, rows)) and all(map(is_whole, rows.values()))
    numbers = type(value["batch"]) is int and value["batch"] == batch and is_whole(value["records"])
    return fits and numbers and is_text(value["sha256"])


TYPES = dict.fromkeys(("leeward", "method"), is_text) | {
    "format": is_whole,
    "parameters": is_object,
    "records": is_whole,
    "versions": is_versions,
    "returning": lambda value: value in ("kept", "apart"),
}
TYPES_OF_FILE = dict.fromkeys(("path", "sha256"), is_text) | {"rows": is_whole}
TYPES_OF_GUARANTEE = (
    dict.fromkeys(("name", "unit", "attacker"), is_text)
    | dict.fromkeys(("k", "m"), is_whole)
    | dict.fromkeys(("epsilon", "delta"), is_number)
    | dict.fromkeys(("facts", "risk"), is_object)
    | {"not_protected": lambda value: isinstance(value, list) and all(map(is_text, value))}
)


def manifest_types(share: Share) -> Check:
    """Every value that manifests of all methods have is of its type: before anything else is read of them."""
    manifest = share.manifest
    objects = [(manifest, TYPES), (manifest["guarantee"], TYPES_OF_GUARANTEE)]
    objects += [(entry, TYPES_OF_FILE) for entry in manifest["files"]]
    wrong = sum(
        not fits(content[key]) for content, types in objects for key, fits in types.items() if key in content
    )
    wrong += ("versions" in manifest) != ("returning" in manifest)
    try:
        json.dumps(manifest, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        wrong += 1
    return of_count(
        "manifest_types",
        wrong,
        "Every value of release.json has its type.",
        "values of release.json have the wrong type: a number is text, a list, missing or too "
        "large, or a text is something else.",
    )


def manifest_checks(share: Share) -> list[Check]:
    """The listed files exist, hold the bytes and rows stated, and no other file lies beside them."""
    listed = {str(entry["path"]): entry for entry in share.manifest["files"]}
    named = {share.folder / path: entry for path, entry in listed.items()}
    root = share.folder.resolve()
    present = {f: each for f, each in named.items() if f.resolve().is_relative_to(root) and f.is_file()}
    changed = sum(_sha256(file) != entry["sha256"] for file, entry in present.items())
    recount = sum(_rows(file) != entry["rows"] for file, entry in present.items())
    inside = list(share.folder.rglob("*"))
    found = {path.relative_to(share.folder).as_posix() for path in inside if not path.is_dir()}
    beside = {share.name, README, *([READER] if has_copies(listed) else [])}
    extra = len(found - set(listed) - beside) + sum(path.is_symlink() for path in inside)
    return [
        of_count(
            "files_present",
            len(listed) - len(present),
            f"Every listed file is there, {len(listed)} in all.",
            "listed files are missing.",
        ),
        of_count(
            "file_hashes", changed, "Every file has the hash stated.", "files differ from the hash stated."
        ),
        of_count(
            "file_rows",
            recount,
            "Every file has the rows stated.",
            "files do not have the number of rows stated.",
        ),
        of_count(
            "no_other_files",
            extra,
            "The share has no other files.",
            "files or links in the share are not listed in the manifest.",
        ),
    ]


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _rows(file: Path) -> int | None:
    """Rows of a data file: Parquet by its footer, CSV by its records; None when unreadable."""
    if file.suffix == ".parquet":
        try:
            return int(pq.read_metadata(file).num_rows)
        except (OSError, ValueError):
            return None
    import csv

    try:
        with file.open(newline="", encoding="utf-8") as stream:
            return sum(1 for _ in csv.reader(stream)) - 1
    except (UnicodeDecodeError, csv.Error):
        return None


DIGESTS = "digests.json"
DRAWING = "drawing.parquet"
"""Of a cohort drawn from a master: the reason why membership is secret, and the digest of the payload."""


def custody_checks(share: Share) -> list[Check]:
    """The files that the run wrote have their digests; no check without custody, or where it has no digests."""
    custody = share.custody
    if custody is None or not (custody / DIGESTS).exists():
        return []
    listed = _read_digests(custody / DIGESTS)
    if listed is None:
        return [
            Check(
                "custody_files",
                False,
                f"custody/{DIGESTS} is damaged: it is not a list of files with digests.",
            )
        ]
    wrong = sorted(name for name, digest in listed.items() if _sha256_inside(custody, name) != digest)
    detail = f"The {len(listed)} files of custody that {DIGESTS} lists are as the run wrote them."
    if wrong:
        detail = (
            f"{len(wrong)} files of custody are missing or not as the run wrote them: {', '.join(wrong)}."
        )
    return [Check("custody_files", not wrong, detail, {"files": len(listed), "violations": len(wrong)})]


def _read_digests(file: Path) -> dict[str, str] | None:
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None
    fits = isinstance(content, dict) and content and all(isinstance(each, str) for each in content.values())
    return content if fits else None


def _sha256_inside(custody: Path, name: str) -> str | None:
    """The digest of a file in custody; None for one that is not there, or not in custody."""
    try:
        file = (custody / name).resolve(strict=True)
        return _sha256(file) if file.is_file() and file.is_relative_to(custody.resolve()) else None
    except (OSError, ValueError):
        return None


def draw_words(share: Share, n: int) -> Words:
    """n random odd words, drawn by the files' digests: sums of them stand for sets, and no method can know them."""
    text = "".join(str(entry["sha256"]) for entry in share.manifest["files"])
    key = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    drawn = np.random.Generator(np.random.Philox(key=key)).integers(0, 1 << 63, n, dtype=np.int64)
    return drawn.astype(np.uint64) * np.uint64(2) + np.uint64(1)
