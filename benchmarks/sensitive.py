"""What a release tells of commonly sensitive codes, with and without `sensitive: standard`.

    python benchmarks/sensitive.py --data DIR

DIR is as for benchmarks/disassociation_quality.py; k = 5, m = 2. *Given away*: occurrences of listed codes that another
code of the patient gives away in the patient's cluster. *Listed*: patients in clusters that list a listed code, and how
many of these have it, on average and at most. *Planted*: HIV (042) is given to the patients with one code x, and to
nobody else; from which clusters list 042 an attacker estimates for every code with 20 patients and more in clusters (at
least one where an item chunk lists it) how many of its patients have 042, by maximum likelihood: the rank of x by
likelihood, and the estimate for x.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from common import table, write_page
from leeward.analysis.itemsets import supports_of
from leeward.analysis.workloads import frequent_queries, random_queries
from leeward.arrays import AnyArray
from leeward.cohort import Cohort
from leeward.cohort.sensitive import sensitive_of
from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.measures import average_relative_error, estimate_queries
from leeward.methods.disassociation.measures.published import Published, read
from leeward.randomness import Randomness
from leeward.release import Release, write
from partitioning import of_codes
from safe import shapes

PLANTED, SUPPORTS, PICKS, LEAST = "042", (30, 300, 3_000), 3, 20


def protected(cohort: Cohort, out: Path, sensitive: tuple[str, ...]) -> Path:
    made = Disassociation(k=5, m=2, sensitive=sensitive).protect(cohort, randomness=Randomness.of(1))
    return write(made, out)


def given_away(out: Path, listed: set[str]) -> tuple[int, int]:
    """Occurrences of listed codes in record and shared chunks, and those that another code gives away there."""
    rows = pl.read_parquet(out / "share" / "data" / "chunks.parquet").filter(
        (pl.col("kind") != "item") & (pl.col("codes").list.len() > 0)
    )
    shown = away = 0
    for _, chunk in rows.group_by("node", "chunk"):
        records = [frozenset(codes) for codes in chunk["codes"].to_list()]
        support: dict[str, int] = defaultdict(int)
        both: dict[tuple[str, str], int] = defaultdict(int)
        for record in records:
            for y in record & listed:
                for x in record:
                    both[x, y] += 1
            for x in record:
                support[x] += 1
        for record in records:
            for y in record & listed:
                shown += 1
                away += any(x != y and both[x, y] == support[x] for x in record)
    return shown, away


def listings(cohort: Cohort, out: Path, listed: set[str]) -> tuple[float, float, float]:
    """Mean, 99th percentile and maximum over patients in clusters that list a listed code of the share of the cluster
    that has it."""
    clusters = pl.read_parquet(out / "custody" / "data" / "clusters.parquet")
    events = cohort.require_events().with_columns(pl.col("code").cast(pl.String))
    size = clusters.group_by("node").agg(n=pl.len())
    held = (
        events.filter(pl.col("code").is_in(listed)).unique(["patient", "code"]).join(clusters, on="patient")
    )
    held = held.group_by("node", "code").agg(has=pl.len()).join(size, on="node")
    share = np.repeat((held["has"] / held["n"]).to_numpy(), held["n"].to_numpy())
    return float(share.mean()), float(np.quantile(share, 0.99)), float(share.max())


def likelihoods(p: Published, code: str) -> tuple[AnyArray, AnyArray, AnyArray]:
    """For each code counted for enough patients: its number, the best log-likelihood of which clusters list `code`
    where a share of its patients and another share of all others have it, and the share of its patients."""
    lists = np.zeros(len(p.parent), np.bool_)
    c = p.number[code]
    lists[p.entry_node[p.at[c] : p.at[c + 1]]] = True
    leaf = np.flatnonzero(p.leaf)
    lists, n = lists[leaf], p.records[leaf].astype(float)
    place = np.full(len(p.parent), -1)
    place[leaf] = np.arange(len(leaf))
    counts = np.maximum(p.entry_counts(), 1)  # at least one patient where an item chunk lists the code
    grid = np.concatenate([[0, 1e-4, 1e-3], np.linspace(0.01, 0.999, 60)])
    rest = np.concatenate([[1e-7], np.logspace(-5, -0.5, 40)])
    found = []
    for x in range(len(p.codes)):
        span = slice(p.at[x], p.at[x + 1])
        inside = place[p.entry_node[span]] >= 0
        if x == c or counts[span][inside].sum() < LEAST:
            continue
        has = np.zeros(len(leaf))
        has[place[p.entry_node[span][inside]]] = counts[span][inside]
        cells, times = np.unique(np.stack([has, n - has, lists]), axis=1, return_counts=True)
        none = cells[0] * np.log1p(-grid)[:, None, None] + cells[1] * np.log1p(-rest)[None, :, None]
        log = np.where(cells[2] > 0, np.log(-np.expm1(np.minimum(none, -1e-12))), none)
        total = (log * times).sum(axis=2)
        best = np.unravel_index(total.argmax(), total.shape)
        found.append((x, total[best], grid[best[0]]))
    numbers, best_of, share = map(np.array, zip(*found, strict=True))
    return numbers, best_of, share


def planted(cohort: Cohort, folder: Path, support: int, seed: int) -> tuple[int, int, float]:
    events = cohort.require_events().select("patient", pl.col("code").cast(pl.String))
    events = events.filter(pl.col("code") != PLANTED)
    counts = events.group_by("code").len().sort((pl.col("len") - support).abs(), "code")
    x = str(counts["code"][int(seed)])
    more = events.filter(pl.col("code") == x).with_columns(code=pl.lit(PLANTED))
    made = of_codes(pl.concat([events, more]), cohort.vocabulary)
    p = read(Release.open(protected(made, folder, (PLANTED,))))
    numbers, best, share = likelihoods(p, PLANTED)
    if p.number[x] not in numbers:
        return more.height, 0, float("nan")
    own = int(np.flatnonzero(numbers == p.number[x])[0])
    return more.height, int((best > best[own]).sum()) + 1, float(share[own])


def errors(cohort: Cohort, out: Path) -> list[str]:
    sets, p = cohort.code_sets(), read(Release.open(out))
    asked = [frequent_queries(sets, 0.0125, None, 1_000).queries, *random_queries(sets, 1_000)[1:3]]
    found = []
    for queries in asked:
        expected = estimate_queries(p, sets, queries, "occupancy").expected
        found.append(f"{average_relative_error(supports_of(sets, queries), expected)['are']:.4f}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    given = parser.parse_args()
    lines: list[list[Any]] = []
    attacks: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for shape, cohorts in shapes(given.data, folder):
            cohort = cohorts[0]
            topics = sensitive_of(cohort, cohort.code_sets().codes) or {}
            listed = {code for codes in topics.values() for code in codes}
            for words in ((), ("standard",)):
                out = protected(cohort, folder / f"{shape}{len(words)}", words)
                shown, away = given_away(out, listed)
                mean, high, most = listings(cohort, out, listed)
                lines.append(
                    [shape, len(listed), words[0] if words else "–", f"{shown:,}", f"{away:,}",
                     *((f"{mean:.1%}", f"{high:.1%}", f"{most:.1%}") if words else "–––"), *errors(cohort, out)]
                )  # fmt: skip
                print(lines[-1], flush=True)
            for support in SUPPORTS:
                for seed in range(PICKS):
                    found = planted(cohort, folder / f"{shape}-{support}-{seed}", support, seed)
                    told = [found[1], f"{found[2]:.2f}"] if found[1] else ["not counted", "–"]
                    attacks.append([shape, found[0], *told])
                    print(attacks[-1], flush=True)
    head = ["data", "listed codes", "`sensitive`", "shown in chunks", "given away"]
    head += ["listed: mean share", "99 %", "most", "W1 1.25 %", "pairs", "triples"]
    body = (
        table(head, lines)
        + "\n\n"
        + table(["data", "patients with x", "rank of x", "estimate for x"], attacks)
    )
    write_page("sensitive", "Commonly sensitive codes", "python benchmarks/sensitive.py --data DIR", body)


if __name__ == "__main__":
    main()
