"""Scope `groups` with demographics: the worked example, the rule by plain counting, the attacker who knows the rule."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.methods.censoring.test_whole_patient import NAMES, fits, people_of, records_of, small
from tests.methods.visits.frames import named
from tests.methods.visits.test_whole_patient import EXAMPLE, example, with_people
from tests.oracles import censoring as oracle
from tests.oracles.whole_patient_k_map import few
from tests.verify.made import sample_of

import leeward as lw
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.censoring import Censoring
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

Shown = tuple[tuple[str, ...], tuple[str, ...]]
"""Labels and codes of a released record."""

KEEP = {"age": 10, "sex": "exact"}


def protect(sample: Cohort, everyone: Cohort, **parameters: Any) -> Anonymized:
    wanted = {"k": 3, "demographics": NAMES, "keep": KEEP, **parameters}
    return Censoring(**wanted).protect(sample, population=everyone, randomness=Randomness.of(2))


def shown(made: Anonymized) -> list[Shown]:
    """The released records in the order of the sample's identifiers."""
    places = named(made.custody_tables, "records.parquet")["place"].to_list()
    found = [(labels, tuple(sorted(codes.elements()))) for labels, codes in records_of(made)]
    return [record for _, record in sorted(zip(places, found, strict=True))]


def renamed(source: Cohort) -> Cohort:
    """The same people in another order of identifiers."""
    other = lambda frame: frame.with_columns(patient="q" + pl.col("patient").str.reverse())  # noqa: E731
    assert source.patients is not None
    return Cohort(other(source.require_events()), other(source.patients), name="made up", vocabulary="icd9")


def test_worked_example_of_ten_patients() -> None:
    """docs/methods/whole-patient.md#methods: three classes of k = 2, four groups."""
    made = protect(example(), example(), k=2, keep={"age": 20, "sex": "exact"})
    groups = {
        "p1 p2 p3": (("60-79", "F"), ("250", "401")),
        "p4 p5 p6": (("60-79", "M"), ("401", "414")),
        "p7 p8": (("60-79", "M"), ("250",)),
        "p9 p10": (("40-59", "F"), ("493",)),
    }
    expected = {patient: record for patients, record in groups.items() for patient in patients.split()}
    assert dict(zip(sorted(EXAMPLE), shown(made), strict=True)) == expected
    assert made.custody["groups"] == 4 and made.custody["lost"] == pytest.approx(9 / 25)
    assert "with the exact age and sex and knows the method" in made.guarantee.attacker


def test_in_30_small_populations_the_rule_is_carried_out_in_each_class_and_knows_no_sample() -> None:
    for seed in range(30):
        sample, everyone = small(seed)
        rule = ("merge", "suppress")[seed % 2]
        made, whole = protect(sample, everyone, small=rule), protect(everyone, everyone, small=rule)
        published = shown(whole)
        # who knows the rule and everybody's records: at least k people are published as each record of the sample is
        alike = Counter(published)
        assert min(alike.values()) >= 3
        own = sorted(sample.require_events()["patient"].unique())
        names = sorted(everyone.require_events()["patient"].unique())
        assert shown(made) == [dict(zip(names, published, strict=True))[patient] for patient in own]
        assert few(records_of(made), people_of(everyone), fits, 3) == 0
        # each class by itself, from the plain rule
        once = everyone.require_events().select("patient", "visit", pl.col("code").cast(pl.String)).unique()
        people = [sorted(once.filter(pl.col("patient") == patient)["code"]) for patient in names]
        caps = {code: 9 for record in people for code in record}
        for labels in {labels for labels, _ in published}:
            inside = [i for i, (mine, _) in enumerate(published) if mine == labels]
            plain = oracle.by_groups([people[i] for i in inside], 3, caps)
            assert [list(published[i][1]) for i in inside] == plain
        assert Counter(shown(protect(renamed(everyone), renamed(everyone), small=rule))) == alike


