"""Disassociation: kernel time, whole command and peak memory as data grow, and what a second thread brings.

    python benchmarks/disassociation.py [--sizes 25000,100000,1000000,10000000] [--repeat 3]

Synthetic correlated code sets (`leeward synth codes`, seed 1: 631 codes, mean 5.1); k = 5, m = 2, policy hierarchy:1,
Refine on. `kernel` is from flat code sets to clusters and chunks in memory (compiled code, warm); `whole command` is
`leeward disassociate FILE …` from Parquet to the verified release with its report, as a process.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import tempfile
from pathlib import Path
from typing import Any

from common import leeward, measured, median_seconds, table, write_page
from leeward.cohort import read
from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.method import policy_over
from leeward.methods.disassociation.pipeline import Disassociated, disassociate
from leeward.methods.disassociation.publish import facts_of, publish
from leeward.methods.disassociation.rules import Workers, rules_of
from leeward.randomness import Randomness
from leeward.synthetic import write_codes

LARGE = 1_000_000
"""Above this size a run is not repeated, kernels are warm from the sizes before, and only the default is timed."""
PARTITIONINGS = ("fitted", "paper")
"""The default first."""

FLAGS = ["--k", "5", "--m", "2", "--policy", "hierarchy:1", "--vocabulary", "icd9"]


def kernel(file: Path, partitioning: str, threads: int, repeat: int) -> tuple[float, dict[str, Any]]:
    """Median seconds from flat code sets to the disassociated result, and its facts."""
    cohort = read(file, vocabulary="icd9")
    sets = cohort.code_sets()
    method = Disassociation(k=5, m=2, policy="hierarchy:1", partitioning=partitioning)  # type: ignore[arg-type]  # a real one
    rules = rules_of(method, sets, policy_over(method, sets, "icd9"), cohort.name)
    del cohort
    workers = Workers(threads)
    kept: list[Disassociated] = []

    def work() -> None:
        kept.clear()
        kept.append(disassociate(sets, rules, workers))

    seconds = median_seconds(work, repeat, warm_up=len(sets) <= LARGE)
    done = kept.pop()
    facts = facts_of(publish(done, sets.codes, Randomness.of(1)))
    gc.collect()
    return seconds, facts


def growth(sizes: list[int], seconds: list[float]) -> str:
    """The exponent between the second and the last size."""
    if len(sizes) < 3:
        return "three sizes are needed for the growth."
    slope = math.log(seconds[-1] / seconds[1]) / math.log(sizes[-1] / sizes[1])
    return f"n^{slope:.2f} from {sizes[1]:,} to {sizes[-1]:,}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="25000,100000,1000000,10000000")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    kernels, commands, times, walls = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            file = Path(folder) / f"codes_{size}.parquet"
            write_codes(file, size, seed=1)
            repeat = options.repeat if size <= LARGE else 1
            for partitioning in PARTITIONINGS if size <= LARGE else PARTITIONINGS[:1]:
                one, facts = kernel(file, partitioning, 1, repeat)
                two, _ = kernel(file, partitioning, 2, repeat)
                if partitioning == PARTITIONINGS[0]:
                    times.append(two)
                share = facts["item_occurrences"] / facts["occurrences"]
                kernels.append(
                    [
                        f"{size:,}",
                        partitioning,
                        f"{one:.3f}",
                        f"{two:.3f}",
                        f"{one / two:.2f}×",
                        f"{share:.1%}",
                    ]
                )
                print(kernels[-1], flush=True)
            runs = []
            for number in range(repeat):
                out = Path(folder) / f"out_{size}_{number}"
                runs.append(measured(leeward("disassociate", str(file), *FLAGS, "-o", str(out))))
            wall = statistics.median(r.wall for r in runs)
            walls.append(wall)
            cpu, peak = statistics.median(r.cpu for r in runs), max(r.peak for r in runs)
            commands.append([f"{size:,}", f"{wall:.1f}", f"{cpu:.1f}", f"{peak:,.0f}", len(runs)])
            print(commands[-1], flush=True)
    head = [
        "records",
        "partitioning",
        "1 thread, s",
        "2 threads, s",
        "gain",
        "code occurrences in item chunks",
    ]
    body = "\n\n".join(
        [
            table(head, kernels),
            table(["records", "whole command, s", "CPU, s", "peak memory, MB", "runs"], commands),
            f"Growth (default partitioning): kernel {growth(sizes, times)}; whole command {growth(sizes, walls)}.",
        ]
    )
    command = f"python benchmarks/disassociation.py --sizes {options.sizes} --repeat {options.repeat}"
    write_page("disassociation", "Disassociation: speed", command, body)


if __name__ == "__main__":
    main()
