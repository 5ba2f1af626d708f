"""Fast equals oracle, the guarantee holds, nothing is invented, and what must not matter does not."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.censoring.frames import cohort, released, table
from tests.oracles import censoring as oracle

from leeward.engine import LocalEngine
from leeward.methods.censoring import Censoring
from leeward.randomness import Randomness

record = st.lists(st.sampled_from(["250", "250.1", "272", "401", "724", "V10"]), min_size=1, max_size=8)


@st.composite
def problems(draw):
    """Population, sample of it (parts of records too), k, caps."""
    population = draw(st.lists(record, min_size=2, max_size=16))
    owners = draw(st.lists(st.sampled_from(range(len(population))), min_size=1, max_size=6))
    sample = [population[owner][: draw(st.integers(1, len(population[owner])))] for owner in owners]
    caps = draw(
        st.dictionaries(st.sampled_from(["250", "250.1", "272", "401", "724", "V10"]), st.integers(0, 4))
    )
    rest = draw(st.none() | st.integers(1, 4))
    if not caps and rest is None:
        rest = 8
    return population, sample, draw(st.integers(2, len(population))), caps, rest


def full_caps(sample: list[list[str]], caps: dict[str, int], rest: int | None) -> dict[str, int]:
    codes = {code for each in sample for code in each}
    return {code: caps.get(code, rest or 0) for code in codes}


def protect(problem, scope: str, engine=None, seed: int = 5):
    population, sample, k, caps, rest = problem
    method = Censoring(k=k, caps=caps or None, cap=rest, scope=scope)
    everyone = cohort(population, "population") if not isinstance(population, str) else population
    return method.protect(
        cohort(sample, "sample"), engine, randomness=Randomness.of(seed), population=everyone
    )


@given(problems())
def test_gccens_equals_the_printed_algorithm(problem) -> None:
    population, sample, k, caps, rest = problem
    anonymized = protect(problem, "global")
    expected, picks = oracle.gccens(sample, population, k, full_caps(sample, caps, rest))
    assert released(anonymized) == expected
    assert anonymized.custody["rounds"] == len(picks)
    assert len(picks) <= sum(full_caps(sample, caps, rest).values())


@given(problems())
def test_the_record_scope_equals_trying_everything(problem) -> None:
    population, sample, k, caps, rest = problem
    anonymized = protect(problem, "record")
    limits = full_caps(sample, caps, rest)
    assert released(anonymized) == [oracle.largest_safe(each, population, k, limits) for each in sample]
    assert table(anonymized.custody_tables[0])["exact"].all()


@given(problems())
def test_raised_caps_equal_the_oracle_and_keep_all_that_global_keeps(problem) -> None:
    population, sample, k, caps, rest = problem
    shown = released(protect(problem, "raise"))
    assert shown == oracle.raised(sample, population, k, full_caps(sample, caps, rest))
    for more, less in zip(shown, released(protect(problem, "global")), strict=True):
        assert oracle.contains(more, less)


@given(problems(), st.sampled_from(["global", "raise", "record"]))
def test_every_record_is_part_of_its_original_and_of_k_people(problem, scope) -> None:
    population, sample, k, caps, rest = problem
    limits = full_caps(sample, caps, rest)
    for original, shown in zip(sample, released(protect(problem, scope)), strict=True):
        assert shown == sorted(shown)
        assert oracle.contains(original, shown)
        assert all(count <= limits[code] for code, count in Counter(shown).items())
        assert oracle.dis(shown, population) >= k


@given(problems(), st.sampled_from(["global", "record"]))
def test_threads_and_row_order_change_nothing(problem, scope) -> None:
    population, sample, k, caps, rest = problem
    first = protect(problem, scope, LocalEngine(1))
    again = protect(
        ([list(reversed(each)) for each in population], sample, k, caps, rest), scope, LocalEngine(3)
    )
    assert table(first.tables[0]).equals(table(again.tables[0]))


@given(problems())
def test_by_record_never_keeps_less_than_global(problem) -> None:
    kept = [sum(map(len, released(protect(problem, scope)))) for scope in ("record", "global")]
    assert kept[0] >= kept[1]


@pytest.mark.parametrize("scope", ["global", "record"])
@pytest.mark.parametrize("names", [int, str])
def test_a_streamed_population_gives_the_same_release(scope, names, tmp_path) -> None:
    """The seam to scale: blocks of people, counted by the engine, from a Parquet file."""
    population, sample = large_problem()
    everyone = cohort(population, "population")
    assert everyone.events is not None
    path = tmp_path / "population.parquet"
    patient = pl.col("patient") if names is int else pl.format("p{}", pl.col("patient"))
    # Every row is a visit of its own, but for the rows that say the same visit twice and must not count twice.
    visit = pl.when(pl.col("row") % 3 == 0).then(None).otherwise(pl.col("row"))
    events = everyone.events.select(patient.alias("patient"), pl.col("code").cast(pl.String), visit=visit)
    pl.concat([events, events.filter(pl.col("visit").is_not_null())]).write_parquet(path)
    problems = [(population, sample, 4, {}, 3), (population, sample, 9, {"c3": 1}, 2)]
    for problem in problems if names is int else problems[1:]:
        local = protect(problem, scope)
        streamed = protect((str(path), *problem[1:]), scope, LocalEngine(2))
        assert table(local.tables[0]).equals(table(streamed.tables[0]))
        assert local.custody["population"] == streamed.custody["population"] == len(population)


def large_problem(people: int = 400, codes: int = 9) -> tuple[list[list[str]], list[list[str]]]:
    """A population of skewed multisets, and every tenth of its people."""
    draws = Randomness.of(3).stream("population")
    population = [
        [
            f"c{int(code)}"
            for code in draws.integers(0, draws.integers(1, codes + 1), size=draws.integers(1, 9))
        ]
        for _ in range(people)
    ]
    return population, population[::10]


def test_visits_count_a_code_once() -> None:
    records = [["250", "250", "250"], ["250", "250"], ["250", "272"]]
    visit = pl.Series(["a", "a", "b", "c", "c", "d", "d"])
    lens = cohort(records, visit=visit).code_counts()
    assert [lens.record(r) for r in range(3)] == [("250", "250"), ("250",), ("250", "272")]


def test_rows_without_a_visit_count_each() -> None:
    lens = cohort([["250", "250", "250"]], visit=pl.Series([None, None, "b"])).code_counts()
    assert lens.record(0) == ("250", "250", "250")


def test_same_seed_same_bytes_and_another_seed_another_order() -> None:
    population, sample = large_problem()
    problem = (population, sample, 4, {}, 3)
    assert table(protect(problem, "global").tables[0]).equals(table(protect(problem, "global").tables[0]))
    other = protect(problem, "global", seed=6)
    assert not table(protect(problem, "global").tables[0]).equals(table(other.tables[0]))


def test_each_record_is_counted_about_once() -> None:
    """Counted work: the printed loop counts every record in every round."""
    population, sample = large_problem(1500)
    facts = protect((population, sample, 4, {}, 8), "global").custody
    literal = (facts["rounds"] + 1) * len(sample)
    assert facts["rounds"] > 5
    assert facts["counted_multisets"] < literal / 2


def test_a_search_out_of_budget_keeps_a_safe_part_and_says_so() -> None:
    from leeward.analysis.containment import Index, Multisets, largest_parts

    population, sample = large_problem()
    lens = cohort(sample).code_counts()
    index = Index.of(cohort(population).code_counts(), lens.codes, lens.most())
    records = Multisets(lens.offsets, lens.values, lens.counts)
    exact = largest_parts(index, records, 6)
    hasty = largest_parts(index, records, 6, budget=0)
    assert exact.exact.all() and not hasty.exact.all()
    assert (index.counts(hasty.kept) >= 6).all()
    assert (hasty.kept.sizes() <= exact.kept.sizes()).all()
