"""Counts, ARE and MRE of generalized releases."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from leeward.analysis import generalized
from leeward.analysis.generalized import Generalized, all_there, counts, matching, none_there, of_labels
from leeward.analysis.workloads import average_relative_error, relative_errors
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.errors import BadInput
from leeward.methods.constraints.measures import are, codes, mre


def sets_of(records: list[str]) -> CodeSets:
    letters = tuple(sorted(set("".join(records))))
    values = [sorted(letters.index(c) for c in record) for record in records]
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    flat = np.array([v for record in values for v in record], np.int32)
    return CodeSets(offsets, flat, letters, pl.Series(range(len(records))))


SIX = ["abc", "ab", "ac", "bd", "cd", "abd"]


def six_generalized() -> Generalized:
    """UGACLIP's answer: a, b, (c,d); d is written by the letter c here, for one letter a label."""
    labels = sets_of(["abc", "ab", "ac", "bc", "c", "abc"])
    return of_labels(labels, (("a",), ("b",), ("c", "d")), frozenset())


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_readings_are_probabilities_over_non_empty_subsets(n: int) -> None:
    subsets = [set(c) for size in range(1, n + 1) for c in combinations(range(n), size)]
    for t in range(1, n + 1):
        given = set(range(t))
        assert all_there(n, t, "subset") == pytest.approx(np.mean([given <= s for s in subsets]))
        assert none_there(n, t, "subset") == pytest.approx(np.mean([not given & s for s in subsets]))
        assert all_there(n, t, "share") == pytest.approx(n**-t)
    assert none_there(n, n, "share") == 0


def test_counts_of_the_six_records() -> None:
    queries = [["a"], ["a", "b"], ["c"], ["c", "d"], ["a", "c"]]
    found = counts(six_generalized(), queries)
    assert found.expected == pytest.approx([4, 3, 5 * 2 / 3, 5 / 3, 3 * 2 / 3])
    assert found.low.tolist() == [4, 3, 0, 0, 0]
    assert found.high.tolist() == [4, 3, 5, 5, 3]
    assert counts(six_generalized(), queries, "share").expected == pytest.approx([4, 3, 2.5, 1.25, 1.5])


def test_a_large_label_does_not_overflow() -> None:
    members = tuple(f"c{i:04d}" for i in range(5000))
    release = of_labels(sets_of(["a"] * 10), (members,), frozenset())
    assert counts(release, [members[:1], members[:2]]).expected == pytest.approx([5, 2.5])


def test_a_query_on_a_suppressed_code_cannot_be_answered() -> None:
    release = of_labels(sets_of(["a", "a", "b"]), (("a",), ("b",)), frozenset("z"))
    found = counts(release, [["a", "z"], ["a"]])
    assert found.answerable.tolist() == [False, True]
    assert found.expected.tolist() == [0, 2]
    assert found.high.tolist() == [3, 2]


def test_errors_of_all_queries_and_of_kept_codes() -> None:
    sets = sets_of(["ab", "ab", "az", "z"])
    release = of_labels(sets_of(["ab", "ab", "a", ""]), (("a",), ("b",)), frozenset("z"))
    (found,) = are([release], sets, min_support=2)["workloads"]
    assert (found["queries"], found["are"]) == (4, 0.25)  # a, b, ab exact; z estimated 0
    assert (found["kept"]["queries"], found["kept"]["are"]) == (3, 0.0)
    assert found["outside_bounds"] == 0


def test_the_bounds_hold_the_true_counts() -> None:
    sets = sets_of(SIX)
    queries = [list(c) for size in (1, 2, 3) for c in combinations("abcd", size)]
    found = counts(six_generalized(), queries)
    true = np.array([sum(set(q) <= set(r) for r in SIX) for q in queries])
    assert ((found.low <= true) & (true <= found.high)).all()
    assert len(sets) == 6


def test_a_whole_constraint_is_counted_exactly() -> None:
    policy = pl.DataFrame({"constraint": ["u1", "u1", "u2", "u2"], "code": list("abcd")})
    found = mre([six_generalized()], sets_of(SIX), policy)
    assert [c["mre"] for c in found["constraints"]] == pytest.approx([0, 0])
    assert found["within_5_percent"] == 1
    assert matching(six_generalized(), ["c"]) == pytest.approx(5 * (1 - 1 / 3))
    assert matching(six_generalized(), ["c"], "share") == pytest.approx(2.5)


def test_suppressed_codes_show_in_the_matching_error() -> None:
    sets = sets_of(["a", "a", "b"])
    release = of_labels(sets_of(["a", "a", ""]), (("a",),), frozenset("b"))
    found = mre([release], sets, pl.DataFrame({"constraint": ["u", "u"], "code": ["a", "b"]}))
    assert found["constraints"][0]["mre"] == pytest.approx(1 / 3)


def test_what_became_of_the_codes() -> None:
    found = codes([six_generalized()], [sets_of(SIX)])
    assert found is not None
    assert found["codes"] == {"total": 4, "intact": 2, "generalized": 2, "suppressed": 0}
    assert found["occurrences"] == {"total": 14, "intact": 8, "generalized": 6, "suppressed": 0}
    assert found["largest_labels"] == [{"members": 2, "records": 5}]


def test_relative_errors_skip_true_zero() -> None:
    true, expected = np.array([0, 2, 4]), np.array([1.0, 3.0, 4.0])
    assert relative_errors(true, expected).tolist() == [0.5, 0.0]
    found = average_relative_error(true, expected, np.array([0, 3, 4]), np.array([1, 5, 4]))
    assert (found["are"], found["skipped"], found["outside_bounds"]) == (0.25, 1, 1)


def test_an_unknown_reading_is_refused() -> None:
    with pytest.raises(BadInput, match="subset, share"):
        generalized.check_reading("any")
