"""Code occurrences by kind of chunk, and patients whose codes are all in item chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leeward.analysis.itemsets import owners_of
from leeward.analysis.kernels import popcount
from leeward.arrays import offsets_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.compiled import njit
from leeward.methods.disassociation.measures.published import ITEM, RECORD, SHARED, Array, Published

CODES_LISTED, COVERS_LISTED = 30, 15
"""The most frequent codes, and pairs of which one gives away the other, that are listed one by one."""

ITEM_ONLY = "item_only_records"
"""The method's own count, in its facts for the custodian."""


def placement(published: Published, sets: CodeSets, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Code occurrences by kind of chunk, in all and for the most frequent codes, and patients wholly in item chunks.

    Occurrences in item chunks are the true support less those shown by record and shared chunks. `item_only_records` is
    the method's count where custody has it; `item_only_records_at_least` follows from the files alone. `covers`: pairs
    of a chunk's codes of which one reveals the other (see `covers`).
    """
    shown = occurrences(published)
    number = published.number
    supports = sets.supports()
    place = np.array([number.get(code, len(number)) for code in sets.codes], np.int64)
    record, shared = (np.append(shown[kind], 0)[place] for kind in (RECORD, SHARED))
    item = np.maximum(supports - record - shared, 0)
    top = np.argsort(-supports, kind="stable")[:CODES_LISTED]
    total = int(supports.sum())
    kinds = {"record": record, "shared": shared, "item": item}
    covered, support = covers(published), dict(zip(sets.codes, supports.tolist(), strict=True))
    for row in covered["codes"]:
        row["of"] = support.get(row["code"], row["patients"])
    return {
        "occurrences": {name: int(of.sum()) for name, of in kinds.items()} | {"total": total},
        "item_share": float(item.sum() / max(total, 1)),
        "codes": [
            {
                "code": sets.codes[c],
                "support": int(supports[c]),
                **{name: int(of[c]) for name, of in kinds.items()},
            }
            for c in top
        ],
        "codes_never_counted": int((item == supports).sum()),
        "item_only_records_at_least": item_only_at_least(published),
        **({ITEM_ONLY: int(facts[ITEM_ONLY])} if ITEM_ONLY in facts else {}),
        "covers": covered,
    }


def occurrences(published: Published) -> np.ndarray[Any, Any]:
    """int64[3, codes]: occurrences of each code in record and in shared chunks, and item chunks that list it."""
    found = np.zeros((3, len(published.codes)), np.int64)
    for p in published.pieces():
        kind = p.kind[p.entry_chunk]
        np.add.at(found, (kind, owners_of(p.at)), np.where(kind == ITEM, 1, p.entry_counts()))
    return found


def item_only_at_least(published: Published) -> int:
    """Lower bound of the records whose codes are all in item chunks, from the files alone: every non-empty subrecord
    may belong to another record, so the rest of a cluster's records have all their codes in the item chunk."""
    return sum(map(_item_only_in_trees, published.pieces()))


def _item_only_in_trees(p: Published) -> int:
    of_chunk = np.where(p.kind == ITEM, 0, p.filled)
    filled = np.bincount(p.node, of_chunk, minlength=len(p.parent))
    left = np.zeros(len(p.parent), np.int64)
    for v in range(len(p.parent)):  # children come before parents
        own = p.records[v] if p.leaf[v] else left[v]
        left[v] = max(0, own - int(filled[v]))
        if p.parent[v] >= 0:
            left[p.parent[v]] += left[v]
    return int(left[p.parent < 0].sum())


def covers(published: Published, most: int = COVERS_LISTED) -> dict[str, Any]:
    """Pairs (x, y) of a chunk's codes with s(xy) = s(x): whoever knows x learns y. `pairs` over all record and shared
    chunks, `chunks` that hold one, `of_chunks` with two codes or more. `codes`: those of most patients with x in such
    chunks. `everywhere`: how many (x, y) are such a pair wherever x is listed, so that x alone is enough."""
    each = [_covers_in_trees(p) for p in published.pieces()]
    keys, *sums = (np.concatenate(pairs) for pairs in zip(*(found for found, _, _ in each), strict=True))
    both, which = np.unique(keys, return_inverse=True)
    clusters, patients = (np.bincount(which, of, len(both)).astype(np.int64) for of in sums)
    chunks = np.sum([counts for _, counts, _ in each], axis=0)
    listing = np.sum([codes for _, _, codes in each], axis=0)
    width = max(1, len(published.codes))
    return {
        "pairs": int(clusters.sum()),
        "chunks": int(chunks[0]),
        "of_chunks": int(chunks[1]),
        "everywhere": int((clusters == listing[both // width]).sum()),
        "codes": [
            {
                "code": published.codes[both[i] // width],
                "reveals": published.codes[both[i] % width],
                "clusters": int(clusters[i]),
                "patients": int(patients[i]),
            }
            for i in np.argsort(-patients, kind="stable")[:most]
        ],
    }


def _covers_in_trees(p: Published) -> tuple[tuple[Array, Array, Array], Array, Array]:
    """Keys of distinct pairs x * codes + y, how many chunks have each and their patients with x; how many chunks hold
    a pair, and how many have two codes; how many list each code."""
    shown = np.flatnonzero(p.kind[p.entry_chunk] != ITEM)
    order = shown[np.argsort(p.entry_chunk[shown], kind="stable")]
    chunks, codes = np.unique(p.entry_chunk[order], return_counts=True)
    given = offsets_of(codes), p.entry_place[order], p.words[chunks], p.bits
    pairs = np.empty((_pairs(*given, np.empty((0, 2), np.int64)), 2), np.int64)
    _pairs(*given, pairs)
    x, y = order[pairs.T]
    code, width = owners_of(p.at), max(1, len(p.codes))
    both, which = np.unique(code[x] * width + code[y], return_inverse=True)
    found = both, np.bincount(which), np.bincount(which, p.entry_counts()[x])
    return found, np.array([len(np.unique(p.entry_chunk[x])), (codes > 1).sum()]), np.diff(p.at)


@njit
def _pairs(starts: Array, place: Array, words: Array, bits: Array, into: Array) -> Any:
    """How many cover pairs the chunks have; each is written into `into` as far as there is room. A chunk's entries'
    bitmaps start at `place[starts[c]:starts[c + 1]]`."""
    found = 0
    for c in range(len(starts) - 1):
        for x in range(starts[c], starts[c + 1]):
            for y in range(starts[c], starts[c + 1]):
                missing = 0
                for w in range(words[c]):
                    missing += popcount(bits[place[x] + w] & ~bits[place[y] + w])
                if x != y and missing == 0:
                    if found < len(into):
                        into[found] = x, y
                    found += 1
    return found
