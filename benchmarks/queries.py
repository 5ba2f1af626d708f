"""Count queries: building the index, exact counts, itemsets, the same index through Spark.

    python benchmarks/queries.py                         # a million notes
    python benchmarks/queries.py --spark 20000000        # codes of twenty million patients

Made-up notes: a million of a quarter of a million patients, seven terms a note out of 2,000 with frequencies like
words', four quasi-identifiers.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import table, write_page
from index_itemsets import frequent_itemsets
from leeward.queries.answer.catalogue import Catalogue, release_catalogue
from leeward.queries.index.build import index_events, index_table
from leeward.queries.index.counts import Index
from leeward.queries.language.query import Query, parse
from leeward.queries.language.vocabulary import Terms
from leeward.randomness import Randomness

VOCABULARY = 2000
TERMS = Terms(tuple(f"t{i:04d}" for i in range(VOCABULARY)),
              parents={f"t{i:04d}": f"group {i // 20}" for i in range(VOCABULARY)}, name="made up")  # fmt: skip
MONTHS = [f"{year}-{month:02d}" for year in (2018, 2019, 2020) for month in range(1, 13)]


def notes(count: int, seed: int = 7) -> pl.DataFrame:
    """A table of notes; a patient has four on average, a note seven terms on average."""
    random = Randomness.of(seed).stream("notes of the benchmark")
    weight = 1 / (np.arange(VOCABULARY) + 12.0)
    cumulated = np.cumsum(weight / weight.sum())
    lengths = np.clip(random.poisson(7.6, count), 1, 20)
    drawn = np.searchsorted(cumulated, random.random(int(lengths.sum()))).clip(0, VOCABULARY - 1)
    names = pl.Series(TERMS.terms).gather(pl.Series(drawn))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.repeat(np.arange(count), lengths)
    lists = pl.DataFrame({"row": rows, "term": names}).unique().group_by("row", maintain_order=False)
    held = lists.agg(pl.col("term")).sort("row")["term"]
    assert len(held) == len(offsets) - 1
    patient = random.integers(0, count // 4, count)
    return pl.DataFrame(
        {
            "note": np.arange(count),
            "patient": patient,
            "visit_month": pl.Series(MONTHS).gather(pl.Series(random.integers(0, len(MONTHS), count))),
            "age": random.integers(0, 100, count),
            "sex": pl.Series(["f", "m"]).gather(pl.Series(patient % 2)),
            "zip": (pl.Series(random.integers(10000, 10500, count)).cast(pl.String)),
            "terms": held,
        }
    )


def questions(count: int, seed: int = 11) -> list[Query]:
    """Queries as people ask them: one to three terms, sometimes a node, zero to three conditions."""
    random = Randomness.of(seed).stream("questions of the benchmark")
    found = []
    for _ in range(count):
        places = (random.random(int(random.integers(1, 4))) ** 3 * VOCABULARY).astype(int)
        terms = [f"t{place:04d}" for place in places]
        if random.random() < 0.15:
            terms[0] = f"group {places[0] // 20}"
        conditions: dict[str, str] = {}
        if random.random() < 0.6:
            low, high = sorted(random.integers(0, len(MONTHS), 2).tolist())
            conditions["when"] = f"{MONTHS[low]}..{MONTHS[high]}"
        if random.random() < 0.4:
            low, high = sorted(random.integers(0, 100, 2).tolist())
            conditions["age"] = f"{low}..{high}"
        if random.random() < 0.3:
            conditions["sex"] = "f"
        if random.random() < 0.3:
            conditions["zip"] = "102*" if random.random() < 0.5 else "10123"
        found.append(parse(" & ".join(terms), conditions))
    return found


def timed_counts(index: Index, asked: list[Query], unit: Any) -> list[float]:
    """Seconds of each exact count."""
    seconds = []
    gc.collect()
    gc.freeze()
    for query in asked:
        begin = time.perf_counter()
        index.count(query, unit)
        seconds.append(time.perf_counter() - begin)
    return sorted(seconds)


def memory() -> float:
    """Most memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def milliseconds(seconds: list[float], share: float) -> str:
    return f"{1000 * seconds[min(int(share * len(seconds)), len(seconds) - 1)]:.2f} ms"


