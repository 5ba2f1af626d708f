"""What was planted and counted again for docs/studies/attacks.md: copies in a condensed registry, exact candidates of
small cohorts, rows that cannot be.

    python benchmarks/planted.py --data DIR [--only F3,candidates,relations]

DIR holds `survival/`. The cohorts of `candidates` and the table of planted relations are made up.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import polars as pl
from tests.methods.condensation.test_relations import PLANTED, impossible, planted
from tests.methods.disassociation.test_candidates import K, clusters_of, known_sets, small_cohort
from tests.mutations import bench
from tests.oracles.candidates import candidates as exact_candidates
from tests.verify.made import Case

import leeward as lw
from common import commit, machine, table
from condensation_attacks import BROKEN, RELATIONS
from registries import load

Row = tuple[str, str]


def planted_copies(data: Path, place: Path) -> list[Row]:
    """F3: what the attack planted in a condensed registry, one change at a time."""
    registry = load(data, "gbsg")
    cohort = lw.read(registry.frame, format="table")
    case = Case(cohort, lw.Condensation(k=5, strata=(registry.event,), time=(registry.time,), rare="keep"))
    made = bench.make("gbsg", case, place / "f3" / "sound")
    columns = pl.read_parquet(made.out / "share" / "data" / "table.parquet").columns
    free = [name for name in columns if name not in (registry.event, registry.time)]
    wanted = {
        "all rows are the source's but for 1 in a column": "every row the source's, 1 added in a column",
        "a tenth of the rows are the source's": "68 of 686 rows the source's",
        "two whole rows of the source": "2 of 686 rows the source's",
        f"{free[0]}: the source's column in its order": "a column in the source's order",
        f"{free[0]}: the source's, row by row in the groups": "a column row by row the source's",
        "records numbered by group": "rows in the groups' order",
        "parameter coarsen_time: false -> true": "`coarsen_time` claimed",
    }
    found = [each for each in bench.mutations(made, random=0) if each.name in wanted]
    rows = []
    for mutation in found:
        score = bench.run(made, [mutation], place / "f3")
        beside = "refuted" if score.whole_caught else "passes" if score.whole else "breaks nothing"
        alone = "not visible" if not score.alone else "refuted" if score.alone_caught else "passes"
        rows.append(
            (wanted[mutation.name], f"with source and custody {beside}; with the share alone {alone}")
        )
    return rows


def small_cohorts(data: Path, place: Path) -> list[Row]:
    """F8: exact candidates of every known set, for both readings of item chunks."""
    known, below = [0, 0], [0, 0]
    for seed in range(300):
        rows = small_cohort(seed)
        clusters, moved = clusters_of(rows)
        for wanted in known_sets(rows):
            for reading, most in enumerate((len(rows), K - 1)):
                known[reading] += 1
                fewer = exact_candidates(clusters, wanted, item_most=most) < K
                below[reading] += fewer and not (reading and moved)
    return [
        ("item codes with 1 to N records", f"{below[0]:,} of {known[0]:,} known sets have fewer than {K}"),
        (
            "item codes with up to k - 1 records",
            f"{below[1]:,} of {known[1]:,} known sets have fewer than {K}",
        ),
    ]


def impossible_rows(data: Path, place: Path) -> list[Row]:
    """Rows that break what holds in every source row, with the relations confirmed and without."""
    registry = load(data, "rotterdam")
    rows = []
    for name, frame, strata, times, relations, broken in (
        ("rotterdam", registry.frame, "death", ("dtime", "rtime"), RELATIONS["rotterdam"],
         lambda table: table.select(BROKEN["rotterdam"]).to_series()),
        ("planted", planted(), "event", (), PLANTED, impossible),
    ):  # fmt: skip
        for k in (5, 10, 50):
            counts = []
            for more in ({"relations": ("none",)}, {"relations": ("none", *relations)}):
                out = place / f"relations-{name}-{k}-{len(more['relations'])}"
                method = lw.Condensation(k=k, strata=(strata,), time=times, rare="keep", **more)
                lw.protect(lw.read(frame, format="table"), method, out, seed=1, measures=["exact_times"])
                table_of_release = pl.read_parquet(out / "share" / "data" / "table.parquet")
                counts.append(int(broken(table_of_release).sum()))
            rows.append(
                (f"{name}, k = {k}", f"{counts[1]} of {frame.height:,} rows; not confirmed {counts[0]:,}")
            )
    return rows


PARTS: dict[str, Callable[[Path, Path], list[Row]]] = {
    "F3": planted_copies,
    "candidates": small_cohorts,
    "relations": impossible_rows,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default=",".join(PARTS))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            [name, *row] for name in given.only.split(",") for row in PARTS[name](given.data, Path(folder))
        ]
    print(f"{machine()}; commit {commit()}\n")
    print(table(["", "case", "found"], rows))


if __name__ == "__main__":
    main()
