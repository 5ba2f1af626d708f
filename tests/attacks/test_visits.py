"""Knowing a visit, or m codes of it, finds k records in the product's releases, fewer in deliberately weak ones."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.attacks.visits import Codes, attack, join
from tests.verify.test_visits import made_up

from leeward.methods.visits import Visits
from leeward.runs.extract import extract
from leeward.runs.protect import protect


def released(out: Path, **parameters: object) -> tuple[Path, dict[int, list[Codes]]]:
    """The share, and the source visits under the number of their patient's record."""
    protect(made_up(), Visits(k=3, **parameters), out, seed=1)  # type: ignore[arg-type]  # real parameters
    people = pl.read_parquet(out / "custody" / "data" / "patients.parquet").select("record", "patient")
    events = made_up().require_events().with_columns(pl.col("code").cast(pl.String))
    visits = events.join(people, on="patient").group_by("record", "visit").agg(pl.col("code"))
    known: dict[int, list[Codes]] = {}
    for record, codes in visits.select("record", "code").rows():
        known.setdefault(record, []).append(frozenset(codes))
    return out / "share", known


def test_containment_leaves_k_records_for_every_source_visit(tmp_path: Path) -> None:
    share, known = released(tmp_path / "r", level="containment", merge_visits=True)
    found = attack(share, known, 3)
    assert found.known > 100
    assert found.below_k == 0


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("m", [2, 3])
def test_level_codes_leaves_k_records_for_m_codes_of_a_source_visit(
    tmp_path: Path, merged: bool, m: int
) -> None:
    share, known = released(tmp_path / "r", level="codes", m=m, merge_visits=merged)
    found = attack(share, known, 3, m)
    assert found.known > 100
    assert found.below_k == 0


def test_level_code_is_weak_against_both(tmp_path: Path) -> None:
    """The paper's procedure alone: single codes are shared, pairs and visits are not."""
    share, known = released(tmp_path / "r", level="code", merge_visits=True)
    assert attack(share, known, 3).below_k > 0
    assert attack(share, known, 3, 2).below_k > 0
    assert attack(share, known, 3, 1).below_k == 0


def test_two_cohorts_are_joined_by_their_visits_unless_records_are_shared(tmp_path: Path) -> None:
    """As stated: records apart are joined, records of a master of merged visits at level `visit` are not."""
    people = made_up().require_events()["patient"].unique().sort()
    joined = {}
    for name, merged in (("apart", False), ("merged", True)):
        protect(made_up(), Visits(k=3, merge_visits=merged), tmp_path / name, seed=1)
        for part, chosen in (("one", people.head(60)), ("two", people.tail(60))):
            extract(tmp_path / name, chosen, tmp_path / f"{name}-{part}", membership_is_secret="a test")
        joined[name] = join(*(tmp_path / f"{name}-{part}" / "share" for part in ("one", "two")))
    assert len(joined["apart"]) > 0
    kept = [tmp_path / f"apart-{part}" / "custody/data/patients.parquet" for part in ("one", "two")]
    owners = [dict(pl.read_parquet(file).select("record", "patient").rows()) for file in kept]
    assert sum(owners[0][a] == owners[1][b] for a, b in joined["apart"]) > 0.9 * len(joined["apart"])
    assert len(joined["merged"]) <= len(joined["apart"]) / 4
