"""Condensation at size: the whole command at 430,000 and 5,000,000 rows × 13, halving and k-means, growth in n, m, K.

    python benchmarks/condensation.py [--parts commands,groupings,growth] [--largest 5000000]

Tables are made up (`leeward synth registry`, lung, seed 1). `whole command` is `leeward condense` from the Parquet file
to the verified, measured and reported release; with a plan, a Cox, a linear and a logistic model are fitted before and
after. Processor seconds are those of the process; on a machine that others use they say more than seconds by the clock.
The growth tables are Figs. 5–8 of Gal et al. 2014, and are drawn into docs/studies/condensation/. Each part writes its
own page in docs/benchmarks.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import leeward, measured, table, write_page
from leeward.cohort import Cohort
from leeward.cohort.readers import read
from leeward.engine import make
from leeward.methods.condensation import Condensation
from leeward.methods.condensation.condense import condense, ready
from leeward.methods.condensation.grouping import Grouping, balance, clusters, group
from leeward.methods.k_anonymity import KAnonymity
from leeward.randomness import Randomness
from leeward.synthetic.registry import registry, write_registry
from study_condensation_figures import lines as draw_lines

K = 100
ROWS = 430_000
COMPARED = ("balanced", "improved", "condensation", "tfrp", "k-anonymity")
OUTCOME = "time: SurvInterval, event: VitalStat, event_value: 0"
COVARIATES = "DiagAge, Gender, Race, Appalachia, Stage, TobaccoUse, PrimaryPayor"
PLAN = "plan:\n" + "\n".join(
    f"  - {kind}: {{{OUTCOME}, covariates: [{COVARIATES}]}}" for kind in ("cox", "linear", "logistic")
)


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
    return Condensation(k=k, algorithm=algorithm, **outcome, **more)


def commands(largest: int) -> str:
    """The whole command at each size, without and with a plan."""
    lines = []
    outcomes = {
        "strata and time": ["--strata", "VitalStat", "--time", "SurvInterval"],
        "plan of three models": ["--plan", "plan.yaml"],
    }
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "plan.yaml").write_text(PLAN, encoding="utf-8")
        for n in (ROWS, largest):
            source = here / f"registry-{n}.parquet"
            write_registry(source, n, "lung", 13, seed=1)
            for name, flags in outcomes.items():
                given = [str(here / flag) if flag == "plan.yaml" else flag for flag in flags]
                out = here / "out"
                run = measured(
                    leeward("condense", str(source), "--k", str(K), *given, "--seed", "1", "-o", str(out))
                )
                shutil.rmtree(out)
                lines.append(
                    [f"{n:,} × 13, {name}", f"{run.wall:.1f}", f"{run.cpu:.1f}", f"{run.peak / 1000:.2f}"]
                )
                print("whole command", *lines[-1], flush=True)
    return table(["table", "seconds", "CPU seconds", "peak GB"], lines)


def groupings() -> str:
    """Halving against the paper's k-means and Lloyd's iterations alone, on both whole strata of the 430,000 rows."""
    cohort = cohort_of(ROWS)
    prepared, kernel = ready(method(), cohort.table(), Randomness.of(1))
    points = [
        kernel.layout.points({name: each[prepared.stratum == s] for name, each in prepared.values.items()})
        for s in range(len(prepared.strata))
    ]
    group(points[0][:1_000], K, "halving", np.random.default_rng(1))  # compiled before the clock starts
    lines = []
    for how in ("halving", "kmeans"):
        seconds, found = cpu(
            lambda how=how: [group(each, K, how, np.random.default_rng(1)) for each in points]
        )
        lines.append(grouping_line(how, seconds, found))
        print("grouping", *lines[-1], flush=True)
    seconds, squares = cpu(lambda: sum(lloyd(each) for each in points))
    lines.append(
        ["Lloyd alone (scikit-learn, 10 iterations)", f"{seconds:.1f}", f"{squares:,.0f}", *4 * ["–"]]
    )
    print("grouping", *lines[-1], flush=True)
    width = points[0].shape[1]
    return f"Points have {width} columns (numbers and dummies).\n\n" + table(
        ["grouping", "CPU seconds", "within-group squares", "after moving", "rows moved", "least", "most"],
        lines,
    )


def lloyd(points: Any) -> float:
    """Within-cluster sum of squares after ten of Lloyd's iterations."""
    from sklearn.cluster import KMeans

    found = KMeans(
        len(points) // K, init="random", n_init=1, max_iter=10, algorithm="lloyd", random_state=1
    ).fit(points)
    return float(found.inertia_)


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


