"""Knowing the exact demographics and up to m codes finds k candidates in the product's releases, fewer in weak ones."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.attacks.whole_patient import Known, attack, knowledge, read
from tests.methods.disassociation.test_whole_patient import cohort_of, people
from tests.oracles.candidates import Cluster, candidates

from leeward.cohort.cohort import Cohort
from leeward.methods.disassociation import Disassociation, method
from leeward.methods.disassociation.rules import rules_of
from leeward.randomness import Randomness
from leeward.release import write

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
COHORTS = 200 if THOROUGH else 10
K, M = 3, 2
NAMES = ("age", "sex")


def known_of(cohort: Cohort, names: tuple[str, ...] = NAMES) -> list[Known]:
    """What a neighbour knows of each patient: everything that the file has."""
    assert cohort.patients is not None
    values = {row["patient"]: row for row in cohort.patients.rows(named=True)}
    held = cohort.require_events().group_by("patient").agg(pl.col("code").cast(pl.String)).rows()
    return [
        (
            {n: "(missing)" if values[p][n] is None else str(values[p][n]) for n in names},
            frozenset(codes),
        )
        for p, codes in held
    ]


def small_cohort(seed: int) -> Cohort:
    """Nine to fourteen patients of few ages with one to three of six codes, some of whom share a pattern."""
    draw = np.random.Generator(np.random.Philox(seed))
    patterns = [frozenset(draw.integers(0, 6, 2).tolist()) for _ in range(3)]
    found = []
    for _ in range(draw.integers(9, 15)):
        own = frozenset(draw.integers(0, 6, draw.integers(1, 3)).tolist())
        codes = own | patterns[draw.integers(0, 3)] if draw.random() < 0.6 else own
        demographics = {"age": int(draw.integers(3, 8)) * 10, "sex": "FM"[int(draw.integers(0, 2))]}
        found.append((demographics, tuple(f"c{code}" for code in sorted(codes))))
    return cohort_of(found)


def released(cohort: Cohort, out: Path, seed: int = 7, **parameters: object) -> Path:
    chosen = Disassociation(**{"k": K, "m": M, "demographics": NAMES, **parameters})  # type: ignore[arg-type]
    return write(chosen.protect(cohort, randomness=Randomness.of(seed)), out) / "share"


def exact_candidates(share: Path, known: Known) -> int:
    """Candidates by trying every way to put the subrecords of every cluster of a fitting class together."""
    release = read(share)
    number: dict[str, int] = {}

    def numbered(codes: frozenset[str]) -> frozenset[int]:
        return frozenset(number.setdefault(code, len(number)) for code in codes)

    fitting = release.fitting(known[0])
    if not known[1]:
        return sum(release.records[c] for c in fitting)
    clusters = [
        Cluster(
            node.records,
            [[numbered(s) for s in chunk] for chunk in node.chunks.values()],
            numbered(node.items),
        )
        for c in fitting
        for node in release.top.get(c, [])
    ]
    return candidates(clusters, numbered(known[1]), item_most=sum(release.records.values()))


def test_in_200_small_cohorts_nobody_has_fewer_than_k_candidates_by_exact_counting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exhaustive: every patient, every set of up to m codes; 10 cohorts, 200 in the thorough profile."""
    # small clusters and none joined: every way to put one together is tried
    monkeypatch.setattr(method, "rules_of", lambda *given: rules_of(*given)._replace(max_passes=0))
    tried = 0
    for seed in range(COHORTS):
        cohort = small_cohort(seed)
        share = released(cohort, tmp_path / str(seed), seed, partitioning="paper")
        pieces = {(tuple(d.items()), codes) for d, held in known_of(cohort) for codes in knowledge(held, M)}
        for demographics, codes in sorted(pieces, key=str):
            assert exact_candidates(share, (dict(demographics), codes)) >= K
            tried += 1
    assert tried > 20 * COHORTS


def test_with_joint_clusters_every_piece_of_knowledge_has_k_candidates(tmp_path: Path) -> None:
    for seed in range(COHORTS):
        cohort = small_cohort(1000 + seed)
        share = released(cohort, tmp_path / str(seed), seed, small=("merge", "suppress")[seed % 2])
        assert attack(share, known_of(cohort)).below_k == 0


@pytest.mark.parametrize("small", ["merge", "suppress"])
def test_a_larger_cohort_with_post_codes_and_missing_ages(small: str, tmp_path: Path) -> None:
    cohort, names = people(400, seed=9), ("age", "sex", "zip")
    keep = {"age": 10, "zip": 4}
    share = released(cohort, tmp_path / "out", k=5, demographics=names, keep=keep, small=small)
    found = attack(share, known_of(cohort, names))
    assert found.sets > 1500 and found.below_k == 0 and found.smallest >= 5


def test_codes_and_demographics_side_by_side_are_found_out(tmp_path: Path) -> None:
    """Deliberately weak: clusters over all patients, to which the demographics of their patients are added."""
    cohort = people(300, seed=3)
    share = released(cohort, tmp_path / "out", keep={"age": "all", "sex": "all"})
    nodes = pl.read_parquet(share / "data/nodes.parquet")
    assert cohort.patients is not None
    alone = cohort.patients.group_by("age", "sex").len().filter(pl.col("len") < K)
    assert nodes["class"].n_unique() == 1 and attack(share, known_of(cohort)).below_k == 0
    classes = (
        cohort.patients.select(pl.col("age").cast(pl.String).fill_null("(missing)"), "sex")
        .group_by("age", "sex", maintain_order=True)
        .len("records")
    )
    labels = classes.with_row_index("class").select("class", "age", "sex", "records")
    labels.write_parquet(share / "data/classes.parquet")
    for name in NAMES:
        lines = "".join(f"{label},*\n" for label in labels[name].unique())
        (share / "data/hierarchies" / f"{name}.csv").write_text("node,parent\n*,\n" + lines)
    assert attack(share, known_of(cohort)).below_k >= alone.height


def test_a_release_with_a_smaller_k_than_promised_is_found_out(tmp_path: Path) -> None:
    cohort = people(150)
    share = released(cohort, tmp_path / "out", k=2, keep={"age": 5})
    assert attack(share, known_of(cohort), k=5).below_k > 50


def test_what_a_neighbour_knows() -> None:
    sizes = [len(s) for s in knowledge(frozenset("abc"), 2)]
    assert sizes == [0, 1, 1, 1, 2, 2, 2] == [len(c) for n in range(3) for c in combinations("abc", n)]
