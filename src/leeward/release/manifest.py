"""`release.json`: what a release is, what it guarantees, and the hash of every data file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from leeward.errors import BadInput
from leeward.version import RELEASE_FORMAT, __version__, other_format

NAME = "release.json"

DIGESTS = "digests.json"
"""The file of custody with the digests of the others, which tell whether one was changed since."""

KEYS = ("leeward", "method", "parameters", "guarantee", "records", "files")
"""Keys that every manifest has, of whatever format."""

KINDS = {"method": str, "parameters": dict, "guarantee": dict, "files": list}
"""Types of some of their values."""

MODELS = {
    "prosecutor": "who knows that the patient is in the data",
    "journalist": "who looks for somebody of the population and does not know who is in the data",
    "anybody": "whatever they know",
}
"""Whom the attacker looks for, in words (El Emam's prosecutor and journalist)."""


@dataclass(frozen=True)
class FileEntry:
    """One data file: its path relative to `share/`, its rows, its SHA-256."""

    path: str
    rows: int
    sha256: str


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def to_json_text(content: Mapping[str, Any]) -> str:
    """JSON as the release writes it: indented, UTF-8, no NaN, one newline at the end."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False, default=_plain) + "\n"


def parse(text: str, where: str) -> dict[str, Any]:
    """A manifest from its text. BadInput for bad JSON, a missing key, or a release of a newer Leeward."""
    try:
        manifest = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"{where}: not valid JSON (line {error.lineno}); the release is damaged.") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or lists in lists in lists
        raise BadInput(f"{where}: holds a number or a list that no release has; it is damaged.") from None
    _require(
        isinstance(manifest, dict),
        f"{where}: not a manifest; an object with the keys {', '.join(KEYS)} is expected.",
    )
    missing = ", ".join(f"`{key}`" for key in KEYS if key not in manifest)
    _require(not missing, f"{where}: the manifest lacks {missing}; it is damaged.")
    _require(
        all(isinstance(manifest[key], kind) for key, kind in KINDS.items()),
        f"{where}: `method` must be text, `parameters` and `guarantee` objects, `files` a list; it is damaged.",
    )
    _require(
        all(map(_is_entry, manifest["files"])),
        f"{where}: each of `files` needs a path in the share, its rows and its SHA-256; it is damaged.",
    )
    _require(
        _is_risk(manifest["guarantee"].get("risk")),
        f"{where}: the guarantee's `risk` is none that a release states; it is damaged.",
    )
    later = (other_format(manifest) or 0) > RELEASE_FORMAT
    _require(
        not later and _series(manifest["leeward"], where) <= _series(__version__, where),
        f"{where}: written by leeward {manifest['leeward']}, this is leeward {__version__}; update leeward.",
    )
    return manifest  # type: ignore[no-any-return]  # an object


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise BadInput(message)


def _is_risk(risk: Any) -> bool:
    """Whether it is a maximum, of somebody's attack or over a belief of before, or nothing."""
    if risk is None:
        return True
    if not isinstance(risk, dict) or risk.get("model") not in list(MODELS):
        return False
    return all(type(share) in (int, float) for share in (risk.get("maximum"), risk.get("prior", 0)))


def _is_entry(entry: Any) -> bool:
    """Whether an entry of `files` names a file in the share, and its digest."""
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in ("path", "sha256")):
        return False
    path = PurePosixPath(entry["path"])
    return "rows" in entry and not path.is_absolute() and ".." not in path.parts


def _series(version: Any, where: str) -> tuple[int, int]:
    """(major, minor): a patch release never changes the folder's contract."""
    parts = str(version).split(".")
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        raise BadInput(f"{where}: `leeward` is not a version such as {__version__}; the manifest is damaged.")
    return int(parts[0]), int(parts[1])


def _plain(value: Any) -> Any:
    """NumPy numbers and arrays, paths and tuples' kin as JSON knows them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
