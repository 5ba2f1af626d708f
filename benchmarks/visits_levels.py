"""What each level of visits keeps, and which associations it loses: pages in docs/benchmarks.

    python benchmarks/visits_levels.py --data DIR --parts uci,claims,growth [--sizes 10000,30000,100000] [--done FILE]

DIR holds `uci-diabetes130/diabetic_data.csv.gz` and `vocab/phecode_map.csv`; the long claims and the growing population
are made up. Associations: phecodes of the whole release with six simulated SNPs, five draws; each SNP raises the odds
of three phecodes. *Hits* are the original's after Bonferroni's correction, *lost* those of them that the release's
tests do not find, *false* those that only these find. Every release is written and passes its verifier. `--done` keeps
each row in a file as soon as it is measured, so that a long run can be stopped and go on; a part's section is written
when all its rows are there.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import leeward as lw
from common import once, table, write_page
from leeward.cohort.cohort import Cohort
from leeward.methods.visits import Visits
from leeward.runs.protect import protect
from leeward.synthetic.claims import write_claims
from leeward.synthetic.visits import write_visits
from study_visits import UCI_COLUMNS, simulated_snps

LEVELS: dict[str, dict[str, Any]] = {
    "code": {"level": "code"},
    "codes, m = 2, merged": {"level": "codes", "m": 2, "merge_visits": True},
    "codes, m = 2, apart": {"level": "codes", "m": 2},
    "codes, m = 3, merged": {"level": "codes", "m": 3, "merge_visits": True},
    "codes, m = 3, apart": {"level": "codes", "m": 3},
    "containment, merged": {"level": "containment", "merge_visits": True},
    "visit": {"level": "visit"},
}
GROWTH = ("code", "codes, m = 2, merged", "codes, m = 2, apart", "visit")
UCI_SIZES = (5_000, 20_000)
DRAWS = 5
HEAD = ["data", "level", "k", "DC", "CC", "hits", "lost", "false", "CPU, s"]


def with_snps(cohort: Cohort, mapping: Path) -> Cohort:
    """The cohort with the SNPs of every draw as columns of its patients."""
    patients = None
    for draw in range(DRAWS):
        found = simulated_snps(cohort, mapping, np.random.Generator(np.random.Philox(key=1000 + draw)))
        found = found.rename({name: f"{draw}_{name}" for name in found.columns if name != "patient"})
        patients = found if patients is None else patients.join(found, on="patient")
    return dataclasses.replace(cohort, patients=patients)


def measured(
    name: str, read: Callable[[], Cohort], level: str, k: int, mapping: Path, place: Path
) -> list[Any]:
    """DC and CC (percent of the original), associations, CPU seconds of the whole run."""
    cohort = read()
    began = time.process_time()
    assert cohort.patients is not None
    snps = [column for column in cohort.patients.columns if column != "patient"]
    method = Visits(k=k, policy="none", payload=tuple(snps), **LEVELS[level])
    phewas = {"phewas": {"predictors": snps, "map": str(mapping), "min_cases": 25}}
    out = place / f"{len(list(place.iterdir()))}"
    kept = protect(cohort, method, out, seed=1, measures=["retention", phewas]).measures
    dc, cc = (kept["retention"][each]["released_local"] for each in ("dc", "cc"))
    found = [each for each in kept["phewas"]["comparison"] if each["rule"] == "bonferroni"]
    shown = []
    for figure in ("original", "lost", "false"):
        each = np.array(
            [
                sum(one[figure] for one in found if one["predictor"].startswith(f"{draw}_"))
                for draw in range(DRAWS)
            ],
            float,
        )
        shown.append(f"{each.mean():.1f} ± {1.96 * each.std(ddof=1) / np.sqrt(DRAWS):.1f}")
    line = [name, level, k, f"{dc:.1%}", f"{cc:.1%}", *shown, f"{time.process_time() - began:.0f}"]
    print(line, flush=True)
    return line


def uci_of(data: Path, mapping: Path, size: int | None = None) -> Cohort:
    """Diabetes 130-US hospitals; of `size` patients, drawn so that smaller cohorts are parts of larger ones."""
    cohort = lw.read(data / "uci-diabetes130" / "diabetic_data.csv.gz", columns=UCI_COLUMNS, missing=["?"])
    if size is not None:
        people = cohort.visits().patients.sample(max(UCI_SIZES), seed=1)
        cohort = cohort.restrict(people.head(size).sort())
    return with_snps(cohort, mapping)


def claims_of(patients: int, folder: Path, mapping: Path) -> Cohort:
    """Made-up claims of up to ten codes."""
    write_claims(folder / "claims.parquet", patients, seed=1)
    codes = [f"diag_{place}" for place in range(1, 11)]
    columns = {"patient": "patient", "code": codes, "visit": "claim"}
    return with_snps(lw.read(folder / "claims.parquet", columns=columns, vocabulary="icd9"), mapping)


def grown_to(patients: int, folder: Path, mapping: Path) -> Cohort:
    """A made-up population of so many patients."""
    write_visits(folder / f"{patients}", patients, seed=1)
    columns = {"patient": "patient", "code": "code", "visit": "visit"}
    read = lw.read(folder / f"{patients}" / "events.parquet", columns=columns, vocabulary="icd9")
    return with_snps(read, mapping)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--parts", default="uci,claims,growth")
    parser.add_argument("--claims", type=int, default=20_000, help="Patients of the long claims.")
    parser.add_argument("--sizes", default="10000,30000,100000", help="Patients of the growing population.")
    parser.add_argument("--done", type=Path, help="JSON file of the rows measured so far.")
    given = parser.parse_args()
    mapping = given.data / "vocab" / "phecode_map.csv"
    for part in given.parts.split(","):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "releases"
            place.mkdir()
            options, ks = "", [5]
            read: dict[str, Callable[[], Cohort]]
            if part == "uci":
                read, levels, ks = {"UCI": partial(uci_of, given.data, mapping)}, LEVELS, [5, 10]
                read |= {
                    f"UCI, {n:,} of its patients": partial(uci_of, given.data, mapping, n) for n in UCI_SIZES
                }
            elif part == "claims":
                options = f" --claims {given.claims}"
                made = partial(claims_of, given.claims, Path(folder), mapping)
                read, levels = {f"long claims, {given.claims:,} patients": made}, LEVELS
            else:
                options, levels = f" --sizes {given.sizes}", dict.fromkeys(GROWTH)
                sizes = [int(size) for size in given.sizes.split(",")]
                read = {f"{n:,} patients": partial(grown_to, n, Path(folder), mapping) for n in sizes}
            lines = []
            for name, make in read.items():
                cohort = cache(make)
                for level, k in itertools.product(levels, ks):
                    measure = partial(measured, name, cohort, level, k, mapping, place)
                    lines.append(once(given.done, f"{name}, {level}, {k}", measure))
            command = f"python benchmarks/visits_levels.py --data DIR --parts {part}{options}"
            name = f"visits-levels-{part}" + (f"-{given.claims}" if part == "claims" else "")
            write_page(name, f"Visits: what each level keeps, {part}", command, table(HEAD, lines))


if __name__ == "__main__":
    main()
