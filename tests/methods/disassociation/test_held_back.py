"""`attacker: rules`: fast equals plain, and of data with k records of any known set the rules make the same files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.attacks.disassociation import read as read_as_attacker
from tests.forging import changed
from tests.methods.disassociation.shapes import cohort_of, data_sets, rules_of, sets_of
from tests.oracles import disassociation
from tests.oracles import held_back as oracle

from leeward.advise.risk import measure_risk
from leeward.analysis.itemsets import owners_of
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.held_back import HELD, hold_back
from leeward.methods.disassociation.pipeline import Disassociated, disassociate
from leeward.methods.disassociation.rules import Rules, Workers
from leeward.randomness import Randomness
from leeward.release import Release, write
from leeward.verify import verify
from leeward.verify.checks import Source

COHORTS = 3_000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 300


def coins_of(d: Disassociated, seed: int) -> oracle.Coins:
    """The product's own draws."""
    draw, leaf = Randomness.of(seed).stream("held back"), owners_of(d.chunks.at)
    held = draw.random(len(leaf)) < HELD
    cells = list(zip(leaf.tolist(), d.chunks.code.tolist(), strict=True))
    sizes = np.diff(d.chunks.at)
    place = d.chunks.at[:-1] + np.floor(draw.random(d.leaves) * sizes).astype(int)
    return oracle.Coins(
        frozenset(cell for cell, back in zip(cells, held, strict=True) if back),
        dict(cells[i] for i in place),
    )


def files_of(d: Disassociated) -> oracle.Files:
    counted, listed = Counter[oracle.Cell](), set()
    place = {cell: i for i, cell in enumerate(zip(owners_of(d.chunks.at), d.chunks.code, strict=True))}
    numbers: dict[int, dict[int, int]] = {}
    for leaf in range(d.leaves):
        for r in range(d.records.bounds[leaf], d.records.bounds[leaf + 1]):
            for code in d.records.values[d.records.offsets[r] : d.records.offsets[r + 1]]:
                i = place[leaf, code]
                if d.chunks.chunk[i] < 0:
                    listed.add((leaf, int(code)))
                else:
                    node = int(d.chunks.node[i])
                    counted[node, int(code)] += 1
                    numbers.setdefault(node, {})[int(code)] = int(d.chunks.chunk[i])
    for node in numbers.values():
        assert [node[code] for code in sorted(node)] == list(range(len(node)))
    return oracle.Files(dict(counted), frozenset(listed))


@given(data_sets(), st.integers(0, 2**32))
def test_chunks_equal_the_oracle(
    drawn: tuple[disassociation.Records, int, disassociation.Parameters], seed: int
) -> None:
    rows, n_codes, p = drawn
    rules: Rules = rules_of(p, n_codes)
    d = disassociate(sets_of(rows, n_codes), rules, Workers(1))
    made = hold_back(d, rules, Randomness.of(seed))
    forest = oracle.Forest(owners_of(d.records.bounds).tolist(), d.parent.tolist())
    records = [rows[i] for i in d.order]
    wanted = oracle.make(records, forest, p.k - 1, p.m, coins_of(d, seed), p.sensitive)
    assert files_of(made) == wanted


