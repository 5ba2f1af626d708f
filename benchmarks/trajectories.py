"""Trajectories: seconds and memory of clustering and of the whole command, growth, a million patients, parts.

    python benchmarks/trajectories.py [--exact] [--parts] [--million]

Data are made up (`leeward synth trajectories`, shape d50-pop, seed 1). Clustering is timed inside the process, best of
three after a first run that loads the compiled kernels; the whole command and its peak memory from outside. The plain
Python oracle is timed on alignments of the same trajectories and extrapolated to the number that the literal algorithm
makes. `--exact` compares all clusters at full size with exhaustive search; `--parts` gives the extra loss of clustering
in parts; `--million` runs a million patients.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import trajectories_exhaustive as exhaustive
from benchmarks.common import measured, write_page
from tests.oracles import trajectories as oracle

from leeward.cohort.lenses.trajectories import Trajectories as Lens
from leeward.cohort.lenses.trajectories import trajectories_of
from leeward.engine import available_threads, make
from leeward.methods.trajectories import clustering, hierarchies, parts
from leeward.methods.trajectories.records import Records, losses_of
from leeward.synthetic.trajectories import write_trajectories

SIZES = (5_000, 10_000, 20_000, 27_639)
KS = (2, 5, 15)
JOININGS = ("thesis", "normalised")
LARGE = 100_000
WAYS = {
    "alignment": ("--clustering", "alignment"),
    "cells, order kept": ("--order", "kept"),
    "cells, order free (default)": (),
}
ORACLE_SECONDS = 10.0
LINES: list[str] = []


def say(line: str, flush: bool = True) -> None:
    """Print a line, and keep it for the page."""
    print(line, flush=flush)
    LINES.append(line)


def written(name: str, title: str, option: str) -> None:
    """What was printed since the last page becomes docs/benchmarks/NAME.md."""
    write_page(name, title, f"python benchmarks/trajectories.py {option}".strip(), "\n".join(LINES))
    LINES.clear()


def peak_memory() -> float:
    """Peak memory of this process so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def load(path: Path, patients: int | None = None) -> tuple[Lens, Records, hierarchies.Space]:
    """The lens, the records and the space of a file of trajectories; the thesis's age tree."""
    table = pl.read_parquet(path)
    if patients is not None:
        table = table.filter(pl.col("patient") <= patients)
    codes = pl.Enum(sorted(table["code"].unique().to_list()))
    lens = trajectories_of(table.with_columns(pl.col("code").cast(codes), pl.col("age").cast(pl.Float64)))
    ages = hierarchies.age_tree("1-128")
    tree, _ = hierarchies.code_tree("icd9", (), lens.codes)
    records = Records(lens.offsets, tree.nodes_of(lens.codes)[lens.values], ages.nodes(lens.ages))
    return lens, records, hierarchies.make_space(tree, ages)


def clustering_seconds(
    records: Records, spaces: hierarchies.Space, k: int, joining: str, repeat: int = 3
) -> float:
    """The fastest of `repeat` clusterings, on all threads."""
    p = clustering.make_problem(records, spaces, k)
    seconds = float("inf")
    for _ in range(repeat):
        begin = time.perf_counter()
        clustering.mdav(p, k, joining == "normalised", available_threads())
        seconds = min(seconds, time.perf_counter() - begin)
    return seconds


def literal_alignments(n: int, k: int) -> int:
    """Alignments of MDAV as it is written: one with everybody left for each seed and each further member."""
    total, left = 0, n
    while left:
        target = k if left >= 2 * k else left
        total += sum(left - taken for taken in range(target))
        left -= target
    return total


def oracle_seconds_each(lens: Lens, spaces: hierarchies.Space) -> float:
    """Processor seconds of one alignment by the plain oracle in floats, over random pairs of trajectories."""
    codes, ages = (
        oracle.Tree([(n, up or None) for n, up in a.hierarchy.to_pairs()]) for a in (spaces.code, spaces.age)
    )
    rng = np.random.Generator(np.random.Philox(1))
    begin, made = time.process_time(), 0
    while time.process_time() - begin < ORACLE_SECONDS:
        x, y = (tuple((c, str(v)) for c, v in lens.record(int(r))) for r in rng.integers(0, len(lens), 2))
        oracle.a_gs(x, y, codes, ages, 0.5, 0.5, number=float)
        made += 1
    return (time.process_time() - begin) / made


def speed(path: Path) -> None:
    """Each joining cost at full size, k = 5; ratio to the oracle; growth."""
    lens, records, spaces = load(path)
    before = peak_memory()
    clustering_seconds(records, spaces, 5, "normalised", 1)
    say(
        f"Clustering {len(lens):,} patients: peak of the process {peak_memory():.0f} MB, {before:.0f} MB of it before, "
        "with libraries and data loaded."
    )
    each = oracle_seconds_each(lens, spaces)
    literal = each * literal_alignments(len(lens), 5)
    say(
        f"\nOracle: {each * 1e6:.0f} µs an alignment, so {literal / 3600:.1f} h for {len(lens):,} patients, k = 5.\n"
    )
    say(
        "| joining | clustering s | ratio to the oracle | whole command s | its peak MB |\n|---|---:|---:|---:|---:|"
    )
    for joining in JOININGS:
        seconds = clustering_seconds(records, spaces, 5, joining)
        whole = whole_command(path, joining, *WAYS["alignment"])
        say(
            f"| {joining} | {seconds:.2f} | {literal / seconds:,.0f} | {whole.wall:.1f} | {whole.peak:.0f} |",
            flush=True,
        )
    say("\n| patients | " + " | ".join(f"k = {k}" for k in KS) + " |\n|---:|" + "---:|" * len(KS))
    for n in SIZES:
        _, part, spaces = load(path, n)
        row = [f"{clustering_seconds(part, spaces, k, 'normalised', 1):.2f} s" for k in KS]
        say(f"| {n:,} | " + " | ".join(row) + " |", flush=True)


