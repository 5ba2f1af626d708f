"""What each method takes as the patients grow, in processor seconds and memory, and what parts cost of its utility.

    python benchmarks/scale.py --store FILE [--only METHOD,METHOD]     time and memory, a command after the other
    python benchmarks/scale.py --store FILE --data DIR                 utility at 1, 4, 16 and 64 parts
    python benchmarks/scale.py --store FILE --page                     writes docs/benchmarks/scale.md

Time and memory: made-up data of `memory.py`; every command runs as a process, from Parquet to the verified release with
its report. Processor seconds are user and system time of all threads: on a machine that does other work too, they say
more than the clock, but they are higher there. The page fits a + b·n to all sizes but the largest (least
relative squares, no negative term), and says how far that is from the run at the largest. It says nothing of larger
ones.

Utility: the measures of the product, for releases of the same patients in several numbers of parts. DIR has
uci-diabetes130 (shared/data); claims are made. Each draw is other patients and another seed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
from scipy.optimize import nnls
from scipy.stats import t as student

import leeward as lw
from common import FOLDER, SECTION, commit, machine, measured, once, save, table
from larger_than_memory import digest
from leeward.cohort.readers import stored as reading
from leeward.methods.trajectories import cells
from leeward.release.spec import SourceSpec, Spec
from leeward.runs import stored
from leeward.synthetic import write_claims
from memory import START, Case, released_once

LARGER = (100_000, 300_000, 1_000_000, 3_000_000)
LARGEST = 10_000_000
CASES: dict[str, list[Case]] = {
    "disassociation": [(10_000, 5), (40_000, 5), (160_000, 5)],
    "constraints": [(5_000, 5), (15_000, 5), (45_000, 5)],
    "visits": [(10_000, 5), (40_000, 5), (160_000, 5)],
    "trajectories": [(3_000, 3), (9_000, 3), (27_000, 3)],
    "censoring": [(10_000, 5), (40_000, 5), (160_000, 5)],
    "k-anonymity": [(10_000, 8), (40_000, 8), (160_000, 8)],
    "condensation": [(10_000, 8), (40_000, 8), (160_000, 8), (1_000_000, 8), (3_000_000, 8), (LARGEST, 8)],
    "disassociation in parts": [(n, 5) for n in (*LARGER, LARGEST, 50_000_000)],
    "constraints in parts": [(n, 5) for n in (*LARGER, LARGEST)],
    "visits in parts": [(n, 5) for n in (*LARGER, LARGEST)],
    "censoring in parts": [(n, 5) for n in (*LARGER, LARGEST)],
    "trajectories in parts": [(n, 3) for n in (*LARGER, LARGEST)],
    "index in parts": [(n, 5) for n in (*LARGER, LARGEST)],
}
"""Patients and codes of each, or rows and columns of a table."""

A_PARTITION = 50_000
"""Patients of a partition of disassociation."""

IN_PARTS = f"from leeward.runs import stored; stored.fits = lambda *_: False; {START}"
"""The program as it is where memory is too little: by parts."""

MEASURED = (
    "method",
    "patients",
    "rows or cells",
    "CPU s, 2 threads",
    "peak MB, 2 threads",
    "CPU s, 1 thread",
    "peak MB, 1 thread",
    "CPU s, verified again",
    "peak MB, verified again",
    "commit",
)
FIT = (
    "method",
    "largest",
    "CPU s: a + b a million",
    "fit",
    "run",
    "missed by",
    "MB: a + b a million",
    "fit",
    "run",
    "missed by",
)

PARTS = (1, 4, 16, 64)
DRAWS = 3
PEOPLE = {"disassociation": 20_000, "visits": 20_000, "constraints": 20_000, "trajectories": 8_000}
"""Patients of a draw."""

PLAIN: dict[str, dict[str, Any]] = {
    "disassociation": {"k": 5, "m": 2},
    "visits": {"k": 5},
    "constraints": {"k": 5, "m": 2, "policy": "hierarchy:1"},
    "trajectories": {"k": 5},
}

Steps = tuple[str | int, ...]
FIGURES: dict[str, dict[str, Steps]] = {
    "disassociation": {
        "occurrences in item chunks": ("placement", "item_share"),
        "ARE, sets of 1.25 %": ("are", "workloads", 0, "are"),
        "ARE, sets of 0.625 %": ("are", "workloads", 1, "are"),
        "ARE, random sets of 2 codes": ("are", "workloads", 3, "are"),
    },
    "visits": {
        "codes of patients kept": ("retention", "dc", "released_local"),
        "distinct codes kept": ("retention", "cc", "released_local"),
    },
    "constraints": {
        "occurrences suppressed": ("method", "occurrences_suppressed_share"),
        "ARE, sets of 1.25 %": ("are", "workloads", 0, "are"),
        "ARE, sets of 0.625 %": ("are", "workloads", 1, "are"),
    },
    "trajectories": {
        "loss (ILM + ALM)": ("loss", "total"),
        "usable pairs": ("usable", "usable"),
        "lost pairs": ("usable", "lost"),
        "AvgRE": ("avgre", "avgre"),
    },
}
"""Where `measures.json` has the figures that are shown."""


def measure(method: str, store: Path) -> None:
    """All sizes with two threads, the third in memory with one too; what the store has is not measured again. The
    kernels must have been compiled before (`leeward warm`): else the first run pays for them."""
    one = [] if method.endswith(" in parts") else [(CASES[method][2], 1)]
    for case, threads in [*((case, 2) for case in CASES[method]), *one]:
        key = f"{method}, {case[0]}, {threads}"
        print(key, once(store, key, partial(took, method, case, threads)), flush=True)


def took(method: str, case: Case, threads: int) -> dict[str, Any]:
    """One command."""
    name, _, parts = method.partition(" ")
    more = [] if name == "index" else ["--threads", str(threads)]  # it takes what there is
    if method == "disassociation in parts":
        more += ["--partitions", str(case[0] // A_PARTITION)]
    with tempfile.TemporaryDirectory(prefix="leeward-scale-") as folder:
        os.environ["LEEWARD_STATE"] = folder
        start = IN_PARTS if parts else START
        with released_once(name, case, Path(folder), more, start) as (patients, rows, found):
            verified = {}
            if name != "index":
                again = measured([sys.executable, "-c", start, "verify", str(Path(folder) / "OUT")])
                verified = {"verify_cpu": again.cpu, "verify_peak": again.peak}
    return {"method": method, "patients": patients, "rows": rows, "threads": threads, "cpu": found.cpu,
            "peak": found.peak, **verified, "commit": commit(), "machine": machine()}  # fmt: skip


def tables(data: Path, folder: Path, draw: int) -> Iterator[tuple[str, Path]]:
    """Names and files of one draw: patients, visits, ages and codes; `PEOPLE` of them at most."""
    most = max(PEOPLE.values())
    uci = pl.read_csv(data / "uci-diabetes130" / "diabetic_data.csv.gz", infer_schema=False)
    listed = uci.rename({"patient_nbr": "patient", "encounter_id": "visit"}).with_columns(
        pl.col("age").str.extract(r"(\d+)").cast(pl.Int64)
    )
    write_claims(folder / "claims.parquet", most, seed=draw)
    claims = pl.read_parquet(folder / "claims.parquet").rename({"claim": "visit"})
    for name, wide in (("UCI", listed), ("claims", claims)):
        codes = [column for column in wide.columns if column.startswith("diag_")]
        rows = wide.unpivot(codes, index=["patient", "visit", "age"], value_name="code").drop("variable")
        rows = rows.filter(pl.col("code") != "?").unique(maintain_order=True)
        people = rows["patient"].unique().sort().sample(most, seed=draw, shuffle=True)
        for size in set(PEOPLE.values()):
            file = folder / f"{name}-{size}.parquet"
            rows.filter(pl.col("patient").is_in(people.head(size).implode())).write_parquet(file)
        yield name, folder / name


def released(method: str, parts: int, name: str, file: Path, seed: int) -> dict[str, Any]:
    """One release in so many parts: its figures, how many parts were made, and a digest of what is shared. Only
    disassociation has an option for it: visits and constraints go by parts where memory is too little, trajectories by
    the size of a part."""
    rows = pl.read_parquet(file)
    further = {"visits": {"visit": "visit"}, "trajectories": {"age": "age"}}.get(method, {})
    columns = {"patient": "patient", "code": "code", **further}
    source = SourceSpec(path=str(file), vocabulary="icd9", accept_unknown=True, columns=columns)
    more = {"partitions": parts} if method == "disassociation" else {}
    spec = Spec(source=source, method={"name": method} | PLAIN[method] | more, seed=seed)
    cohorts = [lw.Cohort()]
    store = stored.store_source

    def storing(*given: Any) -> lw.Cohort | None:
        found = store(*given)
        cohorts.extend([found] if found else [])
        return found

    with (
        tempfile.TemporaryDirectory(prefix="leeward-scale-") as folder,
        patch.object(stored, "source_fits", lambda *_: parts == 1),
        patch.object(stored, "store_source", storing),
        patch.object(reading, "ROWS_A_FILE", -(-rows.height // parts)),
        patch.object(cells, "LARGEST", -(-rows["patient"].n_unique() // parts)),
    ):
        out = Path(folder) / "OUT"
        measures = lw.run(spec, out, tell=lambda _: None).measures
        share = digest(out)
    made = measures["method"].get("partitions") or len(cohorts[-1].files) or 1
    return {"method": method, "data": name, "asked": parts, "made": made, "share": share,
            "figures": {figure: at(measures, steps) for figure, steps in FIGURES[method].items()},
            "commit": commit(), "machine": machine()}  # fmt: skip


def at(figures: Any, steps: Steps) -> float:
    """A figure of `measures.json`."""
    for step in steps:
        figures = figures[step]
    return float(figures)


def compare(data: Path, store: Path) -> None:
    """Every draw, table, method and number of parts; what the store has is not made again."""
    for draw in range(1, DRAWS + 1):
        with tempfile.TemporaryDirectory(prefix="leeward-scale-") as folder:
            for name, file in tables(data, Path(folder), draw):
                for method, parts in itertools.product(PEOPLE, PARTS):
                    sized = file.with_name(f"{name}-{PEOPLE[method]}.parquet")
                    key = f"{name}, {method}, {parts} parts, draw {draw}"
                    print(
                        key, once(store, key, partial(released, method, parts, name, sized, draw)), flush=True
                    )


def line(n: list[int], y: list[float]) -> tuple[float, float]:
    """a and b of a + b·n, neither below 0, least relative squares."""
    design = np.array([[1.0, each] for each in n]) / np.array(y)[:, None]
    terms, _ = nnls(design, np.ones(len(y)))
    return float(terms[0]), float(terms[1])


def fitted(n: list[int], y: list[float], digits: int) -> list[str]:
    """The line through all but the largest, what it says of the largest, and by how much that missed the run."""
    a, b = line(n[:-1], y[:-1])
    says = a + b * n[-1]
    return [
        f"{a:,.{digits}f} + {b * 1e6:,.0f}",
        f"{says:,.{digits}f}",
        f"{y[-1]:,.{digits}f}",
        f"{says / y[-1] - 1:+.0%}",
    ]


def interval(values: Sequence[float], sign: str = "") -> str:
    """The mean and its 95 % interval by Student's t."""
    if not np.any(values):
        return "0"
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):{sign}.4f} ± {half:.4f}"


