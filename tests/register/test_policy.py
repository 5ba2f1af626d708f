"""The rules: for every earlier release the first that fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.composition.bound import Bound, bound_of
from leeward.errors import BadInput
from leeward.register.policy import NAMES, RULES, Pair, check_policy, decide, may_pool
from leeward.register.store import Facts, Known


def pair(common: int | None, only_new: int | None, only_old: int | None, old: Any = (), **new: Any) -> Pair:
    first = {"method": "visits", "parameters": "p", "k": 5}
    facts = Facts(**{**first, **dict(old)})
    return Pair(
        new=Facts(**{**first, **new}),
        old=Known(facts=facts, status="released", time="", share="s"),
        common=common,
        only_new=only_new,
        only_old=only_old,
    )


@pytest.mark.parametrize(
    ("given_pair", "rule", "outcome"),
    [
        (pair(0, 3, 3), "disjoint", "allow"),
        (pair(9, 0, 0), "same", "allow"),
        (replace(pair(9, 0, 0), same_content=False), "other", "reason"),
        (pair(9, 0, 0, parameters="q"), "other", "reason"),
        (pair(9, 0, 0, method="condensation"), "other", "reason"),
        (replace(pair(9, 2, 0), versions=True), "version", "allow"),
        (
            pair(9, 2, 0, {"line": "a"}, line="a", follows="x"),
            "difference",
            "refuse",
        ),  # a name proves nothing
        (pair(9, 2, 0, {"master": "m"}, master="m"), "members", "allow"),
        (pair(9, 0, 90, master="s"), "members", "allow"),  # a cohort beside its master
        (pair(9, 7, 7, {"master": "m"}, master="m", payload=True), "payloads", "reason"),
        (pair(9, 7, 7, {"master": "m", "payload": True}, master="m"), "payloads", "reason"),
        (pair(9, 1, 7, {"master": "m"}, master="m", payload=True), "difference", "refuse"),
        (pair(9, 7, 7, {"master": "n"}, master="m"), "other", "reason"),
        (pair(9, 4, 0), "difference", "refuse"),
        (pair(9, 0, 4), "difference", "refuse"),
        (pair(9, 5, 5), "other", "reason"),
        (pair(9, 5, 5, k=6), "difference", "refuse"),  # the larger k counts
        (pair(9, 5, 5, {"k": 6}), "difference", "refuse"),
        (pair(9, 1, 0, {"k": None}, k=None), "difference", "refuse"),  # one patient is few of any k
        (pair(None, None, None), "unknown", "reason"),
        (pair(None, None, None, {"parameters": "q"}), "unknown", "reason"),
    ],
)
def test_the_first_rule_that_fits(given_pair: Pair, rule: str, outcome: str) -> None:
    found = decide(given_pair, {})
    assert (found.rule.name, found.outcome) == (rule, outcome)


def test_measured_candidates_below_k_refuse_what_is_not_proved() -> None:
    found = bound_of("tries", 5, [4, 4, 4, 9])
    assert found.to_json() == {
        "attack": "tries", "k": 5, "fewest": 4, "by_fewest": [0, 0, 0, 3], "looked_at": 4, "certain": 0,
        "exact": False, "below": 3,
    }  # fmt: skip

    def outcome(asked: Pair, bound: Bound = found) -> str:
        return decide(replace(asked, bound=bound), {}).outcome

    open_pair, one_master = pair(90, 10, 10, k=9), {"master": "m", "payload": True}
    assert outcome(open_pair) == "refuse"
    assert outcome(open_pair, bound_of("tries", 5, [5])) == "reason"  # k of the bound, not the larger one
    assert outcome(pair(None, None, None)) == "refuse"
    assert outcome(pair(90, 10, 10, one_master, master="m")) == "reason"  # the rule says what their rows tell
    assert outcome(pair(0, 10, 10)) == "allow"


numbers = st.none() | st.integers(0, 12)


@given(numbers, numbers, numbers, st.sampled_from(["visits", "condensation"]), st.booleans(), st.booleans())
def test_a_small_difference_is_never_allowed_without_a_proof(
    common: int | None, only_new: int | None, only_old: int | None, method: str, payload: bool, line: bool
) -> None:
    known = None not in (common, only_new, only_old)
    found = decide(
        pair(common, *((only_new, only_old) if known else (None, None)), method=method, payload=payload,
             line="a" if line else None), {}
    )  # fmt: skip
    small = any(0 < (each or 0) < 5 for each in (only_new, only_old))
    if known and common and small:
        assert found.outcome == "refuse"


def test_a_house_can_only_be_stricter() -> None:
    check_policy({"disjoint": "reason", "other": "refuse"})
    for lenient in ({"difference": "reason"}, {"other": "allow"}, {"disjoint": "never"}):
        with pytest.raises(BadInput, match="a house can only be stricter"):
            check_policy(lenient)
    with pytest.raises(BadInput, match="disjoint"):
        check_policy({"disjont": "reason"})
    assert decide(pair(0, 3, 3), {"disjoint": "refuse"}).outcome == "refuse"
    assert tuple(rule.name for rule in RULES) == NAMES


def test_who_may_put_releases_together() -> None:
    pools = (("uni", "clinic"), ("firm",))
    assert may_pool("uni", "firm", ())  # without a list everybody may
    assert may_pool("uni", "clinic", pools)
    assert may_pool("firm", "firm", pools)
    assert not may_pool("uni", "firm", pools)
    assert may_pool("uni", "somebody else", pools)
    assert may_pool(None, "firm", pools)
