"""The source in numbers, against plain counting."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.verify import flat
from leeward.verify.flat import Numbered, find

VISITS = {
    "numbers": st.none() | st.integers(0, 3),
    "spread numbers": st.none() | st.sampled_from([-(2**62), 0, 2**62]),
    "texts": st.none() | st.sampled_from(["a", "b"]),
}


def events_of(rows: list[tuple[str, str, object]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["patient", "code", "visit"], orient="row")


@pytest.mark.parametrize("kind", VISITS)
@pytest.mark.parametrize("largest", [1 << 62, 400])
def test_equal_to_plain_counting(kind: str, largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat, "LARGEST", largest)
    row = st.tuples(st.sampled_from("pqr"), st.sampled_from("xyz"), VISITS[kind])

    @given(st.lists(row, min_size=1, max_size=12))
    def holds(rows: list[tuple[str, str, object]]) -> None:
        found = Numbered(events_of(rows))
        assert found.patients.to_list() == sorted({patient for patient, _, _ in rows})
        assert [found.patients[i] for i in found.patient.tolist()] == [patient for patient, _, _ in rows]
        assert [found.codes[i] for i in found.code.tolist()] == [code for _, code, _ in rows]
        people = {code: len({p for p, c, _ in rows if c == code}) for code in found.codes}
        assert dict(zip(found.codes, found.people.tolist(), strict=True)) == people
        firsts = [next(i for i, row in enumerate(rows) if row[0] == p) for p in found.patients]
        assert found.first.tolist() == firsts
        keys = found.visit("visit").tolist()
        visits = [(p, v) if v is not None else (i,) for i, (p, _, v) in enumerate(rows)]
        assert len(set(zip(keys, visits, strict=True))) == len(set(keys)) == len(set(visits))
        assert [key // found.spread("visit") for key in keys] == found.patient.tolist()
        mentions = Counter(
            (p, c) for p, c, _ in {(p, c, v if v is not None else (i,)) for i, (p, c, v) in enumerate(rows)}
        )
        pairs, counts = found.mentions
        named = [(found.patients[k // found.width], found.codes[k % found.width]) for k in pairs.tolist()]
        assert dict(zip(named, counts.tolist(), strict=True)) == dict(mentions)
        assert pairs.tolist() == found.pairs.tolist()

    holds()


@given(
    st.lists(st.integers(-50, 50) | st.integers(-(2**62), 2**62), max_size=30).map(sorted),
    st.lists(st.integers(-60, 60) | st.integers(-(2**62), 2**62), max_size=30),
)
def test_numbers_are_found_at_their_first_place(numbers: list[int], wanted: list[int]) -> None:
    """In a table and by a search: narrow and wide ranges, numbers that are there several times."""
    found = find(np.array(numbers, np.int64), np.array(wanted, np.int64), -7)
    assert found.tolist() == [numbers.index(each) if each in numbers else -7 for each in wanted]
