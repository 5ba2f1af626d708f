"""Disassociation on real and dense data: what is kept, for k, m, levels, partitionings, and with re-cut clusters.

    python benchmarks/disassociation_quality.py --data DIR

DIR holds `uci-diabetes130/` (130 US hospitals, UCI machine learning repository), `pyphewas-synthetic/` (the pyPheWAS
repository's synthetic events) and `eunomia-gibleed/` (OHDSI Eunomia); a cohort of `leeward synth codes` with 12 codes
a patient is made up. Each release is written, verified from its files with the source, and measured.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import leeward as lw
from common import table, write_page
from leeward.cohort import Cohort
from leeward.synthetic import write_codes

COLUMNS = [
    "data", "k", "m", "policy", "partitioning", "recut", "clusters", "in item chunks", "ARE ≥ 1.25 %",
    "ARE ≥ 0.625 %", "MRE within ±5 % (graded)", "patients wholly in an item chunk",
    "empty-item-chunk condition", "verified",
]  # fmt: skip
WORKLOADS = [
    {"are": {"workload": "frequent", "min_support": 0.0125}},
    {"are": {"workload": "frequent", "min_support": 0.00625}},
    {"mre": {}},
    {"placement": {}},
]


def row(name: str, cohort: Cohort, partitioning: str = "auto", **parameters: Any) -> list[object]:
    """One release's figures."""
    method = lw.Disassociation(partitioning=partitioning, **parameters)  # type: ignore[arg-type]  # a real one
    with tempfile.TemporaryDirectory() as folder:
        result = lw.protect(cohort, method, Path(folder) / "out", seed=1, measures=WORKLOADS)
        facts = result.measures["method"]
        found = result.measures
        checks = result.verification.checks
    ares = [f"{w['are']:.4f}" for w in found["are"]["workloads"]]
    narrow = f"{found['mre']['by_prior']['graded']['within_5_percent']:.1%}"
    line: list[object] = [
        name,
        method.k,
        method.m,
        method.policy,
        method.chosen_partitioning,
        "no" if method.chosen_partitioning == "paper" else "yes",
        facts["clusters"],
        f"{facts['item_occurrences'] / facts['occurrences']:.1%}",
        *ares,
        narrow,
        facts["item_only_records"],
        facts["empty_item_chunk_condition_fired"],
        f"{sum(c.passed for c in checks)}/{len(checks)}",
    ]
    print(line, flush=True)
    return line


def uci(data: Path) -> list[list[object]]:
    cohort = lw.read(
        data / "uci-diabetes130" / "diabetic_data.csv.gz",
        columns={"patient": "patient_nbr", "code": ["diag_1", "diag_2", "diag_3"]},
        missing=["?"],
        vocabulary="icd9",
    )
    paper = {"partitioning": "paper"}
    rows = []
    for k in (2, 3, 5, 10, 25):
        rows += [row("UCI", cohort, k=k, m=2, policy="hierarchy:1", **extra) for extra in ({}, paper)]
    for level in (2, 3):
        rows += [row("UCI", cohort, k=5, m=2, policy=f"hierarchy:{level}", **extra) for extra in ({}, paper)]
    return rows


def dense(data: Path) -> list[list[object]]:
    rows = []
    phewas = lw.read(
        data / "pyphewas-synthetic" / "icds.csv.gz",
        columns={"patient": "id", "code": "ICD_CODE", "vocabulary": "ICD_TYPE"},
    )
    eunomia = lw.read(
        data / "eunomia-gibleed" / "CONDITION_OCCURRENCE.csv.gz",
        format="events",
        columns={"patient": "PERSON_ID", "code": "CONDITION_CONCEPT_ID"},
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "codes.parquet"
        write_codes(file, 25_000, mean=12, seed=1)
        made = lw.read(file, vocabulary="icd9")
        for name, cohort in (("pyPheWAS", phewas), ("Eunomia", eunomia), ("synthetic, 12 codes", made)):
            policy = "hierarchy:1" if name.startswith("synthetic") else "frequency:0.05"
            for m in (2, 3, 5):
                rows += [
                    row(name, cohort, k=5, m=m, policy=policy, **extra)
                    for extra in ({}, {"partitioning": "paper"})
                ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    data = parser.parse_args().data
    body = table(COLUMNS, uci(data) + dense(data))
    write_page(
        "disassociation-quality",
        "Disassociation: what is kept",
        "python benchmarks/disassociation_quality.py --data DIR",
        body
        + "\n\nARE with the prior `occupancy` on item-chunk counts, over the frequent itemsets of the source at that "
        "support. `paper` is HorPart as published, which splits no part below 2k; `fitted`, the default "
        "from k = 3 on, is compared with both in Disassociation: partitionings.",
    )


if __name__ == "__main__":
    main()
