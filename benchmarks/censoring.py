"""Censoring: seconds for the thesis's population × 4 and × 500 codes, ways to count, and 10 million people on Spark.

    python benchmarks/censoring.py [--repeat 3] [--largest 10000000]

Populations and samples are made up (`leeward synth repeats`, seed 1; 301,423 people, a sample of 2,676). `protect` is
from the cohorts' frames in memory to the release's tables; `whole run` adds reading, writing, verifying, measuring and
the report. Start-up (imports, loading compiled kernels) is paid by a first run that is not counted. k = 5, caps 3.
With `--largest N` a population of N × 500 codes is counted on Spark `local[2]` from its Parquet file, and the same
release is made on this machine alone, streamed.
"""

from __future__ import annotations

import argparse
import io
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import polars as pl

from common import write_page
from leeward.analysis.containment import Index, Multisets
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeCounts
from leeward.cohort.readers import read
from leeward.engine import make
from leeward.methods.censoring import Censoring
from leeward.randomness import Randomness
from leeward.release import Anonymized
from leeward.runs.protect import protect
from leeward.synthetic.repeats import PATIENTS, write_repeats

K, CAP = 5, 3


def best(work: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Seconds of the fastest run, and its result."""
    seconds, result = float("inf"), None
    for _ in range(repeat):
        begin = time.perf_counter()
        result = work()
        seconds = min(seconds, time.perf_counter() - begin)
    return seconds, result


def synthetic(folder: Path, people: int, codes: int, seed: int = 1) -> tuple[Path, Path]:
    """The files of a population and a sample."""
    population, sample = folder / f"p{people}x{codes}.parquet", folder / f"s{people}x{codes}.parquet"
    if not population.exists():
        write_repeats(population, people, codes, seed, sample=sample, sample_patients=2_676)
    return population, sample


def fresh(cohort: Cohort) -> Cohort:
    """The cohort without what earlier runs computed from it."""
    return Cohort(events=cohort.events, patients=cohort.patients, name=cohort.name)


def times(folder: Path, repeat: int) -> None:
    print("| codes | scope | mentions kept | multisets counted | protect, s | whole run, s |")
    print("|---:|---|---:|---:|---:|---:|")
    for codes in (4, 500):
        files = synthetic(folder, PATIENTS, codes)
        population, sample = (read(file) for file in files)
        for scope in ("global", "record"):
            method = Censoring(k=K, cap=CAP, scope=scope)
            method.protect(sample, population=population)
            seconds, made = best(
                lambda method=method, s=sample, p=population: method.protect(fresh(s), population=fresh(p)),
                repeat,
            )
            begin = time.perf_counter()
            with tempfile.TemporaryDirectory() as out:
                protect(read(files[1]), method, Path(out) / "release", population=read(files[0]))
            whole = time.perf_counter() - begin
            counted = made.custody.get("counted_multisets", "–")
            print(
                f"| {codes} | {scope} | {kept(made):,} | {counted} | {seconds:.2f} | {whole:.1f} |",
                flush=True,
            )


def kept(made: Anonymized) -> int:
    """Released mentions."""
    return sum(len(batch.column("codes").flatten()) for batch in made.tables[0].batches())


def ways_to_count(folder: Path, repeat: int) -> None:
    """Distinguishability of the 2,676 records: grid, lists and bit words (as the product does), roaring bitmaps."""
    print("\n| codes | way | build, s | count, s |")
    print("|---:|---|---:|---:|")
    for codes in (4, 500):
        population, sample = (read(file).code_counts() for file in synthetic(folder, PATIENTS, codes))
        caps = np.minimum(sample.most(), 10 if codes == 4 else 99)
        asked = Multisets(sample.offsets, sample.values, sample.counts).cap(caps)
        ours = count_with_index(population, sample.codes, caps, asked, repeat)
        theirs = count_with_roaring(population, sample.codes, caps, asked, repeat)
        for name, (build, count, _) in (("product's index", ours), ("roaring bitmaps", theirs)):
            print(f"| {codes} | {name} | {build:.3f} | {count:.3f} |", flush=True)
        assert np.array_equal(ours[2], theirs[2])


def count_with_index(
    population: CodeCounts, codes: tuple[str, ...], caps: Any, asked: Multisets, repeat: int
) -> tuple[float, float, Any]:
    """Seconds to build, seconds to count, and the counts."""

    def build() -> Index:
        index = Index.of(population, codes, caps)
        index.counts(asked.take(np.arange(1)))
        return index

    built, index = best(build, repeat)
    counted, answer = best(lambda: index.counts(asked), repeat)
    return built, counted, answer


def count_with_roaring(
    population: CodeCounts, codes: tuple[str, ...], caps: Any, asked: Multisets, repeat: int
) -> tuple[float, float, Any]:
    """The same with a roaring bitmap for each (code, at least c)."""
    built, maps = best(lambda: roaring(population, codes, caps), repeat)
    counted, answer = best(
        lambda: np.array([roaring_count(maps, *asked.record(r)) for r in range(len(asked))]), repeat
    )
    return built, counted, answer


def roaring(population: Any, codes: tuple[str, ...], caps: Any) -> dict[tuple[int, int], Any]:
    """A bitmap of people for each (code, at least c)."""
    from pyroaring import BitMap

    number = {code: place for place, code in enumerate(codes)}
    owner = np.repeat(np.arange(len(population), dtype=np.uint32), np.diff(population.offsets))
    values = np.array([number.get(code, -1) for code in population.codes])[population.values]
    order = np.argsort(values, kind="stable")
    bounds = np.searchsorted(values[order], np.arange(len(codes) + 1))
    maps = {}
    for code in range(len(codes)):
        those = order[bounds[code] : bounds[code + 1]]
        for level in range(1, int(caps[code]) + 1):
            maps[code, level] = BitMap(owner[those[population.counts[those] >= level]])
    return maps


def roaring_count(maps: dict[tuple[int, int], Any], codes: Any, counts: Any) -> int:
    from pyroaring import BitMap

    held = sorted((maps[pair] for pair in zip(codes.tolist(), counts.tolist(), strict=True)), key=len)
    return len(BitMap.intersection(*held))


def large(folder: Path, people: int) -> None:
    """A population that is streamed: on Spark and on this machine."""
    begin = time.perf_counter()
    population, sample = synthetic(folder, people, 500)
    rows = pl.scan_parquet(population).select(pl.len()).collect().item()
    print(
        f"\n{people:,} people × 500 codes: {rows:,} rows, made in {time.perf_counter() - begin:.0f} s",
        flush=True,
    )
    source = read(sample)
    spark = {"spark": {"master": "local[2]", "memory": "6g", "partitions": 32}}
    releases = []
    for name, engine in (("Spark local[2]", spark), ("this machine, streamed", "local")):
        runner = make(engine)
        begin = time.perf_counter()
        made = Censoring(k=K, scope="global", cap=CAP).protect(
            source, runner, randomness=Randomness.of(1), population=population
        )
        seconds = time.perf_counter() - begin
        runner.close()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        releases.append([batch.to_pydict() for batch in made.tables[0].batches()])
        print(
            f"{name}: {seconds:.0f} s, {kept(made):,} mentions kept; Python's peak {peak:.1f} GB", flush=True
        )
    print(f"same release: {releases[0] == releases[1]}")


class Tee(io.TextIOBase):
    """Standard output that also keeps what was printed."""

    def __init__(self, screen: TextIO) -> None:
        self.screen = screen
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return self.screen.write(text)

    def flush(self) -> None:
        self.screen.flush()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--largest", type=int, default=0, help="people on Spark; 10000000 takes about half an hour"
    )
    parser.add_argument("--folder", type=Path, help="keep the made-up populations here and use them again")
    chosen = parser.parse_args()
    printed = Tee(sys.stdout)
    with tempfile.TemporaryDirectory() as scratch, redirect_stdout(printed):
        folder = chosen.folder or Path(scratch)
        times(folder, chosen.repeat)
        ways_to_count(folder, chosen.repeat)
        if chosen.largest:
            large(folder, chosen.largest)
    command = "python benchmarks/censoring.py" + (f" --largest {chosen.largest}" if chosen.largest else "")
    words = "`protect`: from cohorts in memory to the tables; `whole run`: from files to the verified release"
    write_page(
        "censoring",
        "Censoring",
        command,
        f"{words} with its report; compiled code is warm.\n\n{printed.text.strip()}",
    )


if __name__ == "__main__":
    main()