def test_labels_beside_groups_of_the_whole_population_are_found_out() -> None:
    """Deliberately weak: groups formed without demographics, the exact values beside."""
    found = 0
    for seed in range(10):
        _, everyone = small(seed)
        bare = Censoring(k=3).protect(everyone, population=everyone, randomness=Randomness.of(2))
        places = named(bare.custody_tables, "records.parquet")["place"].to_list()
        codes = named(bare.tables, "records.parquet")["codes"].to_list()
        assert everyone.patients is not None
        values = everyone.patients.sort("patient").select("age", "sex").rows()
        beside = Counter((values[p], tuple(record)) for p, record in zip(places, codes, strict=True))
        found += sum(n < 3 for n in beside.values())
    assert found > 10


def test_patients_whom_few_of_the_population_resemble_can_be_left_out() -> None:
    everyone = with_people(120)
    sample = sample_of(everyone, 40)
    made = protect(sample, everyone, k=6, small="drop", keep={"age": 5, "sex": "exact"})
    assert 0 < made.records < 40 and made.custody["patients_left_out"] == 40 - made.records
    assert few(records_of(made), people_of(everyone), fits, 6) == 0
    with pytest.raises(GuaranteeUnreachable, match="would leave nobody"):
        protect(sample, everyone, k=40, small="drop", keep={"age": 1, "sex": "exact"})


def test_what_cannot_be_published_says_so() -> None:
    everyone = with_people(60)
    sample = sample_of(everyone, 20)
    assert sample.patients is not None
    other = sample.patients.with_columns(
        sex=pl.when(pl.col("sex") == "F").then(pl.lit("M")).otherwise(pl.lit("F"))
    )
    with pytest.raises(BadInput, match=r"nobody's record in the population|nobody in the population has"):
        protect(Cohort(sample.events, other, name="sample", vocabulary="icd9"), everyone)
    with pytest.raises(BadInput, match="needs the population in memory"):
        Censoring(k=3, demographics=("age",)).protect(sample, population="population.parquet")


def test_the_report_and_the_attack_of_whoever_knows_the_rule(tmp_path: Path) -> None:
    everyone = with_people(150)
    method = Censoring(k=3, demographics=NAMES, keep={"age": 20})
    assert method.scope == "groups"  # the default
    result = lw.protect(sample_of(everyone, 50), method, tmp_path / "out", population=everyone, seed=1)
    assert "Demographics and codes together" in result.report.read_text(encoding="utf-8")
    assert result.measures["demographics"]["outside_bounds"] == 0
    assert result.measures["risk"]["after"]["below_k"] == 0
    attack = result.measures["attack"]
    assert attack["records"] == 50 and attack["smallest"] >= 3


@pytest.mark.parametrize(
    ("later", "said"),
    [
        (
            52,
            r"1 record of the sample has the codes of somebody of the population.* \(beginning in rows 1\)",
        ),
        (62, "1 patients have demographics that nobody in the population has"),
    ],
)
def test_demographics_that_change_from_row_to_row_say_that_the_order_of_rows_counts(
    later: int, said: str, tmp_path: Path
) -> None:
    """A patient's demographics are those of the first row: with rows in another order they are others."""
    head, visits = "patient,code,age\n", ["p0,401.9,50\n", f"p0,250.00,{later}\n"]
    others = "".join(f"p{i},{code},{50 + i}\n" for i in range(1, 6) for code in ("401.9", f"41{i}.0"))
    everyone, other = tmp_path / "everyone.csv", tmp_path / "sample.csv"
    everyone.write_text(head + "".join(visits) + others)
    other.write_text(head + "".join(visits[::-1]))
    sample, population = (
        lw.read(each, vocabulary="icd9", columns={"patients": ["age"]}) for each in (other, everyone)
    )
    with pytest.raises(BadInput, match=said) as error:
        protect(sample, population, k=2, demographics=("age",), keep={"age": 10})
    assert "those of the patient's first row" in str(error.value)