def cohort(seed: int) -> tuple[list[frozenset[int]], oracle.Forest, int, int, oracle.Coins]:
    """A few clusters of more than k records of a few codes, some joined, and coins."""
    draw = np.random.Generator(np.random.Philox(seed))
    k, m, leaves = draw.integers(2, 5), draw.integers(1, 4), draw.integers(1, 5)
    leaf = [x for x in range(leaves) for _ in range(draw.integers(k + 1, 2 * k + 3))]
    codes = draw.integers(3, 10)
    weight = 1 / np.arange(1, codes + 1)
    longest = draw.integers(1, 5)
    rows = [
        frozenset(draw.choice(codes, draw.integers(1, longest + 1), p=weight / weight.sum()).tolist())
        for _ in leaf
    ]
    parent, tops = [-1] * leaves, list(range(leaves))
    while len(tops) > 1 and draw.random() < 0.8:
        for top in draw.choice(tops, 2, replace=False).tolist():
            parent[top] = len(parent)
            tops.remove(top)
        tops.append(len(parent))
        parent.append(-1)
    own = [
        sorted({c for x, r in zip(leaf, rows, strict=True) if x == each for c in r}) for each in range(leaves)
    ]
    coins = oracle.Coins(
        frozenset((x, c) for x in range(leaves) for c in own[x] if draw.random() < 0.25),
        {x: own[x][draw.integers(len(own[x]))] for x in range(leaves)},
    )
    return rows, oracle.Forest(leaf, parent), int(k), int(m), coins


def test_the_rules_make_the_same_files_of_data_with_k_records_of_any_known_set() -> None:
    """Exact: the proof's data set is made for every set of up to m codes of a record, and the rules are run on it."""
    tried = rare = filled = 0
    for seed in range(COHORTS):
        rows, forest, k, m, coins = cohort(seed)
        files = oracle.make(rows, forest, k, m, coins)
        known = {
            (forest.leaf[owner], frozenset(c)): owner
            for owner, row in enumerate(rows)
            for size in range(1, m + 1)
            for c in combinations(sorted(row), size)
        }
        for (home, wanted), owner in known.items():
            other, its_coins, empty = oracle.with_k_records(rows, forest, k, m, coins, wanted, owner)
            assert all(other)
            assert wanted <= other[owner]
            holders = [i for i, row in enumerate(other) if wanted <= row and forest.leaf[i] == home]
            assert len(holders) >= k
            assert oracle.make(other, forest, k, m, its_coins) == files
            tried += 1
            rare += sum(wanted <= row for row in rows) < k
            filled += empty
    assert rare > tried / 4
    assert filled > 0  # of records that only the drawn code fills


def people() -> Cohort:
    """Patients with few and with many codes, and demographics."""
    draw = np.random.Generator(np.random.Philox(5))
    rows = [
        tuple(sorted({f"c{code:02d}" for code in draw.zipf(1.4, draw.integers(1, 9)).clip(max=60)}))
        for _ in range(600)
    ]
    ages = pl.DataFrame({"patient": range(600), "age": draw.integers(20, 60, 600)})
    return replace(cohort_of(rows), patients=ages)


def released(folder: Path, **more: object) -> Path:
    method = Disassociation(**{"k": 5, "m": 2, "attacker": "rules", **more})  # type: ignore[arg-type]  # real parameters
    return write(method.protect(people(), randomness=Randomness.of(1)), folder / "out")


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"m": 3, "partitioning": "paper"},
        {"sensitive": ("c02",), "reconstructions": 1},
        {"partitions": 2},
        {"demographics": ("age",), "keep": {"age": 20}},
    ],
    ids=str,
)
def test_a_release_verifies_beside_its_source(more: dict[str, object], tmp_path: Path) -> None:
    cohort = people()
    found = verify(released(tmp_path, **more), Source(cohort.events, cohort.patients))  # type: ignore[arg-type]  # events there are
    assert not [check.name for check in found.failures]
    assert {"single_codes", "empty_item_chunks"} <= {check.name for check in found.checks}


def test_every_known_set_has_k_candidates_whatever_is_listed(tmp_path: Path) -> None:
    """Exhaustively, by the attacker's own program, with at most k records behind a code that a cluster lists."""
    cohort = people()
    release = Release.open(released(tmp_path) / "share")
    top = read_as_attacker(tmp_path / "out" / "share")
    records = cohort.code_sets()
    known = {
        frozenset(records.codes[c] for c in chosen)
        for low, high in pairwise(records.offsets)
        for size in (1, 2)
        for chosen in combinations(records.values[low:high], size)
    }
    counts = [sum(node.candidates(wanted, 5) for node in top) for wanted in known]
    assert len(known) > 500 and min(counts) >= 5
    listing = [node for node in top if node.items] + [
        leaf for node in top for leaf in node.below if leaf.items
    ]
    assert listing
    risk = measure_risk(release, cohort)
    assert risk is not None and "further" not in risk and risk["maximum"] <= 0.2
    assert risk["knows"] == "2 codes of a patient, and what is counted, listed or shared where"
    assert "on the same clusters" in " ".join(release.guarantee["not_protected"])