def costs(runs: list[dict[str, Any]]) -> str:
    """A table for each method: its measures in one part, and what the same draws have more or less in several."""
    text = []
    for method, people in PEOPLE.items():
        rows = []
        for name in ("UCI", "claims"):
            one, *others = (
                [r for r in runs if (r["method"], r["data"], r["asked"]) == (method, name, parts)]
                for parts in PARTS
            )
            for figure in FIGURES[method]:
                found = [[r["figures"][figure] for r in each] for each in (one, *others)]
                apart = [[b - a for a, b in zip(found[0], other, strict=True)] for other in found[1:]]
                rows.append([name, figure, interval(found[0]), *(interval(each, "+") for each in apart)])
            made = [sorted(r["made"] for r in each) for each in (one, *others)]
            rows.append([name, "parts made", *("–".join(map(str, sorted({n[0], n[-1]}))) for n in made)])
            same = [sum(a["share"] == b["share"] for a, b in zip(one, each, strict=True)) for each in others]
            rows.append([name, "same bytes as 1 part", "–", *(f"{n} of {len(one)}" for n in same)])
        head = ["data", "measure", "1 part", *(f"{parts} parts: more" for parts in PARTS[1:])]
        text.append(f"### {method.capitalize()}: {people:,} patients\n\n{table(head, rows)}")
    return "\n\n".join(text)


