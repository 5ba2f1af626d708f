"""Scope `groups`: against the oracle, by its definition, attacked, and with planted violations."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forging import restate, write_parquet
from tests.methods.censoring.frames import POPULATION, SAMPLE, cohort, released
from tests.methods.censoring.test_properties import large_problem
from tests.oracles import censoring as oracle

from leeward.errors import BadInput
from leeward.methods.censoring import Censoring
from leeward.randomness import Randomness
from leeward.release import Release, write
from leeward.runs.measure import measure
from leeward.verify import Source, verify

record = st.lists(st.sampled_from("abcd"), min_size=1, max_size=6)


@settings(max_examples=60)
@given(st.lists(record, min_size=3, max_size=20), st.data())
def test_every_record_is_the_oracles_and_k_people_are_published_like_it(population, data) -> None:
    k = data.draw(st.integers(2, len(population)))
    cap = data.draw(st.integers(1, 4))
    expected = oracle.by_groups(population, k, dict.fromkeys("abcd", cap))
    method = Censoring(k=k, cap=cap, scope="groups")
    everyone = cohort(population, "population")
    assert released(method.protect(everyone, population=everyone)) == expected
    alike = Counter(map(tuple, expected))
    assert min(alike.values()) >= k
    assert all(oracle.contains(person, shown) for person, shown in zip(population, expected, strict=True))
    # Another sample of the same population gets the same records: the rule does not look at it.
    some = data.draw(st.lists(st.sampled_from(range(len(population))), min_size=1, max_size=5))
    sample = cohort([population[person] for person in some], "sample")
    assert released(method.protect(sample, population=everyone)) == [expected[person] for person in some]


def test_figure_1() -> None:
    """k = 2: 250 splits four people off, of whom two have 272; {272, 724} of two is joined by the one left, {401}."""
    shown = [["250"], ["250", "250", "272"], ["250", "250", "272"], [], [], ["250"], []]
    assert oracle.by_groups(POPULATION, 2, dict.fromkeys(("250", "272", "401", "724"), 9)) == shown
    method = Censoring(k=2)
    assert method.scope == "groups"  # the default
    everyone = cohort(POPULATION)
    assert released(method.protect(everyone, population=everyone)) == shown
    assert released(method.protect(cohort(SAMPLE), population=everyone)) == [shown[0], shown[4], shown[1]]


def test_the_attacker_who_knows_the_rule_keeps_k_candidates(tmp_path: Path) -> None:
    """The attack that pins records down by the other scopes finds nobody below k here."""
    population, sample = large_problem(300)
    below = {}
    for scope in ("record", "groups"):
        source, everyone = cohort(sample, "sample"), cohort(population, "population")
        method = Censoring(k=4, cap=3, scope=scope)
        anonymized = method.protect(source, randomness=Randomness.of(1), population=everyone)
        release = Release.open(write(anonymized, tmp_path / scope))
        figures = measure(release, source, [{"attack": {"most": None}}], everyone)
        below[scope] = figures["attack"]["below_k"]
    assert below["record"] > 0 and below["groups"] == 0


@pytest.fixture
def out(tmp_path: Path) -> tuple[Path, Source]:
    population, sample = large_problem(300)
    source, everyone = cohort(sample, "sample"), cohort(population, "population")
    method = Censoring(k=4, cap=3, scope="groups")
    path = write(method.protect(source, randomness=Randomness.of(1), population=everyone), tmp_path / "out")
    return path, Source(source.require_events(), None, everyone.require_events())


def failed(path: Path, source: Source) -> set[str]:
    return {check.name for check in verify(path, source).checks if not check.passed}


def rewritten(path: Path, change) -> None:
    file = path / "share" / "data" / "records.parquet"
    write_parquet(change(pl.read_parquet(file)), file)
    restate(path)


def test_a_release_by_groups_is_verified(out) -> None:
    path, source = out
    checks = verify(path, source)
    assert checks.passed and checks["published_alike"].figures["fewest"] >= 4


def test_a_mention_taken_from_one_record_is_caught(out) -> None:
    """The k-map still holds, but nobody is published like it."""
    path, source = out
    table = pl.read_parquet(path / "share" / "data" / "records.parquet")
    longest = table.sort(pl.col("codes").list.len(), "record", descending=True)["record"][0]
    shorter = pl.when(pl.col("record") == longest).then(pl.col("codes").list.head(1)).otherwise("codes")
    rewritten(path, lambda t: t.with_columns(codes=shorter))
    assert "public_rule" in failed(path, source)


def test_records_of_the_other_scope_are_caught(tmp_path: Path) -> None:
    population, sample = large_problem(300)
    source, everyone = cohort(sample, "sample"), cohort(population, "population")
    method = Censoring(k=4, cap=3, scope="record")
    path = write(method.protect(source, randomness=Randomness.of(1), population=everyone), tmp_path / "out")
    manifest = json.loads((path / "share" / "release.json").read_text())
    manifest["parameters"]["scope"] = "groups"
    (path / "share" / "release.json").write_text(json.dumps(manifest))
    assert {"published_alike", "public_rule"} <= failed(
        path, Source(source.require_events(), None, everyone.require_events())
    )


def test_a_record_that_nobody_has_is_refused() -> None:
    with pytest.raises(BadInput, match="nobody's record"):
        Censoring(k=2, scope="groups").protect(cohort([["272"]]), population=cohort(POPULATION))
