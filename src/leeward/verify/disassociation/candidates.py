"""Guarantee 1, counted: candidate records of every code, every pair of codes and sampled larger sets."""

from __future__ import annotations

import numpy as np

from leeward.verify.checks import Check, of_count
from leeward.verify.disassociation import candidate_kernels as counting
from leeward.verify.disassociation.kernels import UNLIMITED
from leeward.verify.disassociation.layout import Layout
from leeward.verify.flat import Ints
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
    """`count_few` of all parts of a table."""
    occurring, few, smallest = zip(*parts, strict=True)
    return sum(occurring), sum(few), min(smallest)


def check_sampled_sets(layout: Layout, k: int, m: int, share: Share, sets: int = SAMPLED_SETS) -> Check:
    """Guarantee 1 for sets of 3 to m codes drawn from what one cluster shows; candidates are counted in
    that cluster and the joint clusters above it alone, which can only be stricter. The draw is keyed by the
    files' hashes, so that it repeats and yet no method can know it beforehand."""
    key = int.from_bytes(
        b"".join(bytes.fromhex(str(entry["sha256"]))[:4] for entry in share.manifest["files"])[:8].ljust(
            8, b"\0"
        ),
        "big",
    )
    generator = np.random.Generator(np.random.Philox(key=key))
    leaves = np.flatnonzero(layout.nodes.leaf)
    width = max(len(layout.chunks.codes), 1)
    stamp, hit = np.zeros(width, np.int64), np.zeros(width, np.int64)
    few = counted = 0
    smallest = None
    for size in range(3, m + 1):
        drawn = 0
        for leaf in generator.choice(leaves, sets):
            chain = layout.chain(int(leaf))
            wanted = draw(layout, chain, size, generator)
            if len(wanted) < size:
                continue
            drawn += 1
            count = int(counting.set_candidates(wanted, chain, layout.flat, stamp, hit))
            if count <= 0:  # these codes cannot lie in one record
                continue
            counted += 1
            few += count < k
            smallest = count if smallest is None else min(smallest, count)
        if not drawn:  # no cluster that was drawn shows as many codes: none shows more
            break
    return of_count(
        "candidates_of_sampled_sets",
        few,
        f"Each of {counted:,} sampled sets of 3 to {m} codes has at least {k} candidate records."
        if m > 2
        else "No sets of more than 2 codes to sample (m is below 3).",
        f"of {counted:,} sampled sets of 3 to {m} codes have fewer than {k} candidate records.",
        {"sets": counted, "smallest": smallest},
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
