"""The table of notes as an i2b2 star: read again it is the same; by Safe Harbor nothing that its list names is left."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from tests.notes.small_lexicon import SMALL

from leeward.cohort import read
from leeward.notes.star import UNKNOWN, build_star, generalize_by_safe_harbor
from leeward.notes.table import QUASI, ROW

TERMS = ["S1", "S2", "D1", "T2", "M1"]
HHS = frozenset(["036", "203"])
NOTE = st.fixed_dictionaries(
    {
        "patient": st.sampled_from(["c", "a", "b"]),
        "visit_month": st.none() | st.integers(1, 12),
        "visit_year": st.none() | st.integers(2001, 2009),
        "age": st.none() | st.integers(80, 90),
        "sex": st.sampled_from([None, "female", "male"]),
        "race": st.sampled_from([None, "White"]),
        "zip": st.sampled_from([None, "12301", "03601", "20399"]),
        "place": st.sampled_from([None, "Boston, MA"]),
        "terms": st.lists(st.sampled_from(TERMS), unique=True).map(sorted),
    }
)


def table_of(notes: list[dict[str, Any]]) -> pl.DataFrame:
    # A month is known with its year alone.
    rows = [each | {"visit_month": each["visit_year"] and each["visit_month"]} for each in notes]
    empty = pl.from_arrow(ROW.empty_table())
    assert isinstance(empty, pl.DataFrame)
    schema = {name: empty.schema[name] for name in rows[0]}
    return pl.DataFrame(rows, schema).with_columns(note=pl.int_range(pl.len(), dtype=pl.Int64))


def facts_of(notes: list[dict[str, Any]]) -> set[tuple[int, int, str, datetime.date]]:
    """What has to be in OBSERVATION_FACT, value by value."""
    number = {patient: n for n, patient in enumerate(sorted({each["patient"] for each in notes}), 1)}
    found = set()
    for at, each in enumerate(notes):
        year = each["visit_year"]
        day = UNKNOWN if year is None else datetime.date(year, each["visit_month"] or 1, 1)
        said = [f"TERM:{term}" for term in each["terms"]]
        said += [f"{name.upper()}:{each[name]}" for name in QUASI if each[name] is not None]
        found |= {(at, number[each["patient"]], concept, day) for concept in said}
    return found


@given(st.lists(NOTE, min_size=1, max_size=8))
def test_the_star_has_every_value_once_and_no_other(notes: list[dict[str, Any]]) -> None:
    star = build_star(table_of(notes), SMALL)
    facts = star["observation_fact"]
    rows = facts.select("encounter_num", "patient_num", "concept_cd", "start_date").rows()
    assert set(rows) == facts_of(notes) and len(rows) == len(set(rows))
    assert facts.columns == [
        "encounter_num", "patient_num", "start_date", "concept_cd", "provider_id", "modifier_cd", "instance_num"
    ]  # fmt: skip
    assert star["visit_dimension"].height == len(notes)
    patients = sorted(set(star["visit_dimension"]["patient_num"]))
    assert star["patient_dimension"]["patient_num"].to_list() == patients
    concepts = star["concept_dimension"]
    assert set(concepts["concept_cd"]) == set(facts["concept_cd"])
    assert concepts["concept_path"].is_unique().all()
    assert concepts.filter(concept_cd="TERM:S1")["name_char"].to_list() in ([], ["fever"])


def test_the_star_is_read_again(tmp_path: Path) -> None:
    """By `cohort/readers/i2b2.py`: the terms of each note, with its patient and its day."""
    notes = [
        {"patient": "b", "visit_month": 4, "visit_year": 2009, "age": 9, "sex": "female", "race": None,
         "zip": "12301", "place": None, "terms": ["S1", "S2"]},
        {"patient": "a", "visit_month": None, "visit_year": None, "age": None, "sex": "male", "race": "White",
         "zip": None, "place": None, "terms": ["D1"]},
    ]  # fmt: skip
    for name, frame in build_star(table_of(notes), SMALL).items():
        frame.write_csv(tmp_path / f"{name}.csv")
    events = read(tmp_path, domains=["TERM"], vocabulary="none").require_events()
    day = datetime.date(2009, 4, 1)
    found = set(events.select("patient", "visit", pl.col("code").cast(pl.String), "date").rows())
    assert found == {(2, 0, "S1", day), (2, 0, "S2", day), (1, 1, "D1", UNKNOWN)}
    ages = read(tmp_path, domains=["AGE", "ZIP"], vocabulary="none").require_events()
    assert set(ages["code"].cast(pl.String)) == {"9", "12301"}


def by_rule(notes: list[dict[str, Any]], keeps: bool) -> list[dict[str, Any]]:
    """The Safe Harbor rule note by note."""
    made = []
    for each in notes:
        years = [
            other["visit_year"]
            for other in notes
            if other["patient"] == each["patient"] and other["visit_year"] is not None
        ]
        age, year, code = each["age"], each["visit_year"], each["zip"]
        # Whoever knows the age at this visit would know at a later one that its patient is, or may be, 90 or older.
        if age is not None and age < 90 and year is not None:
            later = max(years)
            age = None if later > year and age + (later - year) + 1 >= 90 else age
        kept = None if code is None or not keeps else "000" if code[:3] in HHS else code[:3]
        made.append(each | {"visit_month": None, "age": age, "zip": kept, "place": None})
    return made


@given(st.lists(NOTE, min_size=1, max_size=8), st.booleans())
def test_safe_harbor_leaves_years_three_digits_and_no_age_above_89(
    notes: list[dict[str, Any]], keeps: bool
) -> None:
    made = generalize_by_safe_harbor(table_of(notes), HHS if keeps else None)
    assert made.drop("note").equals(table_of(by_rule(notes, keeps)).drop("note"))
    star = build_star(made, SMALL)
    days = star["visit_dimension"]["start_date"].to_list()
    assert all((day.month, day.day) == (1, 1) for day in days)
    concepts = star["concept_dimension"]["concept_cd"].to_list()
    assert not any(concept.startswith("PLACE:") for concept in concepts)
    assert {concept for concept in concepts if concept.startswith("ZIP:")} <= {"ZIP:123", "ZIP:000"}


@given(st.lists(NOTE, min_size=1, max_size=8))
def test_an_attacker_with_the_shared_star_finds_nobody_s_age_above_89(notes: list[dict[str, Any]]) -> None:
    """Adds the years between two visits to each age of a patient, a year more for a birthday between them."""
    facts = build_star(generalize_by_safe_harbor(table_of(notes), HHS), SMALL)["observation_fact"]
    said = facts.filter(pl.col("start_date") != UNKNOWN).select(
        "patient_num", pl.col("start_date").dt.year(), "concept_cd"
    )
    for patient, year, concept in said.rows():
        if concept.startswith("AGE:") and concept != "AGE:90":
            last = max(each[1] for each in said.rows() if each[0] == patient)
            assert int(concept.removeprefix("AGE:")) + (last - year) + (last > year) <= 89
