"""Risk after a disassociation, plainly: everything that an attacker may know of a patient of the source, looked up in
the files, set by set (docs/methods/disassociation.md#the-attacker-who-knows-the-algorithm)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from tests.attacks import disassociation, whole_patient
from tests.attacks.disassociation import Node

Person = tuple[Mapping[str, str], frozenset[str]]
"""Exact demographics (none for a release of codes alone) and codes."""
Piece = tuple[tuple[str, ...], frozenset[str]]


@dataclass(frozen=True)
class Piecewise:
    """Candidates of each piece of knowledge, by what its attacker uses of the method, and who has it."""

    plain: dict[Piece, int]
    algorithm: dict[Piece, int]
    patients: dict[Piece, set[int]]

    def of_size(self, most: int) -> list[Piece]:
        """The pieces of 1 to `most` codes that some record can have, as far as the files show."""
        return [piece for piece, n in self.plain.items() if 0 < len(piece[1]) <= most and n]


def pieces(share: Path, people: Iterable[Person]) -> Piecewise:
    """Every set of 1 to m codes of every patient, with the patient's exact demographics."""
    manifest = json.loads((share / "release.json").read_text())
    m, most = manifest["guarantee"]["m"], disassociation.known_most(share)
    classes = whole_patient.read(share) if manifest["parameters"].get("demographics") else None
    everywhere = [] if classes else disassociation.read(share)

    def nodes(demographics: Mapping[str, str]) -> list[Node]:
        if classes is None:
            return everywhere
        return [node for number in classes.fitting(demographics) for node in classes.top.get(number, [])]

    found = Piecewise({}, {}, {})
    for number, (demographics, codes) in enumerate(people):
        here = nodes(demographics)
        for size in range(1, m + 1):
            for chosen in combinations(sorted(codes), size):
                piece = tuple(demographics.values()), frozenset(chosen)
                found.patients.setdefault(piece, set()).add(number)
                if piece not in found.plain:
                    found.plain[piece] = sum(node.candidates(piece[1], most) for node in here)
                    found.algorithm[piece] = sum(node.candidates(piece[1], None) for node in here)
    return found
