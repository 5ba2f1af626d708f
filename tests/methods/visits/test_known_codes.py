"""Level `codes`: equal to the plain version, and by definition on many small cohorts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.methods.visits.frames import cohort, expected, released, sets_of
from tests.methods.visits.test_properties import ks, mapped, populations
from tests.oracles import visits as oracle

from leeward.errors import BadInput
from leeward.methods.visits import Visits, known_codes
from leeward.randomness import Randomness


def protect(records, seed: int = 3, **parameters):
    return Visits(level="codes", **parameters).protect(cohort(records), randomness=Randomness.of(seed))


@given(populations, ks, st.integers(2, 3), st.booleans(), st.sampled_from([0.0, 0.1, 1.0]))
def test_enforcement_equals_the_plain_version(records, k: int, m: int, merged: bool, alpha: float) -> None:
    assume(k <= len(records))
    order = Randomness.of(3).stream("visits", "known codes").permutation(len(records))
    names = sorted(records)
    after = oracle.known_codes(mapped(records, k), k, m, merged, alpha, [names[p] for p in order])
    if merged:
        after = {p: [frozenset().union(*visits)] for p, visits in after.items()}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(known_codes, "ALPHA", alpha)
        assert released(protect(records, k=k, m=m, merge_visits=merged)) == expected(after)


def short_sets(source, after, k: int, m: int, merged: bool) -> int:
    """By definition: sets of at most m codes of one source visit that are shown, and by fewer than k patients."""
    found = 0
    for p, visits in source.items():
        for visit in visits:
            parts = [oracle.shown(after, p, visit)] if after[p] else []
            found += sum(oracle.containers(after, s) < k for part in parts for s in oracle.subsets(part, m))
        if not merged:
            sets = {s for visit in after[p] for s in oracle.subsets(visit, m)}
            found += sum(oracle.showing(after, s, False) < k for s in sets)
    return found


@pytest.mark.parametrize("merged", [True, False])
def test_300_random_cohorts_by_definition(merged: bool) -> None:
    draws = np.random.Generator(np.random.Philox(key=21))
    for _ in range(300):
        k, m, people = int(draws.integers(2, 4)), int(draws.integers(2, 4)), int(draws.integers(4, 12))
        records = {
            f"p{p:02d}": [
                sorted(draws.choice(list("abcdef"), size=draws.integers(1, 5), replace=False).tolist())
                for _ in range(draws.integers(1, 4))
            ]
            for p in range(people)
        }
        after = sets_of(released(protect(records, k=k, m=m, merge_visits=merged, policy="none")))
        assert short_sets(sets_of(records), after, k, m, merged) == 0


def test_cutting_a_code_from_one_visit_alone_would_not_do() -> None:
    """k = 2: A alone has a and b in one visit. Cut b there and A's other visit, {b}, still shows it in the record."""
    records = {"A": [["a", "b"], ["b"]], "B": [["a"]], "C": [["b"]], "D": [["b"]]}
    naive = sets_of({**records, "A": [["a"], ["b"]]})
    assert short_sets(sets_of(records), naive, 2, 2, True) == 1
    for merged in (True, False):
        after = sets_of(released(protect(records, k=2, merge_visits=merged, policy="none")))
        assert short_sets(sets_of(records), after, 2, 2, merged) == 0


def test_m_below_two_is_level_code() -> None:
    with pytest.raises(BadInput):
        Visits(k=2, level="codes", m=1)


def test_too_many_sets_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leeward.methods.visits.known_codes.MOST_SETS", 3)
    with pytest.raises(BadInput, match="Take a smaller `m`"):
        protect({"A": [["a", "b", "c"]], "B": [["a", "b", "c"]]}, k=2, policy="none")
