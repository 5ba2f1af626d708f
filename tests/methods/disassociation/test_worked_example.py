"""The running example of the paper, docs/methods/disassociation.md#worked-example, from the kernels to the release
folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.methods.disassociation.shapes import (
    POLICY,
    cohort_of,
    fast,
    leaf_shapes,
    rules_of,
    running_example,
    sets_of,
    shared_of,
)
from tests.oracles import disassociation as oracle

from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.measures.placement import covers
from leeward.methods.disassociation.measures.published import read
from leeward.methods.disassociation.pipeline import disassociate
from leeward.methods.disassociation.rules import Workers
from leeward.randomness import Randomness
from leeward.release import tables, write
from leeward.runs import protect as workflow
from leeward.runs.estimate import estimate

RECORDS = running_example()
CODES = sorted({code for record in RECORDS for code in record})
NUMBER = {code: i for i, code in enumerate(CODES)}
ROWS = [frozenset(NUMBER[c] for c in record) for record in RECORDS]
CONSTRAINT = {NUMBER[c]: u for u, codes in enumerate(POLICY.values()) for c in codes.split()}
PARAMETERS = oracle.Parameters(k=3, m=2, max_cluster=6, constraint=CONSTRAINT)


def names(codes: tuple[int, ...]) -> set[str]:
    return {CODES[c] for c in codes}


def test_the_running_example_of_the_paper() -> None:
    done = fast(ROWS, len(CODES), PARAMETERS)
    p1, p2 = leaf_shapes(done)
    assert p1[0] == (0, 1, 2, 3, 4)
    assert p2[0] == (5, 6, 7, 8, 9)
    assert [names(c) for c in p1[1]] == [{"296.00", "296.01", "296.02"}, {"692.71", "695.10"}]
    assert [names(c) for c in p2[1]] == [{"294.10", "295.04", "296.03"}]
    assert names(p1[2]) == {"401.0"}
    assert names(p2[2]) == {"404.00", "480.1"}
    assert [[names(tuple(c)) for c in chunks.values()] for chunks in shared_of(done).values()] == [
        [{"834.0", "944.01"}]
    ]


def test_item_chunks_before_refining() -> None:
    rules = rules_of(PARAMETERS, len(CODES), max_passes=0)
    p1, p2 = leaf_shapes(disassociate(sets_of(ROWS, len(CODES)), rules, Workers(1)))
    assert names(p1[2]) == {"401.0", "834.0", "944.01"}
    assert names(p2[2]) == {"404.00", "480.1", "834.0", "944.01"}


def test_covers_of_the_running_example() -> None:
    leaves, _ = oracle.disassociate(ROWS, PARAMETERS)
    found = {
        (CODES[x], CODES[y])
        for leaf in leaves
        for chunk in leaf.chunks
        for x, y in oracle.covers(oracle.project([ROWS[r] for r in leaf.ids], set(chunk)), chunk)
    }
    assert found == {("296.01", "296.00"), ("296.02", "296.00"), ("695.10", "692.71")}


def test_safe_mode_of_the_running_example() -> None:
    rules = rules_of(PARAMETERS, len(CODES), safe=True)
    p1, p2 = leaf_shapes(disassociate(sets_of(ROWS, len(CODES)), rules, Workers(1)))
    assert sorted(sorted(names(c)) for c in p1[1]) == [
        ["296.00"],
        ["296.01", "296.02"],
        ["692.71"],
        ["695.10"],
    ]
    assert [names(c) for c in p2[1]] == [{"294.10", "295.04", "296.03"}]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("running") / "out"
    policy = folder.parent / "policy.csv"
    rows = [f"{name},{code}" for name, codes in POLICY.items() for code in codes.split()]
    policy.write_text("\n".join(["constraint,code", *rows]), encoding="utf-8")
    method = Disassociation(
        k=3, m=2, attacker="operation", policy=f"file:{policy}", partitioning="paper", max_cluster=6,
        reconstructions=3,
    )  # fmt: skip
    workflow.protect(cohort_of(RECORDS, "icd9"), method, folder, seed=1)
    return folder


@pytest.mark.parametrize(
    ("codes", "low", "expected", "high"),
    [
        ("296.00 692.71", 4, 4, 4),
        ("296.01 692.71", 3, 3.2, 4),
        ("296.01 834.0", 0, 1.6, 4),
        ("834.0 944.01", 3, 3, 3),
        ("401.0", 1, 1.5, 5),
        ("295.04 480.1", 0, 1.2, 4),
        ("294.10 295.04 296.03", 2, 2, 2),
        ("296.00 294.10", 0, 0, 0),
    ],
)
def test_estimates_from_the_released_files(
    release: Path, codes: str, low: int, expected: float, high: int
) -> None:
    found = estimate(release, codes.split(), prior="uniform")
    assert (found.low, found.high) == (low, high)
    assert found.expected == pytest.approx(expected)


def test_the_release_counts_its_cover_pairs(release: Path) -> None:
    found = covers(read(release))
    assert (found["pairs"], found["chunks"], found["of_chunks"]) == (3, 2, 4)


def test_a_release_of_several_row_groups_is_read_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Disassociation(k=3, m=2, policy="hierarchy:1").protect(
        cohort_of(RECORDS, "icd9"), randomness=Randomness.of(1)
    )
    whole = read(write(made, tmp_path / "whole"))
    monkeypatch.setattr(tables, "ROWS_A_GROUP", 4)
    parted = read(write(made, tmp_path / "parted"))
    assert parted.codes == whole.codes
    assert (parted.bits == whole.bits).all() and (parted.entry_chunk == whole.entry_chunk).all()
