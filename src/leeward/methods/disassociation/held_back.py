"""What `attacker: rules` counts and lists in clusters and joint clusters as given
(docs/proofs.md#rules).

No code is tested together with another, and some that might be counted are held back at random, so that neither what
is listed nor what is not counted tells that fewer than k records have a known set.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np

from leeward.analysis.itemsets import owners_of
from leeward.arrays import Bools, Int32s, Int64s, distinct_of
from leeward.methods.disassociation.pipeline import Disassociated
from leeward.methods.disassociation.publish import ITEMS, Published, chunk_table, count_table, publish
from leeward.methods.disassociation.rules import Rules
from leeward.methods.disassociation.verpart import ITEM, Chunks, entries_of
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable

HELD = 1 / 8
"""Probability that a cluster lists a code of at most k records, which joint clusters then do not count."""


def publish_chunks(
    d: Disassociated, codes: tuple[str, ...], rules: Rules, randomness: Randomness
) -> tuple[Published, ReleaseTable]:
    """What is published of clusters and joint clusters, and `chunks.parquet`."""
    if not rules.alone:
        found = publish(d, codes, randomness)
        return found, chunk_table(found, randomness)
    found = publish(hold_back(d, rules, randomness), codes, randomness)
    chunks = found.data.chunks
    keys, place = np.unique(chunks.node * np.int64(rules.n_codes) + chunks.code, return_inverse=True)
    count = np.bincount(place, np.bincount(entries_of(d.records, chunks))).astype(np.int64)
    kind = np.empty(len(keys), np.int8)
    kind[place] = np.where(chunks.chunk == ITEM, ITEMS, chunks.node >= d.leaves)
    node, code = np.divmod(keys, rules.n_codes)
    return found, count_table(found.number[node], kind, code, count, codes)


def hold_back(d: Disassociated, rules: Rules, randomness: Randomness) -> Disassociated:
    """The same clusters and joint clusters with chunks of one code each; `rules.k` is the number that is counted from,
    k + 1."""
    chunks, leaves, draw = d.chunks, d.leaves, randomness.stream("held back")
    leaf = owners_of(chunks.at)
    n = np.bincount(entries_of(d.records, chunks), minlength=len(leaf))
    hidden = rules.sensitive[chunks.code]
    counted = (n >= rules.k) & ~hidden
    held = draw.random(len(n)) < HELD
    drawn = chunks.at[:-1] + (draw.random(leaves) * np.diff(chunks.at)).astype(np.int64)
    v, total = (np.bincount(leaf, weight, leaves) for weight in (counted, n * counted))
    short = total <= np.diff(d.records.bounds) + (rules.k - 1) * (np.minimum(rules.m, v) - 1)
    fired = int((short & counted[drawn]).sum())
    held[drawn] |= short
    climbs = ~(counted | held | hidden)
    counted[drawn] &= ~short
    node = np.where(counted, leaf, ITEM)
    node[climbs] = climb(d.parent, leaves, leaf[climbs], chunks.code[climbs], n[climbs], rules)
    shown = node != ITEM
    keys = node * rules.n_codes + chunks.code
    distinct = distinct_of(keys[shown])
    first = np.searchsorted(distinct, node * rules.n_codes)
    chunk = np.where(shown, np.searchsorted(distinct, keys) - first, ITEM)
    made = Chunks(
        chunks.at,
        chunks.code,
        np.where(shown, node, leaf).astype(np.int32),
        chunk.astype(np.int32),
        ~short,
    )
    return replace(d, chunks=made, condition_fired=fired)


def climb(parent: Int64s, leaves: int, leaf: Int64s, code: Int32s, n: Int64s, rules: Rules) -> Int64s:
    """The joint cluster that counts each leaf's code: the lowest where those that climbed and are not counted further
    down are `rules.k` or more; ITEM: none."""
    height, at = np.zeros(len(parent), np.int64), np.arange(leaves)
    for step in count(1):
        at = distinct_of(parent[at][parent[at] >= 0])
        if not len(at):
            break
        height[at] = step
    found, left = np.full(len(leaf), ITEM, np.int64), np.arange(len(leaf))
    node = leaf.astype(np.int64)
    for step in range(1, int(height.max(initial=0)) + 1):
        left = left[parent[node[left]] >= 0]
        moves = left[height[parent[node[left]]] == step]
        node[moves] = parent[node[moves]]
        keys, place = np.unique(node[moves] * rules.n_codes + code[moves], return_inverse=True)
        reached: Bools = (np.bincount(place, n[moves], len(keys)) >= rules.k)[place]
        found[moves[reached]] = node[moves[reached]]
        left = left[found[left] == ITEM]
    return found
