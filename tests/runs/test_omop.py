"""`leeward omop`: tables of the CDM with the codes of the release, which our own reader reads back; every rule fails on
tables that break it; what is no table of the CDM is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
import yaml
from tests.cli.conftest import Run, leeward  # noqa: F401  # a fixture
from tests.laws.cases import cases, classed_cases, method_of_case

import leeward as lw
from leeward.cohort.readers.omop import ATTRIBUTES
from leeward.errors import BadInput, VerificationFailed
from leeward.methods import METHODS
from leeward.runs import omop as module
from leeward.runs.omop import check

MODEL = yaml.safe_load(Path(module.__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
WRITTEN = ("visits", "trajectories", "censoring", "constraints")
CASES = {name: case for name, case in (cases() | classed_cases()).items() if method_of_case(name) in WRITTEN}


def release(name: str, out: Path, **options: Any) -> Path:
    case = (cases() | classed_cases())[name]
    method = METHODS[method_of_case(name)].parameters_class()(**case.parameters)
    lw.protect(case.cohort, method, out, population=case.population, measures=[], seed=1, **options)
    assert lw.verify(out, case.cohort, case.population).passed
    return out


def codes_of(out: Path) -> list[tuple[str, str]]:
    """Person and code of every code that a release shows."""
    found = lw.open(out)
    if found.method == "trajectories":
        rows = found.table("trajectories.parquet")
    else:
        file = "visits.parquet" if found.method == "visits" else "records.parquet"
        rows = found.table(file).explode("codes", empty_as_null=True).rename({"codes": "code"})
    shown = rows.select(pl.col("record") + 1, "code").drop_nulls().collect()
    return sorted((str(record), code) for record, code in shown.iter_rows())


@pytest.fixture(scope="module", params=sorted(CASES))
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Path]]:
    folder = tmp_path_factory.mktemp("omop")
    out = release(request.param, folder / "out")
    rules = lw.omop(out / "share", folder / "cdm")
    assert len(rules) == len(MODEL["rules"]) >= 60
    assert all(each["expected"] for each in rules if each["failed"])
    yield out, folder / "cdm"


def test_our_reader_reads_equal_codes(written: tuple[Path, Path]) -> None:
    out, cdm = written
    columns = {"code": "condition_source_value", "patients": list(ATTRIBUTES[:1])}
    back = lw.read(cdm, format="omop", columns=columns, vocabulary="none", accept_unknown=True)
    rows = back.require_events().select(pl.col("patient", "code").cast(pl.String))
    assert sorted(rows.iter_rows()) == codes_of(out) != []
    people = pl.read_csv(cdm / "PERSON.csv")
    assert people.height == lw.open(out).records
    if lw.open(out).method == "visits":
        visits = pl.read_csv(cdm / "VISIT_OCCURRENCE.csv")
        assert visits.height == lw.open(out).table("visits.parquet").collect().height
    said = dict(pl.read_csv(cdm / "METADATA.csv").select("name", "value_as_string").iter_rows())
    if "demographics" in lw.open(out).parameters:
        labels = lw.open(out).table("records.parquet").sort("record").collect()["sex"].to_list()
        assert people["gender_source_value"].to_list() == labels
        assert said["columns left out"] == "age"
    assert said["seeded"] == "a person chose the seed: for tests and studies only"
    assert ("columns left out" in said) == ("demographics" in lw.open(out).parameters)


def test_parquet_has_the_same_rows(written: tuple[Path, Path], tmp_path: Path) -> None:
    out, cdm = written
    lw.omop(out, tmp_path / "cdm", format="parquet")
    for name, columns in MODEL["tables"].items():
        stored = pl.read_parquet(tmp_path / f"cdm/{name}.parquet")
        assert stored.columns == list(columns)
        assert stored.height == pl.read_csv(cdm / f"{name}.csv", infer_schema=False).height


def test_ages_are_years_after_the_artificial_birth(tmp_path: Path) -> None:
    out = release("trajectories", tmp_path / "out")
    lw.omop(out, tmp_path / "cdm")
    ages = lw.open(out).table("trajectories.parquet").sort("record", "position").collect()["age"].to_list()
    found = lw.read(
        tmp_path / "cdm", format="omop", columns={"code": "condition_source_value"}
    ).require_events()["age"]
    bounds = [[int(year) for year in age.split("-")] for age in ages]
    middles = sorted(sum(each) // 2 if len(each) > 1 else each[0] for each in bounds)
    assert sorted(int(age) for age in found) == middles


BREAKING = {
    "CONDITION_OCCURRENCE.visit_occurrence_id is a visit of the person":
        "UPDATE VISIT_OCCURRENCE SET person_id = person_id + 1",
    "VISIT_OCCURRENCE.preceding_visit_occurrence_id is empty: visits have no order":
        "preceding_visit_occurrence_id = 1",
    "OBSERVATION_PERIOD.observation_period_end_date is not before the start":
        "observation_period_end_date = DATE '1800-01-01'",
    "VISIT_OCCURRENCE.visit_end_date is not before the start": "visit_end_date = DATE '1800-01-01'",
    "CONDITION_OCCURRENCE.condition_end_date is not before the start": "condition_end_date = DATE '1800-01-01'",
    "OBSERVATION_PERIOD.person_id has one period a person":
        "INSERT INTO OBSERVATION_PERIOD SELECT * FROM OBSERVATION_PERIOD LIMIT 1",
    "VISIT_OCCURRENCE.visit_start_date is in an observation period": "DELETE FROM OBSERVATION_PERIOD",
    "CONDITION_OCCURRENCE.condition_start_date is in an observation period": "DELETE FROM OBSERVATION_PERIOD",
    "CONDITION_OCCURRENCE.condition_start_date is in its visit": "condition_start_date = DATE '2001-01-01'",
    "PERSON.year_of_birth is from 1850 to this year": "year_of_birth = 1849",
    "PERSON.month_of_birth is from 1 to 12": "month_of_birth = 13",
    "PERSON.day_of_birth is from 1 to 31": "day_of_birth = 32",
    "VISIT_OCCURRENCE.visit_start_date is not before the birth": "UPDATE PERSON SET year_of_birth = 1999",
    "CONDITION_OCCURRENCE.condition_start_date is not before the birth": "UPDATE PERSON SET year_of_birth = 1999",
    "CONDITION_OCCURRENCE.condition_start_date is less than 151 years after the birth":
        "UPDATE PERSON SET year_of_birth = 1790",
    "VISIT_OCCURRENCE.visit_end_date is not after today": "visit_end_date = DATE '2999-01-01'",
    "CONDITION_OCCURRENCE.condition_start_date is not after today": "condition_start_date = DATE '2999-01-01'",
    "PERSON.person_source_value is the number of the record": "person_source_value = 'MRN-17'",
    "CONDITION_OCCURRENCE.condition_source_value is given": "condition_source_value = NULL",
    "CONDITION_OCCURRENCE.condition_concept_id is 0 or a concept of the vocabulary kept": "condition_concept_id = 7",
    "CONDITION_OCCURRENCE.condition_concept_id is the concept that the source value names, or 0":
        "condition_concept_id = 201820",
    "CDM_SOURCE. has one row": "DELETE FROM CDM_SOURCE",
    "CDM_SOURCE.cdm_version is 5.4": "cdm_version = 'v5.3'",
    "CDM_SOURCE.source_description says that dates are artificial": "source_description = 'as recorded'",
    "METADATA.name has the method, the guarantee and the attacker": "DELETE FROM METADATA WHERE name = 'attacker'",
    "METADATA.value_as_string has at most 250 characters": "value_as_string = repeat('x', 251)",
    "CONDITION_OCCURRENCE.condition_source_value has at most 50 characters": "condition_source_value = repeat('x', 51)",
    "CONDITION_OCCURRENCE.condition_concept_id has a concept": "condition_concept_id = 0",
    "PERSON.gender_concept_id is 8507 or 8532": "gender_concept_id = 9",
    "PERSON.person_id has an observation period": "DELETE FROM OBSERVATION_PERIOD",
    "PERSON.year_of_birth is not the same for all": "year_of_birth = 1900",
    "CONDITION_OCCURRENCE.condition_start_date is not the same for all": "condition_start_date = DATE '1950-01-01'",
    "VISIT_OCCURRENCE.visit_start_date is the start of fewer than half of the visits":
        "visit_start_date = DATE '1950-01-01'",
    "OBSERVATION_PERIOD.observation_period_end_date is after the start":
        "observation_period_end_date = observation_period_start_date",
}  # fmt: skip
"""Table, field and rule: what breaks it, a statement or what is set in the table. Of the others the kind says it."""


def breaking(table: str, field: str, rule: str) -> str:
    usual = {
        "is given": f"{field} = NULL",
        "is the row's own": f"INSERT INTO {table} SELECT * FROM {table} LIMIT 1",
        "is a person": "person_id = 1000000",
    }
    change = usual.get(rule) or BREAKING[f"{table}.{field} {rule}"]
    return change if change.split()[0].isupper() else f"UPDATE {table} SET {change}"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables that keep every rule: with births, concepts and sexes that differ."""
    folder = tmp_path_factory.mktemp("sound")
    lw.omop(release("visits", folder / "out"), folder / "cdm")
    changes = (
        "UPDATE PERSON SET gender_concept_id = 8507, year_of_birth = 1900 + person_id % 2",
        "UPDATE CONDITION_OCCURRENCE SET condition_concept_id = 401, condition_source_value = '401'",
        "UPDATE OBSERVATION_PERIOD SET observation_period_end_date = DATE '1990-01-01'",
    )
    store(folder / "cdm", folder / "sound", changes)
    return folder / "sound"


