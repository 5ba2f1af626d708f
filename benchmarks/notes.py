"""Notes annotated a second on one core, by member and as a whole, and how time and memory grow.

python benchmarks/notes.py
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from common import leeward, measured, table, write_page
from leeward.notes.pipeline import INPUT, KNOWN, Work, available_members
from leeward.synthetic.notes import NotePlan, synthetic_notes

WORDS = 150
SIZES = (1_500, 3_000, 6_000)
TIMED = 1_000


def texts(count: int) -> list[str]:
    """Texts of 150 words each, cut from held-out synthetic notes joined end to end."""
    plan = NotePlan(patients=3 * count, notes=3 * count, split="held-out", seed=1)
    words: list[str] = []
    for note in synthetic_notes(plan):
        words += re.findall(r"\S+\s*", note.annotated.text + " ")
        if len(words) >= count * WORDS:
            break
    return ["".join(words[i : i + WORDS]).strip() for i in range(0, count * WORDS, WORDS)]


def real_texts(folder: Path, count: int) -> list[str]:
    """Texts of 150 words each, cut from MTSamples joined end to end."""
    notes = pl.read_csv(folder / "mtsamples-medcat" / "pt_notes.csv.gz")["text"]
    words = re.findall(r"\S+\s*", "\n".join(notes))
    return ["".join(words[i : i + WORDS]).strip() for i in range(0, count * WORDS, WORDS)]


def table_of(some: list[str]) -> pa.Table:
    """The kernel's input."""
    rows = [
        {**dict.fromkeys(KNOWN), "row": i, "patient": str(i), "text": text} for i, text in enumerate(some)
    ]
    return pa.Table.from_pylist(rows, schema=INPUT)


def rate(work: Work, notes: pa.Table) -> float:
    """Notes a processor second of the kernel: members, ensemble, context, row, text without identities."""
    work(notes.slice(0, 50))
    best = 0.0
    for _ in range(3):
        begin = time.process_time()
        work(notes)
        best = max(best, notes.num_rows / (time.process_time() - begin))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the public data sets")
    data = parser.parse_args().data
    notes = table_of(texts(max(SIZES)))
    members = available_members()
    sets = {"made up": notes.slice(0, TIMED)}
    if data is not None:
        sets["MTSamples"] = table_of(real_texts(data, TIMED))
    speeds = [
        (
            ", ".join(names),
            *(f"{rate(Work(names, text='surrogates', secret=bytes(32)), t):,.0f}" for t in sets.values()),
        )
        for names in [*((name,) for name in members), members]
    ]
    grown = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            source = Path(folder) / f"{size}.parquet"
            pq.write_table(notes.slice(0, size).select(["patient", "text"]), source)
            for threads, mode in ((1, "none"), (1, "surrogates"), (2, "surrogates")):
                if threads > 1 and size != max(SIZES):
                    continue
                out = Path(folder) / f"{size}-{mode}-{threads}"
                asked = () if mode == "none" else ("--text", mode)
                command = (
                    "notes",
                    "annotate",
                    str(source),
                    "-o",
                    str(out),
                    "--threads",
                    str(threads),
                    *asked,
                )
                run = measured(leeward(*command))
                rate_of = f"{size / run.wall:,.0f}"
                grown.append((f"{size:,}", mode, threads, f"{run.wall:.1f}", rate_of, f"{run.peak:.0f}"))
    heads = ("members", *(f"notes a second, {name}" for name in sets))
    body = f"""Texts of {WORDS} words, cut from held-out synthetic notes, dense with identities and terms, and from
MTSamples. The kernel does everything that a note needs: members, ensemble, ConText, the row of the table, the text
with surrogates; one core, processor seconds, best of three.

{table(heads, speeds)}

The command on the made-up texts, from the file to the written folder with its review page; Python's start, lexicon
and models are in the seconds. With two processes the peak is that of the largest one.

{table(("notes", "text", "processes", "seconds", "notes a second", "peak memory, MB"), grown)}
"""
    write_page("notes", "Annotating notes", "python benchmarks/notes.py --data DIR", body)
    print(body)


if __name__ == "__main__":
    main()
