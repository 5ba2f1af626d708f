"""Rules that find identities by their form and context."""

from __future__ import annotations

from leeward.notes.annotators.rules.annotator import Rules

__all__ = ["Rules"]