def through_spark(patients: int, file: Path | None) -> None:
    """The index of `patients` patients' codes through Spark; of a twentieth of them also without, byte by byte."""
    from leeward.engine import make
    from leeward.runs.vocabularies import classification_codes
    from leeward.synthetic import write_codes

    terms = classification_codes("icd9")
    engine = make({"spark": {"memory": "6g"}})
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        sizes = (patients // 20, patients)
        for size in sizes:
            source = file if file is not None and size == patients else Path(folder) / f"codes{size}.parquet"
            if not source.is_file():
                write_codes(source, size, seed=1)
            begin = time.perf_counter()
            index = index_events(source, Path(folder) / f"spark{size}", engine, terms=terms).index
            seconds = time.perf_counter() - begin
            mega = sum(path.stat().st_size for path in index.path.iterdir()) / 2**20
            events = pl.scan_parquet(source).select(pl.len()).collect().item()
            begin = time.perf_counter()
            held = index.count(parse("390-459 & 240-279"))
            answer = (
                f"{held:,} patients with 390-459 & 240-279 in {1000 * (time.perf_counter() - begin):.1f} ms"
            )
            rows.append([f"{size:,}", f"{events:,}", f"{seconds:.0f} s", f"{mega:.0f} MB", answer])
            if size == sizes[0]:
                begin = time.perf_counter()
                index_events(source, Path(folder) / "local", make("local"), terms=terms)
                local = time.perf_counter() - begin
                ours, theirs = (
                    {path.name: path.read_bytes() for path in (Path(folder) / name).iterdir()}
                    for name in ("local", f"spark{size}")
                )
                if ours != theirs:
                    raise SystemExit("Spark and the local engine wrote different indexes")
                same = f"{local:.0f} s on the local engine: the same bytes"
                rows.append(["the same", "–", same, "–", "–"])
    engine.close()
    head = ["Patients", "Recorded codes", "Index through Spark", "On disk", "An exact count, first time"]
    text = table(head, rows)
    command = f"python benchmarks/queries.py --spark {patients}"
    write_page("queries-spark", "Count queries: the index through Spark", command, text)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--notes", type=int, default=1_000_000)
    options.add_argument("--print", action="store_true", help="Print instead of writing the page.")
    options.add_argument(
        "--spark", type=int, metavar="PATIENTS", help="Only this: an index of codes through Spark."
    )
    options.add_argument(
        "--file", type=Path, help="With --spark: made before, by `leeward synth codes --seed 1`."
    )
    chosen = options.parse_args()
    if chosen.spark:
        through_spark(chosen.spark, chosen.file)
        return
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        made = notes(chosen.notes)
        facts = int(made["terms"].list.len().sum())
        base = memory()
        begin = time.perf_counter()
        index_table(made, Path(folder) / "index", terms=TERMS)
        built = time.perf_counter() - begin
        size = sum(path.stat().st_size for path in (Path(folder) / "index").iterdir()) / 2**20
        sizes = f"{size:.0f} MB on disk, {memory():.0f} MB of memory ({base:.0f} before)"
        rows.append(["Build the index", f"{built:.1f} s", sizes])
        del made
        begin = time.perf_counter()
        index = Index(Path(folder) / "index")
        rows.append(["Open the index", f"{1000 * (time.perf_counter() - begin):.0f} ms", "–"])
        asked = questions(5000)
        cold = timed_counts(index, asked[:1000], "patient")
        times = f"p50 {milliseconds(cold, 0.5)}, p99 {milliseconds(cold, 0.99)}"
        rows.append(["Exact count of patients, first 1,000 questions", times, "bitmaps read on the way"])
        for unit in ("patient", "note"):
            warm = timed_counts(index, asked, unit)
            rows.append([f"Exact count of {unit}s, 5,000 questions",
                         f"p50 {milliseconds(warm, 0.5)}, p99 {milliseconds(warm, 0.99)}",
                         f"slowest {1000 * warm[-1]:.1f} ms"])  # fmt: skip
        frequent_itemsets(index, 0.2)  # the kernels are compiled
        for unit in ("note", "patient"):
            for qids in ((), ("when", "sex")):
                begin = time.perf_counter()
                found = frequent_itemsets(index, 0.01, qids=qids, unit=unit)
                rows.append([f"Itemsets at support 1 % of {unit}s" + (", with month and sex" if qids else ""),
                             f"{time.perf_counter() - begin:.1f} s", f"{len(found):,} itemsets"])  # fmt: skip
        begin = time.perf_counter()
        listed = release_catalogue(index, Catalogue(epsilon=10**6, max_size=2))
        tried = sum(level["candidates"] for level in listed["levels"])
        rows.append(["The private catalogue, epsilon 1, up to two items", f"{time.perf_counter() - begin:.1f} s",
                     f"{len(listed['counts']):,} itemsets of {tried:,} candidates"])  # fmt: skip
    text = f"{chosen.notes:,} made-up notes with {facts:,} facts.\n\n" + table(
        ["Step", "Time", "Remarks"], rows
    )
    if chosen.print:
        print(text)
    else:
        write_page("queries", "Count queries", "python benchmarks/queries.py", text)


if __name__ == "__main__":
    main()
