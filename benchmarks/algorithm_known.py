"""What the attacker of disassociation costs: counts, suppressed occurrences, known sets with fewer than k candidates.

    python benchmarks/algorithm_known.py --data DIR [--k 5,10] [--only NAME]

DIR is as for benchmarks/disassociation_quality.py. UCI served to choose the constants (development); claims (`leeward
synth claims`, 20,000 patients, seed 1), pyPheWAS and Eunomia took no part (evaluation). Each release is written and
verified with its source. Known sets are counted one by one: every code and every pair of codes of some patient, with
the patient's exact demographics where these are released.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import leeward as lw
from common import table, write_section
from leeward.analysis.demographics.joint import records_in_release
from leeward.cohort import Cohort
from leeward.methods.disassociation.measures import name_codes
from leeward.methods.disassociation.measures.estimates import read_once
from leeward.methods.disassociation.measures.risk import knowledge_of
from leeward.release import Release
from leeward.synthetic.claims import write_claims
from study_whole_patient import uci

COLUMNS = [
    "data", "k", "attacker", "W1 1.25 %", "W1 .625 %", "W2 1 code", "2", "3", "4", "5", "in item chunks", "suppressed",
    "codes below k", "pairs below k", "codes, all that is told", "pairs, all that is told",
]  # fmt: skip
MEASURES: list[dict[str, dict[str, Any]]] = [
    {"are": {"workload": "frequent", "min_support": 0.0125}},
    {"are": {"workload": "frequent", "min_support": 0.00625}},
    {"are": {"workload": "random", "queries": 1000}},
    {"placement": {}},
]
ATTACKERS = ("operation", "counts", "rules", "algorithm")
KEEP = {"age": 10, "sex": "exact"}


def cohorts(data: Path, folder: Path) -> dict[str, Cohort]:
    """UCI, claims, pyPheWAS, Eunomia."""
    write_claims(folder / "claims.csv", 20_000, seed=1)
    return {
        "UCI": uci(data),
        "claims": lw.read(
            folder / "claims.csv", columns={"patient": "patient", "code": [f"diag_{i}" for i in range(1, 11)]}
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


def row(name: str, cohort: Cohort, k: int, attacker: str, asked: dict[str, Any]) -> list[object]:
    """One release's figures."""
    with tempfile.TemporaryDirectory() as folder:
        method = lw.Disassociation(k=k, m=2, attacker=attacker, **asked)  # type: ignore[arg-type]  # real parameters
        done = lw.protect(cohort, method, Path(folder) / "out", seed=1, measures=MEASURES)
        assert all(check.passed for check in done.verification.checks)
        told = below_k(Release.open(Path(folder) / "out" / "share"), cohort)
    found, facts = done.measures, done.measures["method"]
    line: list[object] = [
        name,
        k,
        attacker,
        *(f"{each['are']:.4f}" for each in found["are"]["workloads"]),
        f"{facts['item_occurrences'] / facts['occurrences']:.1%}",
        f"{facts.get('suppressed_occurrences', 0) / facts['occurrences']:.2%}",
        *told,
    ]
    print(*line, sep=" | ", flush=True)
    return line


def below_k(release: Release, cohort: Cohort) -> list[str]:
    """Codes, and pairs, of some patient with fewer than k candidates: for the attacker of the guarantee, and for one
    who reads all that counts and lists tell. Those that the release shows nowhere have none and do not count."""
    sets = records_in_release(release, cohort, name_codes(release, cohort))
    attacker = knowledge_of(release, read_once(release), cohort, sets)
    width = len(sets.codes)
    singles, pairs = [], []
    for number, low, high in zip(attacker.number, sets.offsets[:-1], sets.offsets[1:], strict=True):
        codes = np.unique(sets.values[low:high]).astype(np.int64)
        first, second = np.triu_indices(len(codes), 1)
        singles.append(number * width + codes)
        pairs.append((number * width + codes[first]) * width + codes[second])
    columns = []
    for size, found in enumerate((singles, pairs), 1):
        keys = np.unique(np.concatenate(found))
        number, codes = (
            keys // width**size,
            np.stack([keys // width**place % width for place in range(size)], axis=1),
        )
        queries = list(np.sort(attacker.translate[codes], axis=1))
        shown = np.array([query[0] >= 0 for query in queries])
        plain, capped = attacker.candidates(
            number[shown], [q for q, s in zip(queries, shown, strict=True) if s]
        )
        k, there = attacker.published.k, plain > 0
        columns.append([f"{int((each[there] < k).sum()):,} of {len(keys):,}" for each in (plain, capped)])
    return [columns[size][known] for known in range(2) for size in range(2)]


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
    asked: dict[str, tuple[Cohort, dict[str, Any]]] = {name: (cohort, {}) for name, cohort in known.items()}
    asked["UCI, age × sex"] = known["UCI"], {"demographics": tuple(KEEP), "keep": KEEP}
    rows = [
        row(name, cohort, k, attacker, more)
        for name, (cohort, more) in asked.items()
        if name.startswith(given.only)
        for k in map(int, given.k.split(","))
        for attacker in (ATTACKERS[:-1] if more else ATTACKERS)
    ]
    if given.only:
        return
    write_section(
        "disassociation-algorithm-known",
        "Disassociation: an attacker who knows the algorithm",
        "python benchmarks/algorithm_known.py --data DIR",
        table(COLUMNS, rows)
        + "\n\nARE with the prior `occupancy`, m = 2, partitioning `fitted`. Sets below k: every code, and every pair "
        "of codes, of some patient (with the exact demographics), for the attacker of the guarantee, and for one who "
        "reads all that counts, lists and joint clusters tell.",
    )


if __name__ == "__main__":
    main()
