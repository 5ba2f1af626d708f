"""Rules: what a text says about identities by its form and by the words around it."""

from __future__ import annotations

from leeward.notes.annotators.rules.annotator import Rules

__all__ = ["Rules"]
