"""The words of a guarantee and of a README, and the facts that programs read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Words:
    """What the manifest's guarantee and the README must say.

    Attributes
    ----------
    readme : how a recipient reads and analyses the files.
    facts : see `stated_facts`.
    """

    name: str
    attacker: str
    not_protected: tuple[str, ...]
    readme: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Counting:
    """Lines of pandas and of R for a README, and what they do."""

    intro: str
    pandas: str
    r: str


def stated_facts(knows: str, candidates: str, as_is: Iterable[str] = (), **more: Any) -> dict[str, Any]:
    """A guarantee's facts: what the attacker knows, among whom candidates are counted, columns released as they are."""
    return {"attacker_knows": knows, "candidates": candidates, "released_as_is": list(as_is), **more}
