"""Risk before and after release against plain counts."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.published import running_example, running_records, write

from leeward.analysis import risk
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.disassociation.measures.published import read
from leeward.methods.disassociation.measures.risk import knowledge_of_codes, risk_after

RECORDS = st.lists(st.frozensets(st.integers(0, 7), min_size=1, max_size=6), min_size=1, max_size=40)


def code_sets(records: list[frozenset[int]] | list[frozenset[str]]) -> CodeSets:
    codes = sorted({str(c) for r in records for c in r})
    index = {code: i for i, code in enumerate(codes)}
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in records])]).astype(np.int64)
    values = np.array([index[c] for r in records for c in sorted(map(str, r))], np.int32)
    return CodeSets(offsets, values, tuple(codes), pl.Series(range(len(records))))


@given(records=RECORDS, k=st.integers(2, 5))
def test_risk_before_equals_plain_counts(records: list[frozenset[int]], k: int) -> None:
    found = risk.risk_before(code_sets(records), k, seed=1)
    for row in found["by_m"]:
        m = row["m"]
        support = {s: sum(set(s) <= r for r in records) for r in records for s in combinations(sorted(r), m)}
        assert row["sets"] == len(support)
        assert row["sets_in_one_record_share"] == pytest.approx(
            sum(n == 1 for n in support.values()) / len(support)
        )
        assert row["sets_below_k_share"] == pytest.approx(sum(n < k for n in support.values()) / len(support))
        assert sum(each["share"] for each in row["sets_by_support"]) == pytest.approx(1)
        known = {s: sum(set(s) <= r for r in records) for r in records for n in range(1, m + 1)
                 for s in combinations(sorted(r), n)}  # fmt: skip
        rarest = [min(known[s] for n in range(1, m + 1) for s in combinations(sorted(r), n)) for r in records]
        assert row["patients"] == sum(len(r) >= m for r in records)
        assert row["unique"] == sum(n == 1 for n in rarest)
        assert row["below_k"] == sum(n < k for n in rarest)
        assert row["exact"] is row["patients_exact"] is True
    shares = [row["below_k_share"] for row in found["by_m"]]
    assert shares == sorted(shares)  # more knowledge never makes it safer
    assert len(found["by_m"]) == min(5, max(map(len, records)))
    assert found["whole_set"]["unique"] == sum(records.count(r) == 1 for r in records)
    assert found["whole_set"]["below_k"] == sum(records.count(r) < k for r in records)
    json.dumps(found)


def many_records() -> list[frozenset[int]]:
    generator = np.random.Generator(np.random.Philox(8))
    return [frozenset(generator.integers(0, 60, 6).tolist()) for _ in range(3000)]


def test_a_sample_keeps_supports_whole_and_is_near_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = code_sets(many_records())
    exact = risk.risk_before(sets, 5, seed=1)
    monkeypatch.setattr(risk, "MOST_SUBSETS", 20_000)
    sampled = risk.risk_before(sets, 5, seed=1)
    assert sampled == risk.risk_before(sets, 5, seed=1)
    assert [row["exact"] for row in sampled["by_m"]] == [True, True, False, False, True]
    assert [row["patients_exact"] for row in sampled["by_m"]] == [True, True, False, False, False]
    for one, other in zip(exact["by_m"], sampled["by_m"], strict=True):
        assert other["sets"] <= one["sets"]
        assert other["sets_below_k_share"] == pytest.approx(one["sets_below_k_share"], abs=0.06)
        assert other["below_k_share"] == pytest.approx(one["below_k_share"], abs=0.05)
        assert other["unique_share"] == pytest.approx(one["unique_share"], abs=0.05)


@given(records=RECORDS, k=st.integers(2, 5))
def test_every_way_to_count_agrees(records: list[frozenset[int]], k: int) -> None:
    """Pairs by table or by keys; patients by all their sets or one by one (here the sample holds
    everybody)."""
    sets = code_sets(records)
    exact = risk.risk_before(sets, k, seed=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(risk, "TABLE_CELLS", 0)
        assert risk.risk_before(sets, k, seed=1) == exact
        patch.setattr(risk, "MOST_SUBSETS", 0)
        one_by_one = risk.risk_before(sets, k, seed=1)["by_m"]
    for one, other in zip(exact["by_m"], one_by_one, strict=True):
        assert [one[key] for key in ("unique", "below_k")] == [other[key] for key in ("unique", "below_k")]


def test_hashed_keys_count_like_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes so many that sets of five are no 64-bit numbers any more."""
    wide = [frozenset(c * 200 for c in r) for r in many_records()]
    sets, narrow = code_sets(wide), code_sets(many_records())
    padded = CodeSets(
        sets.offsets, sets.values, sets.codes + tuple(f"z{i}" for i in range(12_000)), sets.patients
    )
    assert len(padded.codes) ** 5 > 2**63
    one, other = risk.risk_before(padded, 5, seed=1)["by_m"], risk.risk_before(narrow, 5, seed=1)["by_m"]
    for a, b in zip(one, other, strict=True):
        assert (a["sets"], a["unique"], a["below_k"]) == (b["sets"], b["unique"], b["below_k"])


def test_after_release_the_running_example_leaves_three_candidates(tmp_path: Path) -> None:
    published = read(write(tmp_path / "out", running_example(), 3, 2))
    found = risk_after(knowledge_of_codes(published, code_sets(running_records())), seed=1)
    assert found["smallest_candidates"] == 3
    assert found["below_k"] == 0


def test_keys_are_counted_with_the_least_of_each_owner() -> None:
    generator = np.random.Generator(np.random.Philox(3))
    keys = generator.zipf(1.3, 30_000).astype(np.uint64)
    owners = generator.integers(0, 2_000, len(keys)).astype(np.int32)
    smallest = np.full(2_000, risk.NEVER)
    by_support = risk.count_keys(keys, owners, smallest)
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    expected = np.full(2_000, risk.NEVER)
    np.minimum.at(expected, owners, counts[place])
    assert by_support.tolist() == np.bincount(counts).tolist()
    assert smallest.tolist() == expected.tolist()
    assert risk.count_keys(keys, owners[:0], smallest[:0]).tolist() == by_support.tolist()
