"""The test and the counterexample of docs/methods/visits.md, for the plain oracle and for the method alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.methods.visits.frames import EXAMPLE, cohort, expected, named, released, sets_of
from tests.oracles import visits as oracle

from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.visits import Visits
from leeward.randomness import Randomness
from leeward.release import Release, write
from leeward.runs.measure import measure

CLAVICLE, PRESSURE = "810.00|810.01", "401.01|401.02"


def category(code: str) -> str:
    return code.partition(".")[0]


def protect(records, **parameters):
    return Visits(**parameters).protect(cohort(records), randomness=Randomness.of(1))


AFTER_MERGING = {
    2: {
        "A": [["401.01"], ["427.31"]],
        "B": [["401.01", "427.31"]],
        "C": [["401.02"]],
        "D": [["427.31", CLAVICLE]],
        "E": [["401.02"], [CLAVICLE]],
        "F": [],
    },
    3: {
        "A": [[PRESSURE], ["427.31"]],
        "B": [[PRESSURE, "427.31"]],
        "C": [[PRESSURE]],
        "D": [["427.31"]],
        "E": [[PRESSURE]],
        "F": [],
    },
}
COUNTS = {2: (9, 5), 3: (7, 3)}
AFTER_G3 = {
    2: {
        "A": [["427.31"]],
        "B": [["427.31"]],
        "C": [["401.02"]],
        "D": [[CLAVICLE]],
        "E": [["401.02"], [CLAVICLE]],
        "F": [],
    },
    3: {
        "A": [[PRESSURE], ["427.31"]],
        "B": [["427.31"]],
        "C": [[PRESSURE]],
        "D": [["427.31"]],
        "E": [[PRESSURE]],
        "F": [],
    },
}


@pytest.mark.parametrize("k", [2, 3])
def test_bin_merging_of_the_example(k: int) -> None:
    data = sets_of(EXAMPLE)
    merged = oracle.mapped(data, k, oracle.merged(data, k, category))
    assert expected(merged) == AFTER_MERGING[k]
    assert released(protect(EXAMPLE, k=k, level="code")) == AFTER_MERGING[k]
    assert (oracle.diagnosis_count(data), oracle.code_count(data)) == (11, 7)
    assert (oracle.diagnosis_count(merged), oracle.code_count(merged)) == COUNTS[k]


FIGURES = {
    2: {"few": 6, "few_share": 6 / 8, "alone": 6, "alone_share": 6 / 8, "people_few_share": 5 / 6},
    3: {"few": 8, "few_share": 8 / 8, "alone": 6, "alone_share": 6 / 8, "people_few_share": 6 / 6},
}
"""Of eight visits: C and E share {401.02}, every other set is one patient's; C alone has no such visit."""
KEPT = {2: {"dc": (6, 4, 7), "cc": (4, 2, 3)}, 3: {"dc": (6, 3, 3), "cc": (3, 1, 1)}}
"""Released, ungeneralized, and of codes of k patients: 401.01 and 401.02 have two, 427.31 has three."""


@pytest.mark.parametrize("k", [2, 3])
def test_figures_of_the_example(k: int, tmp_path: Path) -> None:
    release = Release.open(write(protect(EXAMPLE, k=k), tmp_path / "out"))
    found = measure(release, cohort(EXAMPLE), ["risk", "retention"])
    before, after = found["risk"]["before"], found["risk"]["after"]
    assert before == before | FIGURES[k] | {"visits": 8, "sets": 7, "people_alone_share": 5 / 6}
    assert after == after | {"few": 0, "few_share": 0.0, "alone": 0, "alone_share": 0.0}
    for name, original in (("dc", 11), ("cc", 7)):
        kept = found["retention"][name]
        assert kept["original"] == original
        assert (
            tuple(kept[each] for each in ("released", "ungeneralized", "suppression_only")) == KEPT[k][name]
        )
        assert kept["suppression_only_local"] == KEPT[k][name][2] / original
    assert found["retention"]["records"] == {"released": 6, "with_codes": 5}


@pytest.mark.parametrize("k", [2, 3])
def test_visits_of_the_example_after_enforcement(k: int) -> None:
    data = sets_of(EXAMPLE)
    merged = oracle.mapped(data, k, oracle.merged(data, k, category))
    assert expected(oracle.enforced(merged, k)) == AFTER_G3[k]
    assert released(protect(EXAMPLE, k=k)) == AFTER_G3[k]


def test_only_one_visit_fails_containment_at_k_2() -> None:
    data = sets_of(EXAMPLE)
    merged = oracle.mapped(data, 2, oracle.merged(data, 2, category))
    assert oracle.violating(merged, 2, oracle.containers) == {frozenset({"427.31", CLAVICLE})}


COUNTEREXAMPLE = {"A": [["x", "y"]], "B": [["x"]], "C": [["y"]]}


def test_frequent_codes_imply_neither_containment_nor_visits() -> None:
    """k = 2: both codes are held by two patients, the pair by one: the paper's procedure alone releases it."""
    data = sets_of(COUNTEREXAMPLE)
    assert [oracle.frequency(data, frozenset(code)) for code in "xy"] == [2, 2]
    pair = frozenset("xy")
    assert (oracle.holders(data, pair), oracle.containers(data, pair)) == (1, 1)
    assert released(protect(COUNTEREXAMPLE, k=2, level="code", policy="none"))["A"] == [["x", "y"]]
    after = released(protect(COUNTEREXAMPLE, k=2, policy="none"))
    assert oracle.violating(sets_of(after), 2) == set()


