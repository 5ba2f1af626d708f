"""Releases with demographics of every method, broken one way a test: what each verifier must see of classes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.forging import by_method, restate, write_parquet
from tests.laws.cases import CLASSED, DEMOGRAPHICS, Case, cases, classed_cases, people

from leeward.methods import METHODS
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Source, verify

Frame = pl.DataFrame
Made = tuple[str, Path, Source]
RECORDS = dict.fromkeys(CLASSED, "records.parquet") | {
    "linked": "patients.parquet",
    "disassociation": "chunks.parquet",
}
"""The file with the records; those of disassociation, in parts, have no labels."""


def case_of(name: str) -> Case:
    if name != "linked":
        return classed_cases()[f"{name} with demographics"]
    codes = cases()[name]
    return Case(people(codes.cohort), {**codes.parameters, **DEMOGRAPHICS})


@pytest.fixture(scope="module", params=RECORDS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A method, its release, and what that is compared with."""
    name = str(request.param)
    case = case_of(name)
    method = METHODS[name].parameters_class()(**case.parameters)
    anonymized = method.protect(case.cohort, randomness=Randomness.of(3), population=case.population)
    everyone = case.population
    source = Source(
        case.cohort.require_events(),
        case.cohort.patients,
        None if everyone is None else everyone.events,
        population_patients=None if everyone is None else everyone.patients,
    )
    return name, write(anonymized, tmp_path_factory.mktemp(name) / "out"), source


def refuting(made: Made, target: Path, changes: Mapping[str, Callable[[Frame], Frame]]) -> set[str]:
    """All checks that fail beside the source once files were changed."""
    shutil.copytree(made[1], target)
    for name, change in changes.items():
        file = target / "share/data" / name
        write_parquet(change(pl.read_parquet(file)), file)
    restate(target)
    return {check.name for check in verify(target, made[2]).failures}


def joined(labels: dict[str, str], row: int) -> Callable[[Frame], Frame]:
    """One record with other labels."""
    here = pl.int_range(pl.len()) == row
    return lambda t: t.with_columns(
        pl.when(here).then(pl.lit(label)).otherwise(pl.col(name)).alias(name)
        for name, label in labels.items()
    )


def strangers(table: Frame) -> tuple[int, int]:
    """The first record, and one of whose labels it has none."""
    age, sex = table.select("age", "sex").row(0)
    return 0, int(((table["age"] != age) & (table["sex"] != sex)).arg_max() or 0)


@pytest.mark.parametrize("made", [name for name in RECORDS if name != "disassociation"], indirect=True)
def test_a_record_with_labels_of_no_class_or_one_too_many_of_a_class(made: Made, tmp_path: Path) -> None:
    file = RECORDS[made[0]]
    records = pl.read_parquet(made[1] / "share/data" / file)
    nowhere = refuting(made, tmp_path / "nowhere", {file: joined({"age": "0-19"}, 7)})
    one, other = strangers(records)
    moved = refuting(
        made, tmp_path / "moved", {file: joined(records.select("age", "sex").row(other, named=True), one)}
    )
    assert "record_classes" in nowhere and "record_classes" in moved


@pytest.mark.parametrize("made", ["censoring", "linked", "visits"], indirect=True)
def test_records_of_two_classes_that_exchange_their_labels(made: Made, tmp_path: Path) -> None:
    file = RECORDS[made[0]]
    labels = pl.read_parquet(made[1] / "share/data" / file).select("age", "sex")
    one, other = strangers(labels)
    first, second = (joined(labels.row(a, named=True), b) for a, b in ((other, one), (one, other)))
    found = refuting(made, tmp_path / "broken", {file: lambda t: second(first(t))})
    assert "record_demographics" in found and "record_classes" not in found


def test_a_number_that_links_tables(made: Made, tmp_path: Path) -> None:
    def numbered(table: Frame) -> Frame:
        return table.with_columns(patient=pl.int_range(pl.len(), dtype=pl.Int64))

    for place, file in enumerate({RECORDS[made[0]], "classes.parquet"}):
        assert "columns_of_contract" in refuting(made, tmp_path / str(place), {file: numbered})


@pytest.mark.parametrize(
    ("node", "parent"), [("0-19", "*"), ("73", "60-79"), ("60-79", "80-119"), ("everybody", "")],
    ids=["of nobody", "of one patient", "outside its parent", "a second root"],
)  # fmt: skip
def test_a_label_more_in_a_hierarchy(made: Made, node: str, parent: str, tmp_path: Path) -> None:
    out = shutil.copytree(made[1], tmp_path / "out")
    file = out / "share/data/hierarchies/age.csv"
    rows = [row for row in file.read_text().splitlines() if not row.startswith(f'"{node}"')]
    file.write_text("\n".join([*rows, f'"{node}","{parent}"', ""]))
    restate(out)
    assert "hierarchies" in by_method(verify(out, made[2]))


@pytest.mark.parametrize("change", [None, pl.lit("f")], ids=["no columns", "women alone"])
def test_a_source_with_other_demographics(made: Made, change: pl.Expr | None) -> None:
    name, out, source = made
    asked = "population_patients" if name == "censoring" else "patients"
    known = getattr(source, asked)
    other = replace(source, **{asked: None if change is None else known.with_columns(sex=change)})
    assert ("class_people" if name == "censoring" else "class_source") in by_method(verify(out, other))


@pytest.mark.parametrize("made", [name for name in RECORDS if name != "censoring"], indirect=True)
def test_a_patient_of_the_source_whom_no_class_has(made: Made) -> None:
    _, out, source = made
    assert source.patients is not None
    events = source.events.head(1).with_columns(patient=pl.lit("p99"))
    patients = source.patients.tail(1).with_columns(patient=pl.lit("p99"))
    more = Source(pl.concat([source.events, events]), pl.concat([source.patients, patients]))
    assert "class_source" in by_method(verify(out, more))
