"""A section of docs/studies/disassociation.md: the two older algorithms that the paper names and does not measure.

    python benchmarks/study_disassociation_related.py --data DIR

Partition and greedy suppression (`set_valued.py`) beside the releases of `study_disassociation.py`, on its cohorts and
seeds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import write_section
from leeward.analysis.itemsets import supports_of
from leeward.analysis.workloads import relative_errors
from leeward.vocabulary import load
from set_valued import expected, partition, suppressed
from study_disassociation import (
    READINGS,
    SEEDS,
    WAYS,
    K,
    M,
    Queries,
    Study,
    dis,
    gen,
    mean,
    merged,
    shuffled,
    synthetic,
    uci,
)
from study_disassociation_page import percent, table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "disassociation.md"
Errors = np.ndarray[Any, Any]
BEFORE = "## What agrees, and what does not\n"
COMMAND = "python benchmarks/study_disassociation_related.py --data DIR"
POLICY = "hierarchy:1"
SUPPORT = 0.0125
WORDS = """Two algorithms that the paper names as related work and does not measure, our own after their papers
(`benchmarks/set_valued.py`; an oracle checks what each guarantees): *Partition* (He and Naughton 2009) publishes every
record like {others} others, along the vocabulary's hierarchy, a part of the records at a time; *suppression* (Xu, Wang,
Fu and Yu 2008; taken to be the paper's [59]: the text at hand has no list of references) takes codes out of all
records until every set of at most {m} is held by none or by at least {k}. Complete k-anonymity holds against more than
the other rows' k^m-anonymity: an attacker who knows all codes of a patient.

ARE: all queries of W1, 1.25 %, those of them whose codes CBA keeps, and all of W2, by the better of the two readings of
a generalized code; a suppressed code counts 0. *Codes lost*: codes that appear in no published record as themselves (of
*default* and *paper* none: item chunks list them). *Occurrences lost*: of codes suppressed or published as something
coarser, and in item chunks. *As the root*: records of which nothing is told but that they have a code. Seconds of a
processor; plain Python for the two.

Partition errs more than CBA, on the synthetic W2 within the intervals. Suppression takes out nearly nine codes of ten
or more, the rare ones, and so errs 2.2 and 1.6 times as much as *default* on W2; what it leaves is exact, so that on
frequent sets it errs less than CBA, and on those of the synthetic cohort less than all others.

{table}
"""


def measured(study: Study) -> Iterator[dict[str, Any]]:
    """A row a method."""
    sets, frequent = study.sets, study.frequent[SUPPORT]
    cba = gen(study, "cba", POLICY)

    def row(
        name: str, errors: Callable[[Queries], Errors], codes: Errors, told: float, **more: Any
    ) -> dict[str, Any]:
        """`codes`: which are published as themselves; `told`: the share of occurrences that are."""
        return {
            "method": name, "w1": mean(errors(frequent)), "kept": mean(errors(cba.on_kept(frequent))),
            "w2": mean(errors(study.drawn)), "codes": 1 - float(codes.mean()), "occurrences": 1 - float(told),
            "root": None, "seconds": None, **more,
        }  # fmt: skip

    for way in WAYS:
        ours = dis(study, way, POLICY)
        yield row(way, ours.errors, np.ones(len(sets.codes)), 1 - ours.item_share)
    alone = {group[0] for group in cba.release.members if len(group) == 1}
    bare = np.array([code in alone for code in sets.codes])
    yield row("CBA", better(cba.errors), bare, bare[sets.values].mean())

    tree = load(str(study.cohort.vocabulary)).hierarchy(sets.codes)
    node = tree.nodes_of(sets.codes)
    records = [tuple(node[sets.values[a:b]].tolist()) for a, b in pairwise(sets.offsets.tolist())]
    begin = time.process_time()
    parts = partition(records, tree, K)
    seconds = time.process_time() - begin

    def local(queries: Queries, reading: str) -> Errors:
        asked = [tuple(node[query].tolist()) for query in queries]
        return relative_errors(supports_of(sets, queries), expected(parts, tree, asked, reading))

    whole = sum(leaf in part.nodes for part in parts for r in part.rows for leaf in records[r])
    yield row(
        "Partition",
        better(local),
        np.isin(node, [each for part in parts for each in part.nodes]),
        whole / len(sets.values),
        root=sum(len(part.rows) for part in parts if part.nodes == {0}) / len(records),
        seconds=seconds,
    )
    begin = time.process_time()
    gone = suppressed(records, K, M)
    seconds = time.process_time() - begin
    left = np.array([each not in gone for each in node.tolist()])

    def without(queries: Queries) -> Errors:
        true = supports_of(sets, queries)
        return relative_errors(true, np.where([left[query].all() for query in queries], true, 0.0))

    empty = float(np.mean([gone.issuperset(record) for record in records]))
    yield row("suppression", without, left, left[sets.values].mean(), root=empty, seconds=seconds)


def better(errors: Callable[[Queries, str], Errors]) -> Callable[[Queries], Errors]:
    """The errors of the better reading."""
    return lambda queries: min((errors(queries, reading) for reading in READINGS), key=np.sum)


def section(cohorts: dict[str, list[Study]]) -> str:
    """The table; each cohort as one study a seed."""
    columns = (
        "cohort, method", "ARE W1", "ARE W1, CBA keeps", "ARE W2", "codes lost", "occurrences lost", "as the root",
        "seconds",
    )  # fmt: skip
    rows = [
        (
            f"{name}, {row['method']}", row["w1"], row["kept"], row["w2"], percent(row["codes"], 1),
            percent(row["occurrences"], 1), percent(row["root"], 1), row["seconds"],
        )
        for name, studies in cohorts.items()
        for row in map(merged, zip(*(list(measured(study)) for study in studies), strict=True))
    ]  # fmt: skip
    return WORDS.format(others=K - 1, k=K, m=M, table=table(columns, rows))


def put(body: str, page: Path = PAGE) -> None:
    """Write the section; a new one before what agrees."""
    write_section("related", "Partition, and suppression", COMMAND, body, page, before=BEFORE)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    real = uci(parser.parse_args().data)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cohorts = {
            "UCI": [Study("UCI", shuffled(real, seed), folder, seed) for seed in SEEDS],
            "synthetic": [Study("synthetic", synthetic(folder, seed), folder, seed) for seed in SEEDS],
        }
        put(section(cohorts))


if __name__ == "__main__":
    main()
