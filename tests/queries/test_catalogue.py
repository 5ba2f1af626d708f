"""The catalogue of itemsets: equal to the exact miner without noise, bounded a patient, candidates without data."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.errors import BadInput
from leeward.queries.answer import catalogue
from leeward.queries.answer.catalogue import (
    Catalogue,
    Items,
    choose_entries,
    count_within_bound,
    items_of,
    release_catalogue,
)
from leeward.queries.index.build import index_table
from leeward.queries.index.counts import Index
from leeward.queries.language.vocabulary import Terms
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.mechanism import Noise
from leeward.randomness import Randomness

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from index_itemsets import frequent_itemsets

NAMES = ("a", "b", "c", "d", "e")
VOCABULARY = Terms((*NAMES, "never"), labels={"a": "Asthma", "b": "Bronchitis"}, name="letters")
DOMAINS = {"sex": ("f", "m"), "when": ("2009-04", "2009-06")}
SCHEMA = {"patient": pl.Int64, "visit_month": pl.String, "sex": pl.String, "terms": pl.List(pl.String)}
row = st.fixed_dictionaries(
    {
        "patient": st.integers(0, 9),
        "visit_month": st.one_of(st.none(), st.sampled_from(["2009-04", "2009-05"])),
        "sex": st.one_of(st.none(), st.sampled_from(["f", "m"])),
        "terms": st.lists(st.sampled_from(NAMES), max_size=5, unique=True),
    }
)


def indexed(rows: list[dict[str, Any]], folder: Path) -> Index:
    return index_table(pl.DataFrame(rows, schema=SCHEMA), folder, terms=VOCABULARY, domains=DOMAINS).index


def no_noise(noise: Noise, size: int) -> list[int]:
    return [0] * size


@settings(deadline=None, max_examples=25)
@given(rows=st.lists(row, min_size=1, max_size=40), least=st.integers(1, 5), size=st.integers(1, 4))
def test_without_noise_it_is_the_exact_catalogue(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], least: int, size: int
) -> None:
    index = indexed(rows, tmp_path_factory.mktemp("i") / "index")
    asked = Catalogue(
        epsilon=10**6, max_size=size, contributions=10**6, threshold=least, qids=("sex", "when")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanism, "draw", no_noise)
        found = release_catalogue(index, asked)
    exact = frequent_itemsets(index, least, qids=("sex", "when"), max_size=size).to_dict()
    wanted = {
        tuple(
            VOCABULARY.labels.get(value, value) if not name else f"{name}={value}" for name, value in items
        ): n
        for items, n in exact.items()
    }
    assert {tuple(items): n for items, n in zip(found["itemsets"], found["counts"], strict=True)} == wanted


def test_noise_of_a_large_epsilon_vanishes(tmp_path: Path) -> None:
    rows = [{"patient": p, "visit_month": "2009-04", "sex": "f", "terms": ["a", "b"]} for p in range(40)]
    rows += [{"patient": p, "visit_month": "2009-05", "sex": "m", "terms": ["a"]} for p in range(40, 60)]
    index = indexed(rows, tmp_path / "index")
    found = release_catalogue(index, Catalogue(epsilon=1000 * 10**6, max_size=2, threshold=10, qids=("sex",)))
    assert dict(zip(map(tuple, found["itemsets"]), found["counts"], strict=True)) == {
        ("Asthma",): 60,
        ("Bronchitis",): 40,
        ("Asthma", "Bronchitis"): 40,
        ("Asthma", "sex=f"): 40,
        ("Asthma", "sex=m"): 20,
        ("Bronchitis", "sex=f"): 40,
    }
    assert [level["candidates"] for level in found["levels"]] == [6, 1 + 2 * 2]
    assert math.isclose(sum(level["epsilon"] for level in found["levels"]), 1000)


# -- why it is private ----


@settings(deadline=None, max_examples=30)
@given(rows=st.lists(row, min_size=1, max_size=40), most=st.integers(1, 4), who=st.integers(0, 9))
def test_a_patient_is_counted_in_no_more_than_the_bound(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], most: int, who: int
) -> None:
    """One patient's data alone give at most `most` in sum; who is beside them takes nothing away from others."""
    index = indexed(rows, tmp_path_factory.mktemp("i") / "index")
    items = items_of(index, ("sex", "when"))
    candidates = [(t,) for t in range(items.terms)] + [(0, 1), (0, items.terms), (1, items.terms + 2)]
    stream = Randomness.of(5).stream("test")
    counts = count_within_bound(index, items, candidates, most, stream)
    exact = count_within_bound(index, items, candidates, len(candidates), stream)
    assert (counts <= exact).all()
    own = [r for r in rows if r["patient"] == who]
    if own:
        alone = indexed(own, tmp_path_factory.mktemp("j") / "index")
        held = count_within_bound(alone, items, candidates, len(candidates), stream)
        assert count_within_bound(alone, items, candidates, most, stream).sum() == min(most, held.sum())


