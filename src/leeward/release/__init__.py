"""The release: what a custodian hands over (`share/`), what stays (`custody/`), and the spec behind it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leeward.release.content import Anonymized, Guarantee, ReleaseTable
    from leeward.release.folder import Draft, draft, write
    from leeward.release.reading import Release

__all__ = ["Anonymized", "Draft", "Guarantee", "Release", "ReleaseTable", "draft", "write"]

_WHERE = {
    **dict.fromkeys(("Anonymized", "Guarantee", "ReleaseTable"), "content"),
    **dict.fromkeys(("Draft", "draft", "write"), "folder"),
    "Release": "reading",
}


def __getattr__(name: str) -> Any:
    """What is named is loaded then: commands that only print JSON need no Polars."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
