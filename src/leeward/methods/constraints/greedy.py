"""CBA, UGACLIP and COAT: merge or suppress until every privacy constraint holds.

Conventions: docs/methods/constraints.md#algorithms.

Sources: CBA: Loukides & Gkoulalas-Divanis (2013); UGACLIP: Loukides et al. (2010); COAT: Loukides et al.
(2011). Conventions of this implementation: among unsatisfied constraints the largest image support comes
first; ties: fewer clusters in the image, then their smallest codes in order. Merges of equal loss: the
smallest codes of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from leeward.analysis.policies import Constraints
from leeward.arrays import Int64s
from leeward.errors import BadInput
from leeward.methods.constraints.clusters import Clusters
from leeward.methods.constraints.mapping import Mapping, relabel
from leeward.methods.constraints.weighted import WeightedSets, merge_records


@dataclass
class AllSets:
    """Privacy constraints: every set of at most m codes that an attacker may know (k^m-anonymity). A constraint holds
    if every non-empty subset of its image has a support of 0 or at least k."""

    m: int

    def next_image(self, clusters: Clusters) -> tuple[int, ...] | None:
        """The image (clusters, ascending) of the constraint to treat next; None once all are satisfied. Searches only
        sets that violate themselves: they are constraints too, and come first."""
        found = clusters.smallest_violation(self.m)
        for d in range(3, min(self.m, clusters.longest()) + 1):
            support = 0 if found is None else found[0]
            if support == clusters.k - 1:
                break
            found = clusters.largest_violation(d, support) or found
        return None if found is None else found[1]

    def update(self, clusters: Clusters, touched: tuple[int, ...]) -> None:
        """Do nothing after a merge or suppression: `clusters` holds the supports of pairs."""


@dataclass
class Listed:
    """Constraints listed by the user, each a set of code indices, ascending and distinct."""

    sets: Sequence[tuple[int, ...]]
    _users: list[Int64s] = field(default_factory=list)
    _open: dict[int, tuple[int, int, tuple[int, ...]]] = field(default_factory=dict)

    def next_image(self, clusters: Clusters) -> tuple[int, ...] | None:
        """The image of the first violated constraint: largest support, then fewest clusters, then smallest names."""
        if not self._users:
            self._start(clusters)
        return min(self._open.values())[2] if self._open else None

    def update(self, clusters: Clusters, touched: tuple[int, ...]) -> None:
        """Re-evaluate the constraints with a code in a touched cluster."""
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


Privacy = AllSets | Listed


def privacy_of(m: int | None, listed: Sequence[tuple[int, ...]] | None) -> Privacy:
    """The `listed` constraints, or all sets of up to `m` codes."""
    return AllSets(m or 1) if listed is None else Listed(listed)


def read_constraints(path: str | Path, codes: Sequence[str]) -> list[tuple[int, ...]]:
    """Read a user's privacy constraints: one code set per line, codes separated by commas or blanks. Raises BadInput
    for a file that cannot be read, an empty one, or a code that the data lack (with its row)."""
    path = Path(path)
    number = {code: i for i, code in enumerate(codes)}
    found: dict[tuple[int, ...], None] = {}
    for row, line in enumerate(_lines(path), 1):
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


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise BadInput(f"{path.name}: not UTF-8 text; save the privacy constraints as UTF-8.") from None
    except OSError as problem:
        raise BadInput(f"privacy file {path.name}: cannot be read ({problem.strerror or problem}).") from None


Step = Callable[[Clusters, Privacy, tuple[int, ...]], None]


def run(clusters: Clusters, privacy: Privacy, algorithm: str) -> int:
    """Satisfy every privacy constraint; returns the number of constraints treated. Each treatment merges or suppresses,
    so the loop ends."""
    treat = TREATMENTS[algorithm]
    treated = 0
    while (image := privacy.next_image(clusters)) is not None:
        treat(clusters, privacy, image)
        treated += 1
    return treated


def cheapest_merge(clusters: Clusters, privacy: Privacy, image: tuple[int, ...]) -> None:
    """CBA: merge a cluster of the image with another of its utility constraint, at the least added loss."""
    best: tuple[int, int, int] | None = None
    for cluster in image:
        others = clusters.partners(cluster)
        if len(others) == 0:
            continue
        own = clusters.loss(cluster)
        for loss, other in clusters.union_losses(cluster, others):
            candidate = (loss - own - clusters.loss(other), min(cluster, other), max(cluster, other))
            best = candidate if best is None else min(best, candidate)
    if best is None:
        _suppress(clusters, privacy, _rarest(clusters, image))
    else:
        _merge(clusters, privacy, best[1], best[2])


def generalize_rarest(clusters: Clusters, privacy: Privacy, image: tuple[int, ...]) -> None:
    """UGACLIP, COAT: merge the rarest cluster into the union of least loss, until the constraint is satisfied."""
    codes = list(image)
    while clusters.violates(image := clusters.image(codes)):
        least = _rarest(clusters, image)
        others = clusters.partners(least)
        if len(others) == 0:
            _suppress(clusters, privacy, least)
            continue
        losses = clusters.union_losses(least, others)
        _, a, b = min((loss, min(least, other), max(least, other)) for loss, other in losses)
        _merge(clusters, privacy, a, b)


TREATMENTS: dict[str, Step] = {"cba": cheapest_merge, "ugaclip": generalize_rarest, "coat": generalize_rarest}
"""How each algorithm treats an unsatisfied constraint."""


def _rarest(clusters: Clusters, image: tuple[int, ...]) -> int:
    return min(image, key=lambda cluster: (clusters.support(cluster), cluster))


def _merge(clusters: Clusters, privacy: Privacy, a: int, b: int) -> None:
    clusters.merge(a, b)
    privacy.update(clusters, (a, b))


def _suppress(clusters: Clusters, privacy: Privacy, cluster: int) -> None:
    clusters.suppress(cluster)
    privacy.update(clusters, (cluster,))


def violates(
    mapping: Mapping, sets: WeightedSets, k: int, m: int | None, listed: Sequence[tuple[int, ...]] | None
) -> bool:
    number = mapping.label_numbers(sets.codes)
    used = np.unique(number[number >= 0])
    place = np.full(len(mapping.labels) + 1, -1, np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    of_code = place[number]
    offsets, values = relabel(sets.offsets, sets.values, of_code, max(len(used), 1))
    labels = tuple(mapping.labels[i] for i in used)
    released = merge_records(offsets, values, sets.weight, labels)
    clusters = Clusters(released, Constraints.none(len(labels)), k)
    if listed is not None:
        images = {tuple(sorted({int(of_code[c]) for c in p if of_code[c] >= 0})) for p in listed}
        listed = sorted(image for image in images if image)
    return privacy_of(m, listed).next_image(clusters) is not None