def test_rescue_saves_a_rare_code_among_frequent_siblings() -> None:
    records = {
        "A": [["401.0"]],
        "B": [["401.0"]],
        "C": [["401.9"], ["401.1"]],
        "D": [["401.9"]],
        "E": [["401.9"]],
    }
    assert released(protect(records, k=2, level="code"))["C"] == [["401.9"]]
    assert released(protect(records, k=2, level="code", rescue=True))["C"] == [["401.0|401.1"], ["401.9"]]


FIGURE_13 = {
    "1": [["401.00", "401.01", "427.31"], ["695.40"]],
    "2": [["695.40"]],
    "3": [["810.01"]],
    "4": [["401.01", "427.31"], ["810.01"]],
}
"""Four records of which all is true that the paper's text says of its Fig. 13; record 1 is its 49532, "Alice"."""


def test_figure_13_of_the_paper_as_its_text_tells_it() -> None:
    """Alice is alone with 427.31 and 401.00 of one visit, and so her 695.40 is learned; k = 2 leaves records 1 and 4,
    and her two codes count once. Record 4 cannot have 401.00 then, so it has 401.01, which is not rare with Alice's:
    the figure takes what `rescue` does. The procedure of the paper's Methods suppresses 401.00."""
    found = {k for k, visits in FIGURE_13.items() if any({"401.00", "427.31"} <= {*v} for v in visits)}
    assert found == {"1"}
    after = released(protect(FIGURE_13, k=2, rescue=True))
    both = "401.00|401.01"
    assert {k for k, visits in after.items() if any({both, "427.31"} <= {*v} for v in visits)} == {"1", "4"}
    pressure = {code for visit in FIGURE_13["1"] for code in visit if code[:3] == "401"}
    assert (len(pressure), sum(code[:3] == "401" for visit in after["1"] for code in visit)) == (2, 1)
    assert ["695.40"] in after["1"] and ["695.40"] in after["2"]
    assert released(protect(FIGURE_13, k=2))["1"] == [["401.01", "427.31"], ["695.40"]]


def test_merged_visits_are_one_set_a_patient() -> None:
    anonymized = protect(EXAMPLE, k=2, merge_visits=True)
    assert named(anonymized.tables, "visits.parquet")["visit"].unique().to_list() == [0]


def test_a_code_cut_from_one_visit_does_not_come_back_through_another() -> None:
    """k = 2: only A has {a, b, c}; cut c from that visit alone and A's record still shows it, by the other one."""
    records = {"A": [["a", "b", "c"], ["c"]], "B": [["a", "b"]], "C": [["c"]]}
    after = released(protect(records, k=2, level="containment", merge_visits=True, policy="none"))
    assert after == {"A": [["a", "b"]], "B": [["a", "b"]], "C": []}


def test_visits_apart_may_show_together_what_only_one_patient_had_and_say_so() -> None:
    """Every visit's set is that of 2 patients, but only A's record has a, b and c: the set of A's first visit."""
    records = {"A": [["a", "b", "c"], ["c"]], "B": [["a", "b"]], "C": [["c"]]}
    apart = protect(records, k=2, policy="none")
    assert released(apart) == {"A": [["a", "b"], ["c"]], "B": [["a", "b"]], "C": [["c"]]}
    said = [
        text for text in apart.guarantee.not_protected if "appear in another visit of the same person" in text
    ]
    assert len(said) == 1
    assert "fewer than 2 patients" in said[0]
    merged = protect(records, k=2, policy="none", merge_visits=True)
    assert not any("appear in another visit" in text for text in merged.guarantee.not_protected)


def test_containment_needs_merged_visits() -> None:
    with pytest.raises(BadInput, match=r"`level` containment protects nobody .* Add `merge_visits`"):
        Visits(k=2, level="containment")


def test_k_above_the_number_of_patients_is_unreachable() -> None:
    with pytest.raises(GuaranteeUnreachable, match="`k` is 7 and the cohort has 6 patients"):
        protect(EXAMPLE, k=7)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": 1}, "`k` must be a whole number of at least 2; got 1."),
        ({"k": 2, "level": "day"}, "`level` must be `code`, `codes`, `containment` or `visit`; got `day`."),
        ({"k": 2, "key": "best"}, "`key` must be `absolute` or `relative`; got `best`"),
        (
            {"k": 2, "enforce": "generalize", "level": "code"},
            "`enforce` generalize is only for `level` visit",
        ),
        ({"k": 2, "policy": "hierachy:1"}, "unknown policy 'hierachy'"),
    ],
)
def test_bad_parameters(wrong, message: str) -> None:
    with pytest.raises(BadInput) as found:
        Visits(**wrong)
    assert message in str(found.value)


def test_a_cohort_without_visits_says_what_to_do() -> None:
    plain = cohort(EXAMPLE)
    without = type(plain)(events=plain.require_events().drop("visit"), name="flat.csv", vocabulary="icd9")
    with pytest.raises(BadInput, match=r"flat.csv: no visit column and no dates.*`merge_visits`"):
        Visits(k=2).protect(without)
    assert len(released(Visits(k=2, merge_visits=True).protect(without))) == len(EXAMPLE)


def test_a_population_beside_the_cohort_is_refused() -> None:
    with pytest.raises(BadInput, match="give it as the source"):
        Visits(k=2).protect(cohort(EXAMPLE), population=cohort(EXAMPLE))
