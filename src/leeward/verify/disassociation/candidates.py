"""Guarantee 1, counted: candidate records of every code, every pair of codes and sampled larger sets; in classes of
demographics every class is a release of its own (docs/methods/whole-patient.md#verifier), whose attacker knows the
exact demographics of a patient beside up to m codes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import polars as pl

from leeward.verify.checks import Check, of_count
from leeward.verify.classes import SAMPLED_PATIENTS, Classes, draw_known_sets
from leeward.verify.disassociation import kernels as counting
from leeward.verify.disassociation.kernels import UNLIMITED
from leeward.verify.disassociation.layout import Chunks, Layout, Nodes, first_node, lay_out
from leeward.verify.disassociation.source import Holders
from leeward.verify.flat import Ints, Longs, find, offsets_of, places_of
from leeward.verify.manifest import Share

TABLE_CELLS = 1 << 26
"""Most cells of the pair table held at once; more codes are counted in several passes."""

SAMPLED_SETS = 2_000
"""Sets of each size above 2 whose candidates are counted."""


def candidates(layout: Layout, k: int, m: int) -> list[Check]:
    """Guarantee 1 for every code and (m ≥ 2) every pair that may lie in one record: at least k candidates."""
    width = max(len(layout.chunks.codes), 1)
    block = width if width * width <= TABLE_CELLS else max(TABLE_CELLS // width, 1)
    of_codes, of_pairs = [], []
    for low in range(0, width, block):
        high = min(low + block, width)
        table = counting.pair_candidates(layout.flat, low, high, width)
        diagonal = np.arange(high - low) * width + np.arange(low, high)
        of_codes.append(count_few(table[diagonal], k))
        table[diagonal] = 0
        of_pairs.append(count_few(table, k))
    singles, few_singles, smallest_single = add_parts(of_codes)
    occurring, few, smallest = add_parts(of_pairs)
    checks = [
        of_count(
            "candidates_of_codes",
            few_singles,
            f"Each of {singles:,} codes has at least {k} candidate records.",
            f"codes have fewer than {k} candidate records.",
            {"codes": singles, "smallest": smallest_single if singles else None},
        )
    ]
    if m >= 2:
        checks.append(
            of_count(
                "candidates_of_pairs",
                few,
                f"Each of {occurring:,} pairs that may go together has at least {k} candidate records.",
                f"pairs of codes have fewer than {k} candidate records.",
                {"pairs": occurring, "smallest": smallest if occurring else None},
            )
        )
    return checks


def count_few(table: Ints, k: int) -> tuple[int, int, int]:
    """(pairs or codes that may occur, how many of them have fewer than k candidates, the smallest count)."""
    found = table[table > 0]
    return len(found), int((found < k).sum()), int(found.min()) if len(found) else int(UNLIMITED)


def add_parts(parts: list[tuple[int, int, int]]) -> tuple[int, int, int]:
    occurring, few, smallest = zip(*parts, strict=True)
    return sum(occurring), sum(few), min(smallest)


def check_some_sets(layout: Layout, k: int, m: int, share: Share, sets: int = SAMPLED_SETS) -> Check:
    """Guarantee 1 for sets of 3 to m codes drawn from what one cluster shows; candidates are counted in
    that cluster and the joint clusters above it alone, which can only be stricter. The draw is keyed by the
    files' hashes, so that it repeats and yet no method can know it beforehand."""
    digests = (bytes.fromhex(str(entry["sha256"]))[:4] for entry in share.manifest["files"])
    key = int.from_bytes(b"".join(digests)[:8].ljust(8, b"\0"), "big")
    generator = np.random.Generator(np.random.Philox(key=key))
    leaves = np.flatnonzero(layout.nodes.leaf)
    stamp = np.zeros(max(len(layout.chunks.codes), 1), np.int64)
    counts: list[int] = []
    for size in range(3, m + 1):
        drawn = 0
        for leaf in generator.choice(leaves, sets):
            wanted = draw(layout, layout.chain(int(leaf)), size, generator)
            if len(wanted) == size:
                drawn += 1
                counts.append(int(counting.set_candidates(wanted, leaf, layout.flat, stamp, False)))
        if not drawn:  # no cluster that was drawn shows as many codes: none shows more
            break
    counts = [count for count in counts if count > 0]  # others cannot lie in one record
    return of_count(
        "candidates_of_sampled_sets",
        sum(count < k for count in counts),
        f"Each of {len(counts):,} sampled sets of 3 to {m} codes has at least {k} candidate records."
        if m > 2
        else "No sets of more than 2 codes to sample (m is below 3).",
        f"of {len(counts):,} sampled sets of 3 to {m} codes have fewer than {k} candidate records.",
        {"sets": len(counts), "smallest": min(counts, default=None)},
    )


def draw(layout: Layout, chain: Ints, size: int, generator: np.random.Generator) -> Ints:
    """Up to `size` distinct codes that may lie in one record of the cluster `chain[0]`: a random subrecord
    of each record and shared chunk and the item chunk's codes, pooled, then drawn from."""
    chunks = layout.chunks
    pool: list[Ints] = []
    for v in chain:
        for g in layout.groups_of[layout.node_groups[v] : layout.node_groups[v + 1]]:
            row = int(generator.integers(chunks.start[g], chunks.start[g + 1]))
            pool.append(chunks.values[chunks.offsets[row] : chunks.offsets[row + 1]])
    together = np.unique(np.concatenate(pool)) if pool else np.empty(0, np.int32)
    return generator.permutation(together)[:size]


