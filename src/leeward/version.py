"""The version of the package, from where the build reads it, and the format of the releases that it writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.errors import BadInput

__version__ = "0.2.0"

RELEASE_FORMAT = 3
"""What a release holds: files, columns, keys and words. A version that changes what one of them has to be, and so would
refute a whole release of the last version, has the next number. Releases that state none are of format 1."""


def other_format(manifest: Mapping[str, Any]) -> int | None:
    """The format that a manifest states, where it is another one than this version's; None also for what is no format,
    which a verifier refutes."""
    found = manifest.get("format", 1)
    return found if type(found) is int and 0 < found < 2**63 and found != RELEASE_FORMAT else None


def refuse_other_format(manifest: Mapping[str, Any], where: str) -> None:
    """BadInput for a release of another format than this version's: its rules say nothing of one."""
    found = other_format(manifest)
    if found is not None:
        made_by = manifest.get("leeward")
        raise BadInput(
            f"{where}: Leeward {made_by} made this release in format {found}; this is Leeward {__version__}, which "
            f"checks format {RELEASE_FORMAT}: verify it with the Leeward {made_by} that made it, or make it again."
        )