def store(cdm: Path, target: Path, changes: tuple[str, ...]) -> None:
    """The tables of a folder, changed, as Parquet files of another folder."""
    target.mkdir()
    with duckdb.connect() as database:
        for name, columns in MODEL["tables"].items():
            csv = cdm / f"{name}.csv"
            read = database.read_csv(str(csv), columns=columns, header=True) if csv.exists() else None
            (read or database.read_parquet(str(cdm / f"{name}.parquet"))).create(name)
        for change in changes:
            database.execute(change)
        for name in MODEL["tables"]:
            database.table(name).write_parquet(str(target / f"{name}.parquet"))


def failed(folder: Path, rules: list[list[str]]) -> list[int]:
    return [each["failed"] for each in check(folder, {**MODEL, "rules": rules}, ["401", "201820"])]


def test_tables_can_keep_every_rule(sound: Path) -> None:
    """But one: the days of visits are few, and many patients have a first."""
    rows = zip(MODEL["rules"], failed(sound, MODEL["rules"]), strict=True)
    assert [rule[2] for rule, found in rows if found] in (
        [],
        ["is the start of fewer than half of the visits"],
    )


@pytest.mark.parametrize("rule", MODEL["rules"], ids=lambda each: " ".join(each[:3]))
def test_every_rule_fails_on_tables_that_break_it(rule: list[str], sound: Path, tmp_path: Path) -> None:
    store(sound, tmp_path / "broken", (breaking(rule[0], rule[1], rule[2]),))
    assert failed(tmp_path / "broken", [rule]) > failed(sound, [rule])


