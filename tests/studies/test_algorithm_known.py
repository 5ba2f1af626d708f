"""What the attacker of disassociation costs: known sets with fewer than k candidates are those of a plain count."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.attacks import disassociation, whole_patient
from tests.attacks.test_whole_patient import cohort_of

from leeward.cohort import Cohort
from leeward.methods.disassociation import Disassociation
from leeward.randomness import Randomness
from leeward.release import Release, write

ROOT = Path(__file__).resolve().parents[2]
K, M, CODES = 4, 2, 150


def patients() -> Cohort:
    """400 patients with three codes each, most of them rare."""
    draw = np.random.default_rng(1)
    weights = 1 / np.arange(1, CODES + 1)
    held = [draw.choice(CODES, 3, False, weights / weights.sum()) for _ in range(400)]
    return cohort_of(
        [({"age": 20 + 20 * (i % 2), "sex": "FM"[i // 2 % 2]}, [f"c{code:03}" for code in codes])
         for i, codes in enumerate(held)]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("attacker", "names"),
    [(each, names) for each in ("operation", "counts", "rules") for names in ((), ("age", "sex"))]
    + [("algorithm", ())],
)
def test_known_sets_below_k_are_those_of_a_plain_count(
    attacker: str, names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from algorithm_known import below_k

    cohort = patients()
    asked = {"demographics": names, "keep": {"age": 20, "sex": "exact"}} if names else {}
    method = Disassociation(k=K, m=M, attacker=attacker, **asked)  # type: ignore[arg-type]  # real parameters
    share = write(method.protect(cohort, randomness=Randomness.of(7)), tmp_path / "out") / "share"
    class_of, top = {}, {0: disassociation.read(share)}
    if names:
        top = whole_patient.read(share).top
        placed = pl.read_parquet(share.parent / "custody" / "data" / "clusters.parquet")
        nodes = pl.read_parquet(share / "data" / "nodes.parquet")
        class_of = dict(placed.join(nodes, on="node").select("patient", "class").iter_rows())
    cap = disassociation.counted_from(share) - 1
    found = []
    for size in (1, 2):
        known = {
            (class_of.get(patient, 0), frozenset(chosen))
            for patient, codes in cohort.require_events().group_by("patient").agg("code").iter_rows()
            for chosen in combinations(codes, size)
        }
        counts = [
            [sum(node.candidates(codes, most) for node in top[number]) for number, codes in known]
            for most in (cap, cap if attacker == "rules" else None)
        ]
        found.append((len(known), *(sum(0 < n < K for n in each) for each in counts)))
    release = Release.open(share.parent)
    assert [below_k(release, cohort, size) for size in (1, 2)] == found
    (_, code, code_by_totals), (_, pair, pair_by_totals) = found
    assert (code > 0, code_by_totals > 0, pair > 0) == (attacker == "operation",) * 3
    assert pair_by_totals > 0 or (attacker, names) != ("counts", ("age", "sex"))