def page(kept: list[dict[str, Any]]) -> str:
    """docs/benchmarks/scale.md."""
    measured, fits = [], []
    for method in CASES:
        found = [r for r in kept if r["method"] == method and "cpu" in r]
        if not found:
            continue
        two = sorted((r for r in found if r["threads"] == 2), key=lambda r: int(r["patients"]))
        one = {r["patients"]: r for r in found if r["threads"] == 1}
        for r in two:
            alone = one.get(r["patients"])
            measured.append(
                [method, f"{r['patients']:,}", f"{r['rows']:,}", f"{r['cpu']:.1f}", f"{r['peak']:,.0f}",
                 f"{alone['cpu']:.1f}" if alone else "–", f"{alone['peak']:,.0f}" if alone else "–",
                 *(f"{r[what]:,.{digits}f}" if what in r else "–"
                   for what, digits in (("verify_cpu", 1), ("verify_peak", 0))),
                 r["commit"]]
            )  # fmt: skip
        n = [int(r["patients"]) for r in two]
        seconds, peaks = ([float(r[what]) for r in two] for what in ("cpu", "peak"))
        fits.append([method, f"{n[-1]:,}", *fitted(n, seconds, 1), *fitted(n, peaks, 0)])
    machines = sorted({r["machine"] for r in kept})
    compared = [r for r in kept if "figures" in r]
    commits = ", ".join(sorted({r["commit"] for r in compared}))
    return f"""# Time and memory by patients, and what parts cost

{"; ".join(machines)}. Command: `python benchmarks/scale.py --store FILE`,
and `python benchmarks/scale.py --store FILE --data DIR`, then `--page`.

## Time and memory

One run each, from reading to the report, in processor seconds (user and system, all threads) and peak resident memory;
the table has the commit of each. Other work ran on the machine: memory is not touched by it, seconds may be a third too
high.

Made-up data (`benchmarks/memory.py`): about five codes a patient (trajectories three, tables eight columns) of 900 with
Zipf frequencies; censoring releases a tenth of the patients; k = 5 (condensation 20), other parameters by default.

"In parts" is a run as where memory is too little for the table: on the disk, constraints, visits, censoring and
trajectories in files of about {reading.ROWS_A_FILE:,} rows, disassociation in partitions of {A_PARTITION:,} patients.
All releases are verified with their source and measured. "Verified again": `leeward verify` of the release, with its
source, as a command of its own. An index for counts is a custodian's and no release.

{table(MEASURED, measured)}

### Fit, and by how much it missed

`a + b` for a million patients, through all sizes but the largest, which was run too. The last columns say what the fit
says of it, what the run took, and by how much the fit missed. Nothing here says what still more patients take.

{table(FIT, fits)}

## What parts cost

Releases of the same patients in 1, 4, 16 and 64 parts: UCI (`uci-diabetes130`) and made-up claims, {DRAWS} draws, each
of other patients with another seed. Means with 95 % intervals (Student's t); the columns of several parts have the
difference to one part of the same draw. Parts so small are a hard case: Spark's have 250,000 patients.

Visits, constraints and censoring count on all patients, whatever the parts, so they release the same bytes.
Disassociation and trajectories decide within a part. By default trajectories are always in parts of {cells.LARGEST:,}
patients or fewer. Condensation, k-anonymity and linked do not go by parts. Measured on {commits}.

{costs(compared)}
"""


def main() -> None:
    """Measure what the store lacks, or write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.page:
        kept = [each[0] for each in SECTION.finditer((FOLDER / "scale.md").read_text())]
        text = page(list(json.loads(given.store.read_text()).values()))
        save(FOLDER / "scale.md", "\n\n".join([text.rstrip(), *kept]) + "\n")
    elif given.data:
        compare(given.data, given.store)
    else:
        for method in given.only.split(","):
            measure(method, given.store)


if __name__ == "__main__":
    main()
