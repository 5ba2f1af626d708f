"""A section of docs/studies/censoring.md: Table 1 on populations of the same margins and another joint distribution.

    python benchmarks/study_censoring_margins.py

Of the thesis's population only sizes, means and the share of unique records are known. Here the made-up populations of
`study_censoring.py` keep who has which codes and how often each number of mentions of a code occurs; only which of the
holders have many changes. Samples are drawn as there, to the thesis's means and share of unique records.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent))
from censoring import synthetic
from common import write_section
from leeward.cohort.cohort import Cohort
from leeward.cohort.readers import read
from leeward.methods.censoring import Censoring
from leeward.randomness import Randomness
from leeward.synthetic.repeats import CODES as FOUR
from leeward.synthetic.repeats import PATIENTS, SAMPLE_PATIENTS, draw_sample
from study_censoring import SEEDS, TABLE_1, figures, means, spread, spread_percent, table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "censoring.md"
BEFORE = "## Real data: UCI, 130 US hospitals\n"
COMMAND = "python benchmarks/study_censoring_margins.py"
Counts = NDArray[np.int16]
WAYS = ("as made", "at random", "half together", "together")
WORDS = """The same populations, with the mentions of each code dealt anew to those who have the code: *at random*;
*together*, the most to those who have most in all; *half together*, so among half of the people, and at random among
the others. Who has which codes, and how often each number of mentions of a code occurs, stays exactly as it was, and
samples are drawn to the thesis's means, and to its share of unique records where there are as many. GCCens, caps 3:
mean CUL by k, of {seeds} seeds (thesis {thesis}).

{table}

So these margins do not fix Table 1: with the same ones losses are about the thesis's at k = 10 and 25, or next to none.
But no population dealt anew has the thesis's share of unique records, which is published too (9 %).
"""


def deal(counts: Counts, way: str, stream: np.random.Generator) -> Counts:
    """Mentions int16[people, codes], each code's dealt anew to its holders."""
    if way == "as made":
        return counts
    dealt = np.zeros_like(counts)
    half = stream.random(len(counts)) < 0.5
    groups = {"at random": [], "half together": [half], "together": [np.ones(len(counts), np.bool_)]}[way]
    total = counts.sum(axis=1)
    for code in range(counts.shape[1]):
        holders = np.flatnonzero(counts[:, code])
        dealt[holders, code] = stream.permutation(counts[holders, code])
        for group in groups:
            inside = holders[group[holders]]
            dealt[inside[np.argsort(total[inside], kind="stable")], code] = np.sort(dealt[inside, code])
    return dealt


def counts_of(cohort: Cohort) -> Counts:
    """Mentions of the four codes, a person a row."""
    lens = cohort.code_counts()
    found = np.zeros((len(lens), len(FOUR)), np.int16)
    place = np.array([FOUR.index(code) for code in lens.codes])
    found[np.repeat(np.arange(len(lens)), np.diff(lens.offsets)), place[lens.values]] = lens.counts
    return found


def cohort_of(counts: Counts, people: NDArray[np.int64], name: str) -> Cohort:
    """The events of some people."""
    chosen = counts[people]
    rows = {
        "patient": np.repeat(people, chosen.sum(axis=1)),
        "code": np.tile(np.array(FOUR), len(people)).repeat(chosen.ravel()),
    }
    return Cohort(events=pl.DataFrame(rows).with_columns(pl.col("code").cast(pl.Enum(FOUR))), name=name)


def section(populations: list[Counts], sample: int = SAMPLE_PATIENTS) -> str:
    """A row a way of dealing."""
    rows = []
    for way in WAYS:
        pairs = []
        for seed, counts in zip(SEEDS, populations, strict=False):
            randomness = Randomness.of(seed)
            dealt = deal(counts, way, randomness.stream("margins", way))
            drawn = draw_sample(dealt, sample, randomness)
            pairs.append((cohort_of(dealt, drawn, "sample"), cohort_of(dealt, np.arange(len(dealt)), way)))
        found = {
            k: [figures(*pair, Censoring(k=k, cap=3, scope="global"), ["cul", "risk"]) for pair in pairs]
            for k in TABLE_1
        }
        unique = spread_percent([each["risk"]["before"]["unique"] for each in found[min(found)]])
        losses = ([each["cul"]["cul_after_cap"]["mean"] for each in found[k]] for k in TABLE_1)
        rows.append([way, means(pairs[0][0]), unique, *map(spread, losses)])
    head = [
        "mentions dealt", "mean mentions of the sample (first seed)", "unique", *(f"k = {k}" for k in TABLE_1)
    ]  # fmt: skip
    thesis = ", ".join(f"{mean:.3f}" for mean, *_ in TABLE_1.values())
    return WORDS.format(seeds=len(populations), thesis=thesis, table=table(head, rows))


def put(body: str, page: Path = PAGE) -> None:
    """Write the section; a new one before that on real data."""
    write_section("margins", "The same margins, dealt anew", COMMAND, body, page, before=BEFORE)


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    with tempfile.TemporaryDirectory() as name:
        populations = []
        for seed in SEEDS:
            (place := Path(name) / str(seed)).mkdir()
            populations.append(counts_of(read(synthetic(place, PATIENTS, len(FOUR), seed)[0])))
        put(section(populations))


if __name__ == "__main__":
    main()
