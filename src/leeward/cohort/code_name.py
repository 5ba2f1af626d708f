"""A code's name for people, and who may see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CodeName:
    """A code's name and vocabulary. `patients`: how many have the code under this name; None for a public table's."""

    name: str
    vocabulary: str = ""
    patients: int | None = None

    def may_be_shown(self, k: int) -> bool:
        """Whether a release may hold the name."""
        return self.patients is None or self.patients >= k
