"""Sensitive codes: what the files tell of them, to whom knows other codes of a patient and the algorithm too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.methods.disassociation.shapes import cohort_of

from leeward.methods.disassociation import Disassociation
from leeward.randomness import Randomness
from leeward.release import write

SENSITIVE = ("s0", "s1", "s2")


def patients(seed: int, n: int = 120) -> list[frozenset[str]]:
    """Records of some of 30 codes and some of three sensitive ones, s0 always with c00."""
    draw = np.random.Generator(np.random.Philox(seed))
    rows = []
    for _ in range(n):
        codes = {f"c{code:02d}" for code in draw.zipf(1.5, draw.integers(1, 7)).clip(max=30)}
        more = {
            code for code, share in zip(SENSITIVE, (0.0, 0.3, 0.03), strict=True) if draw.random() < share
        }
        if draw.random() < 0.1:
            more |= {"c00", "s0"}
        rows.append(frozenset(codes | more))
    return rows


def released(rows: list[frozenset[str]], out: Path, partitioning: str) -> Path:
    method = Disassociation(k=4, m=2, partitioning=partitioning, sensitive=SENSITIVE)  # type: ignore[arg-type]
    return write(
        method.protect(cohort_of([*map(tuple, map(sorted, rows))]), randomness=Randomness.of(7)), out
    )


def without(rows: list[frozenset[str]], patient: int, cluster: set[int]) -> list[frozenset[str]]:
    """The records with the patient's sensitive codes given to others of the cluster, so far as these lack them."""
    changed = list(rows)
    for code in rows[patient] & frozenset(SENSITIVE):
        changed[patient] -= {code}
        other = next((p for p in sorted(cluster - {patient}) if code not in changed[p]), None)
        if other is not None:
            changed[other] |= {code}
    return changed


@pytest.mark.parametrize("partitioning", ["fitted", "recut", "paper"])
@pytest.mark.parametrize("seed", range(3))
def test_without_a_patients_sensitive_codes_the_files_are_the_same(
    partitioning: str, seed: int, tmp_path: Path
) -> None:
    """So nobody who knows other codes of the patient can be sure, knowing the algorithm too."""
    rows = patients(seed)
    out = released(rows, tmp_path / "out", partitioning)
    clusters = pl.read_parquet(out / "custody" / "data" / "clusters.parquet")
    members = {node[0]: set(part["patient"]) for node, part in clusters.group_by("node")}
    node_of = dict(clusters.select("patient", "node").iter_rows())
    holders = [p for p, row in enumerate(rows) if row & set(SENSITIVE) and row - set(SENSITIVE)]
    files = [file.relative_to(out) for file in sorted((out / "share" / "data").iterdir())]
    for patient in holders[:: max(1, len(holders) // 8)]:
        other = without(rows, patient, members[node_of[patient]])
        assert not other[patient] & set(SENSITIVE)
        again = released(other, tmp_path / f"{patient}", partitioning)
        assert all((again / file).read_bytes() == (out / file).read_bytes() for file in files)
