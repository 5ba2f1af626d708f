"""Fast equals oracle, the level is reached, nothing is invented, and what must not matter does not."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.methods.visits.frames import cohort, expected, frame, named, released, sets_of
from tests.oracles import visits as oracle

from leeward.arrays import Int32s, offsets_of
from leeward.cohort.lenses.visits import visits_of
from leeward.engine import LocalEngine
from leeward.methods.visits import Visits, containment
from leeward.methods.visits.sets import VisitSets
from leeward.randomness import Randomness
from leeward.vocabulary import load

CODES = ["250.0", "250.1", "250.2", "272.0", "272.4", "401.1", "401.9", "428.0", "V10.1"]
visit = st.lists(st.sampled_from(CODES), min_size=1, max_size=5)
populations = st.lists(st.lists(visit, min_size=1, max_size=3), min_size=2, max_size=14).map(
    lambda people: {f"p{number:02d}": visits for number, visits in enumerate(people)}
)
ks = st.integers(2, 5)


def category(code: str) -> str:
    return code.partition(".")[0]


def mapped(records, k: int, rescue: bool = False):
    data = sets_of(records)
    return oracle.mapped(data, k, oracle.merged(data, k, category, rescue))


def protect(records, k: int, engine=None, seed: int = 3, **parameters):
    assume(k <= len(records))
    return Visits(k=k, **parameters).protect(cohort(records), engine, randomness=Randomness.of(seed))


@given(populations, ks, st.booleans())
def test_merging_equals_the_plain_procedure(records, k: int, rescue: bool) -> None:
    after = released(protect(records, k, level="code", rescue=rescue))
    assert after == expected(mapped(records, k, rescue))
    data = sets_of(after)
    shown = {code for visits in data.values() for visit in visits for code in visit}
    assert all(oracle.frequency(data, frozenset([code])) >= k for code in shown)


@given(populations, ks, st.sampled_from(["absolute", "relative"]))
def test_enforcement_equals_the_naive_loop(records, k: int, key: str) -> None:
    after = oracle.enforced(mapped(records, k), k, key)
    assert released(protect(records, k, key=key)) == expected(after)
    assert oracle.violating(after, k) == set()


@given(populations, ks)
def test_generalizing_equals_the_naive_loop(records, k: int) -> None:
    data = sets_of(records)
    vocabulary = load("icd9")
    active = oracle.merged(data, k, category)
    kept = {code: oracle.label(each) for each in active if oracle.frequency(data, each) >= k for code in each}
    above = {code: vocabulary.level(code, 3) for code in CODES}
    start = {p: [frozenset(kept.get(c, above[c]) for c in v) for v in visits] for p, visits in data.items()}
    up = {label: above[code] for code, label in kept.items()}
    after = oracle.generalized(start, k, up)
    anonymized = protect(records, k, enforce="generalize")
    assert released(anonymized) == expected(after)
    assert oracle.violating(sets_of(released(anonymized)), k) == set()
    nodes = dict(frame(anonymized.tables[2]).rows())
    shown = {label for visits in released(anonymized).values() for codes in visits for label in codes}
    assert shown <= set(nodes)


@given(populations, ks, st.sampled_from([0, 3, 1024]))
def test_containment_equals_the_plain_rounds(records, k: int, bits: int) -> None:
    """Whether holders are counted one by one (0), as bits (1024), or some in this way and some in that."""
    after = oracle.contained(mapped(records, k), k)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(containment, "PATIENTS_A_HOLDER", bits)
        anonymized = protect(records, k, level="containment", merge_visits=True)
    unions = {p: [frozenset().union(*visits)] for p, visits in after.items()}
    assert released(anonymized) == expected(unions)
    assert oracle.violating(after, k, oracle.containers) == set()


@given(populations, ks)
def test_what_a_merged_record_shows_of_a_source_visit_is_in_k_records(records, k: int) -> None:
    """By definition: also codes that were cut from one visit and come back through another of the same patient."""
    source = mapped(records, k)
    after = sets_of(released(protect(records, k, level="containment", merge_visits=True)))
    parts = [oracle.shown(after, p, visit) for p, visits in source.items() for visit in visits]
    assert all(oracle.containers(after, part) >= k for part in parts if part)


@given(populations, ks, st.randoms(use_true_random=False))
def test_row_order_threads_and_seed_change_no_visit(records, k: int, random) -> None:
    plain = protect(records, k)
    shuffled = cohort(records)
    events = shuffled.require_events()
    order = list(range(events.height))
    random.shuffle(order)
    shuffled = type(shuffled)(events=events[order], name="made up", vocabulary="icd9")
    again = Visits(k=k).protect(shuffled, LocalEngine(1), randomness=Randomness.of(99))
    assert released(again) == released(plain)


@given(populations, ks)
def test_records_are_released_in_an_order_of_their_own(records, k: int) -> None:
    anonymized = protect(records, k)
    visits = named(anonymized.tables, "visits.parquet")
    assert named(anonymized.tables, "records.parquet")["record"].to_list() == list(range(len(records)))
    assert visits["record"].is_sorted()
    for part in visits.partition_by("record"):
        assert part["visit"].to_list() == list(range(part.height))


@given(populations)
def test_the_lens_shows_every_visit(records) -> None:
    lens = cohort(records).visits()
    found: dict[str, list[list[str]]] = {patient: [] for patient in lens.patients}
    for number, person in enumerate(lens.patient_of_visit()):
        found[lens.patients[int(person)]].append(list(lens.visit(number)))
    assert found == {p: [sorted(set(v)) for v in visits] for p, visits in records.items()}


def test_a_null_visit_is_a_visit_of_its_own_and_a_date_serves_as_one() -> None:
    events = pl.DataFrame(
        {
            "patient": ["a", "a", "a", "b"],
            "code": pl.Series(["x", "y", "z", "x"], dtype=pl.Enum(["x", "y", "z"])),
            "visit": pl.Series([1, 1, None, None], dtype=pl.Int64),
        }
    )
    assert [visits_of(events).visit(v) for v in range(3)] == [("x", "y"), ("z",), ("x",)]
    assert visits_of(events.rename({"visit": "date"})).n_visits == 3
    assert visits_of(events, merged=True).n_visits == 2


@pytest.mark.parametrize("large", [False, True])
def test_large_identifiers_do_not_overflow(large: bool, monkeypatch) -> None:
    if large:
        monkeypatch.setattr("leeward.cohort.lenses.visits.LARGEST_KEY", 10)
    lens = cohort({"A": [["x", "y"], ["x"]], "B": [["z"]]}).visits()
    assert [lens.visit(v) for v in range(3)] == [("x", "y"), ("x",), ("z",)]
    assert lens.patient_offsets.tolist() == [0, 2, 3]


@settings(max_examples=5)
@given(populations)
def test_same_seed_same_tables(records) -> None:
    one, two = protect(records, 2, seed=8), protect(records, 2, seed=8)
    assert all(frame(a).equals(frame(b)) for a, b in zip(one.tables, two.tables, strict=True))


@given(
    st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=40),
    st.integers(1, 4),
    st.sampled_from([0, 2, 1024]),
)
@settings(max_examples=30)
def test_holders_of_many_sets_equal_plain_counts(patients: list[set[int]], limit: int, bits: int) -> None:
    """Sets with the same rarest code are counted together, through two codes."""
    held = VisitSets(np.arange(len(patients) + 1), offsets_of([len(p) for p in patients]), flat(patients))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(containment, "PATIENTS_A_HOLDER", bits)
        postings = containment.Postings.of(held, 7)
    sets = [set(each) for n in range(1, 4) for each in combinations(range(7), n)]
    plain = [sum(each <= patient for patient in patients) for each in sets]
    starts = offsets_of([len(each) for each in sets])
    for chosen in (slice(None), slice(0, None, 9)):  # 9: hardly two of a rarest code
        first, lengths = starts[:-1][chosen], np.diff(starts)[chosen]
        found = postings.count(flat(sets), first, lengths, limit, 1)
        assert [n >= limit for n in found.tolist()] == [n >= limit for n in plain[chosen]]
        places = postings.choose(flat(sets), first, lengths, 1).tolist()
        for each, place in zip(sets[chosen], places, strict=True):
            parts = [each - {code} for code in sorted(each)]
            counts = [sum(part <= patient for patient in patients) for part in parts]
            assert place == max(range(len(parts)), key=lambda i: (counts[i], i))


def flat(sets: list[set[int]]) -> Int32s:
    return np.array([code for each in sets for code in sorted(each)], np.int32)
