"""CBA, UGACLIP and COAT: merge or suppress until every privacy constraint holds.

Conventions: docs/methods/constraints.md#algorithms.

Sources: CBA: Loukides & Gkoulalas-Divanis (2013); UGACLIP: Loukides et al. (2010); COAT: Loukides et al.
(2011). Conventions of this implementation: among unsatisfied constraints the largest image support comes
first; ties: fewer clusters in the image, then their smallest codes in order. Merges of equal loss: the
smallest codes of the two.
"""

from __future__ import annotations

from collections.abc import Callable

from leeward.methods.constraints.clusters import Clusters
from leeward.methods.constraints.privacy import Privacy

Step = Callable[[Clusters, Privacy, tuple[int, ...]], None]


def run(clusters: Clusters, privacy: Privacy, algorithm: str) -> int:
    """Satisfy every privacy constraint; returns the number of constraints treated. Each treatment merges or
    suppresses, so the loop ends.
    """
    treat = TREATMENTS[algorithm]
    treated = 0
    while (image := privacy.next_unsatisfied(clusters)) is not None:
        treat(clusters, privacy, image)
        treated += 1
    return treated


def cheapest_merge(clusters: Clusters, privacy: Privacy, image: tuple[int, ...]) -> None:
    """CBA: the merge, of any cluster of the image with another of its constraint, that adds the least
    loss.
    """
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
    """UGACLIP, COAT: merge the least supported cluster where the union loses least; stay until satisfied."""
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
"""What each algorithm does with an unsatisfied constraint."""


def _rarest(clusters: Clusters, image: tuple[int, ...]) -> int:
    return min(image, key=lambda cluster: (clusters.support(cluster), cluster))


def _merge(clusters: Clusters, privacy: Privacy, a: int, b: int) -> None:
    clusters.merge(a, b)
    privacy.changed(clusters, (a, b))


def _suppress(clusters: Clusters, privacy: Privacy, cluster: int) -> None:
    clusters.suppress(cluster)
    privacy.changed(clusters, (cluster,))
