"""The custodian's folder as evidence: whether its files are as the run wrote them (`custody/digests.json`).

A change is found that came by accident, or from somebody who did not restate the digests. Whoever may write into
custody can restate them.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from leeward.verify.checks import Check
from leeward.verify.manifest import Share

DIGESTS = "digests.json"
DRAWING = "drawing.parquet"
"""Of a cohort drawn from a master: the reason why membership is secret, and the digest of the payload."""


def custody_of(share: Share) -> Path | None:
    """The custodian's folder, where it is at hand."""
    custody = share.folder.parent / "custody"
    return custody if share.folder.name == "share" and custody.is_dir() else None


def custody_checks(share: Share) -> list[Check]:
    """The files that the run wrote have their digests; no check without custody, or where it has no digests."""
    custody = custody_of(share)
    if custody is None or not (custody / DIGESTS).exists():
        return []
    listed = _read_digests(custody / DIGESTS)
    if listed is None:
        return [
            Check(
                "custody_files", False, f"custody/{DIGESTS} is damaged: it is no list of files with digests."
            )
        ]
    wrong = sorted(name for name, digest in listed.items() if _sha256(custody, name) != digest)
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


def _sha256(custody: Path, name: str) -> str | None:
    """The digest of a file in custody; None for one that is not there, or not in custody."""
    try:
        file = (custody / name).resolve(strict=True)
        if not file.is_file() or not file.is_relative_to(custody.resolve()):
            return None
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError):
        return None
