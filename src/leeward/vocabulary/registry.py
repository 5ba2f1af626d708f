"""Vocabularies that a user added: copies in the user's own data directory, found again by kind."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from leeward.errors import BadInput
from leeward.vocabulary import omop, phecode, rf2, trees


def _copy(check: Callable[[Path], object]) -> Callable[[Path, Path], object]:
    def copy(source: Path, target: Path) -> None:
        check(source)
        shutil.copyfile(source, target)

    return copy


KINDS: Mapping[str, Callable[[Path, Path], object]] = {
    "phecode": _copy(phecode.load),
    "hierarchy": _copy(trees.read),
    "omop": _copy(omop.require_concept_ancestor),
    "snomed": rf2.convert,
}
"""What can be added, and how a file (of SNOMED a folder) that was checked gets to its place."""


def home(environ: Mapping[str, str] | None = None) -> Path:
    """The user's data directory: `LEEWARD_HOME`, else `leeward` in `XDG_DATA_HOME` (`~/.local/share`)."""
    values = os.environ if environ is None else environ
    if values.get("LEEWARD_HOME"):
        return Path(values["LEEWARD_HOME"]).expanduser()
    base = values.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "leeward"


def add(kind: str, path: str | Path, environ: Mapping[str, str] | None = None) -> Path:
    """Check a vocabulary file and keep a copy, replacing the last one of its kind; returns where it is. BadInput for
    an unknown kind, a file that its reader refuses, or a directory that cannot be written."""
    source = Path(path)
    compressed = source.is_file() and source.read_bytes()[:2] == b"\x1f\x8b"
    target = _candidates(kind, environ)[compressed]
    aside = target.with_name(target.name + ".new")
    try:
        # what is refused leaves nothing in the user's directory
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / target.name
            KINDS[kind](source, made)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made, aside)
        aside.replace(target)
        for other in _candidates(kind, environ):
            if other != target:
                other.unlink(missing_ok=True)
    except OSError as problem:
        raise BadInput(
            f"the vocabulary cannot be stored ({problem.strerror or problem}); "
            "set LEEWARD_HOME to a folder that can be written."
        ) from None
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
    return target


def find(kind: str, environ: Mapping[str, str] | None = None) -> Path:
    """Where the added vocabulary of a kind is. Raises BadInput, with the command that adds one, if there is none."""
    for candidate in _candidates(kind, environ):
        if candidate.exists():
            return candidate
    what = "FOLDER" if kind == "snomed" else "FILE"
    raise BadInput(f"no {kind} vocabulary has been added yet; run `leeward vocabulary add {kind} {what}`.")


def has(kind: str, environ: Mapping[str, str] | None = None) -> bool:
    return any(candidate.exists() for candidate in _candidates(kind, environ))


def list_all(environ: Mapping[str, str] | None = None) -> dict[str, Path]:
    return {kind: find(kind, environ) for kind in KINDS if has(kind, environ)}


def remove(kind: str, environ: Mapping[str, str] | None = None) -> Path:
    """Delete the added vocabulary of a kind; returns where it was. BadInput if there is none."""
    path = find(kind, environ)
    for candidate in _candidates(kind, environ):
        candidate.unlink(missing_ok=True)
    return path


def _candidates(kind: str, environ: Mapping[str, str] | None) -> tuple[Path, Path]:
    """Where a vocabulary of the kind may be: its CSV, and packed. BadInput for an unknown kind."""
    if kind not in KINDS:
        raise BadInput(f"unknown kind of vocabulary {kind!r}; it is one of {', '.join(KINDS)}.")
    folder = home(environ) / "vocabulary"
    return folder / f"{kind}.csv", folder / f"{kind}.csv.gz"
