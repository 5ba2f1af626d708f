"""Partitionings of disassociation compared: counts of code sets, codes counted, occurrences in item chunks, seconds.

    python benchmarks/partitioning.py --data DIR [--k 5,10,25] [--done FILE]
    python benchmarks/partitioning.py --data DIR --k gap

DIR is as for benchmarks/disassociation_quality.py. UCI and 30,000 made-up records of 12 of 3,000 codes served to choose
the constants of the fitted partitioning and of the prior `occupancy` (development); made-up claims, Eunomia and
pyPheWAS took no part (evaluation). Means over five draws of queries with 95 % intervals: W1 500 itemsets of up to 5
codes a support, W2 500 records. `--done` keeps each partitioning's rows in a file as soon as they are measured, so that
a long run can be stopped and go on.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import leeward as lw
from common import once, table, write_page
from leeward.analysis import workloads
from leeward.analysis.itemsets import supports_of
from leeward.arrays import AnyArray, offsets_of
from leeward.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.fit import aim_of, fit_partition, purity
from leeward.methods.disassociation.horpart import (
    gather_records,
    pool_in_place,
    split_records,
)
from leeward.methods.disassociation.measures import estimate_queries
from leeward.methods.disassociation.measures.estimates import DEFAULT
from leeward.methods.disassociation.measures.placement import occurrences
from leeward.methods.disassociation.measures.published import read
from leeward.methods.disassociation.method import policy_over
from leeward.methods.disassociation.pipeline import disassociate
from leeward.methods.disassociation.recut import count_supports
from leeward.methods.disassociation.rules import Workers, rules_of
from leeward.randomness import Randomness
from leeward.release import Release, write
from leeward.synthetic import write_claims, write_codes

SEEDS = (101, 102, 103, 104, 105)
QUERIES = 500
"""Itemsets drawn of W1, and records of W2."""

COLUMNS = [
    "data", "k", "partitioning", "prior", "W1 1.25 %", "W1 .625 %", "W2 1 code", "2", "3", "4", "5", "in item chunks",
    "codes counted", "clusters", "CPU, s",
]  # fmt: skip


def of_codes(rows: pl.DataFrame, vocabulary: str | None) -> Cohort:
    """A cohort of (patient, code) rows."""
    rows = (
        rows.select("patient", pl.col("code").cast(pl.String)).drop_nulls().unique().sort("patient", "code")
    )
    codes = rows["code"].unique().sort()
    return Cohort(events=rows.with_columns(pl.col("code").cast(pl.Enum(codes))), vocabulary=vocabulary)


def shapes(data: Path, folder: Path) -> Iterator[tuple[str, Cohort, str]]:
    """Name, cohort and policy of each shape, development first."""
    uci = pl.read_csv(data / "uci-diabetes130" / "diabetic_data.csv.gz", infer_schema=False)
    listed = uci.unpivot(["diag_1", "diag_2", "diag_3"], index="patient_nbr", value_name="code")
    listed = listed.filter(pl.col("code") != "?").rename({"patient_nbr": "patient"})
    yield "UCI (development)", of_codes(listed, "icd9"), "hierarchy:1"
    write_codes(folder / "codes.parquet", 30_000, mean=12, codes=3000, seed=2)
    yield "3,000 codes (development)", lw.read(folder / "codes.parquet", vocabulary="icd9"), "hierarchy:1"
    write_claims(folder / "claims.parquet", 30_000, seed=1)
    claims = pl.read_parquet(folder / "claims.parquet")
    wide = [name for name in claims.columns if name.startswith("diag_")]
    yield "claims", of_codes(claims.unpivot(wide, index="patient", value_name="code"), "icd9"), "hierarchy:1"
    eunomia = pl.read_csv(data / "eunomia-gibleed" / "CONDITION_OCCURRENCE.csv.gz", infer_schema=False)
    named = eunomia.rename({"PERSON_ID": "patient", "CONDITION_CONCEPT_ID": "code"})
    yield "Eunomia", of_codes(named, None), "frequency:0.05"
    events = pl.read_csv(data / "pyphewas-synthetic" / "icds.csv.gz", infer_schema=False)
    yield "pyPheWAS", of_codes(events.rename({"id": "patient", "ICD_CODE": "code"}), None), "frequency:0.05"


def queries_of(sets: CodeSets) -> list[list[tuple[list[AnyArray], AnyArray]]]:
    """For each seed W1 at both supports and W2 of each size, with their true counts."""
    frequent = [workloads.frequent_queries(sets, s, 5).queries for s in (0.0125, 0.00625)]
    found = []
    for seed in SEEDS:
        draw = np.random.Generator(np.random.Philox(seed))
        drawn = [[each[i] for i in np.sort(draw.permutation(len(each))[:QUERIES])] for each in frequent]
        workloads.WORKLOAD_SEED = seed
        drawn += workloads.random_queries(sets, QUERIES)
        found.append([(each, supports_of(sets, each)) for each in drawn if len(each)])
    shortest = min(map(len, found))
    return [each[:shortest] for each in found]


def rows(
    name: str,
    cohort: Cohort,
    policy: str,
    k: int,
    partitioning: str,
    queries: Callable[[], list[list[tuple[Any, Any]]]],
) -> list[list[Any]]:
    """One release's figures."""
    asked = queries()
    sets = cohort.code_sets()
    method = Disassociation(k=k, m=2, policy=policy, partitioning=partitioning)  # type: ignore[arg-type]  # a real one
    rules = rules_of(method, sets, policy_over(method, sets, cohort.vocabulary), name)
    disassociate(sets, rules, Workers(1))  # compiles
    start = time.process_time()
    disassociate(sets, rules, Workers(1))
    seconds = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        made = method.protect(cohort, randomness=Randomness.of(1))
        published = read(Release.open(write(made, Path(folder) / "out")))
    counted = int((occurrences(published)[:2].sum(axis=0) > 0).sum())
    facts = made.custody
    item = f"{facts['item_occurrences'] / facts['occurrences']:.1%}"
    figures = np.array(
        [
            [
                float(
                    (abs(estimate_queries(published, sets, queries, DEFAULT).expected - true) / true).mean()
                )
                for queries, true in drawn
            ]
            for drawn in asked
        ]
    )
    half = 1.96 * figures.std(axis=0, ddof=1) / np.sqrt(len(SEEDS))
    shown = [f"{m:.4f} ± {h:.4f}" for m, h in zip(figures.mean(axis=0), half, strict=True)]
    line = [
        name,
        k,
        partitioning,
        DEFAULT,
        *shown,
        item,
        f"{counted:,}",
        f"{facts['clusters']:,}",
        f"{seconds:.2f}",
    ]
    print(line, flush=True)
    return [line]


