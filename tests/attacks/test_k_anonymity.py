"""Linking by quasi-identifiers succeeds on rows released as they are, and finds k candidates in the product's."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.attacks.k_anonymity import attack, candidates, guess
from tests.cohort.sources import read_table

from leeward.methods.k_anonymity import KAnonymity
from leeward.randomness import Randomness
from leeward.release import write


def registry(rows: int = 300) -> pl.DataFrame:
    random = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "age": random.integers(20, 90, rows),
            "dose": np.round(random.normal(20, 5, rows), 1),
            "sex": random.choice(["f", "m"], rows),
            "stage": random.choice(list("1234"), rows),
        }
    )


@pytest.mark.parametrize("k", [3, 10])
def test_everybody_has_k_candidates(k: int, tmp_path: Path) -> None:
    source = registry()
    method = KAnonymity(k=k, quasi_identifiers=("age", "dose", "sex"))
    share = write(method.protect(read_table(source), randomness=Randomness.of(1)), tmp_path / "out") / "share"
    found = attack(share, source)
    assert (found.asked, found.below_k) == (300, 0)
    assert found.fewest >= k


def test_rows_as_they_are_name_their_patients() -> None:
    source = registry()
    found = candidates(source, source, ["age", "dose", "sex"], 3)
    assert found.below_k > 0.9 * 300
    assert found.fewest == 1


def test_somebody_who_knows_all_of_a_group_but_one_subtracts_them_from_its_mean(tmp_path: Path) -> None:
    """Why the limits name people who pool what they know; groups are told by a column that is published as it is."""
    source = registry().with_columns(visit=pl.arange(0, 300) / 7)
    method = KAnonymity(k=5, quasi_identifiers=("age", "dose", "sex"))
    share = write(method.protect(read_table(source), randomness=Randomness.of(1)), tmp_path / "out") / "share"
    released = pl.read_parquet(share / "data" / "table.parquet")
    members = released.join(source.select("visit", own="dose"), on="visit")
    for mean, doses in members.group_by("age", "dose", "sex").agg("own").select("dose", "own").iter_rows():
        victim, *others = doses
        found = mean * len(doses) - sum(others)
        assert found == pytest.approx(victim, abs=0.05 * len(doses) + 1e-9)  # the mean may be rounded
    manifest = json.loads((share / "release.json").read_text())
    limits = manifest["guarantee"]["not_protected"]
    assert any(each.startswith("Attackers who pool what they know") for each in limits)


def test_nobody_s_sensitive_value_is_guessed_above_the_limits(tmp_path: Path) -> None:
    """Without limits one group has one value; with them no share is above 1/L, nor T above the table's."""
    source = registry().with_columns(hiv=pl.when(pl.col("age") < 40).then(pl.lit("a")).otherwise("stage"))
    names = ("age", "dose", "sex")
    limits = {"sensitive_columns": {"hiv": 2}, "closeness": {"hiv": 0.35}}
    found = []
    for number, given in enumerate([{}, limits]):
        made = KAnonymity(k=5, quasi_identifiers=names, **given).protect(
            read_table(source), randomness=Randomness.of(1)
        )
        found.append(guess(write(made, tmp_path / str(number)) / "share", source, "hiv"))
    assert max(share for share, _ in found[0]) == 1.0
    assert max(share for share, _ in found[1]) <= 1 / 2
    assert max(share - whole for share, whole in found[1]) <= 0.35


def test_a_cut_that_was_not_made_tells_the_algorithm_s_attacker_a_value() -> None:
    """docs/methods/k-anonymity.md#sensitive-columns: of the tables in which two of six have a value one has no cut into
    four and two: that in which the two have it. So the limits name this attacker."""
    ages = [30, 30, 30, 30, 50, 50]
    method = KAnonymity(k=2, quasi_identifiers=("age",), sensitive_columns={"hiv": 2})
    uncut = []
    for cases in itertools.combinations(range(6), 2):
        hiv = ["case" if place in cases else f"other {place}" for place in range(6)]
        made = method.protect(
            read_table(pl.DataFrame({"age": ages, "hiv": hiv})), randomness=Randomness.of(1)
        )
        if made.custody["groups"] == 1:
            uncut.append(cases)
    assert uncut == [(4, 5)]
    assert any("sees which groups were not cut" in each for each in made.guarantee.not_protected)
