"""Phenotypes and PheWAS found on released trajectories: a section of docs/studies/trajectories.md.

    python benchmarks/study_trajectories_phenotypes.py --data DIR [--k 2,5,10]

DIR holds `pyphewas-synthetic/` (MASILab/pyPheWAS: 10,000 made-up subjects with planted associations) and `vocab/` (the
phecode map 1.2 of ICD-9). Some minutes on two cores.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import table
from benchmarks.study_trajectories import cohort_of, percent
from benchmarks.study_trajectories_bounds import put

from leeward.cohort.cohort import Cohort
from leeward.methods.trajectories import Trajectories
from leeward.runs.protect import protect

PLANTED = {
    "338.2": 1.5, "340": 1.1, "1011": 0.7, "296.22": 0.6, "530.11": 0.3, "401": 0.25, "041": -0.2, "1009": -0.6,
    "495": -1.0,
}  # fmt: skip
"""The associations that pyPheWAS's authors planted, as log odds ratios."""

CLUSTERINGS: dict[str, dict[str, Any]] = {"cells": {}, "alignment": {"clustering": "alignment"}}


def planted(data: Path) -> Cohort:
    """The ICD-9 codes of the subjects, with their group as `Dx`."""
    folder = data / "pyphewas-synthetic"
    events = pl.read_csv(folder / "icds.csv.gz", infer_schema=False).filter(pl.col("ICD_TYPE") == "9")
    own = events.select(patient="id", code="ICD_CODE", age=pl.col("AgeAtICD").cast(pl.Float64))
    groups = pl.read_csv(folder / "group.csv", infer_schema=False)
    people = groups.select(patient="id", Dx=pl.col("Dx").cast(pl.Int64))
    return replace(cohort_of(own, "pyphewas-synthetic", "icd9"), patients=people)


def section(cohort: Cohort, phecodes: Path, ks: Sequence[int], folder: Path, min_cases: int = 25) -> str:
    """Both tables."""
    options = {"map": str(phecodes), "ignored": True}
    scan = {"predictors": "Dx", "test": "logistic", "min_cases": min_cases, **options}
    rows, found = [], {}
    for name, further in CLUSTERINGS.items():
        for k in ks:
            method = Trajectories(k=k, payload=("Dx",), odd_ages="leave out", **further)
            wanted = ["usable", {"phenotypes": options}, {"phewas": scan}]
            made = protect(cohort, method, folder / f"{name}-{k}", measures=wanted, seed=1).measures
            seen, onset, cases = made["phenotypes"], made["phenotypes"]["onset"], made["phenotypes"]["cases"]
            bonferroni = made["phewas"]["totals"]["bonferroni"]
            found[name, k] = {row["phecode"]: row for row in made["phewas"]["tests"]}
            rows.append(
                [
                    f"{name}, k = {k}",
                    percent(made["usable"]["usable"]),
                    percent(cases["kept"] / cases["original"]),
                    f"{seen['phecodes']['kept']} of {seen['phecodes']['original']}",
                    f"{cases['false']:,}",
                    "–" if onset["median"] is None else f"{onset['median']:.1f} ({onset['mean']:.1f})",
                    "–" if onset["within_5"] is None else percent(onset["within_5"]),
                    *(f"{bonferroni[each]}" for each in ("original", "kept", "lost", "false")),
                ]
            )
    head = [
        "release",
        "usable pairs",
        "cases kept",
        "phecodes kept",
        "false cases",
        "onset off, median (mean)",
    ]
    head += ["within 5 years", "associations", "kept", "lost", "false"]
    first = next(iter(found.values()))
    effects = [
        [
            phecode,
            f"{effect:+.2f}",
            shown(first, phecode, "beta", "p_original"),
            *(shown(found["cells", k], phecode, "beta_anonymized", "p_anonymized") for k in ks),
        ]
        for phecode, effect in PLANTED.items()
    ]
    people = cohort.require_events()["patient"].n_unique()
    return (
        f"pyPheWAS's {people:,} made-up subjects with an ICD-9 code, `payload: [Dx]`. A case is a patient with a "
        "phecode (those above count too); a published node counts where all codes below it have the phecode. *Onset "
        "off*: years between the first age of a case and the middle of the first that is published with it. "
        "*Associations* of Dx by logistic regression, significant after Bonferroni's correction.\n\n"
        + table(head, rows)
        + "\n\nThe nine associations that the set's authors planted (log odds ratio), what is found (p) in the "
        "original and in releases by cells; –: not tested, for want of cases.\n\n"
        + table(["phecode", "planted", "original", *(f"k = {k}" for k in ks)], effects)
    )


def shown(tests: dict[str, Any], phecode: str, beta: str, p: str) -> str:
    row = tests.get(phecode, {})
    return "–" if row.get(p) is None else f"{row[beta]:+.2f} ({row[p]:.0e})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--k", default="2,5,10")
    given = parser.parse_args()
    ks = [int(each) for each in given.k.split(",")]
    command = f"python benchmarks/study_trajectories_phenotypes.py --data DIR --k {given.k}"
    with tempfile.TemporaryDirectory() as name:
        phecodes = given.data / "vocab" / "phecode_map_v1_2_icd9.csv.gz"
        body = section(planted(given.data), phecodes, ks, Path(name))
    put("phenotypes", "Phenotypes and associations on the release", command, body)


if __name__ == "__main__":
    main()
