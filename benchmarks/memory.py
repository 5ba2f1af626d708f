"""What each method needs of memory: whole commands at several sizes, and the fit that Leeward refuses by.

    python benchmarks/memory.py [--only disassociation,visits] [--json FILE]

Made-up data with 900 codes of Zipf frequencies; every command runs as a process, from Parquet to the verified release
with its report, and its peak resident memory is the operating system's. The fit is base +
per patient + per row with no negative term, the lowest (by the sum of its relative excess) that no measured run is
above: what `METHODS` has for each method (`leeward.methods`).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
from scipy.optimize import linprog

from common import Run, commit, machine, measured

START = "import sys; from leeward.cli.main import main; main(sys.argv[1:])"
CODES = 900
A_FILE = 10_000_000
"""Patients, at most, of a file of the source."""


def events(patients: int, length: float, seed: int = 1) -> pl.DataFrame:
    """Patients with about `length` codes each, in visits of up to three."""
    random = np.random.default_rng(seed)
    counts = 1 + random.poisson(length - 1, patients)
    patient = np.repeat(np.arange(patients), counts)
    weight = 1 / np.arange(1, CODES + 1) ** 0.9
    drawn = random.choice(CODES, len(patient), p=weight / weight.sum())
    names = np.array([f"{n}" for n in range(100, 100 + CODES)])
    visit = np.cumsum(random.random(len(patient)) < 0.5)
    return pl.DataFrame(
        {"patient": patient, "code": names[drawn], "visit": patient * 1_000 + visit % 1_000,
         "age": np.floor(random.random(patients) * 60)[patient] + visit % 5}
    )  # fmt: skip


def registry(rows: int, columns: int, seed: int = 1) -> pl.DataFrame:
    """A table of numbers and levels."""
    random = np.random.default_rng(seed)
    found = {f"x{i}": np.round(random.normal(50, 10, rows), 1) for i in range(columns // 2)}
    found |= {f"g{i}": random.choice(list("abcd"), rows) for i in range(columns - columns // 2)}
    return pl.DataFrame(found)


Case = tuple[int, float]
"""Patients, and codes of each (or columns)."""

FLAGS: dict[str, tuple[str, list[str], list[Case]]] = {
    "disassociation": ("disassociate", ["--k", "5", "--m", "2"], [(20_000, 5), (200_000, 5), (200_000, 12), (1_000_000, 5)]),  # noqa: E501
    "constraints": ("constrain", ["--k", "5", "--m", "2", "--policy", "hierarchy:1"], [(10_000, 5), (50_000, 5), (50_000, 12), (200_000, 5)]),  # noqa: E501
    "visits": ("visits", ["--k", "5"], [(20_000, 5), (200_000, 5), (200_000, 12), (1_000_000, 5)]),
    "trajectories": ("trajectories", ["--k", "5"], [(5_000, 3), (20_000, 3), (20_000, 6), (200_000, 3)]),
    "censoring": ("censor", ["--k", "5"], [(5_000, 5), (50_000, 5), (50_000, 12), (200_000, 5)]),
    "k-anonymity": ("k-anonymize", ["--k", "5"], [(5_000, 8), (50_000, 8), (50_000, 16), (200_000, 8)]),
    "condensation": ("condense", ["--k", "20"], [(5_000, 8), (50_000, 8), (50_000, 16), (200_000, 8), (430_000, 13)]),
    "index": ("index", ["--epsilon-total", "5"], [(20_000, 5), (200_000, 5), (200_000, 12), (1_000_000, 5)]),
}  # fmt: skip


def run(
    method: str, case: Case, folder: Path, more: Sequence[str] = (), start: str = START
) -> tuple[int, int, Run]:
    """Patients, rows (or cells of a table), and what one command took, with `more` flags; `start` is the program."""
    with released_once(method, case, folder, more, start) as found:
        return found


@contextmanager
def released_once(
    method: str, case: Case, folder: Path, more: Sequence[str], start: str
) -> Iterator[tuple[int, int, Run]]:
    """As `run`; inside, the release is in the folder OUT. The source is made in a process of its own: Linux counts what
    this one ever held as the peak of what it starts."""
    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        rows, arguments = other.submit(write_source, method, case, folder).result()
    yield case[0], rows, measured([sys.executable, "-c", start, *arguments, *more, "-o", str(folder / "OUT")])
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def write_source(method: str, case: Case, folder: Path) -> tuple[int, list[str]]:
    """Rows (or cells of a table) of the source in `folder`, and the command's arguments."""
    command, flags, _ = FLAGS[method]
    file = folder / "source.parquet"
    records, length = case
    if records > A_FILE:  # of disassociation: several files, each made by itself
        file.mkdir()
        rows = 0
        for number, first in enumerate(range(0, records, A_FILE)):
            made = events(min(A_FILE, records - first), length, seed=1 + number).select("patient", "code")
            made.with_columns(pl.col("patient") + first).write_parquet(file / f"{number}.parquet")
            rows += made.height
        return rows, [command, str(file), *flags, "--vocabulary", "icd9", "--accept-unknown"]
    frame = (
        registry(records, int(length))
        if method in ("k-anonymity", "condensation")
        else events(records, length)
    )
    rows = frame.height * frame.width if "x0" in frame.columns else frame.height
    if "patient" in frame.columns:
        columns = ["patient", "code"]
        columns += {"visits": ["visit"], "trajectories": ["age"]}.get(method, [])
        flags = [*flags, "--vocabulary", "icd9", "--accept-unknown"]
        for name in columns[2:]:
            flags += [f"--{name}", name]
        frame = frame.select(columns)
    frame.write_parquet(file)
    if method != "censoring":
        return rows, [command, str(file), *flags]
    frame.filter(pl.col("patient") < records // 10).write_parquet(folder / "sample.parquet")
    return rows, [command, str(folder / "sample.parquet"), "--population", str(file), *flags]


def fit(found: list[tuple[int, int, float, float]]) -> tuple[float, float, float]:
    """MB, bytes per patient and bytes per row, above every run that was measured."""
    design = np.array([[1, records / 1e6, rows / 1e6] for records, rows, _, _ in found])
    peaks = np.array([peak for _, _, peak, _ in found])
    terms = linprog((design / peaks[:, None]).sum(axis=0), A_ub=-design, b_ub=-peaks).x
    return float(terms[0]), float(terms[1]), float(terms[2])


def main() -> None:
    """Measure, fit, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(FLAGS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    kept: dict[str, object] = {"machine": machine(), "commit": commit()}
    report: Callable[..., None] = lambda *words: print(*words, flush=True)  # noqa: E731
    for method in given.only.split(","):
        found = []
        for case in FLAGS[method][2]:
            with tempfile.TemporaryDirectory(prefix="leeward-memory-") as folder:
                os.environ["LEEWARD_STATE"] = folder
                records, rows, took = run(method, case, Path(folder))
                found.append((records, rows, took.peak * 2**20 / 1e6, took.wall))
            report(method, found[-1])
        base, patient, row = fit(found)
        kept[method] = {"runs": found, "MB": base, "bytes a patient": patient, "bytes a row": row}
        report(f"{method}: {base:.0f} MB + {patient:.0f} bytes a patient + {row:.0f} bytes a row")
        if given.json:
            given.json.write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
