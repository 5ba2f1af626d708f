"""COUNT(S) from a disassociated release: low, expected, high (docs/methods/disassociation.md#estimating-counts).

The bounds hold for the original whatever the prior; the expected count rests on two assumptions that every
figure names: chunks of a cluster are independent, and a code of an item chunk is in n records with P(n)
given by the prior on 1 … min(k - 1, N).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from leeward.analysis.demographics.released import Concerned, ReleasedClasses
from leeward.analysis.itemsets import owners_of
from leeward.arrays import Bools, Float64s, Int32s, Int64s, offsets_of, positions_of
from leeward.contracts.contract import lists_shown_only
from leeward.engine import over_blocks
from leeward.errors import BadInput
from leeward.methods.disassociation.measures.published import ITEM, Array, Published, part, read
from leeward.release import Release
from leeward.release.reading import manifest_name

PRIORS = ("occupancy", "cubic", "graded", "uniform", "one")
"""Occupancy in the release itself (default), P(n) ∝ n⁻³, n⁻³ or n⁻⁵ (see `GRADES`), P(n) equal, n = 1."""

DEFAULT = "occupancy"

GRADES = ("cubic", "quintic")
"""`graded`: n⁻³ for a code that some record or shared chunk counts, n⁻⁵ for one that only item chunks list. Such a code
is rare, and two of its few patients seldom meet in a cluster; the release itself shows which codes these are."""

SCATTERED = 1 / 3
"""Share of `occupancy`, except for fitted releases, that assumes a code's records scattered over clusters by chance;
the rest assumes them gathered. This and the exponent were chosen on UCI and on made-up records of 12 of 3,000 codes
(docs/studies/disassociation.md#partitionings)."""

SURPLUS, RARE = 0.24, 0.2
"""Fitted releases: what `occupancy` adds to scattered records, for each e-fold of k above 4, and the part of it for
codes that are counted nowhere. Chosen on the same two, k = 3 to 25."""

IN_CLASSES, POWER = 0.3, 0.4
"""Fitted releases in classes: see `expect_in_classes`. Chosen on UCI and made-up records (seed 11), k = 5 to 25."""


def check_prior(prior: str) -> str:
    """The prior, or BadInput naming the known ones."""
    if prior not in PRIORS:
        raise BadInput(f"`prior`: {prior!r} is not known; choose from {', '.join(PRIORS)}.")
    return prior


def item_mean(k: int, size: int, prior: str) -> float:
    """Expected number of a cluster's `size` records that hold one code of its item chunk, where no more is known."""
    n = np.arange(1, max(1, min(k - 1, size)) + 1, dtype=np.float64)
    # gathered: records that share a code gather in clusters; the larger k, the more are left over
    power = {"uniform": 0.0, "cubic": 3.0, "quintic": 5.0, "one": np.inf, "gathered": 1.8 + 6 / k}
    if prior not in power:
        raise BadInput(f"`prior`: {prior!r} is not known; choose from {', '.join(PRIORS)}.")
    weight = n ** -power[prior]
    return float((n * weight).sum() / weight.sum())


def item_means(published: Published, prior: str) -> Float64s:
    """Expected records behind each entry, where it is in an item chunk; computed once per prior."""
    if check_prior(prior) not in published.item_means:
        published.item_means[prior] = _item_means(published, prior)
    return published.item_means[prior]


def _item_means(published: Published, prior: str) -> Float64s:
    p = published
    owner = owners_of(p.at)
    counted = p.totals.counting > 0
    size = p.records[p.entry_node]
    if prior == "occupancy" and p.fitted:
        more = SURPLUS * max(0.0, np.log(p.counted_from / 4)) * np.where(counted[owner], 1, RARE)
        mean = expect_by_chance(p) + more if p.of_class is None else expect_in_classes(p)
        return np.minimum(mean, np.maximum(1, np.minimum(p.counted_from - 1, size)))
    capped = np.minimum(p.counted_from, size)
    grades = {"graded": GRADES, "occupancy": ("gathered",)}.get(prior, (prior,))
    means = [
        np.array([item_mean(p.counted_from, size, grade) for size in range(p.counted_from + 1)])[capped]
        for grade in grades
    ]
    if prior == "occupancy":
        return (1 - SCATTERED) * means[0] + SCATTERED * expect_by_chance(p)
    if len(means) == 1:
        return means[0]
    return np.where(counted[owner], means[0], means[1])


def expect_by_chance(published: Published) -> Float64s:
    """Expected records behind each entry if a code's uncounted records were scattered by chance: the mean of a Poisson
    number given that it is in 1 … min(t - 1, N), t = `counted_from`. Their number follows from the share of clusters
    that list the code in their item chunk among those that do not count it (the estimate of occupancy). Entries of
    other chunks: 1."""
    p = published
    owner = owners_of(p.at)
    item = p.kind[p.entry_chunk] == ITEM
    size = p.records[p.entry_node].astype(np.float64)
    known = p.totals
    mean = known.listed / np.maximum(known.listing, 1)
    without = np.maximum(known.records - known.counted - known.listed, np.maximum(mean, 1) / 2)
    rate = np.log1p(known.listed / without) / np.maximum(mean, 1)
    expected = rate[owner[item]] * size[item]
    most = np.minimum(p.counted_from - 1, size[item])
    chance = np.ones(len(expected))
    total, weighted = np.zeros(len(expected)), np.zeros(len(expected))
    for n in range(1, max(p.counted_from, 2)):
        chance = chance * expected / n
        possible = chance * (n <= np.maximum(most, 1))
        total += possible
        weighted += n * possible
    found = np.ones(len(owner))
    found[item] = weighted / total
    return found


def expect_in_classes(published: Published) -> Float64s:
    """Expected records behind each entry of an item chunk in classes, where few clusters can be joined and frequent
    codes are left over: 1 + .3·√t·(e·c)^.4. e: the records of the cluster that would have the code if all clusters had
    it alike, by what is counted and one for each cluster that lists it. c: by how much `expect_by_chance` exceeds 1."""
    p = published
    owner = owners_of(p.at)
    least = np.where(p.kind[p.entry_chunk] == ITEM, 1, p.entry_counts())
    share = np.bincount(owner, least, len(p.codes)) / max(p.totals.records, 1)
    alike = share[owner] * p.records[p.entry_node]
    above = np.maximum(expect_by_chance(p) - 1, 0)
    return np.asarray(1 + IN_CLASSES * np.sqrt(p.counted_from) * (alike * above) ** POWER)


NO_LIMIT = 2**62

LARGEST_SET = 62
"""Codes of a query are bits of a word."""


@dataclass(frozen=True)
class Estimate:
    low: int
    expected: float
    high: int


@dataclass(frozen=True)
class Estimates:
    """Bounds and expectations of a workload, one element per query: int64, float64, int64."""

    low: Int64s
    expected: Float64s
    high: Int64s
    prior: str


def estimates(published: Published, queries: Iterable[Sequence[str]], prior: str = DEFAULT) -> Estimates:
    """Estimate every query of a workload; a code that the release lacks gives 0, 0, 0."""
    numbered, known = number_codes(published, queries)
    return spread(estimates_of_numbers(published, numbered, prior), known)


def number_codes(published: Published, queries: Iterable[Sequence[str]]) -> tuple[list[Array], Bools]:
    """Code numbers of each query that the release can answer, and a mask of these queries."""
    number = published.number
    listed = [sorted(set(query)) for query in queries]
    known = np.array([all(code in number for code in query) for query in listed], np.bool_)
    asked = (query for query, k in zip(listed, known, strict=True) if k)
    return [np.array([number[code] for code in query], np.int32) for query in asked], known


def spread(found: Estimates, known: Bools) -> Estimates:
    """Estimates of all queries: those `found` for the `known` ones, 0, 0, 0 for the others."""
    low, high = np.zeros(len(known), np.int64), np.zeros(len(known), np.int64)
    expected = np.zeros(len(known), np.float64)
    low[known], expected[known], high[known] = found.low, found.expected, found.high
    return Estimates(low, expected, high, found.prior)


def estimates_of_numbers(
    published: Published,
    queries: Sequence[Array],
    prior: str = DEFAULT,
    *,
    most: Callable[[Published], Int64s] | None = None,
) -> Estimates:
    """`estimates` of queries that are arrays of distinct indices into `published.codes`; `most` bounds `high` further:
    the most records of a cluster behind each entry that is in an item chunk."""
    check_prior(prior)
    sizes = np.array([len(query) for query in queries], np.int64)
    if len(sizes) and sizes.max() > LARGEST_SET:
        raise BadInput(f"A query has {sizes.max()} codes; counts are estimated for up to {LARGEST_SET}.")
    at = offsets_of(sizes)
    codes = np.concatenate([np.empty(0, np.int32), *queries]).astype(np.int32)
    found = [_estimates_in_trees(p, at, codes, prior, most) for p in published.pieces()]
    low, expected, high = (np.sum(each, axis=0) for each in zip(*found, strict=True))
    return Estimates(low, expected, high, prior)


def _estimates_in_trees(
    p: Published, at: Int64s, codes: Int32s, prior: str, most: Callable[[Published], Int64s] | None
) -> list[Array]:
    """Low, expected and high of each query; query i is `codes[at[i] : at[i + 1]]`."""
    from leeward.methods.disassociation.measures import estimate_kernels as kernels

    entries = kernels.Entries(
        p.at, p.entry_node, p.entry_chunk, p.entry_place, p.entry_root, p.want, item_means(p, prior),
        np.full(len(p.entry_node), NO_LIMIT) if most is None else most(p),
    )  # fmt: skip
    chunks, nodes = kernels.Chunks(p.kind, p.words, p.bits), kernels.Nodes(p.parent, p.leaf, p.records)

    def block(first: int, last: int) -> tuple[Array, Array, Array]:
        found: tuple[Array, Array, Array] = kernels.answer(
            at[first : last + 1], codes, entries, chunks, nodes
        )
        return found

    return [np.concatenate(each) for each in zip(*over_blocks(block, len(at) - 1), strict=True)]


def matching(published: Published, constraints: Sequence[Iterable[str]], prior: str = DEFAULT) -> Float64s:
    """Expected number of records with at least one code of each constraint
    (docs/methods/disassociation.md#measures, MRE)."""
    number = published.number
    wanted = [[number[code] for code in sorted(set(each)) if code in number] for each in constraints]
    return np.sum([_matching_in_trees(p, wanted, prior) for p in published.pieces()], axis=0)


def _matching_in_trees(p: Published, wanted: Sequence[Sequence[int]], prior: str) -> Float64s:
    from leeward.methods.disassociation.measures import estimate_kernels as kernels

    codes = np.array([code for each in wanted for code in each], np.int64)
    entries = positions_of(p.at, codes)
    owner = np.repeat(np.repeat(np.arange(len(wanted)), [len(each) for each in wanted]), np.diff(p.at)[codes])
    order = np.lexsort((p.entry_chunk[entries], owner))
    given = [each[entries[order]] for each in (p.entry_chunk, p.entry_place, item_means(p, prior))]
    bounds = np.searchsorted(owner[order], np.arange(len(wanted) + 1))
    chunks, nodes = kernels.Chunks(p.kind, p.words, p.bits), kernels.Nodes(p.parent, p.leaf, p.records)
    return np.asarray(kernels.matching(bounds, *given, p.node, chunks, nodes))


def estimates_where(
    release: Release | str | Path,
    published: Published,
    queries: Iterable[Sequence[str]],
    where: Mapping[str, str],
    prior: str = DEFAULT,
) -> Estimates:
    """`estimates` among the patients whose demographics are at or below the labels `where`
    (docs/methods/whole-patient.md#estimating-counts). Raises BadInput for a release without demographics, and for a
    column or label that it does not have."""
    opened = release if isinstance(release, Release) else Release.open(release)
    classes = ReleasedClasses.read(opened)
    concerned = classes.part_of(where)
    numbered, known = number_codes(published, queries)
    return spread(estimates_in(published, concerned, classes.number, numbered, prior), known)


def estimates_in(
    published: Published,
    concerned: Concerned,
    numbers: Array,
    queries: Sequence[Array],
    prior: str = DEFAULT,
) -> Estimates:
    """Estimates of queries (arrays of indices into `published.codes`) among some of the classes, whose `numbers` are
    those of the release. A class adds its expectation times its share, its lower bound only if the share is 1, its
    upper bound whenever a record may be concerned."""
    low, high = np.zeros(len(queries), np.int64), np.zeros(len(queries), np.int64)
    expected = np.zeros(len(queries))
    for share in np.unique(concerned.share[concerned.possible]):
        meant = concerned.possible & (concerned.share == share)
        found = estimates_of_numbers(part(published, numbers[meant]), queries, prior)
        low += found.low if share == 1 else 0
        expected += share * found.expected
        high += found.high
    return Estimates(low, expected, high, prior)


@lru_cache(maxsize=2)
def _read(path: str, stamp: tuple[int, ...]) -> Published:
    return read(path)


def read_once(release: Release) -> Published:
    """The index of a release, kept while its manifest stays the same."""
    return _read(*stamp_of(release))


def stamp_of(release: Release) -> tuple[str, tuple[int, ...]]:
    """Where a release is, and what tells its manifest from another one there."""
    status = (release.share / manifest_name(release.share)).stat()
    return str(release.share), (status.st_mtime_ns, status.st_size)


LIST = "codes.parquet"
SHOWN = 3


def require_codes(release: Release, queries: Iterable[Sequence[str]], shown: Collection[str]) -> None:
    """Check that the release shows every asked code. BadInput has the nearest codes, and whether the code was
    suppressed."""
    lacking = [code for query in queries for code in query if code not in shown]
    if lacking:
        raise BadInput(_message(release, lacking[0], shown))


def _message(release: Release, code: str, shown: Collection[str]) -> str:
    k = release.guarantee["k"]
    names = _list_codes(release)
    if names.get(code, ("", False))[1]:
        return (
            f"the code `{code}` was suppressed: at least {k} patients have it, but the release does not show it, so it "
            "cannot be counted."
        )
    named = [each for each, (name, gone) in names.items() if not gone and code.lower() in name.lower()]
    near = nearest_codes(code, shown) or named
    listed = ", ".join(
        f"`{each}`" + (f" ({names[each][0]})" if each in names else "") for each in near[:SHOWN]
    )
    hidden = lists_shown_only(release.method, release.parameters)
    rare = "was suppressed" if hidden else f"fewer than {k} patients have it"
    return (
        f"no code `{code}` in this release{f'; nearest: {listed}' if listed else ''}. A code that the release does not "
        f"list is absent, or {rare}."
    )


def _list_codes(release: Release) -> dict[str, tuple[str, bool]]:
    if LIST not in release.names():
        return {}
    rows = release.table(LIST).select("code", "name", "suppressed").collect().iter_rows()
    return {code: (name, suppressed) for code, name, suppressed in rows}


def nearest_codes(code: str, shown: Collection[str]) -> list[str]:
    """Codes with a common prefix: first prefixes of `code`, then its extensions, then by the longest common prefix."""

    def rank(other: str) -> tuple[bool, bool, int, str]:
        return not code.startswith(other), not other.startswith(code), -_beginning(code, other), other

    return sorted((each for each in shown if _beginning(code, each) >= min(2, len(code))), key=rank)


def _beginning(one: str, other: str) -> int:
    alike = [a == b for a, b in zip(one, other, strict=False)]
    return [*alike, False].index(False)
