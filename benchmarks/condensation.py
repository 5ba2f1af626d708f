"""Condensation at size: the whole command at 430,000 and 5,000,000 rows × 13, halving and k-means, growth in n, m, K.

    python benchmarks/condensation.py [--largest 5000000] [--skip-lloyd]

Tables are made up (`leeward synth registry`, lung, seed 1). `whole command` is `leeward condense` from the Parquet file
to the verified, measured and reported release. Processor seconds are those of the process; on a machine that others use
they say more than seconds by the clock. Figs. 5, 7 and 8 of Gal et al. 2014 are the growth tables. Writes its section
of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import leeward, measured, table, write_section
from leeward.cohort import Cohort
from leeward.cohort.readers import read
from leeward.cohort.synthetic.registry import registry, write_registry
from leeward.engine import make
from leeward.protect.condensation import Condensation
from leeward.protect.condensation.grouping import Grouping, group
from leeward.protect.condensation.run import condense
from leeward.protect.tables import KAnonymity
from leeward.randomness import Randomness

K = 100
ROWS = 430_000
ALGORITHMS = ("balanced", "improved", "condensation", "tfrp")


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of one call, and its result."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def cohort_of(rows: int, variables: int = 13) -> Cohort:
    cohort = read(registry(rows, "lung", variables, seed=1), format="table")
    cohort.table()
    return cohort


def method(algorithm: str = "balanced", k: int = K, variables: int = 13, **more: Any) -> Condensation:
    outcome = (
        {"strata": ("VitalStat",), "time": ("SurvInterval",)}
        if variables > 2
        else {"time": ("SurvInterval",)}
    )
    return Condensation(k=k, algorithm=algorithm, repetitions=0, **outcome, **more)  # type: ignore[arg-type]


def commands(rows: list[int]) -> str:
    """The whole command at each size."""
    lines = []
    for n in rows:
        with tempfile.TemporaryDirectory() as folder:
            source, out = Path(folder) / "registry.parquet", Path(folder) / "out"
            write_registry(source, n, "lung", 13, seed=1)
            flags = [
                "--k",
                str(K),
                "--strata",
                "VitalStat",
                "--time",
                "SurvInterval",
                "--seed",
                "1",
                "-o",
                str(out),
            ]
            run = measured(leeward("condense", str(source), *flags))
            lines.append([f"{n:,} × 13", f"{run.wall:.1f}", f"{run.cpu:.1f}", f"{run.peak / 1024:.2f}"])
            print("whole command", *lines[-1], flush=True)
    return table(["table", "seconds", "CPU seconds", "peak GB"], lines)


def groupings(*, lloyd: bool) -> str:
    """Halving against the paper's k-means on the same points, both whole strata of the 430,000 rows."""
    cohort = cohort_of(ROWS)
    prepared, kernel = method().ready(cohort.table(), Randomness.of(1))
    points = [
        kernel.layout.points({name: each[prepared.stratum == s] for name, each in prepared.values.items()})
        for s in range(len(prepared.strata))
    ]
    group(points[0][:1_000], K, "halving", np.random.default_rng(1))  # compiled before the clock starts
    lines = []
    for how in ("halving", *(("kmeans",) if lloyd else ())):
        seconds, found = cpu(
            lambda how=how: [group(each, K, how, np.random.default_rng(1)) for each in points]
        )
        lines.append(grouping_line(how, seconds, found))
        print("grouping", *lines[-1], flush=True)
    width = points[0].shape[1]
    return f"Points have {width} columns (numbers and dummies).\n\n" + table(
        ["grouping", "CPU seconds", "within-group squares", "after moving", "rows moved", "least", "most"],
        lines,
    )


def grouping_line(how: str, seconds: float, found: list[Grouping]) -> list[str]:
    sizes = np.concatenate([np.diff(each.offsets) for each in found])
    return [
        how,
        f"{seconds:.1f}",
        f"{sum(each.before for each in found):,.0f}",
        f"{sum(each.after for each in found):,.0f}",
        f"{sum(each.moved for each in found):,}",
        str(sizes.min()),
        str(sizes.max()),
    ]


def growth(name: str, values: list[int], one: Callable[[int, str], float | None]) -> str:
    """Processor seconds of each algorithm along one parameter."""
    lines = []
    for value in values:
        found = [one(value, algorithm) for algorithm in (*ALGORITHMS, "k-anonymity")]
        lines.append([f"{value:,}", *("–" if seconds is None else f"{seconds:.2f}" for seconds in found)])
        print(name, *lines[-1], flush=True)
    return table([name, *ALGORITHMS, "k-anonymity"], lines)


def protect_seconds(cohort: Cohort, algorithm: str, k: int = K, variables: int = 13) -> float:
    """Processor seconds of `protect`."""
    chosen: Any = KAnonymity(k=k) if algorithm == "k-anonymity" else method(algorithm, k, variables)
    return cpu(lambda: chosen.protect(cohort, randomness=Randomness.of(1)))[0]


def partitioning() -> str:
    """What cutting a stratum into cells first costs: sum of squares against one cell."""
    cohort = cohort_of(100_000)
    lines = []
    base = None
    for rows in (200_000, 50_000, 10_000, 2_000):
        chosen = method(cell_rows=rows)
        prepared, kernel = chosen.ready(cohort.table(), Randomness.of(1))
        made = condense(prepared, kernel, make("local"), Randomness.of(1), rows)
        squares = made.facts["after"]
        base = base or squares
        lines.append(
            [f"{rows:,}", str(made.cells), f"{squares:,.0f}", f"{100 * (squares / base - 1):+.2f} %"]
        )
        print("cells", *lines[-1], flush=True)
    return table(["rows a cell", "cells", "within-group squares", "against one cell a stratum"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--largest", type=int, default=5_000_000)
    parser.add_argument(
        "--skip-lloyd", action="store_true", help="leave out k-means at 430,000 rows (minutes)"
    )
    given = parser.parse_args()
    small = cohort_of(17_421)
    for algorithm in ALGORITHMS:
        protect_seconds(cohort_of(1_000), algorithm)  # compiled and loaded before the clock starts
    parts = ["### Whole command", commands([n for n in (ROWS, given.largest) if n])]
    parts += ["### Halving and k-means", groupings(lloyd=not given.skip_lloyd)]
    parts += [
        "### Growth (CPU seconds of `protect`)",
        growth("K", [10, 20, 50, 100, 200, 500], lambda k, name: protect_seconds(small, name, k)),
        growth("m", [2, 4, 8, 13], lambda m, name: protect_seconds(cohort_of(17_421, m), name, K, m)),
        growth(
            "n",
            [10_000, 50_000, 100_000, ROWS],
            # The quadratic ones, and Lloyd's iterations, stop at 100,000 rows.
            lambda n, name: (
                None
                if n > 100_000 and name not in ("balanced", "k-anonymity")
                else protect_seconds(cohort_of(n), name)
            ),
        ),
    ]
    parts += ["### Cells", partitioning()]
    write_section("condensation", "Condensation", "python benchmarks/condensation.py", "\n\n".join(parts))


if __name__ == "__main__":
    main()
