"""Kernel times of generalization under constraints: 25,000 records × 631 codes, and growth to a million.

    python benchmarks/constraints.py [--largest 1000000] [--repeat 3]

Cohorts are made up (`leeward synth codes`: Zipf frequencies, comorbidity, 5.1 codes a record). Kernel time is from the
code sets to the mapping, distinct records counted; the best of the repeats. k = 5, m = 2, utility policy of level 1.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from common import table, write_page
from leeward.analysis.policies import constraints
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.cohort.readers import read
from leeward.methods.constraints import greedy
from leeward.methods.constraints.apriori import recode
from leeward.methods.constraints.clusters import Clusters
from leeward.methods.constraints.greedy import AllSets
from leeward.methods.constraints.weighted import count_records
from leeward.synthetic.codes import write_codes
from leeward.vocabulary.icd import ICD9CM

K, M = 5, 2
SIZES = (10_000, 25_000, 100_000, 250_000, 1_000_000)
ALGORITHMS = ("cba", "ugaclip", "apriori")


def cohort(records: int, folder: Path) -> CodeSets:
    path = folder / f"{records}.parquet"
    write_codes(path, records, 631, 5.1, seed=7)
    return read(path, vocabulary="icd9").code_sets()


def solve(sets: CodeSets, algorithm: str, policy: str) -> tuple[int, int]:
    """Labels released and codes suppressed."""
    if algorithm == "apriori":
        found = recode(count_records(sets), ICD9CM.hierarchy(sets.codes), K, M)
        return len(np.unique(found.node_of_code)), 0
    clusters = Clusters(count_records(sets), constraints(policy, sets, "icd9"), K)
    greedy.run(clusters, AllSets(M), algorithm)
    gone = int((clusters.of_code < 0).sum())
    return len(np.unique(clusters.of_code[clusters.of_code >= 0])), gone


def best(work: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Seconds of the fastest run, and its result."""
    seconds = float("inf")
    result = None
    for _ in range(repeat):
        begin = time.perf_counter()
        result = work()
        seconds = min(seconds, time.perf_counter() - begin)
    return seconds, result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--policy", default="hierarchy:1")
    chosen = parser.parse_args()
    head = ["records", "distinct", "counting, s", *(f"{a}, s (labels, suppressed)" for a in ALGORITHMS)]
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for algorithm in ALGORITHMS:  # compiles the kernels
            solve(cohort(2_000, folder), algorithm, chosen.policy)
        for records in (size for size in SIZES if size <= chosen.largest):
            sets = cohort(records, folder)
            counting, weighed = best(lambda s=sets: count_records(s), chosen.repeat)
            cells = []
            for algorithm in ALGORITHMS:
                work = lambda s=sets, a=algorithm: solve(s, a, chosen.policy)  # noqa: E731  (timed as it stands)
                seconds, (labels, gone) = best(work, chosen.repeat)
                cells.append(f"{seconds:.3f} ({labels}, {gone})")
            rows.append([f"{records:,}", f"{len(weighed):,}", f"{counting:.3f}", *cells])
            print(rows[-1], flush=True)
    write_page(
        "constraints",
        "Generalization under constraints: kernels",
        f"python benchmarks/constraints.py --policy {chosen.policy}",
        f"k = {K}, m = {M}, policy {chosen.policy}; the fastest of {chosen.repeat} runs.\n\n"
        + table(head, rows),
    )


if __name__ == "__main__":
    main()
