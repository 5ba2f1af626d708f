"""Tables of docs/studies/trajectories.md: AvgRE of Baseline's releases, the largest loss of a single pair, AvgRE of
counts with ranges of ages, the measures that the thesis names for later, and Figs. 9 to 11 over seeds.

    python benchmarks/study_trajectories_bounds.py --parts baseline,pairs,ranges,others,seeds [--done FILE]

Sets of the shapes of the thesis's Table 3 (`leeward synth trajectories`, seed 1). Baseline has no command: its clusters
are measured as a release would be, beside those of A-GS with the thesis's joining. `--done` keeps each row, so that a
long run can go on.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import half_of, once, table, write_section
from benchmarks.study_trajectories import AGES, KS, OUTPUT, Set, cohort_of, percent, synthetic

from leeward.methods.trajectories import Trajectories, measures
from leeward.methods.trajectories.records import Group
from leeward.release import Release
from leeward.runs.protect import protect

BEFORE = "## Public files\n"
"""New sections are put before this heading; the whole study keeps what is between it and the one before."""
WIDEST = 8
"""Years."""
SEEDS = (1, 2, 3, 4, 5)
BOUNDS: dict[str, dict[str, Any]] = {
    "none": {},
    f"`widest_age: {WIDEST}`": {"widest_age": WIDEST},
    "`policy: hierarchy:1`": {"policy": "hierarchy:1"},
    "both": {"widest_age": WIDEST, "policy": "hierarchy:1"},
}
YEARS = (1, 5, 10, 20)
"""Widths of the ranges of ages."""
CLUSTERINGS: dict[str, dict[str, Any]] = {
    "thesis": {"clustering": "alignment", "joining": "thesis"},
    "normalised": {"clustering": "alignment"},
    "cells": {},
}
HELD_OUT = "401"
"""Hypertension."""


def as_released(each: Set, groups: list[Group]) -> measures.Both:
    """The clusters as a release beside its source: every member is published as its group."""
    kind = np.empty(len(each.lens), np.int64)
    for number, group in enumerate(groups):
        kind[group.members] = number
    sizes = [len(group.codes) for group in groups]
    return measures.Both(
        each.lens,
        np.arange(len(each.lens)),
        kind,
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([group.codes for group in groups]).astype(np.int64),
        np.concatenate([group.ages for group in groups]).astype(np.int64),
        each.tree,
        each.ages.hierarchy,
        each.ages,
    )


def answered(each: Set, way: str, done: Path | None) -> list[str]:
    """AvgRE by k."""

    def error(k: int) -> str:
        found = measures.avgre(as_released(each, each.groups(k, "thesis", baseline=way == "Baseline")))
        return "–" if found["avgre"] is None else f"{found['avgre']:.3f} ({found['queries']})"

    row = [f"{each.name}, {way}"]
    row += [once(done, f"{each.name} {way} {k}", lambda k=k: error(k)) for k in KS]
    print(*row, flush=True)
    return row


def pairs(each: Set, bound: str, folder: Path) -> list[str]:
    """The largest losses of a published pair, and how many pairs are not published."""
    codes = tuple(sorted(each.lens.codes))
    method = Trajectories(k=5, clustering="alignment", ages=AGES, codes=codes, **BOUNDS[bound])
    out = folder / f"{each.name}-{len(list(folder.iterdir()))}"
    protect(each.cohort, method, out, seed=1, measures=["loss"])
    both = measures.pair_records(Release.open(out), each.cohort)
    published = np.bincount(both.kind) @ np.diff(both.offsets)
    code, age = both.codes.losses[both.code_nodes], both.ages.losses[both.age_nodes]
    row = [each.name, bound, f"{code.max():.3f}", f"{age.max():.3f}", f"{(code + age).max():.3f}"]
    lost = measures.loss(both)
    row += [percent(1 - published / each.lens.lengths().sum()), f"{lost['ilm']:.3f}", f"{lost['alm']:.3f}"]
    print(*row, flush=True)
    return row


def ranges(each: Set, name: str, folder: Path) -> list[str]:
    """AvgRE by the years of a range."""
    out = folder / f"ranges-{each.name}-{name}"
    protect(each.cohort, Trajectories(k=5, ages=AGES, **CLUSTERINGS[name]), out, seed=1, measures=["loss"])
    both = measures.pair_records(Release.open(out), each.cohort)
    row = [each.name, name]
    for years in YEARS:
        found = measures.avgre(both, years=years)
        row.append("–" if found["avgre"] is None else f"{found['avgre']:.3f} ({found['queries']:,})")
    print(*row, flush=True)
    return row


def ranges_part(sets: list[Set], folder: Path) -> str:
    """The table of ranges of ages."""
    head = ["set", "clustering", "1 year", *(f"{years} years" for years in YEARS[1:])]
    return (
        "AvgRE (number of questions) where the ages of a question are ranges (the thesis's footnote 8): all sets of "
        "(code, range) in at least 1 % of the trajectories, the 20,000 most frequent if more; k = 5. One year is Fig. "
        "12. No wider range coincides with a block of the tree of ages. Other sets reach 1 % where ranges are wider: "
        "a row's errors do not show what a range is worth; columns compare clusterings.\n\n"
        + table(head, [ranges(each, name, folder) for each in sets for name in CLUSTERINGS])
    )


def others(each: Set, name: str, folder: Path) -> list[str]:
    """ILoss, and CM of a class: whether a patient has the codes that are held out of the trajectories."""
    events = each.cohort.require_events().select("patient", pl.col("code").cast(pl.String), "age")
    held = pl.col("code").str.starts_with(HELD_OUT)
    having = events.filter(held)["patient"].unique()
    cohort = cohort_of(events.filter(~held), each.name, "icd9")
    people = cohort.require_events().select("patient").unique(maintain_order=True)
    people = people.with_columns(held_out=pl.col("patient").is_in(having.implode()))
    out = folder / f"others-{each.name}-{name}"
    method = Trajectories(k=5, ages=AGES, payload=("held_out",), **CLUSTERINGS[name])
    found = protect(replace(cohort, patients=people), method, out, seed=1, measures=["loss", "cm"]).measures
    loss, (classes,) = found["loss"], found["cm"]
    figures = (loss["ilm"], loss["alm"], *loss["iloss"].values())
    row = [each.name, name, *(f"{figure:.3f}" for figure in figures)]
    row += [percent(classes[measure]) for measure in ("cm", "shuffled", "alone")]
    print(*row, flush=True)
    return row


def others_part(sets: list[Set], folder: Path) -> str:
    """The table of measures."""
    iloss = [f"ILoss, {values}" for values in ("codes", "ages", "both")]
    head = ["set", "clustering", "ILM", "ALM", *iloss, "CM", "shuffled", "alone"]
    return (
        f"k = 5, equal weights. The codes {HELD_OUT} (hypertension) are held out: whether a patient has them is a "
        "payload column, and the class of CM, the share of patients whose class is not that of most with their "
        "trajectory. *Shuffled*: classes shuffled among the patients. *Alone*: guessing the most frequent class.\n\n"
        + table(head, [others(each, name, folder) for each in sets for name in CLUSTERINGS])
    )


def baseline_part(sets: list[Set], done: Path | None) -> str:
    """The table of AvgRE."""
    rows = [answered(each, way, done) for each in sets for way in ("Baseline", "A-GS")]
    return (
        "AvgRE of Fig. 12 by Baseline's clusters and A-GS's, in brackets the number of questions. The thesis has "
        "Baseline's six times that of A-GS.\n\n"
        + table(["set, clusters (queries)", *(f"k = {k}" for k in KS)], rows)
    )


def pairs_part(sets: list[Set], folder: Path) -> str:
    """The table of single pairs."""
    head = ["set", "bound", "code", "age", "both", "pairs not published", "ILM", "ALM"]
    rows = [pairs(each, bound, folder) for each in sets for bound in BOUNDS]
    return (
        "k = 5, default clustering. *code*, *age*, *both*: the largest loss of a published pair (0 exact, 1 and 2 the "
        f"root). `widest_age: {WIDEST}` bounds that of an age by {WIDEST}/128 = {WIDEST / 128:.3f}, a policy that of a "
        "code by its largest group (of these sets `hierarchy:1` generalizes none). What would be wider is not "
        "published (*pairs not published*) and loses 1 in both.\n\n" + table(head, rows)
    )


def seeds_part(folder: Path, done: Path | None) -> str:
    """ILM + ALM of sets that are made anew by every seed: means with half of their 95 % interval."""

    def totals(seed: int) -> dict[str, float]:
        return {
            f"{each.name}, {joining}, {k}": each.loss(each.groups(k, joining)).total
            for each in synthetic(folder, seed)
            for joining in ("thesis", "normalised")
            for k in KS
        }

    found = [once(done, f"seed {seed}", lambda seed=seed: totals(seed)) for seed in SEEDS]
    cells = {
        key: f"{np.mean([each[key] for each in found]):.3f} ± {half_of([each[key] for each in found]):.3f}"
        for key in found[0]
    }
    names = dict.fromkeys(key.rpartition(", ")[0] for key in cells)
    rows = [[name, *(cells[f"{name}, {k}"] for k in KS)] for name in names]
    return f"ILM + ALM (Figs. 9 to 11), sets made by seeds {SEEDS[0]} to {SEEDS[-1]}.\n\n" + table(
        ["set, joining", *(f"k = {k}" for k in KS)], rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default="baseline,pairs,ranges,others,seeds")
    parser.add_argument("--done", type=Path, help="JSON file of the answers found so far")
    given = parser.parse_args()
    command = "python benchmarks/study_trajectories_bounds.py --parts"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sets = synthetic(folder)
        for part in given.parts.split(","):
            if part == "baseline":
                body, title = baseline_part(sets, given.done), "Baseline's answers to queries"
            elif part == "ranges":
                body, title = ranges_part(sets, folder), "Answers to queries with ranges of ages"
            elif part == "others":
                body, title = others_part(sets, folder), "Other measures (V.2)"
            elif part == "seeds":
                body, title = seeds_part(folder, given.done), "Information lost over seeds"
            else:
                (folder / "releases").mkdir()
                body, title = pairs_part(sets[1:], folder / "releases"), "Largest loss of a single pair"
            put(part, title, f"{command} {part}", body)


def put(part: str, title: str, command: str, body: str, page: Path = OUTPUT) -> None:
    """Write a section; a new one before the public files."""
    write_section(part, title, command, body, page, before=BEFORE)


if __name__ == "__main__":
    main()