def growth(name: str, figure: str, values: list[int], one: Callable[[int, str], float | None]) -> str:
    """Processor seconds of each algorithm along one parameter, as a table and a picture."""
    lines, drawn = [], []
    for value in values:
        found = [one(value, algorithm) for algorithm in COMPARED]
        lines.append([f"{value:,}", *("–" if seconds is None else f"{seconds:.2f}" for seconds in found)])
        drawn += [
            {"at": value, "method": algorithm, "seconds": seconds}
            for algorithm, seconds in zip(COMPARED, found, strict=True)
            if seconds is not None
        ]
        print(name, *lines[-1], flush=True)
    draw_lines(figure, drawn, f"processor seconds against {name}", name)
    return table([name, *COMPARED], lines)


def moving(values: list[int], times: int = 10) -> str:
    """The paper's Fig. 6: what of `improved` is clustering and what is moving rows, mean and deviation of `times`."""
    prepared, kernel = ready(method("improved"), cohort_of(17_421).table(), Randomness.of(1))
    points = [
        kernel.layout.points({name: each[prepared.stratum == s] for name, each in prepared.values.items()})
        for s in range(len(prepared.strata))
    ]
    lines, drawn = [], []
    for k in values:
        runs = np.array([clustered_and_moved(points, k, seed) for seed in range(times)])
        mean, spread = runs.mean(axis=0), runs.std(axis=0)
        lines.append([f"{k:,}", *(f"{mean[i]:.3f} ± {spread[i]:.3f}" for i in (0, 1)), f"{mean[2]:,.0f}"])
        drawn += [
            {"at": k, "method": step, "seconds": max(float(mean[i]), 1e-4)}
            for i, step in enumerate(("clustering", "moving rows"))
        ]
        print("moving", *lines[-1], flush=True)
    draw_lines("fig6", drawn, "processor seconds of clustering and of moving rows", "K")
    return table(["K", "clustering", "moving rows", "rows moved"], lines)


def clustered_and_moved(points: list[Any], k: int, seed: int) -> tuple[float, float, int]:
    """Processor seconds of steps 2a and 2c of the paper's algorithm, and how many rows moved."""
    clustering = moved_in = 0.0
    rows = 0
    for each in points:
        seconds, (labels, centres) = cpu(lambda each=each: clusters(each, k, np.random.default_rng(seed)))
        clustering += seconds
        seconds, moved = cpu(
            lambda each=each, labels=labels, centres=centres: balance(
                each, labels, centres, k, np.lexsort(each.T[::-1])
            )
        )
        moved_in += seconds
        rows += moved
    return clustering, moved_in, rows


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
        prepared, kernel = ready(method(), cohort.table(), Randomness.of(1))
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
    parser.add_argument("--parts", default="commands,groupings,growth")
    given = parser.parse_args()
    for algorithm in COMPARED:
        protect_seconds(cohort_of(1_000), algorithm)  # compiled and loaded before the clock starts
    parts: dict[str, Callable[[], str]] = {
        "commands": lambda: commands(given.largest),
        "groupings": lambda: groupings() + "\n\n## Cells\n\n" + partitioning(),
        "growth": grown,
    }
    for name in given.parts.split(","):
        title = {"commands": "whole command", "groupings": "halving and k-means", "growth": "growth"}[name]
        command = f"python benchmarks/condensation.py --parts {name}"
        write_page(f"condensation-{name}", f"Condensation: {title}", command, parts[name]())


def grown() -> str:
    """Growth in K, m and n."""
    small = cohort_of(17_421)
    by_k = [10, 20, 50, 100, 200, 500]
    return "\n\n".join(
        [
            "CPU seconds of `protect`; 17,421 rows × 13 and K = 100 where they do not vary.",
            growth("K", "fig5", by_k, lambda k, name: protect_seconds(small, name, k)),
            "Of `improved`, ten runs each (Fig. 6):",
            moving(by_k),
            growth(
                "m", "fig7", [2, 4, 8, 13], lambda m, name: protect_seconds(cohort_of(17_421, m), name, K, m)
            ),
            growth(
                "n",
                "fig8",
                [10_000, 50_000, 100_000, ROWS],
                lambda n, name: protect_seconds(cohort_of(n), name),
            ),
        ]
    )


if __name__ == "__main__":
    main()
