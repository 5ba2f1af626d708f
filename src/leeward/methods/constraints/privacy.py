"""Privacy constraints: the code sets an attacker may know. A constraint holds if every non-empty subset of
its image has a support of 0 or at least k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from leeward.errors import BadInput
from leeward.methods.constraints.clusters import Clusters


class Privacy(Protocol):
    """What the greedy algorithms ask of a set of privacy constraints."""

    def next_unsatisfied(self, clusters: Clusters) -> tuple[int, ...] | None:
        """The image (clusters, ascending) of the constraint to treat next; None once all are satisfied."""
        ...

    def changed(self, clusters: Clusters, touched: tuple[int, ...]) -> None:
        """Two clusters were merged, or one was suppressed."""
        ...


@dataclass
class AllSets:
    """Every set of at most m codes: k^m-anonymity."""

    m: int

    def next_unsatisfied(self, clusters: Clusters) -> tuple[int, ...] | None:
        """Only sets that violate by themselves need looking at: they are constraints too, and come first."""
        found = clusters.smallest_violation(self.m)
        for d in range(3, min(self.m, clusters.longest()) + 1):
            support = 0 if found is None else found[0]
            if support == clusters.k - 1:
                break
            found = clusters.largest_violation(d, support) or found
        return None if found is None else found[1]

    def changed(self, clusters: Clusters, touched: tuple[int, ...]) -> None:
        """Nothing is kept: supports of pairs live in the clusters."""


@dataclass
class Listed:
    """A user's own constraints, each a set of code indices, ascending and distinct."""

    sets: Sequence[tuple[int, ...]]
    _users: list[NDArray[np.int64]] = field(default_factory=list)
    _open: dict[int, tuple[int, int, tuple[int, ...]]] = field(default_factory=dict)

    def next_unsatisfied(self, clusters: Clusters) -> tuple[int, ...] | None:
        """The first by support, number of clusters, names."""
        if not self._users:
            self._start(clusters)
        return min(self._open.values())[2] if self._open else None

    def changed(self, clusters: Clusters, touched: tuple[int, ...]) -> None:
        """Look again at the constraints that hold a code of a touched cluster."""
        users = np.unique(np.concatenate([self._users[cluster] for cluster in touched]))
        self._users[min(touched)] = users
        for number in users.tolist():
            self._judge(clusters, number)

    def _start(self, clusters: Clusters) -> None:
        users: list[list[int]] = [[] for _ in range(len(clusters))]
        for number, codes in enumerate(self.sets):
            for code in codes:
                users[code].append(number)
            self._judge(clusters, number)
        self._users = [np.array(u, np.int64) for u in users]

    def _judge(self, clusters: Clusters, number: int) -> None:
        image = clusters.image(self.sets[number])
        if image and clusters.violates(image):
            self._open[number] = (-clusters.image_support(image), len(image), image)
        else:
            self._open.pop(number, None)


def read_constraints(path: str | Path, codes: Sequence[str]) -> list[tuple[int, ...]]:
    """A user's privacy constraints: one code set a line, codes separated by commas or blanks.

    Raises BadInput for a file that cannot be read, an empty one, or a code that the data lack (with its row).
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise BadInput(f"{path.name}: not UTF-8 text; save the privacy constraints as UTF-8.") from None
    except OSError as problem:
        raise BadInput(f"privacy file {path.name}: cannot be read ({problem.strerror or problem}).") from None
    number = {code: i for i, code in enumerate(codes)}
    found: dict[tuple[int, ...], None] = {}
    for row, line in enumerate(lines, 1):
        names = line.replace(",", " ").replace(";", " ").split()
        unknown = [name for name in names if name not in number]
        if unknown:
            raise BadInput(
                f"{path.name}, row {row}: a code that the data lack, {unknown[0]!r}; correct it or delete it."
            )
        if names:
            found[tuple(sorted({number[name] for name in names}))] = None
    if not found:
        raise BadInput(f"{path.name}: no privacy constraint; give one code set a line.")
    return list(found)
