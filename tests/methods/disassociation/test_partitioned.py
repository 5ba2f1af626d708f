"""Partitions: the guarantee holds in each, and this machine and Spark give the same release."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.methods.disassociation.shapes import cohort_of, rules_of
from tests.mutations.definitions import disassociation_share
from tests.oracles import disassociation as oracle
from tests.spark_fixture import spark_engine

from leeward.cohort.cohort import Cohort
from leeward.engine import Engine, make
from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.partitioned import Blocks, assign_groups, cut
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Source, verify

__all__ = ["spark_engine"]


def records(n: int, seed: int) -> list[tuple[str, ...]]:
    draw = np.random.default_rng(seed)
    return [
        tuple(sorted({f"{250 + c}.0" for c in draw.zipf(1.4, size=draw.integers(1, 6)).clip(max=30)}))
        for _ in range(n)
    ]


METHOD = Disassociation(k=4, m=2, policy="hierarchy:1", partitions=3)


def a_cohort() -> Cohort:
    return cohort_of(records(600, 1), "icd9")


@given(st.integers(10, 120), st.integers(2, 6), st.integers(0, 5))
@settings(max_examples=25)
def test_the_guarantee_holds_whatever_the_partitioning(n: int, partitions: int, seed: int) -> None:
    cohort = cohort_of(records(n, seed), "icd9")
    method = Disassociation(k=4, m=2, policy="hierarchy:1", partitions=partitions)
    made = method.protect(cohort, randomness=Randomness.of(seed))
    with tempfile.TemporaryDirectory() as folder:
        write(made, Path(folder) / "out")
        found = verify(Path(folder) / "out", Source(cohort.require_events()))
        assert disassociation_share(Path(folder) / "out") == set()
    assert found.passed, [c for c in found.checks if not c.passed]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=20), st.integers(1, 8), st.integers(2, 6))
def test_every_partition_has_k_records(counts: list[int], partitions: int, k: int) -> None:
    assume(sum(counts) >= k)
    groups = pl.DataFrame({"group": range(len(counts)), "records": counts})
    assigned = assign_groups(groups, partitions, k)
    sizes = groups.join(assigned, on="group").group_by("partition").agg(pl.col("records").sum())["records"]
    assert sizes.min() >= k
    assert len(sizes) <= partitions
    target = sum(counts) / partitions
    if max(counts) <= target:
        assert sizes.max() < 2 * target + k


@given(st.integers(0, 20), st.integers(2, 8))
@settings(max_examples=20)
def test_a_code_that_many_lead_with_is_divided_by_the_next_ones(seed: int, partitions: int) -> None:
    """Nine in ten have the same leading code; of the largest groups no more than equal records are left together."""
    draw = np.random.default_rng(seed)
    rest = [draw.choice(np.arange(1, 30), draw.integers(1, 5), replace=False) for _ in range(400)]
    found = [sorted({f"{250 + c}.0" for c in [*own, *([0] if draw.random() < 0.9 else [])]}) for own in rest]
    sets = cohort_of([tuple(each) for each in found], "icd9").code_sets()
    rules = rules_of(oracle.Parameters(4, 2, 8), len(sets.codes))
    with tempfile.TemporaryDirectory() as folder:
        numbers = cut(Blocks.of(sets), rules, partitions, Path(folder))
        parts = [pl.read_parquet(Path(folder) / f"rows-{n}.parquet") for n in numbers]
    sizes = [part["record"].n_unique() for part in parts]
    assert sum(sizes) == len(sets) and sum(part.height for part in parts) == len(sets.values)
    assert min(sizes) >= 4 and max(sizes) < 2 * len(sets) / partitions + 4
    assert len(numbers) == partitions


@pytest.mark.parametrize("attacker", ["counts", "rules"])
def test_spark_and_this_machine_give_the_same_release(
    attacker: Literal["counts", "rules"], tmp_path: Path, spark_engine: Engine
) -> None:
    cohort, method = a_cohort(), replace(METHOD, attacker=attacker)
    for name, engine in (("local", make("local", threads=2)), ("spark", spark_engine)):
        write(method.protect(cohort, engine, randomness=Randomness.of(3)), tmp_path / name)
    for file in ("release.json", "data/nodes.parquet", "data/chunks.parquet"):
        assert (tmp_path / "local/share" / file).read_bytes() == (
            tmp_path / "spark/share" / file
        ).read_bytes()
    assert verify(tmp_path / "spark", Source(cohort.require_events())).passed
