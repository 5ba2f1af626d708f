"""Vocabularies that a user added: copies in the user's own data directory, found again by kind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from leeward.errors import BadInput
from leeward.vocabulary import custom, omop, phecode

KINDS: Mapping[str, Callable[[Path], object]] = {
    "phecode": phecode.load,
    "hierarchy": custom.read,
    "omop": omop.require_concept_ancestor,
}
"""What can be added, and the reader that must accept the file first."""


def home(environ: Mapping[str, str] | None = None) -> Path:
    """The user's data directory: `LEEWARD_HOME`, else `leeward` in `XDG_DATA_HOME` (`~/.local/share`)."""
    values = os.environ if environ is None else environ
    if values.get("LEEWARD_HOME"):
        return Path(values["LEEWARD_HOME"]).expanduser()
    base = values.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "leeward"


def add(kind: str, path: str | Path, environ: Mapping[str, str] | None = None) -> Path:
    """Check a vocabulary file and keep a copy, replacing the last one of its kind; returns where it is.

    Raises BadInput for an unknown kind, a file that its reader refuses, or a directory that cannot be
    written.
    """
    source = Path(path)
    KINDS[_checked(kind)](source)
    compressed = source.read_bytes()[:2] == b"\x1f\x8b"
    target = _folder(environ) / f"{kind}.csv{'.gz' if compressed else ''}"
    aside = target.with_name(target.name + ".new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, aside)
        aside.replace(target)
        for other in _candidates(kind, environ):
            if other != target:
                other.unlink(missing_ok=True)
    except OSError as problem:
        if aside.exists():
            aside.unlink()
        raise BadInput(
            f"the vocabulary cannot be stored ({problem.strerror or problem}); "
            "set LEEWARD_HOME to a folder that can be written."
        ) from None
    return target


def find(kind: str, environ: Mapping[str, str] | None = None) -> Path:
    """Where the added vocabulary of a kind is. Raises BadInput, with the command that adds one, if there is
    none.
    """
    for candidate in _candidates(_checked(kind), environ):
        if candidate.exists():
            return candidate
    raise BadInput(f"no {kind} vocabulary was added yet; run `leeward vocabulary add {kind} FILE`.")


def has(kind: str, environ: Mapping[str, str] | None = None) -> bool:
    """Whether a vocabulary of the kind was added."""
    return any(candidate.exists() for candidate in _candidates(_checked(kind), environ))


def added(environ: Mapping[str, str] | None = None) -> dict[str, Path]:
    """Every vocabulary that was added, by its kind."""
    return {kind: find(kind, environ) for kind in KINDS if has(kind, environ)}


def remove(kind: str, environ: Mapping[str, str] | None = None) -> Path:
    """Delete the added vocabulary of a kind; returns where it was. BadInput if there is none."""
    path = find(kind, environ)
    for candidate in _candidates(kind, environ):
        candidate.unlink(missing_ok=True)
    return path


def _checked(kind: str) -> str:
    if kind not in KINDS:
        raise BadInput(f"unknown kind of vocabulary {kind!r}; it is one of {', '.join(KINDS)}.")
    return kind


def _folder(environ: Mapping[str, str] | None) -> Path:
    return home(environ) / "vocabulary"


def _candidates(kind: str, environ: Mapping[str, str] | None) -> tuple[Path, Path]:
    return _folder(environ) / f"{kind}.csv", _folder(environ) / f"{kind}.csv.gz"
