"""Usable pairs of trajectories by clustering, and mentions kept by censoring's scopes (docs/benchmarks/modes-*.md).

    python benchmarks/modes.py cells --data DIR [--k 3,5,10]
    python benchmarks/modes.py scopes --data DIR [--k 5,10,25]

DIR is as for benchmarks/disassociation_quality.py; the long claims and trajectories are made up.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from common import table, write_page
from leeward.analysis.containment import Index, Multisets, largest_parts
from leeward.cohort.lenses.code_sets import code_counts_of
from leeward.cohort.lenses.trajectories import trajectories_of
from leeward.methods.censoring import gccens, groups
from leeward.methods.censoring.measures.attack import _by_record_rule
from leeward.methods.trajectories import cells, clustering, hierarchies
from leeward.methods.trajectories.records import Group, Records, losses_of
from leeward.synthetic import write_claims
from leeward.synthetic.trajectories import write_trajectories

SAMPLES = (1, 2, 3, 4, 5)


def events_of(path: Path) -> pl.DataFrame:
    """`patient`, `code` and, where known, `age`."""
    table = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema_length=0)
    if "patient_nbr" in table.columns:
        decade = pl.col("age").str.extract(r"\[(\d+)-").cast(pl.Int64) + 5
        table = table.with_columns(patient=pl.col("patient_nbr").cast(pl.Int64), age=decade)
    columns = [name for name in table.columns if name.startswith("diag_")]
    if columns:
        table = table.unpivot(on=columns, index=["patient", "age"], value_name="code")
    table = table.filter(pl.col("code").is_not_null() & ~pl.col("code").cast(pl.String).is_in(["?", ""]))
    codes = pl.Enum(sorted(table["code"].cast(pl.String).unique().to_list()))
    return table.select("patient", pl.col("code").cast(pl.String).cast(codes), pl.col("age").cast(pl.Float64))


def usable(name: str, events: pl.DataFrame, patients: int, ks: tuple[int, ...]) -> list[list[object]]:
    """Usable, chapter, root and lost pairs, ILM + ALM and seconds by clustering of the first `patients`."""
    first = events["patient"].unique().sort().head(patients)
    events = events.filter(pl.col("patient").is_in(first.implode()) & pl.col("age").is_not_null())
    used = pl.Enum(sorted(events["code"].cast(pl.String).unique().to_list()))
    events = events.with_columns(pl.col("code").cast(pl.String).cast(used))
    lens, years = trajectories_of(events), hierarchies.age_tree("0-127")
    tree, _ = hierarchies.code_tree("icd9", (), lens.codes)
    where = hierarchies.make_space(tree, years)
    records = Records(lens.offsets, tree.nodes_of(lens.codes)[lens.values], years.nodes(lens.ages))
    lines = []
    for k in ks:
        begin = time.process_time()
        p = clustering.make_problem(records, where, k)
        aligned = clustering.groups_of(p, clustering.mdav(p, k, threads=2))
        took = time.process_time() - begin
        lines.append(pairs(name, k, "alignment", aligned, records, where, took))
        begin = time.process_time()
        shared = cells.cluster(records, where, k, 1 << 30)
        took = time.process_time() - begin
        for way, in_order in (("cells, kept", True), ("cells, free", False)):
            begin = time.process_time()
            published = cells.publish(shared, records, where, in_order)
            each = took + time.process_time() - begin
            lines.append(pairs(name, k, way, published, records, where, each))
    return lines


def pairs(
    name: str,
    k: int,
    way: str,
    found: list[Group],
    records: Records,
    where: hierarchies.Space,
    seconds: float,
) -> list[object]:
    """One row of `usable`."""
    tree, total = where.code.hierarchy, float(records.offsets[-1])
    fine = hierarchies.usable_codes(tree), hierarchies.narrow(where.age.hierarchy, where.years, 8)
    broad = hierarchies.chapter_codes(tree), hierarchies.narrow(where.age.hierarchy, where.years, 16)
    kept = np.zeros(4)
    for group in found:
        kept += len(group.members) * np.array(
            [
                (fine[0][group.codes] & fine[1][group.ages]).sum(),
                (broad[0][group.codes] & broad[1][group.ages]).sum(),
                (group.codes == 0).sum(),
                len(group.codes),
            ]
        )
    shares = [f"{100 * each / total:.1f}" for each in (*kept[:3], total - kept[3])]
    lost = losses_of(found, records.lengths(), where)
    return [name, k, way, *shares, f"{lost.ilm:.3f}", f"{lost.alm:.3f}", f"{seconds:.1f}"]


ATTACKED = 50
"""Different records of each sample that are attacked where the rule of `record` must be carried out."""


def scopes(name: str, events: pl.DataFrame, size: int, ks: tuple[int, ...]) -> list[list[object]]:
    """Mentions and repeats kept of five samples, and records below k owners for who knows caps and rule."""
    lens = code_counts_of(events.select("patient", "code"))
    caps = np.minimum(lens.most(), 3)
    source = Multisets(lens.offsets, lens.values, lens.counts)
    people = source.cap(caps)
    index = Index(people, np.maximum(caps, 1), 2)
    samples = [sample_of(len(people), size, seed) for seed in SAMPLES]
    whole = [figures(source.take(drawn), source, 1)[:2] for drawn in samples]
    lines: list[list[object]] = [
        [f"{name}, {size:,} of {len(people):,}", "", "source", *spans(whole), "", ""]
    ]
    for k in ks:
        begin = time.process_time()
        shown, _ = groups.publish(people, caps, k)
        took = time.process_time() - begin
        rows: dict[str, list[tuple[float, ...]]] = {
            scope: [] for scope in ("global", "raise", "record", "groups")
        }
        seconds = dict.fromkeys(rows, 0.0) | {"groups": took * len(samples)}
        for drawn in samples:
            capped = people.take(drawn)
            for scope, censor in (("global", gccens.censor), ("raise", gccens.raise_caps)):
                begin = time.process_time()
                result = censor(index, capped, k)
                seconds[scope] += time.process_time() - begin
                rows[scope].append(figures(result.kept, people.cap(result.caps), k))
            begin = time.process_time()
            parts = largest_parts(index, capped, k).kept
            seconds["record"] += time.process_time() - begin
            mentions, repeats, _ = figures(parts, people, k)
            different = parts.distinct()[0]
            few = sample_of(len(different), min(ATTACKED, len(different)), 1)
            owners, _ = _by_record_rule(index, different.take(few), k)
            rows["record"].append((mentions, repeats, float((owners < k).mean())))
            rows["groups"].append(figures(shown.take(drawn), shown, k))
        for scope, found in rows.items():
            mentions, repeats, below = spans(found)
            if scope == "record":
                below = f"{np.mean([each[2] for each in found]):.0%} of {ATTACKED} attacked"
            lines.append([name, k, scope, mentions, repeats, below, f"{seconds[scope] / len(samples):.2f}"])
            print(lines[-1], flush=True)
    return lines


def sample_of(people: int, size: int, seed: int) -> np.ndarray:
    """Rows of the people drawn with equal chances, ascending."""
    return np.sort(np.random.Generator(np.random.Philox(seed)).choice(people, size, replace=False))


def spans(found: list[tuple[float, ...]]) -> list[str]:
    """The mean of each figure and its 95 % interval."""
    each = np.array(found, float)
    half = 1.96 * each.std(axis=0, ddof=1) / np.sqrt(len(each))
    return [f"{m:,.0f} ± {h:,.0f}" for m, h in zip(each.mean(axis=0), half, strict=True)]


def figures(kept: Multisets, published: Multisets, k: int) -> tuple[int, int, int]:
    """Mentions, repeats, and the records that fewer than k people would be published as."""
    both, number = Multisets.together([published, kept]).distinct()
    owners = np.bincount(number[: len(published)], minlength=len(both))[number[len(published) :]]
    return int(kept.sizes().sum()), int((kept.counts - 1).sum()), int((owners < k).sum())


def shapes(data: Path, folder: Path) -> Iterator[tuple[str, pl.DataFrame, int, int]]:
    """Name, events, patients of a sample and of trajectories of each data set, development first."""
    yield "UCI (development)", events_of(data / "uci-diabetes130" / "diabetic_data.csv.gz"), 5_000, 10_000
    write_trajectories(folder / "trajectories.parquet", 5_000, seed=1)
    yield "synthetic trajectories (development)", events_of(folder / "trajectories.parquet"), 0, 5_000
    write_claims(folder / "claims.parquet", 20_000, seed=1)
    yield "long claims", events_of(folder / "claims.parquet"), 3_000, 5_000
    seen = pl.read_csv(data / "pyphewas-synthetic" / "icds.csv.gz", infer_schema_length=0)
    renamed = seen.filter(pl.col("ICD_TYPE") == "9").select(
        patient=pl.col("id"), code=pl.col("ICD_CODE"), age=pl.col("AgeAtICD").cast(pl.Float64).floor()
    )
    yield "pyPheWAS, ICD-9", renamed, 0, 5_000


HEADS = {
    "cells": ["data", "k", "clustering", "usable %", "chapter %", "root %", "lost %", "ILM", "ALM", "CPU, s"],
    "scopes": ["data", "k", "scope", "mentions kept", "repeats kept", "records below k owners", "CPU, s"],
}
TITLES = {"cells": "Trajectories: usable pairs by clustering", "scopes": "Censoring: what each scope keeps"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=tuple(HEADS))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--k")
    given = parser.parse_args()
    chosen = given.k or ("3,5,10" if given.what == "cells" else "5,10,25")
    ks = tuple(map(int, chosen.split(",")))
    with tempfile.TemporaryDirectory() as folder:
        found = shapes(given.data, Path(folder))
        if given.what == "scopes":
            lines = [line for name, events, n, _ in found if n for line in scopes(name, events, n, ks)]
        else:
            lines = [line for name, events, _, n in found for line in usable(name, events, n, ks)]
    command = f"python benchmarks/modes.py {given.what} --data DIR --k {chosen}"
    write_page(f"modes-{given.what}", TITLES[given.what], command, table(HEADS[given.what], lines))


if __name__ == "__main__":
    main()
