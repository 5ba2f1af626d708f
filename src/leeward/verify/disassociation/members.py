"""Chunks against the members that the custodian says each cluster has: every subrecord is a member's, none is missing.

`custody/data/clusters.parquet` is a witness: it says which patients a cluster is of, and what it says is checked. With
it the whole content of a release follows from the source: the subrecords of a chunk are its members' codes in the
chunk's domain, as multisets, and an item chunk lists what its members have besides.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.verify.checks import Check, of_count
from leeward.verify.disassociation.files import ITEM
from leeward.verify.disassociation.layout import Layout, first_chunk, first_node
from leeward.verify.disassociation.zipping import Parts, check_zipping
from leeward.verify.flat import Ints, Longs, Words, find, heads_of, offsets_of, places_of, run_sums
from leeward.verify.manifest import Share
from leeward.verify.order import order_check

SUPPRESSED = "suppressed.parquet"


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
    chunks, group = layout.chunks, layout.group
    secret = salts(share, len(chunks.codes))
    parts, lost, holders = project(layout, node, starts, values, secret)
    words = run_sums(secret[chunks.values], chunks.offsets)
    filled = np.diff(chunks.offsets) > 0
    owner = np.repeat(np.arange(len(chunks.kind)), chunks.rows())
    item = chunks.kind == ITEM
    own = of_chunks(parts.word, parts.chunk, len(item))
    differing = ~item & (own != of_chunks(words[filled], owner[filled], len(item)))
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
            lost + int(idle.sum()),
            "Every code of a member is in a chunk, every value in the payload, and every code of an item chunk is a "
            "member's.",
            "codes of members are in no chunk, or their values in no payload of the cluster, or item chunks list codes "
            "that no member has.",
        ),
        *diversity(layout, share, holders, item[group], sensitive),
        order_check(
            "order_of_nodes", {"member": pl.Series(np.unique(node, return_index=True)[1])}, "clusters"
        ),
        check_zipping(layout, parts, words),
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


def project(
    layout: Layout, node: Longs, starts: Longs, values: Ints, salt: Words
) -> tuple[Parts, int, Longs]:
    """Members' codes put into the chunks: the parts that chunks have of them, how many codes have no chunk, and for
    each (chunk, code) how many members have it there. `node`: the cluster of each member.

    A code belongs to the lowest chunk of its cluster's chain that has it.
    """
    member = np.argsort(layout.flat.position[node], kind="stable")
    first = offsets_of(np.bincount(node, minlength=len(layout.nodes.leaf))[layout.order])
    lengths = np.diff(starts)[member]
    slot = np.repeat(np.arange(len(member)), lengths)
    code = values[places_of(starts[:-1][member], lengths)]
    place = layout.lowest(node[member][slot], code)
    lost, held = int((place < 0).sum()), np.bincount(place[place >= 0], minlength=len(layout.codes))
    part = np.flatnonzero(place >= 0)
    part = part[layout.chunks.kind[layout.group[place[part]]] != ITEM]
    key = layout.group[place[part]] * len(member) + slot[part]
    order = np.argsort(key, kind="stable")
    heads = np.flatnonzero(heads_of(key[order]))
    chunk, slot = np.divmod(key[order][heads], max(len(member), 1))
    word = run_sums(salt[code[part][order]], np.append(heads, len(order)))
    return Parts(member, first, chunk, slot, word), lost, held


def of_chunks(words: Words, chunk: Longs, n: int) -> Words:
    """For each of n chunks the sum of its subrecords' words, mixed; `chunk` ascends."""
    return run_sums(mix(words), np.searchsorted(chunk, np.arange(n + 1)))


def mix(words: Words) -> Words:
    """Words spread over 64 bits (splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def diversity(
    layout: Layout,
    share: Share,
    holders: Longs,
    in_item: NDArray[np.bool_],
    sensitive: NDArray[np.bool_],
) -> list[Check]:
    """At most one member in l of a cluster has a given sensitive code."""
    most = share.manifest["parameters"].get("diversity")
    if most is None:
        return []
    size = layout.nodes.records[layout.chunks.node[layout.group]]
    above = in_item & sensitive[layout.codes] & (holders * most > size)
    return [
        of_count(
            "diverse_clusters",
            int(above.sum()),
            f"At most one member in {most} of a cluster has a given sensitive code.",
            f"sensitive codes are held by more than one member in {most} of a cluster.",
        )
    ]