@given(
    people=st.lists(st.integers(0, 6), min_size=1, max_size=60),
    most=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_entries_are_chosen_within_the_bound(people: list[int], most: int, seed: int) -> None:
    kept = choose_entries(np.array(people, np.int32), most, Randomness.of(seed).stream("chosen"))
    for person in set(people):
        mine = [k for p, k in zip(people, kept.tolist(), strict=True) if p == person]
        assert sum(mine) == min(most, len(mine))


def test_every_choice_is_equally_likely() -> None:
    people = np.repeat(np.arange(3000, dtype=np.int32), 5)
    kept = choose_entries(people, 2, Randomness.of(8).stream("chosen")).reshape(3000, 5)
    counts = kept.sum(axis=0)
    assert ((counts - 1200) ** 2 / 1200).sum() < 18.47  # chi-square, 4 degrees of freedom, 0.001


def test_stretches_of_patients_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"patient": p, "visit_month": "2009-04", "sex": "f", "terms": list(NAMES[: 1 + (p + n) % 5])}
        for p in range(23)
        for n in range(p % 3 + 1)
    ]
    index = indexed(rows, tmp_path / "index")
    items = items_of(index, ())
    candidates = [(t,) for t in range(items.terms)] + [(0, 1), (1, 2)]
    stream = Randomness.of(5).stream("test")
    whole = count_within_bound(index, items, candidates, 100, stream)
    monkeypatch.setattr(catalogue, "PATIENTS_AT_ONCE", 4)
    assert len(index.stretches(4)) == 6
    assert count_within_bound(index, items, candidates, 100, stream).tolist() == whole.tolist()


def test_candidates_come_from_public_names_and_noisy_results_alone(tmp_path: Path) -> None:
    """The same noisy counts over two data sets that have nothing in common: the same candidates at every level."""
    one = indexed([{"patient": 1, "visit_month": None, "sex": None, "terms": ["a"]}], tmp_path / "one")
    other = indexed(
        [{"patient": p, "visit_month": "2009-05", "sex": "m", "terms": ["c", "d", "e"]} for p in range(50)],
        tmp_path / "other",
    )
    asked = Catalogue(epsilon=10**6, max_size=3, threshold=5, qids=("sex", "when"))
    seen = []
    for index in (one, other):
        candidates: list[Any] = []
        results = iter(np.random.Generator(np.random.Philox(3)).integers(0, 12, (3, 500)))

        def counted(
            index: Index, items: Items, given: Any, most: int, stream: Any,
            candidates: list[Any] = candidates, results: Any = results,
        ) -> Any:  # fmt: skip
            candidates.append(list(given))
            return next(results)[: len(given)]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mechanism, "draw", no_noise)
            patch.setattr(catalogue, "count_within_bound", counted)
            release_catalogue(index, asked)
        seen.append(candidates)
    assert seen[0] == seen[1]
    assert (len(seen[0][0]), len(seen[0])) == (6, 3)


def test_noise_is_drawn_before_data_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = indexed([{"patient": 1, "visit_month": None, "sex": None, "terms": ["a"]}], tmp_path / "index")
    events: list[str] = []
    draw, count = mechanism.draw, count_within_bound
    monkeypatch.setattr(mechanism, "draw", lambda *a: (events.append("draw"), draw(*a))[1])
    monkeypatch.setattr(catalogue, "count_within_bound", lambda *a: (events.append("read"), count(*a))[1])
    release_catalogue(index, Catalogue(epsilon=1000 * 10**6, max_size=2, threshold=1))
    assert events[:2] == ["draw", "read"] and events[::2] == ["draw"] * len(events[::2])


