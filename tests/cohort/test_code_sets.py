"""The code-set lens against the plain reading of its definition."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from leeward.cohort import CodeSets, read
from leeward.cohort.lenses.code_sets import code_sets_of, patient_numbers

numbers = st.integers(-3, 9) | st.sampled_from([10**12, -(10**12), 7 * 10**6])
texts = st.sampled_from(["p1", "p10", "p2", "é", "Z"])
codes = st.sampled_from(["401.1", "250.00", "V10.1", "E812.0", "008"])
events = st.lists(st.tuples(numbers, codes), min_size=1, max_size=40) | st.lists(
    st.tuples(texts, codes), min_size=1, max_size=40
)


def plainly(rows: list[tuple[object, str]]) -> dict[object, tuple[str, ...]]:
    return {p: tuple(sorted({c for q, c in rows if q == p})) for p in sorted({p for p, _ in rows})}  # type: ignore[type-var]  # one kind of identifier


def as_records(sets: CodeSets) -> dict[object, tuple[str, ...]]:
    return dict(zip(sets.patients.to_list(), map(sets.record, range(len(sets))), strict=True))


@given(events, st.booleans())
def test_code_sets_are_the_distinct_codes_of_each_patient(
    rows: list[tuple[object, str]], in_order: bool
) -> None:
    rows = sorted(rows, key=lambda row: row[0]) if in_order else rows  # type: ignore[arg-type, return-value]  # as above
    frame = pl.DataFrame({"patient": [p for p, _ in rows], "code": [c for _, c in rows]})
    sets = read(frame).code_sets()
    assert as_records(sets) == plainly(rows)
    assert list(sets.codes) == sorted({c for _, c in rows})
    assert sets.supports().tolist() == [sum(c in held for held in plainly(rows).values()) for c in sets.codes]
    assert sets.lengths().tolist() == [len(held) for held in plainly(rows).values()]
    assert (sets.offsets.dtype, sets.values.dtype) == (np.int64, np.int32)


@given(st.lists(numbers, min_size=1, max_size=40) | st.lists(texts, min_size=1, max_size=40))
def test_patients_are_numbered_in_ascending_order(identifiers: list[object]) -> None:
    number, distinct = patient_numbers(pl.Series("patient", identifiers))
    assert distinct.to_list() == sorted(set(identifiers))  # type: ignore[type-var]  # one kind of identifier
    assert [distinct[int(n)] for n in number] == identifiers


def test_codes_that_no_row_holds_leave_the_lens() -> None:
    kind = pl.Enum(["a", "b", "c"])
    frame = pl.DataFrame({"patient": [1, 1, 2], "code": pl.Series(["c", "a", "c"], dtype=kind)})
    sets = code_sets_of(frame)
    assert sets.codes == ("a", "c")
    assert as_records(sets) == {1: ("a", "c"), 2: ("c",)}