def ways(folder: Path, path: Path) -> None:
    """The whole command by way of clustering, at the thesis's size and at a hundred thousand patients."""
    small, large = folder / "small.parquet", folder / "large.parquet"
    write_trajectories(small, 2_000, seed=1)
    write_trajectories(large, LARGE, seed=1)
    for flags in WAYS.values():
        whole_command(small, "normalised", *flags)  # kernels are compiled before any is timed
    say("\n| patients | clustering | whole command s | CPU s | its peak MB |\n|---:|---|---:|---:|---:|")
    for n, file in ((SIZES[-1], path), (LARGE, large)):
        for name, flags in WAYS.items():
            whole = whole_command(file, "normalised", *flags)
            say(f"| {n:,} | {name} | {whole.wall:.1f} | {whole.cpu:.1f} | {whole.peak:.0f} |")


def whole_command(path: Path, joining: str = "normalised", *further: str):
    """`leeward trajectories` from file to verified release, measured from outside."""
    with tempfile.TemporaryDirectory() as folder:
        return measured(
            [
                *(str(Path(sys.executable).parent / "leeward"), "trajectories", str(path), "--age", "age"),
                *(
                    "--vocabulary",
                    "icd9",
                    "--age-hierarchy",
                    "1-128",
                    "--k",
                    "5",
                    "--joining",
                    joining,
                    "--seed",
                    "1",
                ),
                *("-o", str(Path(folder) / "out"), *further),
            ]
        )


def exact(path: Path) -> None:
    """Pruned = exhaustive, cluster for cluster, at full size."""
    _, records, spaces = load(path)
    p = clustering.make_problem(records, spaces, 5)
    for joining in JOININGS:
        pruned = clustering.mdav(p, 5, joining == "normalised", available_threads())
        begin = time.perf_counter()
        plain = exhaustive.mdav(p, 5, joining == "normalised")
        same = len(pruned) == len(plain) and all(
            np.array_equal(a.members, b.members)
            and np.array_equal(a.codes, b.codes)
            and np.array_equal(a.ages, b.ages)
            for a, b in zip(pruned, plain, strict=True)
        )
        say(
            f"{joining}: {len(plain):,} clusters, {'equal' if same else 'DIFFERENT'}; exhaustive "
            f"{time.perf_counter() - begin:.0f} s",
            flush=True,
        )
        if not same:
            raise SystemExit(1)


def in_parts(folder: Path, path: Path) -> None:
    """Loss in parts against one partition."""
    large = folder / "100k.parquet"
    write_trajectories(large, 100_000, seed=1)
    say("\n| patients | parts | ILM + ALM | against one partition | s |\n|---:|---:|---:|---:|---:|")
    engine, settings = make("local"), parts.Settings(5)
    for file in (path, large):
        _, records, spaces = load(file)
        whole = 0.0
        for largest in (len(records), 50_000, 25_000, 14_000, 7_000):
            part = parts.parts_of([np.arange(len(records))], records, spaces, largest)
            if whole and part.max() == 0:
                continue
            begin = time.perf_counter()
            groups = parts.cluster_parts(records, part, spaces, settings, engine)
            found = losses_of(groups, records.lengths(), spaces).total
            whole = whole or found
            say(
                f"| {len(records):,} | {part.max() + 1} | {found:.4f} | {100 * (found / whole - 1):+.2f} % "
                f"| {time.perf_counter() - begin:.1f} |",
                flush=True,
            )


def million(folder: Path) -> None:
    """A million patients, from file to verified release."""
    file = folder / "million.parquet"
    write_trajectories(file, 1_000_000, seed=1)
    done = whole_command(file)
    say(
        f"\nOne million patients: whole command {done.wall:.0f} s, {done.cpu:.0f} CPU-s, peak {done.peak:,.0f} MB."
    )


def main() -> None:
    """Print the tables and write their pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--no-speed", action="store_true", help="only what else was asked for")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "d50-pop.parquet"
        write_trajectories(path, seed=1)
        if not options.no_speed:
            speed(path)
            ways(folder, path)
            written("trajectories", "Trajectories: clustering and the whole command", "")
        if options.exact:
            exact(path)
            written("trajectories-exact", "Trajectories: pruned against exhaustive", "--no-speed --exact")
        if options.parts:
            in_parts(folder, path)
            written(
                "trajectories-parts", "Trajectories: what clustering in parts costs", "--no-speed --parts"
            )
        if options.million:
            million(folder)
            written("trajectories-million", "Trajectories: a million patients", "--no-speed --million")


if __name__ == "__main__":
    main()
