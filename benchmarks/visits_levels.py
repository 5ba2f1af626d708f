"""What each level of visits keeps, by data set, k and size of the population: the tables of docs/studies/visits.md.

    python benchmarks/visits_levels.py --data DIR

DIR holds `uci-diabetes130/diabetic_data.csv.gz`; the long claims are made up (`leeward synth claims`). Every release is
written and passes its verifier.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import leeward as lw
from leeward.cohort.cohort import Cohort
from leeward.cohort.subset import restricted
from leeward.methods.visits import Visits
from leeward.runs.protect import protect
from leeward.synthetic.claims import write_claims

LEVELS = {
    "code": {"level": "code"},
    "codes, m = 2, merged": {"level": "codes", "m": 2, "merge_visits": True},
    "codes, m = 2, apart": {"level": "codes", "m": 2},
    "codes, m = 3, merged": {"level": "codes", "m": 3, "merge_visits": True},
    "codes, m = 3, apart": {"level": "codes", "m": 3},
    "containment, merged": {"level": "containment", "merge_visits": True},
    "visit": {"level": "visit"},
}
SIZES = (5_000, 20_000)


def row(cohort: Cohort, name: str, k: int, place: Path) -> tuple[str, ...]:
    """Level, DC and CC (percent of the original), seconds of protecting, writing, verifying and measuring."""
    began = time.perf_counter()
    out = place / f"{len(list(place.iterdir()))}"
    kept = protect(cohort, Visits(k=k, policy="none", **LEVELS[name]), out, seed=1, measures=["retention"])
    dc, cc = (kept.measures["retention"][each]["released_local"] for each in ("dc", "cc"))
    return name, str(k), f"{dc:.1%}", f"{cc:.1%}", f"{time.perf_counter() - began:.0f}"


def show(title: str, rows: list[tuple[str, ...]]) -> None:
    lines = [f"\n{title}\n", "| level | k | DC | CC | s |", "|---|---:|---:|---:|---:|"]
    sys.stdout.write("\n".join([*lines, *(f"| {' | '.join(each)} |" for each in rows)]) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--claims", type=int, default=20_000, help="Patients of the long claims.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "releases"
        place.mkdir()
        uci = lw.read(
            given.data / "uci-diabetes130" / "diabetic_data.csv.gz",
            columns={
                "patient": "patient_nbr",
                "code": ["diag_1", "diag_2", "diag_3"],
                "visit": "encounter_id",
            },
            missing=["?"],
        )
        show("UCI", [row(uci, name, k, place) for name in LEVELS for k in (5, 10)])
        people = uci.visits().patients.sample(max(SIZES), seed=1)
        for size in SIZES:
            part = restricted(uci, people.head(size).sort())
            show(f"UCI, {size:,} patients", [row(part, name, 5, place) for name in LEVELS])
        claims = Path(folder) / "claims.parquet"
        write_claims(claims, given.claims, seed=1)
        codes = [f"diag_{place}" for place in range(1, 11)]
        long = lw.read(claims, columns={"patient": "patient", "code": codes, "visit": "claim"})
        show(f"Long claims, {given.claims:,} patients", [row(long, name, 5, place) for name in LEVELS])


if __name__ == "__main__":
    main()
