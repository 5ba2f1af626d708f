"""What an attack on two releases came to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A bound of the candidates of every patient looked at, by one attack.

    attack : what the attacker knows and does, in a sentence
    k : the smaller k of both releases: what both promise
    fewest : the fewest candidates of any patient; k stands for k or more
    by_fewest : patients with 1, 2, … k - 1 candidates
    looked_at : patients looked at
    certain : patients of whom both together tell something for certain, and neither alone does
    exact : whether candidates are counted, not bounded from above
    """

    attack: str
    k: int
    fewest: int
    by_fewest: tuple[int, ...]
    looked_at: int
    certain: int
    exact: bool

    @property
    def below(self) -> int:
        """Patients with fewer than k candidates."""
        return sum(self.by_fewest)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "by_fewest": list(self.by_fewest), "below": self.below}


def bound_of(
    attack: str, k: int, candidates: Iterable[int], *, certain: int = 0, exact: bool = False
) -> Bound:
    """The bound of patients with so many candidates each, at least 1."""
    counts = [min(each, k) for each in candidates]
    return Bound(
        attack=attack,
        k=k,
        fewest=min(counts, default=k),
        by_fewest=tuple(counts.count(n) for n in range(1, k)),
        looked_at=len(counts),
        certain=certain,
        exact=exact,
    )
