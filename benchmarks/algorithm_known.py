"""What `attacker: algorithm` of disassociation costs: counts, suppressed occurrences, candidates of known sets.

    python benchmarks/algorithm_known.py --data DIR [--k 5,25]

DIR is as for benchmarks/disassociation_quality.py. UCI served to choose the constants (development); pyPheWAS and
Eunomia took no part (evaluation). Each release is written and verified with its source.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import leeward as lw
from common import table, write_section
from leeward.cohort import Cohort

COLUMNS = [
    "data", "k", "attacker", "W1 1.25 %", "W1 .625 %", "W2 1 code", "2", "3", "4", "5", "in item chunks", "suppressed",
    "sets below k by the operation", "by the algorithm",
]  # fmt: skip
MEASURES: list[dict[str, dict[str, Any]]] = [
    {"are": {"workload": "frequent", "min_support": 0.0125}},
    {"are": {"workload": "frequent", "min_support": 0.00625}},
    {"are": {"workload": "random"}},
    {"placement": {}},
    {"risk": {}},
]


def cohorts(data: Path) -> dict[str, Cohort]:
    """UCI, pyPheWAS, Eunomia."""
    return {
        "UCI": lw.read(
            data / "uci-diabetes130" / "diabetic_data.csv.gz",
            columns={"patient": "patient_nbr", "code": ["diag_1", "diag_2", "diag_3"]},
            missing=["?"],
            vocabulary="icd9",
        ),
        "pyPheWAS": lw.read(
            data / "pyphewas-synthetic" / "icds.csv.gz",
            columns={"patient": "id", "code": "ICD_CODE", "vocabulary": "ICD_TYPE"},
        ),
        "Eunomia": lw.read(
            data / "eunomia-gibleed" / "CONDITION_OCCURRENCE.csv.gz",
            format="events",
            columns={"patient": "PERSON_ID", "code": "CONDITION_CONCEPT_ID"},
        ),
    }


def row(name: str, cohort: Cohort, k: int, attacker: str) -> list[object]:
    """One release's figures."""
    with tempfile.TemporaryDirectory() as folder:
        method = lw.Disassociation(k=k, m=2, attacker=attacker)  # type: ignore[arg-type]  # one of two words
        done = lw.protect(cohort, method, Path(folder) / "out", seed=1, measures=MEASURES)
        assert all(check.passed for check in done.verification.checks)
    found, facts = done.measures, done.measures["method"]
    after = found["risk"]["after"]
    line: list[object] = [
        name,
        k,
        attacker,
        *(f"{each['are']:.4f}" for each in found["are"]["workloads"]),
        f"{facts['item_occurrences'] / facts['occurrences']:.1%}",
        f"{facts.get('suppressed_occurrences', 0) / facts['occurrences']:.2%}",
        *(f"{after[key]} of {after['sets']:,}" for key in ("below_k", "below_k_algorithm_known")),
    ]
    print(*line, sep=" | ", flush=True)
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--k", default="5,25")
    given = parser.parse_args()
    rows = [
        row(name, cohort, k, attacker)
        for name, cohort in cohorts(given.data).items()
        for k in map(int, given.k.split(","))
        for attacker in ("operation", "algorithm")
    ]
    write_section(
        "disassociation-algorithm-known",
        "Disassociation: an attacker who knows the algorithm",
        "python benchmarks/algorithm_known.py --data DIR",
        table(COLUMNS, rows)
        + "\n\nARE with the prior `occupancy`, m = 2. `operation` is the default (`fitted`), `algorithm` the option; "
        "known sets are those with the rarest codes among sets of up to two codes drawn from patients.",
    )


if __name__ == "__main__":
    main()
