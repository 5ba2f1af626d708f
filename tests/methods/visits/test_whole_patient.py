"""Visits with demographics: the worked example, any cohort against the oracle in each class, errors, the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.visits.frames import cohort, expected, frame, named, released, sets_of
from tests.oracles.visits import Data, Visit, enforced, known_codes, mapped, merged
from tests.oracles.whole_patient_visits import few, in_each_class
from tests.verify.made import patients_with_codes

import leeward as lw
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.visits import Visits
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

EXAMPLE = {
    "p1": (62, "F", "250 401 428"), "p2": (64, "F", "250 401"), "p3": (67, "F", "250 401 585"),
    "p4": (63, "M", "401 414 428"), "p5": (68, "M", "401 414"), "p6": (70, "M", "250 401 414"),
    "p7": (74, "M", "250 428"), "p8": (78, "M", "250 401"), "p9": (45, "F", "250 493"),
    "p10": (52, "F", "401 493 585"),
}  # fmt: skip
"""The ten patients of docs/methods/whole-patient.md, each with one visit."""


def example() -> Cohort:
    people = pl.DataFrame(
        {
            "patient": list(EXAMPLE),
            "age": [age for age, _, _ in EXAMPLE.values()],
            "sex": [sex for _, sex, _ in EXAMPLE.values()],
        }
    )
    return cohort({p: [codes.split()] for p, (_, _, codes) in EXAMPLE.items()}, people)


def protect(source: Cohort, **parameters: Any) -> Anonymized:
    wanted = {"k": 3, "demographics": ("age", "sex"), **parameters}
    return Visits(**wanted).protect(source, randomness=Randomness.of(5))


def classes_of(made: Anonymized) -> dict[str, tuple[str, ...]]:
    """The labels of each patient's record."""
    people = dict(named(made.custody_tables, "patients.parquet").select("record", "patient").rows())
    rows = named(made.tables, "records.parquet").drop("record").rows()
    return {people[record]: labels for record, labels in enumerate(rows)}


def with_people(n: int, seed: int = 11) -> Cohort:
    """Patients with visits, ages (one in ten missing) and sexes."""
    made = patients_with_codes(n, seed)
    assert made.patients is not None
    ages = [None if i % 10 == 3 else 20 + (i * 37) % 60 for i in range(n)]
    people = made.patients.with_columns(
        age=pl.Series(ages, dtype=pl.Int64), sex=pl.Series(["F", "M", "M"] * n).head(n)
    )
    return Cohort(made.events, people, name="made up", vocabulary="icd9")


def test_worked_example_of_ten_patients() -> None:
    made = protect(example(), policy="none", keep={"age": 20, "sex": "exact"})
    classes = named(made.tables, "classes.parquet")
    assert classes.rows() == [(0, "40-79", "F", 5), (1, "60-79", "M", 5)]
    assert {p for p, (age, _) in classes_of(made).items() if age == "40-79"} == {
        "p1",
        "p2",
        "p3",
        "p9",
        "p10",
    }
    shown = {p: [["250", "401"]] for p in ("p1", "p2", "p3")} | {
        p: [["401", "414"]] for p in ("p4", "p5", "p6")
    }
    assert released(made) == {p: shown.get(p, []) for p in sorted(EXAMPLE)}
    assert made.custody["pairs"] == {"original": 25, "exact": 12, "merged": 0, "above": 0}


def test_a_label_may_differ_from_class_to_class() -> None:
    """272.0 and 272.1 are rare among men alone, where they become one code."""
    records = {f"f{i}": [["272.0"]] for i in range(4)} | {f"g{i}": [["272.1"]] for i in range(4)}
    records |= {"m0": [["272.0"]], "m1": [["272.1"]], "m2": [["272.1"]]}
    people = pl.DataFrame({"patient": list(records), "sex": ["F"] * 8 + ["M"] * 3})
    made = protect(cohort(records, people), demographics=("sex",), keep={"sex": "exact"})
    shown = released(made)
    assert shown["f0"] == [["272.0"]] and shown["m0"] == [["272.0|272.1"]] == shown["m2"]
    codes = named(made.custody_tables, "codes.parquet")
    assert codes.columns == ["class", "code", "label", "above"]
    assert codes.filter(pl.col("class") == 1)["label"].to_list() == ["272.0|272.1"] * 2


CODES = ["250.0", "250.1", "401.0", "401.1", "428.0"]
COHORTS = st.lists(
    st.tuples(
        st.sampled_from([31, 45, 46, 62]),
        st.sampled_from("FM"),
        st.lists(st.sets(st.sampled_from(CODES), min_size=1, max_size=3), min_size=1, max_size=2),
    ),
    min_size=6,
    max_size=14,
)


