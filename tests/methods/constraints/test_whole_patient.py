"""Generalization inside classes of demographics (docs/methods/whole-patient.md#generalized-records)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.attacks.whole_patient_records import read
from tests.methods.disassociation.test_whole_patient import cohort_of, people, tables, ten_patients
from tests.oracles import constraints as oracle
from tests.oracles.whole_patient import candidates_of_records, generalized

import leeward as lw
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.methods.constraints import Constraints
from leeward.randomness import Randomness
from leeward.release import write
from leeward.release.content import Anonymized

KEPT = {"demographics": ("age", "sex"), "keep": {"age": 20, "sex": "exact"}}


def policy_file(folder: Path, *groups: str) -> str:
    file = folder / "policy.txt"
    file.write_text("\n".join(groups) + "\n")
    return f"file:{file}"


def protect(cohort: Cohort, **parameters: Any) -> Anonymized:
    method = Constraints(**{"k": 3, "m": 2, **KEPT, **parameters})
    return method.protect(cohort, randomness=Randomness.of(7))


def labels_of(made: Anonymized) -> dict[int, list[str]]:
    codes = tables(made)["codes.parquet"].filter(~pl.col("suppressed"))
    return {int(c): group["code"].to_list() for (c,), group in codes.group_by("class")}  # type: ignore[call-overload]


def test_worked_example_of_ten_patients_labels(tmp_path: Path) -> None:
    made = protect(ten_patients(), policy=policy_file(tmp_path, "428,493,585"))
    assert tables(made)["classes.parquet"].rows() == [(0, "40-79", "F", 5), (1, "60-79", "M", 5)]
    assert labels_of(made) == {0: ["(428,493,585)", "250", "401"], 1: ["401", "414"]}
    gone = tables(made)["codes.parquet"].filter("suppressed").select("class", "code").rows()
    assert gone == [(0, "414"), (1, "250"), (1, "428"), (1, "493"), (1, "585")]
    shown = tables(made)["records.parquet"]
    assert shown.columns == ["record", "codes", "age", "sex"]
    women = shown.filter(sex="F")["codes"].to_list()
    assert sorted(map(tuple, women)) == sorted(
        [
            ("(428,493,585)", "250", "401"),
            ("250", "401"),
            ("(428,493,585)", "250", "401"),
            ("(428,493,585)", "250"),
            ("(428,493,585)", "401"),
        ]
    )


CANDIDATES = [
    ("F", "", 5), ("F", "250", 4), ("F", "428", 4), ("F", "250 401", 3), ("F", "250 493", 3), ("F", "428 585", 4),
    ("M", "", 5), ("M", "401", 4), ("M", "250", 5), ("M", "401 414", 3), ("M", "250 401", 4), ("M", "414 428", 3),
]  # fmt: skip


def test_worked_example_of_ten_patients_candidates(tmp_path: Path) -> None:
    made = protect(ten_patients(), policy=policy_file(tmp_path, "428,493,585"))
    share = write(made, tmp_path / "out") / "share"
    for sex, codes, candidates in CANDIDATES:
        known = ({"age": "62", "sex": sex}, frozenset(codes.split()))
        assert read(share).candidates(known) == candidates, (sex, codes)


@settings(max_examples=25)
@given(st.data())
def test_each_class_is_generalized_as_the_oracle_does(data: st.DataObject) -> None:
    """Labels are those of the plain algorithm in each class, and the plain definition finds k candidates."""
    algorithm = data.draw(st.sampled_from(["cba", "ugaclip"]))
    sizes = {sex: data.draw(st.integers(4, 8)) for sex in "FM"}
    found = [
        ({"sex": sex}, tuple(sorted(data.draw(st.sets(st.sampled_from("abcdef"), min_size=1, max_size=4)))))
        for sex, n in sizes.items()
        for _ in range(n)
    ]
    made = protect(
        cohort_of(found), algorithm=algorithm, demographics=("sex",), keep={"sex": "exact"},
    )  # fmt: skip
    classes = [[frozenset(codes) for who, codes in found if who["sex"] == sex] for sex in "FM"]
    solve = {"cba": oracle.cba, "ugaclip": oracle.ugaclip}[algorithm]
    labels = [
        {
            code: code
            for cluster in solve(records, oracle.subsets(set().union(*records), 2), {}, 3)
            for code in cluster
        }
        for records in classes
    ]
    published = generalized(classes, labels)
    rows = tables(made)["records.parquet"].select("sex", "codes").rows()
    assert sorted(("FM".index(sex), sorted(codes)) for sex, codes in rows) == sorted(
        (c, sorted(record)) for c, record in published
    )
    for c, records in enumerate(classes):
        for record in records:
            for known in [frozenset[str](), *oracle.subsets(record, 2)]:
                assert candidates_of_records(published, labels, [c], known) >= 3


def test_nothing_tells_in_which_class_a_suppressed_code_occurs() -> None:
    codes = tables(protect(people(120)))["codes.parquet"]
    named = {
        number: set(group.filter("suppressed")["code"])
        | set(group["members"].explode(empty_as_null=True).drop_nulls())
        for (number,), group in codes.group_by("class")
    }
    assert len(named) > 3 and len({frozenset(each) for each in named.values()}) == 1


def test_codes_of_patients_left_out_are_not_named() -> None:
    lone = [({"sex": "X"}, ("rare",))] * 2 + [({"sex": "F"}, ("a", "b"))] * 5
    made = protect(cohort_of(lone), demographics=("sex",), keep={"sex": "exact"}, small="drop")
    assert made.records == 5 and made.custody["patients_left_out"] == 2
    named = tables(made)["codes.parquet"]
    assert "rare" not in {*named["code"], *named["members"].explode(empty_as_null=True)}


def test_listed_sets_are_protected_in_every_class(tmp_path: Path) -> None:
    listed = tmp_path / "listed.txt"
    listed.write_text("c00,c05\nc01 c09\n")
    cohort = people(150)
    result = lw.protect(
        cohort, Constraints(k=4, privacy=str(listed), **KEPT), tmp_path / "out", seed=3  # type: ignore[arg-type]
    )  # fmt: skip
    assert result.verification.passed and "listed_sets" in {c.name for c in result.verification.checks}
    assert result.release.guarantee["name"] == "protected code sets in classes of demographics"


def test_what_does_not_go_with_demographics(tmp_path: Path) -> None:
    result = lw.protect(people(90), Constraints(k=3, m=2, **KEPT), tmp_path / "out", seed=1)  # type: ignore[arg-type]
    earlier = str(result.release.share / "data/codes.parquet")
    with pytest.raises(BadInput, match="`mapping` and `demographics` cannot be combined"):
        Constraints(k=3, m=2, mapping=earlier, **KEPT)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="of a release with demographics"):
        Constraints(k=3, m=2, mapping=earlier).protect(people(90))


def test_measures_of_a_release_with_demographics(tmp_path: Path) -> None:
    cohort = people(400, seed=4)
    result = lw.protect(cohort, Constraints(k=4, m=2, **KEPT), tmp_path / "out", seed=2)  # type: ignore[arg-type]
    codes, facts = result.measures["codes"], result.measures["method"]
    assert codes["occurrences"]["total"] == len(cohort.code_sets().values) == facts["occurrences"]
    gone = facts["occurrences_suppressed_share"] * facts["occurrences"]
    assert codes["occurrences"]["suppressed"] == pytest.approx(gone)
    assert codes["codes"]["suppressed"] == facts["codes_suppressed"]
    figures = result.measures["demographics"]
    assert figures["outside_bounds"] == 0 and figures["after"]["below_k"] == 0
    assert figures["after"]["smallest"] >= 4
    assert "Demographics and codes together" in result.report.read_text(encoding="utf-8")


def test_the_search_counts_what_is_suppressed_or_generalized() -> None:
    made = protect(people(200, seed=2), keep=None, recoding="local")
    points = made.custody["demographics_search"]
    assert len(points) >= 2 and made.custody["classes"] == points[-1]["classes"]
    lost = made.custody["occurrences_suppressed_share"] + made.custody["occurrences_generalized_share"]
    assert points[-1]["lost"] == pytest.approx(lost)
    assert np.isfinite([point["objective"] for point in points]).all()
