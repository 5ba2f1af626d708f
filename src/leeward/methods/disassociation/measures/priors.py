"""How many of a cluster's records are assumed to hold a code of its item chunk
(docs/methods/disassociation.md#priors)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leeward.errors import BadInput
from leeward.methods.disassociation.measures.published import ITEM, Published

PRIORS = ("occupancy", "cubic", "graded", "uniform", "one")
"""What the release itself shows (default), P(n) ∝ n⁻³, n⁻³ or n⁻⁵ (see `GRADES`), P(n) equal, n = 1."""

DEFAULT = "occupancy"

GRADES = ("cubic", "quintic")
"""`graded`: n⁻³ for a code that some record or shared chunk counts, n⁻⁵ for one that only item chunks list. Such a code
is rare, and two of its few patients seldom meet in a cluster; the release itself shows which codes these are."""

SCATTERED = 1 / 3
"""Share of `occupancy`, but for fitted releases, that takes a code's records as scattered over the clusters by chance;
the rest takes them as gathered. This and the exponent were chosen on UCI and on made-up records of 12 of 3,000 codes
(docs/studies/disassociation.md#partitionings)."""

SURPLUS, RARE = 0.24, 0.2
"""Fitted releases: what `occupancy` adds to scattered records, for each e-fold of k above 4, and the part of it for
codes that are counted nowhere. Chosen on the same two, k = 3 to 25."""


def check_prior(prior: str) -> str:
    """The prior, or BadInput naming the known ones."""
    if prior not in PRIORS:
        raise BadInput(f"`prior`: {prior!r} is not known; choose from {', '.join(PRIORS)}.")
    return prior


def item_mean(k: int, size: int, prior: str) -> float:
    """Expected number of a cluster's `size` records that hold one code of its item chunk, where no more is known."""
    n = np.arange(1, max(1, min(k - 1, size)) + 1, dtype=np.float64)
    power = {"uniform": 0.0, "cubic": 3.0, "quintic": 5.0, "one": np.inf, "gathered": gathered_power(k)}
    if prior not in power:
        raise BadInput(f"`prior`: {prior!r} is not known; choose from {', '.join(PRIORS)}.")
    weight = n ** -power[prior]
    return float((n * weight).sum() / weight.sum())


def gathered_power(k: int) -> float:
    """P(n) ∝ n^-this where records that share a code gather in clusters: the larger k, the more are left over."""
    return 1.8 + 6 / k


def item_means(published: Published, prior: str) -> NDArray[np.float64]:
    """Expected records behind each entry, where it is in an item chunk; worked out once a prior."""
    if check_prior(prior) not in published.item_means:
        published.item_means[prior] = _item_means(published, prior)
    return published.item_means[prior]


def _item_means(published: Published, prior: str) -> NDArray[np.float64]:
    p = published
    owner = np.repeat(np.arange(len(p.codes)), np.diff(p.at))
    counted = np.zeros(len(p.codes), np.bool_)
    counted[owner[p.kind[p.entry_chunk] != ITEM]] = True
    size = p.records[p.entry_node]
    if prior == "occupancy" and p.fitted:
        more = SURPLUS * max(0.0, np.log(p.k / 4)) * np.where(counted[owner], 1, RARE)
        return np.minimum(expected_by_chance(p) + more, np.maximum(1, np.minimum(p.k - 1, size)))
    capped = np.minimum(p.k, size)
    grades = {"graded": GRADES, "occupancy": ("gathered",)}.get(prior, (prior,))
    means = [np.array([item_mean(p.k, size, grade) for size in range(p.k + 1)])[capped] for grade in grades]
    if prior == "occupancy":
        return (1 - SCATTERED) * means[0] + SCATTERED * expected_by_chance(p)
    if len(means) == 1:
        return means[0]
    return np.where(counted[owner], means[0], means[1])


def expected_by_chance(published: Published) -> NDArray[np.float64]:
    """Expected records behind each entry if a code's uncounted records were scattered by chance: a Poisson number, of
    which it is known that it is one of 1 … min(k - 1, N).

    How many they are follows from the share of the clusters that list the code in their item chunk, of those that do
    not count it (the estimate of occupancy). Entries of other chunks: 1.
    """
    p = published
    owner = np.repeat(np.arange(len(p.codes)), np.diff(p.at))
    item = p.kind[p.entry_chunk] == ITEM
    size = p.records[p.entry_node].astype(np.float64)
    among = p.want.astype(np.float64)
    leaves = p.leaf
    if p.of_class is not None:  # a part of a release has the entries of some classes only
        leaves = leaves & np.isin(p.of_class, p.of_class[p.entry_node])
    counted = np.bincount(owner[~item], among[~item], len(p.codes))
    listing = np.bincount(owner[item], size[item], len(p.codes))
    mean = listing / np.maximum(np.bincount(owner[item], minlength=len(p.codes)), 1)
    without = np.maximum(p.records[leaves].sum() - counted - listing, np.maximum(mean, 1) / 2)
    rate = np.log1p(listing / without) / np.maximum(mean, 1)
    expected = rate[owner[item]] * size[item]
    most = np.minimum(p.k - 1, size[item])
    chance = np.ones(len(expected))
    total, weighted = np.zeros(len(expected)), np.zeros(len(expected))
    for n in range(1, max(p.k, 2)):
        chance = chance * expected / n
        possible = chance * (n <= np.maximum(most, 1))
        total += possible
        weighted += n * possible
    found = np.ones(len(owner))
    found[item] = weighted / total
    return found
