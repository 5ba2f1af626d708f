"""What each method takes as the patients grow, in processor seconds and memory, and what follows for larger ones.

    python benchmarks/scale.py --store FILE [--only disassociation,visits]     measures, a command after the other
    python benchmarks/scale.py --store FILE --page                             writes docs/benchmarks/scale.md

Made-up data of `memory.py`; every command runs as a process, from Parquet to the verified release with its report.
Processor seconds are user and system time of all threads: on a machine that does other work too, they say more than the
clock. The page fits a + b·n to seconds and memory (least relative squares, no negative term), and says how far the fit
through the smaller sizes is from the largest one: that is what its figures for still larger ones may be wrong by, at
least.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from common import FOLDER, commit, machine, save, table
from memory import Case, run

CASES: dict[str, list[Case]] = {
    "disassociation": [(10_000, 5), (40_000, 5), (160_000, 5)],
    "constraints": [(5_000, 5), (15_000, 5), (45_000, 5)],
    "visits": [(10_000, 5), (40_000, 5), (160_000, 5)],
    "trajectories": [(3_000, 3), (9_000, 3), (27_000, 3)],
    "censoring": [(10_000, 5), (40_000, 5), (160_000, 5)],
    "k-anonymity": [(10_000, 8), (40_000, 8), (160_000, 8)],
    "condensation": [(10_000, 8), (40_000, 8), (160_000, 8)],
}
"""Patients and codes of each, or rows and columns of a table."""

BEYOND = (10_000_000, 100_000_000)

MEASURED = (
    "method",
    "patients",
    "rows or cells",
    "CPU s, 2 threads",
    "peak MB, 2 threads",
    "CPU s, 1 thread",
    "peak MB, 1 thread",
)

PRICE = 0.06
"""Dollars an hour for a processor with 8 GiB, about what clouds ask for rented machines; another price scales it."""


def measure(method: str, store: Path) -> None:
    """All sizes with two threads, the largest with one too; what the store has is not measured again. The kernels must
    have been compiled before (`leeward warm`): else the first run pays for them."""
    kept: dict[str, Any] = json.loads(store.read_text()) if store.is_file() else {}
    runs = kept.setdefault(method, [])
    largest = CASES[method][-1]
    for case, threads in [*((case, 2) for case in CASES[method]), (largest, 1)]:
        if any(each["patients"] == case[0] and each["threads"] == threads for each in runs):
            continue
        with tempfile.TemporaryDirectory(prefix="leeward-scale-") as folder:
            os.environ["LEEWARD_STATE"] = folder
            patients, rows, took = run(method, case, Path(folder), ["--threads", str(threads)])
        runs.append({"patients": patients, "rows": rows, "threads": threads, "cpu": took.cpu, "peak": took.peak,
                     "commit": commit(), "machine": machine()})  # fmt: skip
        print(method, runs[-1], flush=True)
        store.write_text(json.dumps(kept, indent=1))


def line(n: list[int], y: list[float]) -> tuple[float, float]:
    """a and b of a + b·n, neither below 0, least relative squares."""
    design = np.array([[1.0, each] for each in n]) / np.array(y)[:, None]
    terms, _ = nnls(design, np.ones(len(y)))
    return float(terms[0]), float(terms[1])


def missed(n: list[int], y: list[float]) -> float:
    """How far the line through all but the largest is from the largest, as a share of it."""
    a, b = line(n[:-1], y[:-1])
    return (a + b * n[-1]) / y[-1] - 1


def exponent(n: list[int], y: list[float], constant: float) -> float:
    """Growth between the last two sizes above the constant."""
    return math.log((y[-1] - constant) / max(y[-2] - constant, 1e-9)) / math.log(n[-1] / n[-2])


def amount(seconds: float) -> str:
    """Processor seconds, minutes or hours."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} s"


def page(kept: dict[str, list[dict[str, Any]]]) -> str:
    """docs/benchmarks/scale.md."""
    measured, fits, beyond = [], [], []
    for method in CASES:
        if method not in kept:
            continue
        two = sorted((r for r in kept[method] if r["threads"] == 2), key=lambda r: int(r["patients"]))
        one = {r["patients"]: r for r in kept[method] if r["threads"] == 1}
        for r in two:
            alone = one.get(r["patients"])
            measured.append(
                [method, f"{r['patients']:,}", f"{r['rows']:,}", f"{r['cpu']:.1f}", f"{r['peak']:,.0f}",
                 f"{alone['cpu']:.1f}" if alone else "–", f"{alone['peak']:,.0f}" if alone else "–"]
            )  # fmt: skip
        if len(two) < 3:
            continue
        n = [int(r["patients"]) for r in two]
        cpu, peak = [float(r["cpu"]) for r in two], [float(r["peak"]) for r in two]
        (a, b), (base, each) = line(n, cpu), line(n, peak)
        fits.append(
            [method, f"{a:.1f} + {b * 1e6:.0f}", f"{missed(n, cpu):+.0%}", f"{exponent(n, cpu, a):.2f}",
             f"{base:.0f} + {each * 1e6:,.0f}", f"{missed(n, peak):+.0%}"]
        )  # fmt: skip
        for size in BEYOND:
            seconds, memory = a + b * size, (base + each * size) / 1024
            price = PRICE * seconds / 3600 * max(1.0, memory / 8)
            beyond.append([method, f"{size:,}", amount(seconds), f"{memory:,.1f}", f"{price:,.2f}"])
    commits = sorted({r["commit"] for runs in kept.values() for r in runs})
    where = sorted({r["machine"] for runs in kept.values() for r in runs})
    return f"""# Time and memory by patients

{"; ".join(where)}. Commit {", ".join(commits)}. Command: `python benchmarks/scale.py --store FILE`, then `--page`.

One run each, from reading to the report, in processor seconds (user and system, all threads) and peak resident memory.

Made-up data (`benchmarks/memory.py`): about five codes a patient (trajectories three, tables eight columns) of 900 with
Zipf frequencies; censoring releases a tenth of the patients; k = 5 (condensation 20), other parameters by default.

## Measured

{table(MEASURED, measured)}

## Fit

`a + b` for a million patients. "Missed by": how far the fit through the smaller sizes is from the largest one.
"Growth": the exponent between the last two sizes without a.

{table(["method", "CPU s: a + b a million", "missed by", "growth", "MB: a + b a million", "missed by"], fits)}

## Beyond what was measured

Nothing here was run: it is the fit in a straight line. If growth is above 1.1, the seconds are too low. A processor
with 8 GiB costs {PRICE:g} dollars an hour, and as many are rented as the memory needs. Disassociation
[in parts](../how-to/large-data.md) needs far less memory.

{table(["method", "patients", "CPU time", "peak GiB", "dollars"], beyond)}
"""


def main() -> None:
    """Measure what the store lacks, or write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.page:
        save(FOLDER / "scale.md", page(json.loads(given.store.read_text())))
        return
    for method in given.only.split(","):
        measure(method, given.store)


if __name__ == "__main__":
    main()
