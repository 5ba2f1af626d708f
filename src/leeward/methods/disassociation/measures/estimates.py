"""COUNT(S) from a disassociated release: low, expected, high (docs/methods/disassociation.md#estimating-counts).

The bounds hold for the original whatever the prior; the expected count rests on two assumptions that every
figure names: chunks of a cluster are independent, and a code of an item chunk is in n records with P(n)
given by the prior on 1 … min(k - 1, N).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leeward.analysis.demographics.released import Concerned, ReleasedClasses
from leeward.engine import over_blocks
from leeward.errors import BadInput
from leeward.methods.disassociation.measures.priors import DEFAULT, check_prior, item_means
from leeward.methods.disassociation.measures.published import Array, Published, part, read
from leeward.release import Release
from leeward.release.reading import manifest_name

NO_LIMIT = 2**62

LARGEST_SET = 62
"""Codes of a query are bits of a word."""


@dataclass(frozen=True)
class Estimate:
    """Bounds and expectation of a number of records."""

    low: int
    expected: float
    high: int


@dataclass(frozen=True)
class Estimates:
    """The same for a workload, one element a query: int64, float64, int64."""

    low: NDArray[np.int64]
    expected: NDArray[np.float64]
    high: NDArray[np.int64]
    prior: str


def estimates(published: Published, queries: Iterable[Sequence[str]], prior: str = DEFAULT) -> Estimates:
    """Estimate every query of a workload; a code that the release lacks gives 0, 0, 0."""
    number = published.number
    listed = [sorted(set(query)) for query in queries]
    known = np.array([all(code in number for code in query) for query in listed], np.bool_)
    numbered = [
        np.array([number[code] for code in query], np.int32)
        for query, k in zip(listed, known, strict=True)
        if k
    ]
    found = estimates_of_numbers(published, numbered, prior)
    return spread(found, known)


def spread(found: Estimates, known: NDArray[np.bool_]) -> Estimates:
    """The estimates of the queries that are `known`, and 0, 0, 0 for the others between them."""
    low, high = np.zeros(len(known), np.int64), np.zeros(len(known), np.int64)
    expected = np.zeros(len(known), np.float64)
    low[known], expected[known], high[known] = found.low, found.expected, found.high
    return Estimates(low, expected, high, found.prior)


def estimates_of_numbers(
    published: Published, queries: Sequence[Array], prior: str = DEFAULT, *, item_most: int = NO_LIMIT
) -> Estimates:
    """`estimates` of queries that are arrays of distinct indices into `published.codes`; `item_most` bounds `high`
    further: the most records of a cluster that may hold a code of its item chunk."""
    from leeward.methods.disassociation.measures import estimate_kernels as kernels

    check_prior(prior)
    sizes = np.array([len(query) for query in queries], np.int64)
    if len(sizes) and sizes.max() > LARGEST_SET:
        raise BadInput(f"A query has {sizes.max()} codes; counts are estimated for up to {LARGEST_SET}.")
    at = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    codes = np.concatenate([np.empty(0, np.int32), *queries]).astype(np.int32)
    p = published
    entries = kernels.Entries(
        p.at, p.entry_node, p.entry_chunk, p.entry_place, p.entry_root, p.want, item_means(p, prior)
    )
    chunks, nodes = kernels.Chunks(p.kind, p.words, p.bits), kernels.Nodes(p.parent, p.leaf, p.records)

    def block(first: int, last: int) -> tuple[Array, Array, Array]:
        found: tuple[Array, Array, Array] = kernels.answer(
            at[first : last + 1], codes, entries, chunks, nodes, item_most
        )
        return found

    low, expected, high = (np.concatenate(each) for each in zip(*over_blocks(block, len(sizes)), strict=True))
    return Estimates(low, expected, high, prior)


def matching(
    published: Published, constraints: Sequence[Iterable[str]], prior: str = DEFAULT
) -> NDArray[np.float64]:
    """Expected number of records with at least one code of each constraint
    (docs/methods/disassociation.md#measures, MRE)."""
    from leeward.methods.disassociation.measures import estimate_kernels as kernels

    p = published
    number = p.number
    wanted = [[number[code] for code in sorted(set(each)) if code in number] for each in constraints]
    entries, owner = entries_of(p, wanted)
    by_node = np.argsort(p.node, kind="stable")
    rank = np.empty(len(by_node), np.int64)
    rank[by_node] = np.arange(len(by_node))
    order = np.argsort(owner * max(len(by_node), 1) + rank[p.entry_chunk[entries]], kind="stable")
    entries = entries[order]
    bounds = np.searchsorted(owner[order], np.arange(len(wanted) + 1))
    node, chunk, place = p.entry_node[entries], p.entry_chunk[entries], p.entry_place[entries]
    means = item_means(p, prior)[entries]
    return np.array(
        [
            kernels.matching(
                node[low:high], chunk[low:high], place[low:high], p.kind, p.words, p.bits,
                p.parent, p.leaf, p.records, means[low:high],
            )
            for low, high in itertools.pairwise(bounds)
        ],
        np.float64,
    )  # fmt: skip


def entries_of(published: Published, wanted: list[list[int]]) -> tuple[Array, Array]:
    """The entries of each list of codes, one after the other, and the number of the list of each entry."""
    pieces = [np.arange(published.at[c], published.at[c + 1]) for codes in wanted for c in codes]
    owners = [
        np.full(published.at[c + 1] - published.at[c], i) for i, codes in enumerate(wanted) for c in codes
    ]
    nothing = np.empty(0, np.int64)
    return np.concatenate([nothing, *pieces]), np.concatenate([nothing, *owners])


def estimates_where(
    release: Release | str | Path,
    published: Published,
    queries: Iterable[Sequence[str]],
    where: Mapping[str, str],
    prior: str = DEFAULT,
) -> Estimates:
    """`estimates` among the patients whose demographics are at or below the labels `where`
    (docs/methods/whole-patient.md#estimating-counts).

    Raises BadInput for a release without demographics, and for a column or label that it does not have.
    """
    opened = release if isinstance(release, Release) else Release.open(release)
    classes = ReleasedClasses.read(opened)
    concerned = classes.concerned(where)
    number = published.number
    listed = [sorted(set(query)) for query in queries]
    known = np.array([all(code in number for code in query) for query in listed], np.bool_)
    numbered = [
        np.array([number[code] for code in query], np.int32)
        for query, k in zip(listed, known, strict=True)
        if k
    ]
    return spread(estimates_in(published, concerned, classes.number, numbered, prior), known)


def estimates_in(
    published: Published,
    concerned: Concerned,
    numbers: Array,
    queries: Sequence[Array],
    prior: str = DEFAULT,
) -> Estimates:
    """Estimates of queries (arrays of indices into `published.codes`) among some of the classes, whose `numbers` are
    those of the release. A class's expectation counts by its share, its least number only where that is 1, its greatest
    wherever a record can be meant."""
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
    status = (release.share / manifest_name(release.share)).stat()
    return _read(str(release.share), (status.st_mtime_ns, status.st_size))
