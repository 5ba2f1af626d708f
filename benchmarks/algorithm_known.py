"""What the attacker of disassociation costs, and every known set with fewer than k candidates.

    python benchmarks/algorithm_known.py --data DIR [--k 5,10] [--only NAME]

UCI of DIR (development) and claims (`leeward synth claims --patients 20000 --seed 1`, ages and sexes drawn at random;
evaluation), without demographics and with age decade and sex. Each release is written and verified with its source.
Known sets are counted one by one: every code and every pair of codes of some patient, in each released class apart.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from itertools import combinations
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import leeward as lw
from common import table, write_page
from defaults import with_people
from leeward.arrays import AnyArray
from leeward.cohort import Cohort
from leeward.methods.disassociation.measures.estimates import estimates_of_numbers, read_once
from leeward.methods.disassociation.measures.published import Array, Published, part
from leeward.release import Release
from leeward.synthetic.claims import write_claims
from study_whole_patient import uci

COLUMNS = [
    "data", "k", "attacker", "W1 1.25 %", "W1 .625 %", "pairs", "triples", "in item chunks", "suppressed",
    "codes not shown", "codes below k", "pairs below k", "codes, with totals", "pairs, with totals",
]  # fmt: skip
MEASURES: list[dict[str, dict[str, Any]]] = [
    {"are": {"workload": "frequent", "min_support": 0.0125}},
    {"are": {"workload": "frequent", "min_support": 0.00625}},
    {"are": {"workload": "random", "queries": 1000}},
]
ATTACKERS = ("operation", "counts", "rules", "algorithm")
KEEP = {"age": 10, "sex": "exact"}


def cohorts(data: Path, folder: Path) -> dict[str, Cohort]:
    """UCI and claims."""
    write_claims(folder / "claims.csv", 20_000, seed=1)
    columns = {"patient": "patient", "code": [f"diag_{i}" for i in range(1, 11)]}
    return {"UCI": uci(data), "claims": with_people(lw.read(folder / "claims.csv", columns=columns), 1)}


def row(name: str, cohort: Cohort, k: int, attacker: str, asked: dict[str, Any]) -> list[object]:
    """One release's figures."""
    with tempfile.TemporaryDirectory() as folder:
        method = lw.Disassociation(k=k, m=2, attacker=attacker, **asked)  # type: ignore[arg-type]  # real parameters
        done = lw.protect(cohort, method, Path(folder) / "out", seed=1, measures=MEASURES)
        assert all(check.passed for check in done.verification.checks)
        release = Release.open(Path(folder) / "out")
        told = [below_k(release, cohort, size) for size in (1, 2)]
        shown = len(read_once(release).codes)
    frequent, more, _, pairs, triples, *_ = (each["are"] for each in done.measures["are"]["workloads"])
    facts = done.measures["method"]
    line: list[object] = [
        name,
        k,
        attacker,
        *(f"{each:.4f}" for each in (frequent, more, pairs, triples)),
        f"{facts['item_occurrences'] / facts['occurrences']:.1%}",
        f"{facts.get('suppressed_occurrences', 0) / facts['occurrences']:.2%}",
        len(cohort.code_sets().codes) - shown,
        *(f"{below[which]:,} of {sets:,}" for which in range(2) for sets, *below in told),
    ]
    print(*line, sep=" | ", flush=True)
    return line


def below_k(release: Release, cohort: Cohort, size: int) -> tuple[int, int, int]:
    """The number of sets of `size` codes of some patient, class by class; how many of them fewer than k records of the
    class may hold, but not none, for who knows from how many records on codes are counted; and for who knows what
    joint clusters tell, too (`Published.most_joined`)."""
    published, sets = read_once(release), cohort.code_sets()
    number = np.array([published.number.get(code, -1) for code in sets.codes])
    found = np.zeros(3, np.int64)
    for here, records in classes_of(release, published, sets.patients):
        rows = (np.unique(sets.values[sets.offsets[r] : sets.offsets[r + 1]]) for r in records)
        known = np.array(sorted({chosen for row in rows for chosen in combinations(row.tolist(), size)}))
        queries = np.sort(number[known.reshape(-1, size)], axis=1)
        joined = fewer(here, list(queries[queries[:, 0] >= 0]), joins=True)
        capped = fewer(here, joined, joins=False)  # of these: without totals no set has fewer candidates
        found += len(queries), len(capped), len(joined)
    every, capped, joined = found.tolist()
    return every, capped, joined


def fewer(here: Published, queries: list[Array], *, joins: bool) -> list[Array]:
    """The queries that fewer than k records may have, but not none."""
    high = estimates_of_numbers(
        here, queries, "one", most=attrgetter("most_joined" if joins else "most_listed")
    ).high
    return [query for query, n in zip(queries, high, strict=True) if 0 < n < here.k]


def classes_of(
    release: Release, published: Published, patients: pl.Series
) -> Iterator[tuple[Published, AnyArray]]:
    """Each released class, and the places of its patients; without demographics all."""
    if published.of_class is None:
        yield published, np.arange(len(patients))
        return
    placed = release.custody_table("clusters")
    assert placed is not None
    nodes = release.table("nodes.parquet").collect().select("node", "class")
    each = pl.DataFrame({"patient": patients}).join(placed.join(nodes, on="node"), on="patient")
    assert each["patient"].equals(patients)
    for here in each["class"].unique():
        yield part(published, np.array([here])), np.flatnonzero(each["class"] == here)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--k", default="5,10")
    parser.add_argument(
        "--only", default="", help="the data sets whose names begin so; nothing is written then"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        known = cohorts(given.data, Path(folder))
    rows = [
        row(name + kind, cohort, k, attacker, asked)
        for name, cohort in known.items()
        for kind, asked, attackers in (
            ("", {}, ATTACKERS),
            (", age × sex", {"demographics": tuple(KEEP), "keep": KEEP}, ATTACKERS[:-1]),
        )
        if (name + kind).startswith(given.only)
        for k in map(int, given.k.split(","))
        for attacker in attackers
    ]
    if given.only:
        return
    write_page(
        "disassociation-algorithm-known",
        "Disassociation: an attacker who knows the algorithm",
        "python benchmarks/algorithm_known.py --data DIR",
        table(COLUMNS, rows)
        + "\n\nARE with the prior `occupancy`, m = 2, partitioning `fitted`. *Below k*: of every code and every pair "
        "of codes of some patient, in each released class apart, those that fewer than k records may have (none: the "
        "release does not show them, and they do not count), for who knows from how many records on codes are "
        "counted; *with totals*: for who reads what joint clusters tell, too (but for refused ones).",
    )


if __name__ == "__main__":
    main()
