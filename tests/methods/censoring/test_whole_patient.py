"""Censoring with demographics: every record has k people who fit its labels and contain it; errors; the report."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.attacks.whole_patient_visits import may_be
from tests.methods.visits.frames import cohort, named
from tests.methods.visits.test_whole_patient import EXAMPLE, example, with_people
from tests.oracles.whole_patient_k_map import Person, few
from tests.verify.made import sample_of

import leeward as lw
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.censoring import Censoring
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

NAMES = ("age", "sex")


def protect(sample: Cohort, everyone: Cohort, **parameters: Any) -> Anonymized:
    wanted = {"k": 3, "demographics": NAMES, "scope": "global", **parameters}
    return Censoring(**wanted).protect(sample, population=everyone, randomness=Randomness.of(2))


def people_of(source: Cohort) -> list[Person]:
    """Everybody with exact values and mentions (a code counts once a visit)."""
    assert source.patients is not None
    values = {row["patient"]: row for row in source.patients.rows(named=True)}
    held: dict[str, Counter[str]] = {}
    events = source.require_events().select("patient", "visit", pl.col("code").cast(pl.String)).unique()
    for patient, _, code in events.rows():
        held.setdefault(patient, Counter())[code] += 1
    exact = lambda p: tuple("(missing)" if values[p][n] is None else str(values[p][n]) for n in NAMES)  # noqa: E731
    return [(exact(patient), codes) for patient, codes in held.items()]


def records_of(made: Anonymized) -> list[Person]:
    rows = named(made.tables, "records.parquet").select("codes", *NAMES).rows()
    return [(tuple(labels), Counter(codes)) for codes, *labels in rows]


def fits(label: str, value: str) -> bool:
    return may_be(label, value, "*")


def small(seed: int) -> tuple[Cohort, Cohort]:
    """A population of twelve to twenty people with one to three visits, and a sample of a third of them."""
    draw = np.random.Generator(np.random.Philox(key=seed))
    n = int(draw.integers(12, 21))
    codes = np.array(["250.0", "250.1", "401.0", "428.0"])
    records = {
        f"p{i:02d}": [
            draw.choice(codes, int(draw.integers(1, 3)), False).tolist() for _ in range(draw.integers(1, 4))
        ]
        for i in range(n)
    }
    ages = pl.Series([None if age == 60 else int(age) for age in draw.integers(3, 7, n) * 10], dtype=pl.Int64)
    people = pl.DataFrame({"patient": list(records), "age": ages, "sex": draw.choice(["F", "M"], n)})
    everyone = cohort(records, people)
    return sample_of(everyone, n // 3), everyone


def test_in_100_small_populations_every_record_has_k_owners_by_plain_counting() -> None:
    for seed in range(100):
        sample, everyone = small(seed)
        made = protect(
            sample,
            everyone,
            small=("merge", "suppress")[seed % 2],
            scope=("global", "raise", "record")[seed % 3],
            keep={"age": 10, "sex": "exact"},
        )
        assert made.records == len(people_of(sample))
        assert few(records_of(made), people_of(everyone), fits, 3) == 0


def test_labels_beside_a_k_map_without_demographics_are_found_out() -> None:
    """Deliberately weak: the exact values beside records that k people of any demographics contain."""
    found = 0
    for seed in range(10):
        sample, everyone = small(seed)
        made = protect(sample, everyone, keep={"age": "all", "sex": "all"})
        places = named(made.custody_tables, "records.parquet")["place"].to_list()
        names = sorted(sample.require_events()["patient"].unique())
        exact = dict(zip(names, [values for values, _ in sorted_people(sample)], strict=True))
        shown = [(exact[names[p]], codes) for p, (_, codes) in zip(places, records_of(made), strict=True)]
        found += few(shown, people_of(everyone), fits, 3)
    assert found > 10


def sorted_people(source: Cohort) -> list[Person]:
    names = source.require_events()["patient"].unique(maintain_order=True).to_list()
    return [person for _, person in sorted(zip(names, people_of_in(source, names), strict=True))]


def people_of_in(source: Cohort, names: list[str]) -> list[Person]:
    assert source.patients is not None
    values = {row["patient"]: row for row in source.patients.rows(named=True)}
    return [
        (tuple("(missing)" if values[p][n] is None else str(values[p][n]) for n in NAMES), Counter())
        for p in names
    ]


def test_worked_example_of_a_small_class() -> None:
    """p9 and p10 are the only women of 40-59; with all ten as the population they may be any woman of 40-79."""
    made = protect(example(), example(), keep={"age": 20, "sex": "exact"})
    labels = {labels for labels, _ in records_of(made)}
    assert labels == {("60-79", "F"), ("60-79", "M"), ("40-79", "F")}
    classes = named(made.tables, "classes.parquet")
    assert dict(zip(classes["age"], classes["records"], strict=True))["40-79"] == 2
    assert made.custody["smallest_class_in_population"] == 3 and made.records == len(EXAMPLE)
    assert sorted(
        c for labels, codes in records_of(made) if labels == ("60-79", "F") for c in codes
    ) == sorted(["250", "401"] * 3)


def test_patients_whom_few_of_the_population_resemble_can_be_left_out() -> None:
    everyone = with_people(120)
    made = protect(sample_of(everyone, 40), everyone, k=6, small="drop", keep={"age": 5, "sex": "exact"})
    assert 0 < made.records < 40 and made.custody["patients_left_out"] == 40 - made.records
    assert few(records_of(made), people_of(everyone), fits, 6) == 0
    with pytest.raises(GuaranteeUnreachable, match="would leave nobody"):
        protect(sample_of(everyone, 40), everyone, k=40, small="drop", keep={"age": 1, "sex": "exact"})


def test_what_cannot_be_read_says_so() -> None:
    everyone = with_people(60)
    sample = sample_of(everyone, 20)
    assert everyone.patients is not None
    bare = Cohort(everyone.events, everyone.patients.drop("age"), name="population", vocabulary="icd9")
    with pytest.raises(BadInput, match="population: no column 'age' of the patients"):
        protect(sample, bare)
    others = everyone.patients.with_columns(age=pl.col("age") + 100)
    with pytest.raises(BadInput, match="demographics that nobody in the population has"):
        protect(sample, Cohort(everyone.events, others, name="population", vocabulary="icd9"))
    with pytest.raises(BadInput, match="need the population in memory"):
        Censoring(k=3, scope="global", demographics=("age",)).protect(sample, population="population.parquet")


def test_the_report_and_the_attack_in_classes(tmp_path: Path) -> None:
    everyone = with_people(150)
    method = Censoring(k=3, scope="raise", demographics=NAMES, keep={"age": 20})
    result = lw.protect(sample_of(everyone, 50), method, tmp_path / "out", population=everyone, seed=1)
    assert "Demographics and codes together" in result.report.read_text(encoding="utf-8")
    assert result.measures["demographics"]["outside_bounds"] == 0
    assert result.measures["risk"]["after"]["below_k"] == 0 and result.measures["attack"]["records"] == 50


def test_the_search_for_levels_counts_the_mentions_that_are_lost() -> None:
    sample, everyone = small(4)
    made = protect(sample, everyone)
    searched = made.custody["demographics_search"]
    total = sum(codes.total() for _, codes in people_of(sample))
    released = sum(codes.total() for _, codes in records_of(made))
    best = min(searched, key=lambda point: point["objective"])
    assert best["lost"] == pytest.approx(1 - released / total)
    assert max(point["lost"] for point in searched) > 0
