"""Classes of demographics: processor time of disassociation in many classes beside one, in pairs of runs.

    python benchmarks/classes.py [--records 1000000] [--classes 100] [--pairs 3]
    python benchmarks/classes.py --answers --data DIR

Synthetic correlated code sets (`leeward synth codes`, seed 1: 631 codes, mean 5.1), each record in a class drawn at
random; k = 5, m = 2, no policy, one thread. Measured is the kernel: from flat code sets to clusters and chunks in
memory, in seconds of the process, with one class and with many by turns.

`--answers`: errors of counts with age decade and sex, beside a release of the codes alone times the cell's true share
(`apart`): UCI of DIR, and 20,000 made-up patients each with claims, with 5 of 631 and with 12 of 3,000 codes; of the
last two ages and sexes are drawn at random.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from common import table, write_section
from leeward.analysis import workloads
from leeward.analysis.itemsets import supports_of
from leeward.arrays import Int32s
from leeward.cohort import Cohort, read
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.measures import estimate_queries
from leeward.methods.disassociation.measures.published import read as published_of
from leeward.methods.disassociation.method import policy_over
from leeward.methods.disassociation.pipeline import disassociate_classes
from leeward.methods.disassociation.publish import facts_of, publish
from leeward.methods.disassociation.rules import Rules, Workers, rules_of
from leeward.randomness import Randomness
from leeward.synthetic import write_claims, write_codes
from partitioning import of_codes

WARM = 3_000
"""Records of a first run, which compiles."""


def seconds(sets: CodeSets, class_of: Int32s, rules: Rules) -> tuple[float, float]:
    """Processor seconds of the kernel, and the share of code occurrences in item chunks."""
    begin = time.process_time()
    data, _ = disassociate_classes(sets, class_of, rules, None, Workers(1))
    taken = time.process_time() - begin
    facts = facts_of(publish(data, sets.codes, Randomness.of(1)))
    return taken, facts["item_occurrences"] / facts["occurrences"]


LEVELS: dict[str, Any] = {"age": 10, "sex": "exact"}
ASKED = ((1, 1), (1, 10), (2, 1), (2, 10), (3, 10))
"""Codes of a question and its least true count."""


def people(cohort: Cohort, seed: int) -> Cohort:
    """The cohort with an age and a sex for each patient, drawn at random."""
    draw = np.random.default_rng(seed)
    patient = cohort.require_events()["patient"].unique().sort()
    ages = draw.normal(60, 18, len(patient)).clip(20, 99).astype(int)
    sexes = draw.choice(["F", "M"], len(patient))
    return replace(cohort, patients=pl.DataFrame({"patient": patient, "age": ages.astype(str), "sex": sexes}))


def shapes(data: Path, folder: Path) -> Iterator[tuple[str, Cohort]]:
    from study_whole_patient import uci

    yield "UCI", uci(data)
    write_claims(folder / "claims.parquet", 20_000, seed=11)
    claims = pl.read_parquet(folder / "claims.parquet")
    wide = [name for name in claims.columns if name.startswith("diag_")]
    bare = of_codes(claims.unpivot(wide, index="patient", value_name="code"), "icd9")
    known = claims.group_by("patient").agg(pl.col("age").min().cast(pl.String), pl.col("sex").first())
    yield "claims", replace(bare, patients=known.sort("patient"))
    for name, mean, codes in (("5 of 631 codes", 5.1, 631), ("12 of 3,000 codes", 12.0, 3_000)):
        write_codes(folder / f"{codes}.parquet", 20_000, mean=mean, codes=codes, seed=12)
        yield name, people(read(folder / f"{codes}.parquet", vocabulary="icd9"), 12)


def answers(name: str, cohort: Cohort, k: int, folder: Path) -> list[list[str]]:
    """Errors of frequent sets among everybody and of questions in a cell, of both ways; item chunks."""
    import study_whole_patient as study

    sets, columns = cohort.code_sets(), study.columns_for(cohort, cohort.code_sets(), ("age", "sex"))
    classed, facts = study.release_of(cohort, folder, k=k, demographics=("age", "sex"), keep=LEVELS)
    bare, alone = study.release_of(cohort, folder, k=k, partitioning="fitted")
    frequent = workloads.frequent_queries(sets, 0.00625, 5, 500).queries
    true = supports_of(sets, frequent)
    lines = []
    for way, release, lost in (("classes", classed, facts), ("apart", bare, alone)):
        found = estimate_queries(published_of(release), sets, frequent, "occupancy").expected
        drawn = []
        for seed in (1, 2, 3):
            asked = study.draw(columns, sets, LEVELS, 2_000, seed=seed)
            told = (
                study.apart(release, asked, sets)
                if way == "apart"
                else study.in_classes(release, asked, columns, sets)
            )
            off = abs(told - asked.true) / asked.true
            drawn.append([off[(asked.size == size) & (asked.true >= least)].mean() for size, least in ASKED])
        half = 1.96 * np.std(drawn, axis=0, ddof=1) / np.sqrt(len(drawn))
        cells = [f"{m:.3f} ± {h:.3f}" for m, h in zip(np.mean(drawn, axis=0), half, strict=True)]
        w1 = f"{(abs(found - true) / true).mean():.3f}"
        lines.append([name, str(k), way, w1, *cells, f"{study.share_lost(lost):.1%}"])
        print(lines[-1], flush=True)
    return lines


def write_answers(data: Path) -> None:
    head = [
        "data",
        "k",
        "release",
        "W1 .625 %",
        *(f"{n} in a cell, {c} or more" for n, c in ASKED),
        "in item chunks",
    ]
    with tempfile.TemporaryDirectory() as folder:
        made = list(shapes(data, Path(folder)))
        (out := Path(folder) / "releases").mkdir()
        lines = [line for name, cohort in made for k in (5, 10, 25) for line in answers(name, cohort, k, out)]
    command = "python benchmarks/classes.py --answers --data DIR"
    write_section("classes-answers", "Disassociation in classes: counts", command, table(head, lines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--answers", action="store_true")
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    if options.answers:
        write_answers(options.data)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "codes.parquet"
        write_codes(file, options.records, seed=1)
        cohort = read(file, vocabulary="icd9")
    sets = cohort.code_sets()
    method = Disassociation(k=5, m=2)
    rules = rules_of(method, sets, policy_over(method, sets, "icd9"), cohort.name)
    del cohort
    one = np.zeros(len(sets), np.int32)
    many = Randomness.of(1).stream("classes").integers(0, options.classes, len(sets)).astype(np.int32)
    few = sets.take(np.arange(min(WARM, len(sets))))
    seconds(few, one[: len(few)], rules)
    seconds(few, many[: len(few)] % 2, rules)
    runs = [(seconds(sets, one, rules), seconds(sets, many, rules)) for _ in range(options.pairs)]
    ratios = [after[0] / before[0] for before, after in runs]
    rows = [
        [
            number,
            f"{before[0]:.2f}",
            f"{after[0]:.2f}",
            f"{after[0] / before[0]:.2f}",
            f"{before[1]:.1%}",
            f"{after[1]:.1%}",
        ]
        for number, (before, after) in enumerate(runs, start=1)
    ]
    head = [
        "pair",
        "one class, CPU s",
        f"{options.classes} classes, CPU s",
        "ratio",
        "item chunks, one",
        "many",
    ]
    found = (
        f"Median ratio: {statistics.median(ratios):.2f}. Item chunks: share of the code occurrences in them."
    )
    command = f"python benchmarks/classes.py --records {options.records} --classes {options.classes}"
    command += f" --pairs {options.pairs}"
    body = f"{table(head, rows)}\n\n{found}"
    write_section("classes", f"Disassociation in classes: {options.records:,} records", command, body)


if __name__ == "__main__":
    main()
