"""Chunks against the members that the custodian says each cluster has: every subrecord is a member's, none is missing.

`custody/data/clusters.parquet` is a witness: it says which patients a cluster is of, and what it says is checked. With
it the whole content of a release follows from the source: the subrecords of a chunk are its members' codes in the
chunk's domain, as multisets, and an item chunk lists what its members have besides.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.compiled import njit
from leeward.verify.checks import Check, of_count
from leeward.verify.disassociation.files import ITEM, Ints, Longs, find
from leeward.verify.disassociation.layout import Layout, first_chunk, first_node
from leeward.verify.disassociation.zipping import Words, mixed, zipped_check
from leeward.verify.manifest import Share
from leeward.verify.order import order_check

SUPPRESSED = "suppressed.parquet"


class Chains(NamedTuple):
    """Nodes with their parents and chunks, and the codes of each chunk."""

    leaf: NDArray[np.bool_]
    parent: Ints
    node_groups: Longs
    groups_of: Longs
    kind: NDArray[np.int8]
    bounds: Longs
    codes: Ints
    group: Longs


def against_members(
    layout: Layout,
    share: Share,
    events: pl.DataFrame,
    held_by: tuple[pl.Series, Longs],
    custody: Path,
    sensitive: NDArray[np.bool_],
) -> list[Check]:
    """Every check that needs the clusters' members.

    events : `patient`, `code` (the released code's number), no nulls.  held_by : `pairs_of` them.
    sensitive : of each released code.
    """
    clusters = pl.read_parquet(custody / "clusters.parquet").select("patient", "node")
    patients, starts, values = records_of(events, held_by, custody, layout)
    if clusters["patient"].dtype == patients.dtype and not clusters["patient"].equals(patients):
        clusters = patients.to_frame().join(clusters, on="patient", how="left", maintain_order="left")
    if clusters.height != len(patients) or clusters["patient"].dtype != patients.dtype:
        return [
            Check(
                "members",
                False,
                "custody/data/clusters.parquet does not name the source's patients once each.",
            )
        ]
    node = find(layout.nodes.numbers, clusters["node"].fill_null(-1).to_numpy().astype(np.int64), -1)
    strange = (node < 0) | ~layout.nodes.leaf[np.maximum(node, 0)]
    if strange.any():
        return [of_count("members", int(strange.sum()), "", "patients are in no cluster of the release.")]
    size = np.bincount(node, minlength=len(layout.nodes.leaf))
    uneven = layout.nodes.leaf & (size != layout.nodes.records)
    by_leaf = np.argsort(node, kind="stable").astype(np.int64)
    leaf_starts = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    secret = salts(share, len(layout.chunks.codes))
    group = np.repeat(np.arange(len(layout.chunks.kind)), np.diff(layout.bounds))
    sums, lost, holders = project(
        by_leaf,
        leaf_starts,
        starts,
        values,
        Chains(
            layout.nodes.leaf, layout.nodes.parent, layout.node_groups, layout.groups_of, layout.chunks.kind,
            layout.bounds, layout.codes, group,
        ),
        secret,
    )  # fmt: skip
    shown = subrecord_sums(layout, secret)
    item = layout.chunks.kind == ITEM
    differing = ~item & (sums != shown)
    idle = np.bincount(group[item[group] & (holders == 0)], minlength=len(item)) > 0
    return [
        of_count(
            "members",
            int(uneven.sum()),
            f"The clusters have the {len(patients):,} patients that custody names.",
            "clusters have another number of records than custody names patients."
            + first_node(layout.nodes, uneven),
        ),
        of_count(
            "subrecords_of_members",
            int(differing.sum()),
            "Every chunk holds its members' codes in its domain, and payload their values, subrecord by subrecord.",
            "chunks hold other subrecords, or payload other values, than their members have."
            + first_chunk(layout, differing),
        ),
        of_count(
            "codes_of_members",
            int(lost) + int(idle.sum()),
            "Every code of a member is in a chunk, every value in the payload, and every code of an item chunk is a "
            "member's.",
            "codes of members are in no chunk, or their values in no payload of the cluster, or item chunks list codes "
            "that no member has.",
        ),
        *diversity(layout, share, holders, item[group], sensitive, group),
        order_check("order_of_nodes", {"member": first_members(by_leaf, leaf_starts, layout)}, "clusters"),
        zipped_check(layout, by_leaf, leaf_starts, starts, values, group, secret),
    ]


def records_of(
    events: pl.DataFrame, held_by: tuple[pl.Series, Longs], custody: Path, layout: Layout
) -> tuple[pl.Series, Longs, Ints]:
    """The patients, ascending, with their distinct codes: record r has values[starts[r]:starts[r + 1]]."""
    width = max(len(layout.chunks.codes), 1)
    patients, keys = held_by
    if (custody / SUPPRESSED).is_file():
        gone = pl.read_parquet(custody / SUPPRESSED)
        known = {code: place for place, code in enumerate(layout.chunks.codes)}
        places = [known.get(code, -1) for code in gone["code"].to_list()]
        gone = gone.select("patient").with_columns(code=pl.Series(places, dtype=pl.Int32))
        rows = events.select("patient", pl.col("code").cast(pl.Int32))
        patients, keys = pairs_of(rows.join(gone, on=["patient", "code"], how="anti"), width)
    starts = np.searchsorted(keys, np.arange(len(patients) + 1) * width).astype(np.int64)
    return patients, starts, (keys % width).astype(np.int32)


def pairs_of(events: pl.DataFrame, codes: int) -> tuple[pl.Series, Longs]:
    """The patients, ascending, and their distinct codes as ascending keys: place of the patient × `codes` + code."""
    patient = events["patient"]
    if patient.is_sorted():
        first = patient.ne_missing(patient.shift(1)).fill_null(True).to_numpy().copy()
        first[:1] = True
        patients, key = patient.filter(pl.Series(first)), np.cumsum(first, dtype=np.int64)
        key -= 1
    else:
        patients = patient.unique().sort()
        key = patients.search_sorted(patient).to_numpy().astype(np.int64)
    key *= codes
    key += events["code"].to_numpy()
    key.sort()
    new = np.append(True, key[1:] != key[:-1])[: len(key)]
    return patients, key if new.all() else key[new]


def salts(share: Share, codes: int) -> Words:
    """A random word for each code, drawn by the files' digests: sums of them stand for sets of codes."""
    text = "".join(str(entry["sha256"]) for entry in share.manifest["files"])
    key = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    drawn = np.random.Generator(np.random.Philox(key=key)).integers(0, 1 << 63, codes, dtype=np.int64)
    return drawn.astype(np.uint64) * np.uint64(2) + np.uint64(1)


@njit
def project(
    by_leaf: Longs,
    leaf_starts: Longs,
    starts: Longs,
    values: Ints,
    chains: Chains,
    salt: Words,
) -> tuple[Words, int, Longs]:
    """Members' codes put into the chunks: for each chunk the sum of its filled subrecords' words, how many codes have
    no chunk, and for each (chunk, code) how many members have it there.

    A code belongs to the lowest chunk of its cluster's chain that has it.
    """
    leaf, parent, node_groups, groups_of, kind, bounds, codes, group = chains
    sums = np.zeros(len(kind), np.uint64)
    held = np.zeros(len(codes), np.int64)
    place = np.zeros(len(salt), np.int64)
    stamp = np.full(len(salt), -1, np.int64)
    word = np.zeros(len(kind), np.uint64)
    touched = np.empty(len(kind), np.int64)
    lost = 0
    for node in range(len(leaf)):
        if not leaf[node]:
            continue
        at = node
        while at >= 0:
            for i in range(node_groups[at], node_groups[at + 1]):
                g = groups_of[i]
                for j in range(bounds[g], bounds[g + 1]):
                    if stamp[codes[j]] != node:
                        stamp[codes[j]] = node
                        place[codes[j]] = j
            at = parent[at]
        for m in range(leaf_starts[node], leaf_starts[node + 1]):
            record = by_leaf[m]
            n = 0
            for v in range(starts[record], starts[record + 1]):
                code = values[v]
                if stamp[code] != node:
                    lost += 1
                    continue
                j = place[code]
                held[j] += 1
                g = group[j]
                if kind[g] != ITEM:
                    if word[g] == np.uint64(0):
                        touched[n] = g
                        n += 1
                    word[g] += salt[code]
            for i in range(n):
                sums[touched[i]] += mixed(word[touched[i]])
                word[touched[i]] = np.uint64(0)
    return sums, lost, held


def subrecord_sums(layout: Layout, salt: Words) -> Words:
    """For each chunk the sum of its filled subrecords' words, as released."""
    chunks = layout.chunks
    return _sums(chunks.start, chunks.offsets, chunks.values, salt)


@njit
def _sums(start: Longs, offsets: Longs, values: Ints, salt: Words) -> Words:
    sums = np.zeros(len(start) - 1, np.uint64)
    for g in range(len(start) - 1):
        for row in range(start[g], start[g + 1]):
            if offsets[row + 1] > offsets[row]:
                word = np.uint64(0)
                for v in range(offsets[row], offsets[row + 1]):
                    word += salt[values[v]]
                sums[g] += mixed(word)
    return sums


def diversity(
    layout: Layout,
    share: Share,
    holders: Longs,
    in_item: NDArray[np.bool_],
    sensitive: NDArray[np.bool_],
    group: Longs,
) -> list[Check]:
    """At most one member in l of a cluster has a given sensitive code."""
    most = share.manifest["parameters"].get("diversity")
    if most is None:
        return []
    size = layout.nodes.records[layout.chunks.node[group]]
    above = in_item & sensitive[layout.codes] & (holders * most > size)
    return [
        of_count(
            "diverse_clusters",
            int(above.sum()),
            f"At most one member in {most} of a cluster has a given sensitive code.",
            f"sensitive codes are held by more than one member in {most} of a cluster.",
        )
    ]


def first_members(by_leaf: Longs, leaf_starts: Longs, layout: Layout) -> pl.Series:
    """The first patient of each cluster, in the order of the clusters' numbers."""
    leaves = np.flatnonzero(layout.nodes.leaf & (np.diff(leaf_starts) > 0))
    return pl.Series(by_leaf[leaf_starts[leaves]])
