"""Which files a release was made of, for its custodian: a pattern says it only while the folder stays."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from leeward.errors import BadInput
from leeward.release.spec import SourceSpec


def files_of(source: SourceSpec | None) -> list[dict[str, Any]]:
    """`name`, `bytes` and `sha256` of each file of a source; none for a database or a cohort in memory."""
    from leeward.cohort.readers.files import find_files
    from leeward.paths import is_folder

    if source is None or source.path is None or "://" in source.path:
        return []
    path = Path(source.path)
    if is_folder(path):
        found = sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
    else:
        try:
            found = find_files(path)
        except BadInput:  # gone since it was read
            return []
    return [_entry(each) for each in found]


def _entry(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"name": file.name, "bytes": file.stat().st_size, "sha256": digest}
