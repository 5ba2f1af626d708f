"""What `safe` costs: releases in which no code of a chunk gives another away, beside those without.

    python benchmarks/safe.py --data DIR

DIR is as for benchmarks/disassociation_quality.py. UCI (development), and 20,000 made-up patients of claims and of
codes each, of three seeds. Mean over the seeds of the change in each error, with a 95 % interval over them (UCI: none,
the method draws only orders).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import leeward as lw
from common import table, write_page
from leeward.analysis.itemsets import supports_of
from leeward.analysis.workloads import frequent_queries, random_queries
from leeward.arrays import AnyArray
from leeward.cohort import Cohort
from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.measures import estimate_queries
from leeward.methods.disassociation.measures.placement import covers
from leeward.methods.disassociation.measures.published import read
from leeward.methods.disassociation.method import policy_over
from leeward.methods.disassociation.pipeline import disassociate
from leeward.methods.disassociation.rules import Workers, rules_of
from leeward.randomness import Randomness
from leeward.release import Release, write
from leeward.synthetic import write_claims, write_codes
from partitioning import of_codes

SEEDS, PATIENTS, KS = (1, 2, 3), 20_000, (3, 5, 10)
T_OF_THREE = 4.303 / np.sqrt(3)
"""Half of a 95 % interval of a mean of three, in standard deviations."""
WORKLOADS = ("W1 1.25 %", "W1 .625 %", "1 code", "pairs", "triples")


def shapes(data: Path, folder: Path) -> Iterator[tuple[str, list[Cohort]]]:
    uci = pl.read_csv(data / "uci-diabetes130" / "diabetic_data.csv.gz", infer_schema=False)
    listed = uci.unpivot(["diag_1", "diag_2", "diag_3"], index="patient_nbr", value_name="code")
    yield "UCI", [of_codes(listed.filter(pl.col("code") != "?").rename({"patient_nbr": "patient"}), "icd9")]
    claims, codes = [], []
    for seed in SEEDS:
        write_claims(folder / "claims.parquet", PATIENTS, seed=seed)
        rows = pl.read_parquet(folder / "claims.parquet")
        wide = [name for name in rows.columns if name.startswith("diag_")]
        claims.append(of_codes(rows.unpivot(wide, index="patient", value_name="code"), "icd9"))
        write_codes(folder / "codes.parquet", PATIENTS, seed=seed)
        codes.append(lw.read(folder / "codes.parquet", vocabulary="icd9"))
    yield from (("claims", claims), ("codes", codes))


def figures(
    cohort: Cohort, k: int, safe: bool, asked: Sequence[tuple[list[AnyArray], AnyArray]]
) -> list[float]:
    """Errors of each workload, share in item chunks, CPU seconds, and the share of chunks with a code that gives away
    another."""
    sets, method = cohort.code_sets(), Disassociation(k=k, m=2, safe=safe)
    rules = rules_of(method, sets, policy_over(method, sets, cohort.vocabulary), "cohort")
    start = time.process_time()
    disassociate(sets, rules, Workers(1))
    seconds = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        made = method.protect(cohort, randomness=Randomness.of(1))
        published = read(Release.open(write(made, Path(folder) / "out")))
    found = []
    for queries, true in asked:
        expected = estimate_queries(published, sets, queries, "occupancy").expected
        found.append(float((abs(expected - true) / true).mean()))
    covered = covers(published)
    held = made.custody["item_occurrences"] / made.custody["occurrences"]
    return [*found, held, seconds, covered["chunks"] / max(1, covered["of_chunks"])]


def rows(name: str, cohorts: Sequence[Cohort], k: int) -> Iterator[list[Any]]:
    both = np.empty((2, len(cohorts), len(WORKLOADS) + 3))
    for i, cohort in enumerate(cohorts):
        sets = cohort.code_sets()
        queries = [frequent_queries(sets, share, None, 1_000).queries for share in (0.0125, 0.00625)]
        queries += random_queries(sets, 1_000)[: len(WORKLOADS) - 2]
        asked = [(each, supports_of(sets, each)) for each in queries]
        for safe in (0, 1):
            both[safe, i] = figures(cohort, k, bool(safe), asked)
    for safe in (0, 1):
        *errors, held, seconds, covered = both[safe].mean(axis=0)
        shown = [f"{e:.4f}" for e in errors]
        yield [name, k, "yes" if safe else "no", *shown, f"{held:.1%}", f"{covered:.1%}", f"{seconds:.2f}"]
    change = both[1] / np.maximum(both[0], 1e-9) - 1
    half = T_OF_THREE * change.std(axis=0, ddof=1) if len(cohorts) > 1 else np.zeros(change.shape[1])
    shown = [
        f"{m:+.1%}" + (f" ± {h:.1%}" if len(cohorts) > 1 else "")
        for m, h in zip(change.mean(axis=0), half, strict=True)
    ]
    yield [name, k, "change", *shown[:-2], "–", shown[-2]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    given = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name, cohorts in shapes(given.data, Path(folder)):
            figures(cohorts[0], 3, True, [])  # compiles
            figures(cohorts[0], 3, False, [])
            for k in KS:
                for line in rows(name, cohorts, k):
                    print(line, flush=True)
                    lines.append(line)
    columns = ["data", "k", "safe", *WORKLOADS, "in item chunks", "chunks with a cover", "CPU, s"]
    changes = [line for line in lines if line[2] == "change"]
    both = [line for line in lines if line[2] != "change"]
    body = f"{table(columns, changes)}\n\n## Without and with\n\n{table(columns, both)}"
    write_page("safe", "What `safe` costs", "python benchmarks/safe.py --data DIR", body)


if __name__ == "__main__":
    main()