GAP_RECORDS, GAP_DRAWS, GAP_K = 11, 200, 2
"""Records of a draw whose optimum is found exactly, draws a shape, k."""


def gap(name: str, cohort: Cohort, policy: str) -> list[Any]:
    """The fitted objective as a share of the optimum, over draws of neighbours in HorPart's order."""
    sets = cohort.code_sets()
    method = Disassociation(k=5, m=2, policy=policy, partitioning="fitted")
    rules = rules_of(method, sets, policy_over(method, sets, cohort.vocabulary), name)
    order = split_records(sets.offsets, sets.values, rules, Workers(1)).order
    draw = np.random.Generator(np.random.Philox(14))
    shares = []
    for _ in range(GAP_DRAWS):
        start = int(draw.integers(0, len(order) - 40))
        chosen = order[start + np.sort(draw.permutation(40)[:GAP_RECORDS])]
        rows = [frozenset(sets.values[sets.offsets[r] : sets.offsets[r + 1]].tolist()) for r in chosen]
        flat = (
            offsets_of([len(row) for row in rows]),
            np.array([c for row in rows for c in sorted(row)], np.int32),
        )
        small = rules._replace(k=GAP_K, max_cluster=10 * GAP_K)
        first = pool_in_place(split_records(*flat, small, Workers(1)), GAP_K)
        near = gather_records(*flat, first, Workers(1))
        pure = purity(near.bounds, count_supports(near, rules.n_codes), small)
        weight = aim_of(pure, GAP_K, 20 * GAP_K).weight
        found = fit_partition(*flat, small, Workers(1))
        masks = [
            sum(1 << int(r) for r in found.order[a:b])
            for a, b in itertools.pairwise(found.leaf_offsets.tolist())
        ]
        values = all_values(rows, weight)
        shares.append(sum(values[mask] for mask in masks) / optimum(values, len(rows)))
    ratio = np.array(shares)
    line = [name, GAP_DRAWS, f"{ratio.mean():.3f}", f"{ratio.min():.3f}", f"{(ratio > 1 - 1e-9).mean():.0%}"]
    print(line, flush=True)
    return line


def all_values(rows: list[frozenset[int]], weight: float) -> list[float]:
    """The objective of every set of records as one cluster, by bit mask."""
    holders = [sum(1 << i for i, row in enumerate(rows) if code in row) for code in set().union(*rows)]
    found = [0.0]
    for mask in range(1, 1 << len(rows)):
        supports = [s for held in holders if (s := (held & mask).bit_count()) >= GAP_K]
        size = mask.bit_count()
        found.append(weight * sum(supports) + (1 - weight) * sum(s * s for s in supports) / size)
    return found


def optimum(values: list[float], n: int) -> float:
    """The largest sum over all partitions into clusters of at least `GAP_K`, by dynamic programming over sets."""
    best = [0.0] + [-math.inf] * ((1 << n) - 1)
    for mask in range(1, 1 << n):
        low = mask & -mask
        rest = mask ^ low
        part = rest
        while True:
            cluster = part | low
            if cluster.bit_count() >= GAP_K:
                best[mask] = max(best[mask], values[cluster] + best[mask ^ cluster])
            if part == 0:
                break
            part = (part - 1) & rest
    return best[-1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--k", default="5", help="or `gap`: against the optimum")
    parser.add_argument("--done", type=Path, help="JSON file of the rows measured so far.")
    options = parser.parse_args()
    command = f"python benchmarks/partitioning.py --data DIR --k {options.k}"
    with tempfile.TemporaryDirectory() as folder:
        if options.k == "gap":
            head = ["data", "draws of 11 records", "mean share of the optimum", "worst", "optimum found"]
            body = table(head, [gap(*shape) for shape in shapes(options.data, Path(folder))])
            write_page("partitioning-gap", "Disassociation: fitted against the optimum", command, body)
            return
        ks = list(map(int, options.k.split(",")))
        lines = []
        for name, cohort, policy in shapes(options.data, Path(folder)):
            asked = cache(partial(queries_of, cohort.code_sets()))
            for k, way in itertools.product(ks, ("paper", "fitted")):
                measure = partial(rows, name, cohort, policy, k, way, asked)
                lines += once(options.done, f"{name}, {k}, {way}", measure)
    title = f"Disassociation: partitionings and priors, k = {', '.join(map(str, ks))}"
    write_page("partitioning-" + "-".join(map(str, ks)), title, command, table(COLUMNS, lines))


if __name__ == "__main__":
    main()