def node_classes(nodes: Nodes, classes: Classes) -> Check:
    """Every node belongs to a released class, joint clusters to that of their clusters, and the clusters of a class
    have its records."""
    order = np.argsort(classes.numbers, kind="stable")
    place = find(classes.numbers[order], nodes.of_class, -1)
    known = place >= 0
    up = nodes.parent >= 0
    crossing = up & (nodes.of_class != nodes.of_class[np.maximum(nodes.parent, 0)])
    leaf = nodes.leaf & known
    held = np.bincount(place[leaf], weights=nodes.records[leaf], minlength=len(order)).astype(np.int64)
    unequal = int((held != classes.records[order]).sum())
    bad = ~known | crossing
    return of_count(
        "node_classes",
        int(bad.sum()) + unequal,
        f"{len(nodes.numbers):,} nodes lie in one class each, and no joint cluster crosses classes.",
        "nodes belong to no class, are joined across classes, or classes do not have the records of their clusters."
        + first_node(nodes, bad),
    )


def split(layout: Layout, classes: Classes) -> list[Layout]:
    """The part of a release that belongs to each class, codes numbered anew in each."""
    found, nodes, chunks = [], layout.nodes, layout.chunks
    group_class = nodes.of_class[chunks.node]
    for number in classes.numbers:
        own = np.flatnonzero(nodes.of_class == number)
        index = np.full(len(nodes.numbers), -1, np.int64)
        index[own] = np.arange(len(own))
        parent = np.where(nodes.parent[own] >= 0, index[np.maximum(nodes.parent[own], 0)], -1).astype(
            np.int32
        )
        part = Nodes(nodes.numbers[own], parent, nodes.leaf[own], nodes.records[own], nodes.of_class[own])
        found.append(
            lay_out(part, _groups(chunks, np.flatnonzero(group_class == number), index), layout.listed)
        )
    return found


def _groups(chunks: Chunks, groups: Longs, node: Longs) -> Chunks:
    rows_of = chunks.rows()[groups]
    rows = places_of(chunks.start[groups], rows_of)
    lengths = np.diff(chunks.offsets)[rows]
    values = chunks.values[places_of(chunks.offsets[rows], lengths)]
    used, renumbered = np.unique(values, return_inverse=True)
    codes = tuple(chunks.codes[c] for c in used)
    return Chunks(
        node[chunks.node[groups]].astype(np.int32), chunks.kind[groups], offsets_of(rows_of), chunks.number[rows],
        offsets_of(lengths), renumbered.reshape(-1).astype(np.int32), codes,
    )  # fmt: skip


def check_patients(
    layouts: list[Layout],
    classes: Classes,
    records: Mapping[int, list[str]],
    values: list[tuple[str, ...]],
    k: int,
    m: int,
) -> list[Check]:
    """Sampled patients of the source: each record fits a cluster of a class that fits the exact demographics, and no
    set of up to m of its codes, with these demographics, leaves fewer than k candidates. Candidates are counted in the
    best cluster of every tree of nodes of a fitting class, which can only be stricter."""
    part_of = cache(lambda c: Holders(layouts[c]))
    generator = np.random.Generator(np.random.Philox(key=len(values)))
    lost, counts = 0, []
    for patient, codes in records.items():
        fitting = list(map(part_of, np.flatnonzero(classes.fit(values[patient])).tolist()))
        lost += not any(part.fit(part.number(codes)) for part in fitting)
        for wanted in draw_known_sets(sorted(codes), range(1, m + 1), generator):
            count = 0
            for part in fitting:
                count += part.candidates(part.number(wanted), k)
                if count >= k:
                    break
            counts.append(count)
    return [
        of_count(
            "source_records_fit",
            lost,
            f"Each of {len(records):,} sampled source records fits a cluster of a class that fits its demographics.",
            f"of {len(records):,} sampled source records fit no cluster of a fitting class.",
            {"sampled": len(records)},
        ),
        of_count(
            "candidates_of_patients",
            sum(count < k for count in counts),
            f"Each of {len(counts):,} code sets of sampled patients, with their demographics, has at least {k} "
            "candidates.",
            f"of {len(counts):,} code sets of sampled patients, with their demographics, have fewer than {k} "
            "candidates.",
            {"sets": len(counts)},
        ),
    ]


def sample_of(events: pl.DataFrame, patients: pl.Series) -> dict[int, list[str]]:
    """Sampled patients (their places in `patients`) with their codes."""
    generator = np.random.Generator(np.random.Philox(key=len(patients)))
    chosen = np.sort(generator.permutation(len(patients))[:SAMPLED_PATIENTS])
    place = pl.DataFrame({"patient": patients.gather(chosen), "place": chosen})
    rows = place.join(events, on="patient").group_by("place").agg(pl.col("code").cast(pl.String).unique())
    return dict(zip(rows["place"].to_list(), rows["code"].to_list(), strict=True))
