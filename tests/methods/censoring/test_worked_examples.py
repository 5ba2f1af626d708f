"""Example 1 of GCCens and every case of docs/methods/censoring.md, on the oracle and on the product."""

from __future__ import annotations

import pytest
from tests.methods.censoring.frames import CAPS, POPULATION, SAMPLE, cohort, released
from tests.oracles import censoring as oracle

from leeward.errors import GuaranteeUnreachable
from leeward.methods.censoring import Censoring
from leeward.randomness import Randomness

CASES = [
    # k, released, picks, distinguishability, CUL
    (2, [["250"], ["272", "724"], ["250", "272"]], ["250", "272"], [4, 2, 2], [0, 1 / 3, 1 / 3]),
    (3, [[], ["272"], ["272"]], ["250", "272", "724", "250"], [7, 4, 4], [1, 2 / 3, 2 / 3]),
    (5, [[], [], []], ["250", "272", "724", "250", "272"], [7, 7, 7], [1, 1, 1]),
    (7, [[], [], []], ["250", "272", "724", "250", "272"], [7, 7, 7], [1, 1, 1]),
]
BY_RECORD = [
    (2, [["250"], ["272", "272"], ["250", "250", "272"]]),
    (3, [["250"], ["272"], ["250"]]),
    (4, [["250"], ["272"], ["250"]]),
    (5, [[], [], []]),
]


def protect(k: int, scope: str = "global"):
    method = Censoring(k=k, caps=CAPS, scope=scope)
    return method.protect(
        cohort(SAMPLE, "sample"), randomness=Randomness.of(1), population=cohort(POPULATION, "population")
    )


@pytest.mark.parametrize(("k", "expected", "picks", "counts", "losses"), CASES)
def test_example_1_of_gccens(k, expected, picks, counts, losses) -> None:
    assert oracle.gccens(SAMPLE, POPULATION, k, CAPS) == (expected, picks)
    anonymized = protect(k)
    assert released(anonymized) == expected
    assert anonymized.custody["rounds"] == len(picks)
    assert [oracle.dis(record, POPULATION) for record in released(anonymized)] == counts
    pairs = zip(SAMPLE, released(anonymized), strict=True)
    assert [oracle.cul(*pair) for pair in pairs] == pytest.approx(losses)


@pytest.mark.parametrize(("k", "expected"), BY_RECORD)
def test_figure_1_by_record(k: int, expected: list[list[str]]) -> None:
    assert [oracle.largest_safe(record, POPULATION, k, CAPS) for record in SAMPLE] == expected
    anonymized = protect(k, "record")
    assert released(anonymized) == expected
    assert anonymized.custody["exact_records"] == len(SAMPLE)


@pytest.mark.parametrize("scope", ["global", "record"])
def test_k_8_is_above_the_population_of_figure_1(scope: str) -> None:
    with pytest.raises(GuaranteeUnreachable, match=r"`k` is 8 and the population has 7 people"):
        protect(8, scope)


def test_the_text_of_figure_1_errs_on_distinguishability() -> None:
    """Erratum (docs/methods/censoring.md#greedy-code-censoring): {250, 250, 272} is held by Bella and by John."""
    assert [oracle.dis(record, POPULATION) for record in SAMPLE] == [4, 1, 2]


def test_a_safe_record_is_emptied_by_global_caps_only() -> None:
    """k = 3 shows the cost of global caps: {250} was safe."""
    assert oracle.dis(["250"], POPULATION) == 4
    assert released(protect(3))[0] == []
    assert released(protect(3, "record"))[0] == ["250"]


def test_the_printed_loop_does_not_end_at_a_cap_of_0() -> None:
    """Steps 3 to 15 by the letter: all have the code of cap 0 exactly 0 times, so all are in its set; once it is chosen
    its cap is -1, its set empty and the smallest for ever. Ties are broken by code, as in the product."""
    sample, population, k = [["2"]], [["2"], ["3"]], 2
    caps = {"1": 0, "2": 1}
    released, picks = [list(record) for record in sample], []
    while any(oracle.dis(record, population) < k for record in released) and len(picks) < 50:
        members = {code: [y for y in released if y.count(code) == cap] for code, cap in caps.items()}
        chosen = min(sorted(members), key=lambda code: len(members[code]))
        for record in members[chosen]:
            record[:] = [code for code in record if code != chosen]
        caps[chosen] -= 1
        picks.append(chosen)
    assert picks == ["1"] * 50 and caps == {"1": -50, "2": 1} and released == sample
    assert oracle.gccens(sample, population, k, {"1": 0, "2": 1}) == ([[]], ["2"])