def first_of(chunks: pl.DataFrame, kind: str) -> dict[str, object]:
    return chunks.filter(pl.col("kind") == kind).row(0, named=True)


def listed_too(chunks: pl.DataFrame) -> pl.DataFrame:
    """A cluster lists a code that it counts."""
    item = first_of(chunks, "item")
    own = chunks.filter((pl.col("node") == item["node"]) & (pl.col("kind") == "record"))["codes"].explode(
        empty_as_null=False
    )
    rows = chunks.to_dicts()
    row = next(each for each in rows if each["node"] == item["node"] and each["kind"] == "item")
    row["codes"] = sorted({*row["codes"], own[0]})
    return pl.DataFrame(rows, schema=chunks.schema)


def two_codes(chunks: pl.DataFrame) -> pl.DataFrame:
    """A subrecord has two codes."""
    rows = chunks.to_dicts()
    row = next(each for each in rows if each["kind"] == "shared")
    row["codes"] = sorted([*row["codes"], "c01" if row["codes"] != ["c01"] else "c02"])
    return pl.DataFrame(rows, schema=chunks.schema)


def counted_for_k(chunks: pl.DataFrame) -> pl.DataFrame:
    """A code is counted for k patients."""
    own = chunks.filter((pl.col("node") == first_of(chunks, "shared")["node"]) & (pl.col("chunk") == 0))
    return chunks.join(own.filter(pl.col("subrecord") >= 5), on=["node", "chunk", "subrecord"], how="anti")


@pytest.mark.parametrize(
    ("change", "check"),
    [(listed_too, "chunk_domains"), (two_codes, "single_codes"), (counted_for_k, "km_anonymous_chunks")],
)
def test_what_the_rules_never_do_is_refuted(
    change: Callable[[pl.DataFrame], pl.DataFrame], check: str, tmp_path: Path
) -> None:
    out = changed(released(tmp_path), tmp_path / "changed", "share/data/chunks.parquet", change)
    assert check in {each.name for each in verify(out).failures}


def test_a_cluster_that_lists_nothing_counts_one_more_than_fill_its_records(tmp_path: Path) -> None:
    out = released(tmp_path)
    chunks = pl.read_parquet(out / "share/data/chunks.parquet")
    counted = (
        chunks.filter(pl.col("kind") == "record").group_by("node").agg(pl.len(), pl.col("chunk").n_unique())
    )
    node, filled, v = counted.filter(pl.col("chunk") > 1).sort("node").row(0)
    assert v >= 2
    bare = changed(
        out,
        tmp_path / "bare",
        "share/data/chunks.parquet",
        lambda t: t.filter((pl.col("node") != node) | (pl.col("kind") == "record")),
    )
    for records, fails in ((filled - 5, True), (filled - 6, False)):
        here = pl.when(pl.col("node") == node).then(records).otherwise("records").alias("records")
        after = changed(
            bare,
            tmp_path / str(records),
            "share/data/nodes.parquet",
            lambda t, here=here: t.with_columns(here),
        )
        assert ("empty_item_chunks" in {each.name for each in verify(after).failures}) == fails


@pytest.mark.parametrize("name", ["nested", "safe", "repeats"])
def test_what_the_proof_does_not_cover_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"`{name}` and `attacker: rules`, which .* cannot be combined"):
        Disassociation(attacker="rules", **{name: True})  # type: ignore[arg-type]  # real parameters