@pytest.mark.parametrize("name", sorted({*METHODS} - {*WRITTEN}))
def test_other_methods_are_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    out = release(name, tmp_path / "out")
    with pytest.raises(BadInput, match=f"a release by {name} is not written as OMOP tables: .{{20}}"):
        lw.omop(out, tmp_path / "cdm")
    assert not (tmp_path / "cdm").exists()


def test_a_rule_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BIRTH", module.BIRTH.replace(year=1999))
    out = release("visits", tmp_path / "out")
    with pytest.raises(
        VerificationFailed, match=r"CONDITION_OCCURRENCE\.condition_start_date is not before the birth"
    ):
        lw.omop(out, tmp_path / "cdm")
    assert {each.name for each in tmp_path.iterdir()} == {"out"}
    with pytest.raises(BadInput, match="exists already"):
        lw.omop(out, out)
    with pytest.raises(BadInput, match="`format`: cannot write `xlsx`; choose from parquet, csv"):
        lw.omop(out, tmp_path / "cdm", format="xlsx")


def test_the_command_ends_without_a_word_on_stderr(tmp_path: Path) -> None:
    out = release("visits", tmp_path / "out")
    command = [
        sys.executable,
        "-c",
        "from leeward.cli.main import main; main()",
        "omop",
        out,
        "-o",
        tmp_path / "cdm",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "") and "fail as expected" in done.stdout


def test_concepts_are_those_of_the_vocabulary_that_was_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leeward: Run  # noqa: F811  # the fixture
) -> None:  # fmt: skip
    monkeypatch.setenv("LEEWARD_HOME", str(tmp_path / "home"))
    ancestors = tmp_path / "CONCEPT_ANCESTOR.csv"
    ancestors.write_text(
        "ancestor_concept_id,descendant_concept_id,min_levels_of_separation,max_levels_of_separation\n"
        "10,11,1,1\n10,12,1,1\n10,10,0,0\n11,11,0,0\n12,12,0,0\n"
    )
    assert leeward("vocabulary", "add", "omop", ancestors).status == 0
    rows = [(f"p{p}", code) for p in range(12) for code in ("10", "11", "12", "99")]
    events = pl.DataFrame(rows, schema=["patient", "code"], orient="row")
    method = lw.Constraints(k=3, m=1, policy="frequency:0.1")
    lw.protect(lw.read(events, vocabulary="flat"), method, tmp_path / "out", measures=[])
    done = leeward("omop", tmp_path / "out/share", "-o", tmp_path / "cdm", "--json")
    assert done.status == 0 and len(done.json()["rules"]) == len(MODEL["rules"])
    stored = pl.read_csv(tmp_path / "cdm/CONDITION_OCCURRENCE.csv", infer_schema=False)
    found = dict(stored.select("condition_source_value", "condition_concept_id").unique().iter_rows())
    assert found == {"10": "10", "11": "11", "12": "12", "99": "0"}
    by_concept = lw.read(tmp_path / "cdm", format="omop").code_sets()
    assert set(by_concept.codes) == {"10", "11", "12"}
    said = leeward("omop", tmp_path / "out/share", "-o", tmp_path / "again", "--format", "parquet")
    assert said.status == 0 and "fail as expected" in said.out and "the vocabulary that was added" in said.out
    assert leeward("omop", tmp_path / "out", "-o", tmp_path / "again").status == 2
