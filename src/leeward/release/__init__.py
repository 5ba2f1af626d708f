"""The release: what a custodian hands over (`share/`), what stays (`custody/`), and the spec behind it."""

from __future__ import annotations

from leeward.release.content import Anonymized, Guarantee, ReleaseTable
from leeward.release.folder import Draft, draft, write
from leeward.release.reading import Release

__all__ = ["Anonymized", "Draft", "Guarantee", "Release", "ReleaseTable", "draft", "write"]