def cohort_of(people: list[tuple[int, str, list[set[str]]]]) -> Cohort:
    names = [f"p{i:02d}" for i in range(len(people))]
    table = pl.DataFrame({"patient": names, "age": [p[0] for p in people], "sex": [p[1] for p in people]})
    return cohort({n: [sorted(v) for v in p[2]] for n, p in zip(names, people, strict=True)}, table)


@given(COHORTS, st.sampled_from(["merge", "suppress", "drop"]), st.sampled_from(["visit", "codes"]))
def test_every_class_is_what_the_oracle_makes_of_it_alone(
    people: list[tuple[int, str, list[set[str]]]], small: str, level: str
) -> None:
    source = cohort_of(people)
    try:
        made = protect(source, k=2, small=small, level=level, keep={"age": 20, "sex": "exact"})
    except GuaranteeUnreachable:
        assert small == "drop"
        return
    class_of = classes_of(made)
    order = Randomness.of(5).stream("visits", "known codes").permutation(len(people)).tolist()

    def run(data: Data) -> dict[str, list[Visit]]:
        coded = mapped(data, 2, merged(data, 2, lambda code: code[:3]))
        if level == "visit":
            return enforced(coded, 2)
        names = [f"p{i:02d}" for i in order if f"p{i:02d}" in data]
        return known_codes(coded, 2, 2, False, 0.1, names)

    data = {p: v for p, v in sets_of({n: [sorted(s) for s in each[2]] for n, each in
            ((f"p{i:02d}", each) for i, each in enumerate(people))}).items() if p in class_of}  # fmt: skip
    assert released(made) == expected(in_each_class(data, class_of, run))
    shown = {p: [frozenset(v) for v in visits] for p, visits in released(made).items()}
    assert level != "visit" or few(shown, class_of, 2) == 0


def test_patients_in_small_classes_can_be_left_out() -> None:
    source = with_people(60)
    made = protect(source, small="drop", k=4, keep={"age": 5, "sex": "exact"}, payload=("snp",))
    sizes = named(made.tables, "classes.parquet")["records"]
    assert sizes.min() >= 4 and sizes.sum() == made.records < 60
    assert made.custody["patients_left_out"] == 60 - made.records
    assert any("are left out" in notice for notice in made.notices)


def test_the_search_and_the_loss_without_demographics() -> None:
    made = protect(with_people(90), k=3)
    facts = made.custody
    best = min(facts["demographics_search"], key=lambda point: point["objective"])
    gone = facts["pairs"]["original"] - sum(facts["pairs"][name] for name in ("exact", "merged", "above"))
    assert len(facts["demographics_search"]) > 3 and best["classes"] == facts["classes"]
    assert best["lost"] == pytest.approx(gone / facts["pairs"]["original"])
    alone = Visits(k=3).protect(with_people(90), randomness=Randomness.of(5)).custody["pairs"]
    kept = sum(alone[name] for name in ("exact", "merged", "above"))
    assert facts["lost_without_demographics"] == pytest.approx(1 - kept / alone["original"])


def test_climbing_inside_classes() -> None:
    made = protect(with_people(120), enforce="generalize", keep={"age": 20, "sex": "all"})
    nodes = named_csv(made, "code_hierarchy.csv")
    shown = {label for visits in released(made).values() for visit in visits for label in visit}
    assert shown <= set(nodes["node"]) and not nodes["node"].is_duplicated().any()
    assert not any("\x1f" in text for text in [*nodes["node"], *nodes["parent"], *shown])


def named_csv(made: Anonymized, path: str) -> pl.DataFrame:
    return frame(next(table for table in made.tables if table.path == path))


def test_columns_that_are_not_there_identify_or_are_payload_too() -> None:
    with pytest.raises(BadInput, match="no column 'ages' of the patients"):
        protect(with_people(30), demographics=("ages",))
    source = with_people(30)
    assert source.patients is not None
    named = source.patients.with_columns(name=pl.col("patient") + "x")
    with pytest.raises(BadInput, match="is an identifier"):
        protect(Cohort(source.events, named, name="made up", vocabulary="icd9"), demographics=("name",))
    with pytest.raises(BadInput, match="in `demographics` and in `payload`"):
        Visits(k=3, demographics=("age",), payload=("age",))


def test_the_report_states_the_loss(tmp_path: Path) -> None:
    result = lw.protect(
        with_people(80), Visits(k=3, demographics=("age", "sex"), keep={"age": 20}), tmp_path / "out", seed=1
    )
    assert "Demographics and codes together" in result.report.read_text(encoding="utf-8")
    figures = result.measures["demographics"]
    assert figures["outside_bounds"] == 0 and figures["classes"] == result.measures["method"]["classes"]
