"""Estimates among demographics, and the measures of a release with them (docs/methods/whole-patient.md#measures)."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.methods.disassociation.test_whole_patient import PARAMETERS, people, ten_patients

import leeward as lw
from leeward.analysis.demographics.joint import draw, exact_columns, independence, joint_risk
from leeward.analysis.demographics.released import ReleasedClasses
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.methods.disassociation import Disassociation
from leeward.randomness import Randomness
from leeward.release import Release, write


def written(cohort: Cohort, out: Path, **parameters: Any) -> Release:
    method = Disassociation(**{**PARAMETERS, **parameters})
    return Release.open(write(method.protect(cohort, randomness=Randomness.of(7)), out))


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> tuple[Cohort, lw.Result]:
    cohort = people(400, seed=4)
    method = Disassociation(
        k=4, m=2, demographics=("age", "sex", "zip"), keep={"age": 20, "sex": "exact", "zip": 4}
    )
    return cohort, lw.protect(cohort, method, tmp_path_factory.mktemp("whole") / "out", seed=2)


def test_worked_example_counts_among_demographics(tmp_path: Path) -> None:
    share = written(ten_patients(), tmp_path / "out").share
    women = lw.estimate(share, ["401"], where={"sex": "F"})
    assert (women.low, women.expected, women.high) == (4, 4.0, 4)
    older = lw.estimate(share, ["401"], where={"age": "60-79", "sex": "F"})
    assert (older.low, older.expected, older.high) == (0, 2.0, 4)
    assert lw.estimate(share, ["401"], where={"age": "80-99"}).high == 0
    assert lw.estimate(share, ["401"], where={"sex": "*"}) == lw.estimate(share, ["401"])


def records_of(cohort: Cohort) -> list[tuple[dict[str, Any], set[str]]]:
    assert cohort.patients is not None
    rows = {row["patient"]: row for row in cohort.patients.rows(named=True)}
    held = cohort.require_events().group_by("patient").agg(pl.col("code").cast(pl.String)).rows()
    return [(rows[patient], set(codes)) for patient, codes in held]


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ({"sex": "F"}, lambda p: p["sex"] == "F"),
        ({"age": "40-59"}, lambda p: p["age"] is not None and 40 <= p["age"] <= 59),
        ({"age": "45-49", "sex": "M"}, lambda p: p["age"] in range(45, 50) and p["sex"] == "M"),
        ({"age": "(missing)"}, lambda p: p["age"] is None),
        ({"zip": "4411*"}, lambda p: p["zip"].startswith("4411")),
        ({"zip": "44113"}, lambda p: p["zip"] == "44113"),
    ],
    ids=lambda each: "" if callable(each) else str(each),
)
def test_true_counts_lie_within_the_bounds(
    where: dict[str, str], holds: Any, larger: tuple[Cohort, lw.Result]
) -> None:
    cohort, result = larger
    patients = [codes for person, codes in records_of(cohort) if holds(person)]
    asked = [(f"c{i:02}",) for i in range(14)] + list(combinations(["c00", "c01", "c02", "c05"], 2))
    close = 0
    for codes in asked:
        found = lw.estimate(result.path, codes, where=where)
        true = sum(set(codes) <= held for held in patients)
        assert found.low <= true <= found.high
        assert found.low <= found.expected <= found.high
        close += abs(found.expected - true) <= max(4.0, 0.5 * true)
    assert close > 0.6 * len(asked)


def test_classes_that_may_hold_some_have_a_share(larger: tuple[Cohort, lw.Result]) -> None:
    classes = ReleasedClasses.read(larger[1].release)
    by_label = {labels[0]: i for i, labels in enumerate(classes.labels)}
    concerned = classes.part_of({"age": "45-49"})
    assert concerned.share[by_label["40-59"]] == 0.25 and not concerned.possible[by_label["60-79"]]
    whole = classes.part_of({"age": "40-59"})
    assert whole.share[by_label["40-59"]] == 1


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"sx": "F"}, "no column `sx`. Did you mean 'sex'"),
        ({"sex": "Female"}, "no class of the release has the label `Female` of `sex`"),
    ],
)
def test_questions_that_cannot_be_asked(
    where: dict[str, str], message: str, larger: tuple[Cohort, lw.Result], tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=message):
        lw.estimate(larger[1].path, ["c00"], where=where)
    bare = Disassociation(k=3, m=2).protect(ten_patients(), randomness=Randomness.of(7))
    with pytest.raises(BadInput, match="the release has no demographics"):
        lw.estimate(write(bare, tmp_path / "bare"), ["401"], where=where)


def test_questions_have_true_counts_and_the_independent_answer(larger: tuple[Cohort, lw.Result]) -> None:
    cohort, result = larger
    sets = cohort.code_sets()
    columns = exact_columns(result.release, cohort, sets.patients)
    questions = draw(columns, sets, {"age": 20, "sex": "exact", "zip": "all"}, 60)
    apart = independence(questions, sets)
    everybody = records_of(cohort)
    for i in np.arange(0, len(questions.codes), 7):
        codes = {sets.codes[c] for c in questions.codes[i]}
        age, sex, _ = columns.labels(questions.cells[questions.cell[i]])

        def inside(person: dict[str, Any], age: str = age, sex: str = sex) -> bool:
            if person["sex"] != sex or (person["age"] is None) != (age == "(missing)"):
                return False
            low, _, high = age.partition("-")
            return person["age"] is None or int(low) <= person["age"] <= int(high)

        cell = [held for person, held in everybody if inside(person)]
        assert questions.true[i] == sum(codes <= held for held in cell)
        having = sum(codes <= held for _, held in everybody)
        assert apart[i] == pytest.approx(having * len(cell) / len(everybody))


def test_joint_risk_counts_patients_by_exact_demographics_and_codes(larger: tuple[Cohort, lw.Result]) -> None:
    cohort, result = larger
    sets = cohort.code_sets()
    columns = exact_columns(result.release, cohort, sets.patients)
    found = {row["codes"]: row for row in joint_risk(columns, sets, 4, 2)["before"]}
    everybody = [((p["age"], p["sex"], p["zip"]), held) for p, held in records_of(cohort)]
    for size in (0, 1, 2):
        alone = below = 0
        for key, held in everybody:
            sizes = [
                sum(other == key and set(codes) <= theirs for other, theirs in everybody)
                for codes in combinations(sorted(held), min(size, len(held)))  # up to `size` codes are known
            ]
            alone += min(sizes) == 1
            below += min(sizes) < 4
        assert (found[size]["unique"], found[size]["below_k"]) == (alone, below)


def test_the_report_shows_demographics_and_codes_together(larger: tuple[Cohort, lw.Result]) -> None:
    _, result = larger
    figures = result.measures["demographics"]
    assert figures["outside_bounds"] == 0 and figures["after"]["below_k"] == 0
    assert figures["after"]["smallest"] >= 4 and figures["after"]["by_demographics"] >= 4
    ways = {error["way"] for each in figures["asked"] for error in each["errors"]}
    assert ways == {"this release", "codes and demographics apart"}
    page = result.report.read_text(encoding="utf-8")
    assert "Demographics and codes together" in page
    assert "known of a patient beside the exact age, sex and zip" in page and ">no code<" in page
    for row in figures["risk"]["before"]:
        assert f">{100 * row['below_k'] / row['patients']:.1f} %<" in page
    assert "Patients whom an attacker singles out" not in page  # said once, in the section on risk


def test_measures_of_patients_left_out(tmp_path: Path) -> None:
    cohort = people(240)
    method = Disassociation(
        k=4, m=2, demographics=("age", "sex"), keep={"age": 5, "sex": "exact"}, small="drop"
    )
    result = lw.protect(cohort, method, tmp_path / "out", seed=1)
    placed = result.measures["placement"]["occurrences"]
    assert result.measures["method"]["patients_left_out"] > 0
    assert placed["total"] == result.measures["method"]["occurrences"]
    assert placed["item"] == result.measures["method"]["item_occurrences"]
    assert result.measures["demographics"]["outside_bounds"] == 0