@given(epsilon=st.integers(10**4, 5 * 10**6), candidates=st.integers(1, 3000))
def test_the_least_count_is_the_least(epsilon: int, candidates: int) -> None:
    noise = Noise("geometric", epsilon, 5)
    found = catalogue.least_count(noise, candidates, 0.05)

    def reached(t: int) -> float:
        return candidates * noise.alpha**t / (1 + noise.alpha)

    assert reached(found) <= 0.05 * (1 + 1e-9)
    assert found == 1 or reached(found - 1) > 0.05 * (1 - 1e-9)


def test_itemsets_that_nobody_has_are_rarely_listed(tmp_path: Path) -> None:
    vocabulary = Terms(tuple(f"t{i:03d}" for i in range(500)), name="many")
    table = pl.DataFrame({"patient": [1], "terms": [["t000"]]})
    index = index_table(table, tmp_path / "index", terms=vocabulary).index
    asked = Catalogue(epsilon=10**6, max_size=1, contributions=5)
    listed = sum(len(release_catalogue(index, asked)["itemsets"]) > 0 for _ in range(60))
    assert listed <= 12, "expected at most 5 % of 60; 12 or fewer but once in 100,000"


def test_the_largest_parts_go_on_where_there_are_too_many() -> None:
    items = Items((("", "a"), ("", "b"), ("", "c"), ("sex", "f"), ("sex", "m")), 3, ("a", "b", "c", "f", "m"))
    kept = {(0,): 30, (1,): 20, (2,): 10}
    assert catalogue.next_candidates(kept, items, 100) == [
        (0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 3), (2, 4),
    ]  # fmt: skip
    few = {(0,): 30, (1,): 10, (2,): 20}
    assert catalogue.next_candidates(few, items, 3) == [(0, 2), (0, 3), (0, 4)], (
        "of the largest parts, in order"
    )
    pairs = {(0, 1): 9, (0, 3): 9, (0, 4): 9, (1, 3): 9}
    assert catalogue.next_candidates(pairs, items, 100) == [(0, 1, 3)], (
        "(0, 1, 4) lacks (1, 4); sexes never meet"
    )


def test_another_public_domain_is_another_question(tmp_path: Path) -> None:
    table = pl.DataFrame({"patient": [1], "sex": ["f"], "terms": [["a"]]})
    asked = Catalogue(epsilon=10**6, qids=("sex",))
    questions = [
        asked.question(index_table(table, tmp_path / str(n), terms=VOCABULARY, domains={"sex": domain}).index)
        for n, domain in enumerate([("f", "m"), ("f", "m", "x"), ("f", "m")])
    ]
    assert questions[0] == questions[2] != questions[1]


def test_items_stand_by_their_texts_terms_before_values(tmp_path: Path) -> None:
    """Not by the canonical names, which nobody who reads the catalogue has."""
    terms = Terms(("a", "b"), labels={"a": "Zoster", "b": "Asthma"}, name="letters")
    rows = [{"patient": p, "age2": "x", "age": 3, "terms": ["a", "b"]} for p in range(40)]
    domains = {"age": ("3", "4"), "age2": ("y", "x")}
    index = index_table(pl.DataFrame(rows), tmp_path / "index", terms=terms, domains=domains).index
    asked = Catalogue(epsilon=1000 * 10**6, max_size=3, threshold=10, qids=("age", "age2"))
    found = release_catalogue(index, asked)["itemsets"]
    assert ["Asthma", "Zoster"] in found
    assert ["Zoster", "age2=x", "age=3"] in found


# -- refusals ----


def test_what_is_not_public_is_refused(tmp_path: Path) -> None:
    table = pl.DataFrame({"patient": [1], "place": ["albany"], "terms": [["a"]]})
    own = index_table(table, tmp_path / "own").index
    with pytest.raises(BadInput, match="no public list of terms"):
        items_of(own, ())
    public = index_table(table, tmp_path / "public", terms=VOCABULARY).index
    with pytest.raises(BadInput, match="--domains place="):
        items_of(public, ("place",))
    with pytest.raises(BadInput, match="no quasi-identifier"):
        items_of(public, ("zip",))


@pytest.mark.parametrize(
    "wrong",
    [{"max_size": 0}, {"contributions": 0}, {"threshold": 0}, {"epsilon": 1}, {"spurious": 1.0}],
)
def test_parameters_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        Catalogue(**{"epsilon": 10**6, **wrong})
