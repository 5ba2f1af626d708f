"""Linking: somebody knows every code of one visit of a patient, has share/, and compares sets of codes.

The attacker also knows the vocabulary, so knows to which released label each code belongs.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.laws.cases import cohort_of_events, events

import leeward as lw


def released(share: Path) -> dict[frozenset[str], set[int]]:
    """The records that show each set of labels."""
    found: dict[frozenset[str], set[int]] = {}
    for row in pl.read_parquet(share / "data/visits.parquet").iter_rows(named=True):
        found.setdefault(frozenset(row["codes"]), set()).add(row["record"])
    return found


def could_show(known: set[str], labels: frozenset[str]) -> bool:
    """Whether a released set can be what is left of the visit: each label stands for one of its codes."""
    return all(set(label.split("|")) & known for label in labels)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"key": "relative"}, {"rescue": True}, {"merge_visits": True}, {"policy": "none"}],
    ids=str,
)
def test_every_set_that_fits_a_visit_is_held_by_k_patients(
    parameters: dict[str, object], tmp_path: Path
) -> None:
    method = lw.Visits(k=4, **parameters)  # type: ignore[arg-type]  # parameters by name
    sets = released(lw.protect(cohort_of_events(), method, tmp_path / "out", seed=1).release.share)
    visits = events().group_by("visit").agg(pl.col("code").unique())["code"].to_list()
    fitting = 0
    for known in map(set, visits):
        for labels, holders in sets.items():
            if could_show(known, labels):
                fitting += 1
                assert len(holders) >= 4
    assert fitting > len(visits)  # most visits leave something to look for


def test_the_same_attack_singles_out_patients_of_the_unprotected_data() -> None:
    table = events().group_by("patient", "visit").agg(pl.col("code").unique().sort())
    holders = table.group_by("code").agg(pl.col("patient").n_unique())
    assert (holders["patient"] == 1).sum() > holders.height / 4
