"""`attacker: algorithm`: fast equals plain, and for every known set the algorithm could have started from data with k
candidates."""

from __future__ import annotations

import json
import math
import os
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.methods.disassociation.shapes import cohort_of, rules_of, sets_of
from tests.oracles import ranked as oracle
from tests.oracles.disassociation import Parameters

from leeward.errors import BadInput
from leeward.methods.disassociation import Disassociation, ranked
from leeward.randomness import Randomness
from leeward.release import Release, write
from leeward.runs.estimate import estimate
from leeward.verify import verify

COHORTS = 300 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 40
CODES = 7
K = 3


def cohort(seed: int, most: int = 40) -> list[frozenset[int]]:
    """Records of a few codes, some of them alike."""
    draw = np.random.Generator(np.random.Philox(seed))
    patterns = [frozenset(draw.integers(0, CODES, 2).tolist()) for _ in range(4)]
    rows = []
    for _ in range(draw.integers(8, most)):
        own = frozenset(draw.integers(0, CODES, draw.integers(1, 3)).tolist())
        rows.append(own | patterns[draw.integers(0, 4)] if draw.random() < 0.6 else own)
    return rows


def drawn(seed: int) -> oracle.Draws:
    """Random draws that are remembered."""
    draw = np.random.Generator(np.random.Philox(seed))
    said: dict[object, float] = {}

    def coin(*what: object) -> float:
        return said.setdefault(what, float(draw.random()))

    return oracle.Draws(
        draw.permutation(CODES).tolist(),
        lambda path, code: coin("over", path, code) < ranked.PASSED_OVER,
        lambda level, path, code: int(math.log(1 - coin("more", level, path, code)) / math.log(ranked.STEP)),
    )


def coins_as_draws(coins: ranked.Coins) -> oracle.Draws:
    """The product's own draws."""

    def identity(path: oracle.Path) -> int:
        found = 1
        for code, held in path:
            found = int(ranked.mix(np.uint64(found ^ (2 * code + (2 if held else 3)))))
        return found

    def coin(what: int, path: oracle.Path, code: int) -> float:
        return float(
            ranked.uniform(np.uint64(coins.key), np.uint64(what), np.uint64(identity(path)), np.uint64(code))
        )

    return oracle.Draws(
        coins.order.tolist(),
        lambda path, code: coin(0, path, code) <= ranked.PASSED_OVER,
        lambda level, path, code: int(math.log(coin(level + 1, path, code)) / math.log(ranked.STEP)),
    )


@pytest.mark.parametrize("max_cluster", [6, 2])
def test_counts_equal_the_oracle(max_cluster: int) -> None:
    k = min(K, max_cluster)
    for seed in range(COHORTS):
        rows = cohort(seed, 60)
        sets, rules = sets_of(rows, CODES), rules_of(Parameters(k, 2, max_cluster), CODES)
        coins = ranked.coins_of(sets, k, Randomness.of(seed))
        shown = ranked.show(sets, ranked.split(sets, rules, coins), k, coins)
        wanted = oracle.make(rows, k, max_cluster, ranked.LEVELS, coins_as_draws(coins)).files()
        counts: list[list[tuple[int, int]]] = [[] for _ in shown.parent]
        for node, code, count in zip(shown.node, shown.code, shown.count, strict=True):
            counts[node].append((int(code), int(count)))
        found = sorted(zip(shown.records.tolist(), counts, strict=True))
        assert found == sorted((records, codes) for _, _, records, codes in wanted)


def test_the_algorithm_could_have_started_from_data_with_k_records_of_any_known_set() -> None:
    """Exact: the proof's data set is made for every set of up to three codes of a record, and run."""
    tried = suppressed = 0
    for seed in range(COHORTS):
        rows, draws = cohort(seed), drawn(seed + 1000)
        made = oracle.make(rows, K, 6, (2,), draws)
        files = made.files()
        known = {
            frozenset(c): owner
            for owner, row in enumerate(rows)
            for size in (1, 2, 3)
            for c in combinations(row, size)
        }
        for wanted, owner in known.items():
            other, its_draws = oracle.with_k_records(rows, made, draws, wanted, owner, K)
            assert all(other)
            assert sum(wanted <= row for row in other) >= K
            assert oracle.make(other, K, 6, (2,), its_draws).files() == files
            tried += 1
            suppressed += sum(wanted <= row for row in rows) < K
    assert suppressed > tried / 10


def released(tmp_path: Path, **more: object) -> Path:
    draw = np.random.Generator(np.random.Philox(5))
    rows = [
        tuple(sorted({f"c{code:02d}" for code in draw.zipf(1.4, draw.integers(1, 6)).clip(max=60)}))
        for _ in range(400)
    ]
    method = Disassociation(k=5, m=2, attacker="algorithm", **more)  # type: ignore[arg-type]  # real parameters
    return write(method.protect(cohort_of(rows), randomness=Randomness.of(1)), tmp_path / "out") / "share"


def test_chunks_of_several_codes_are_refuted_against_the_algorithm(tmp_path: Path) -> None:
    method = Disassociation(k=5, m=2)
    rows = [("c1", "c2"), ("c1", "c2", "c3"), ("c2", "c3")] * 20
    share = write(method.protect(cohort_of(rows), randomness=Randomness.of(1)), tmp_path / "out") / "share"
    manifest = json.loads((share / "release.json").read_text())
    counts = json.loads((released(tmp_path / "counts") / "release.json").read_text())
    manifest |= {name: counts[name] for name in ("guarantee", "parameters")}
    (share / "release.json").write_text(json.dumps(manifest, indent=2) + "\n")
    assert "single_codes" in {check.name for check in verify(share).failures}


def test_a_release_verifies_and_counts_frequent_codes_exactly(tmp_path: Path) -> None:
    share = released(tmp_path)
    checks = verify(share).checks
    assert all(check.passed for check in checks), [c.name for c in checks if not c.passed]
    assert {"single_codes", "candidates_of_pairs"} <= {check.name for check in checks}
    release = Release.open(share)
    assert release.parameters["partitioning"] == "ranked"
    assert "algorithm" in release.guarantee["attacker"]
    chunks = pl.read_parquet(share / "data" / "chunks.parquet")
    total = chunks.filter(pl.col("codes").list.first() == "c01").height
    found = estimate(share, ["c01"])
    assert found.expected == pytest.approx(total)
    assert found.low == total <= found.high


@pytest.mark.parametrize(
    "more", [{"nested": True}, {"sensitive": ("a",)}, {"partitioning": "paper"}, {"partitions": 2}]
)
def test_what_needs_several_codes_in_a_chunk_is_refused(more: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="attacker: algorithm"):
        Disassociation(attacker="algorithm", **more)  # type: ignore[arg-type]  # real parameters
