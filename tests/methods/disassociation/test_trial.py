"""`partitioning: auto` of few patients: what a plain trial of all partitionings says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from leeward.cohort.cohort import Cohort
from leeward.engine import make
from leeward.methods.disassociation import Disassociation, method, trial
from leeward.randomness import Randomness
from leeward.release import Release, write
from leeward.runs.measure import measure
from leeward.runs.protect import protect
from leeward.verify import verify

WAYS: list[dict[str, Any]] = [
    {"partitioning": "fitted"},
    {"partitioning": "fitted", "max_cluster": 8},
    {"partitioning": "recut"},
    {"partitioning": "paper"},
]


def cohort_of(seed: int, *, patients: int = 80, shuffled: bool = False) -> Cohort:
    """Records of six codes at most, of 12 codes as frequent as 1/rank."""
    draw = np.random.Generator(np.random.Philox(seed))
    records = [draw.zipf(1.3 + 0.1 * (seed % 4), 6).clip(max=12).tolist() for _ in range(patients)]
    rows = [(p, f"c{code:02d}") for p, record in enumerate(records) for code in sorted(set(record))]
    events = pl.DataFrame(rows, schema=["patient", "code"], orient="row")
    events = events.sample(fraction=1, shuffle=True, seed=1) if shuffled else events
    return Cohort(events.with_columns(pl.col("code").cast(pl.Enum(events["code"].unique().sort()))))


def released(cohort: Cohort, out: Path, **parameters: Any) -> Release:
    made = Disassociation(k=3, m=2, **parameters).protect(cohort, randomness=Randomness.of(5))
    return Release.open(write(made, out))


def plain_loss(release: Release, cohort: Cohort) -> float:
    """The geometric mean of the errors that the release's own measures report."""
    wanted: list[Any] = [
        {"are": {"workload": "frequent", "min_support": 0.0125, "queries": 250}},
        {"are": {"workload": "random", "queries": 250}},
    ]
    errors = [max(each["are"], 0.001) for each in measure(release, cohort, wanted)["are"]["workloads"]]
    return round(float(np.log(errors).mean()), 9)


@pytest.mark.parametrize("seed", range(4))
def test_the_one_that_a_plain_trial_finds_best(seed: int, tmp_path: Path) -> None:
    cohort = cohort_of(seed)
    tried = [released(cohort, tmp_path / str(i), **way) for i, way in enumerate(WAYS)]
    best = min(tried, key=lambda each: plain_loss(each, cohort))
    chosen = released(cohort_of(seed, shuffled=True), tmp_path / "chosen")
    for name in ("partitioning", "max_cluster"):
        assert chosen.parameters[name] == best.parameters[name]
    assert chosen.table("chunks.parquet").collect().equals(best.table("chunks.parquet").collect())


def test_more_than_one_way_is_best_of_some_cohort(tmp_path: Path) -> None:
    found = [released(cohort_of(seed), tmp_path / str(seed)).parameters for seed in range(8)]
    assert len({(each["partitioning"], each["max_cluster"]) for each in found}) > 1


def test_a_limit_that_is_given_is_kept(tmp_path: Path) -> None:
    found = [released(cohort_of(seed), tmp_path / str(seed), max_cluster=20).parameters for seed in range(3)]
    assert [each["max_cluster"] for each in found] == [20] * 3


def test_threads_change_nothing() -> None:
    one, other = (
        Disassociation(k=3, m=2).protect(
            cohort_of(1), make("local", threads=threads), randomness=Randomness.of(5)
        )
        for threads in (1, 3)
    )
    assert one.parameters == other.parameters


def test_the_manifest_states_it_and_the_verifier_accepts_it(tmp_path: Path) -> None:
    for seed in range(3):
        out = tmp_path / str(seed)
        run = protect(cohort_of(seed), Disassociation(k=3, m=2, partitioning="auto"), out)
        checks = {check.name: check.passed for check in verify(run.path).checks}
        assert checks["parameters"] and checks["parameters_of_spec"]


@pytest.mark.parametrize(
    ("parameters", "records", "wanted"),
    [
        ({}, trial.FEW, True),
        ({}, trial.FEW + 1, False),
        ({"partitioning": "fitted"}, 100, False),
        ({"attacker": "algorithm"}, 100, False),
        ({"demographics": ("age",)}, 100, False),
        ({"partitions": 2}, 100, False),
        ({"partitions": 1}, 100, True),
    ],
)
def test_when_it_is_tried(parameters: dict[str, Any], records: int, wanted: bool) -> None:
    assert method.has_choice(Disassociation(k=3, **parameters), records) is wanted
