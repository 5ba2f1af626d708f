"""Faults planted in what a method reads, or in the writer of its files: the verifier reads for itself and refutes each.

A reader's fault is played by giving the method a cohort that was read wrongly and the verifier the right one, so
whatever code the method reads with. A writer's fault is planted in the writer of releases.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.forging import plain_type
from tests.verify.made import Case, cases

from leeward.cohort.cohort import Cohort
from leeward.methods.visits import visit_lists
from leeward.methods.visits.visit_lists import VisitLists
from leeward.randomness import Randomness
from leeward.release import Anonymized, ReleaseTable, write
from leeward.runs.extract import extract
from leeward.runs.protect import protect, verify
from leeward.verify import verify as check

CASES = {name: case for name, case in cases().items() if ", " not in name and "by " not in name}
TABLES = ("condensation", "k-anonymity")
Fault = Callable[[Cohort], Cohort]


def with_events(cohort: Cohort, events: pl.DataFrame) -> Cohort:
    """The cohort with other events, and the patients who still have some."""
    assert cohort.patients is not None
    patients = cohort.patients.join(events.select("patient").unique(), on="patient", how="semi")
    return dataclasses.replace(cohort, events=events, patients=patients)


def lose_a_row(cohort: Cohort) -> Cohort:
    """The last patient is not read."""
    if cohort.events is None:
        assert cohort.patients is not None
        return dataclasses.replace(cohort, patients=cohort.patients.head(-1))
    last = cohort.events["patient"].max()
    return with_events(cohort, cohort.events.filter(pl.col("patient") != last))


def cut_to_two(cohort: Cohort) -> Cohort:
    """Of each visit two codes are read, of a column of text two values."""
    if cohort.events is None:
        assert cohort.patients is not None
        return dataclasses.replace(
            cohort, patients=cohort.patients.with_columns(pl.col("site").replace(["c", "d"], ["a", "a"]))
        )
    visit = [name for name in ("patient", "visit") if name in cohort.events.columns]
    return with_events(cohort, cohort.events.filter(pl.int_range(pl.len()).over(visit) < 2))


def null_as_empty(case: Case) -> tuple[Case, Case]:
    """What the custodian has, with missing values, and the same where they are read as empty or as 0.

    Levels and numbers of tables, ages of trajectories, codes for all else.
    """
    if case.cohort.events is None:
        assert case.cohort.patients is not None
        filled = case.cohort.patients.with_columns(
            pl.col("site").fill_null(""), pl.col("dose").fill_null(strategy="min")
        )
        return case, dataclasses.replace(case, cohort=dataclasses.replace(case.cohort, patients=filled))
    last = case.cohort.events.tail(40)
    if case.method.name == "trajectories":
        rows = [last.with_columns(age=pl.lit(age, pl.Float64)) for age in (None, 0.0)]
        true, false = (with_rows(case.cohort, each) for each in rows)
        return dataclasses.replace(case, cohort=true), dataclasses.replace(case, cohort=false)
    empty = last.with_columns(code=pl.lit(""))
    people = None if case.population is None else with_rows(case.population, empty)
    return case, dataclasses.replace(case, cohort=with_rows(case.cohort, empty), population=people)


def with_rows(cohort: Cohort, rows: pl.DataFrame) -> Cohort:
    """The cohort with further events."""
    events = pl.concat(
        [each.with_columns(pl.col("code").cast(pl.String)) for each in (cohort.require_events(), rows)]
    )
    events = events.with_columns(
        code=pl.col("code").cast(pl.Enum(sorted(set(events["code"])))),
        row=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32),
    )
    return dataclasses.replace(cohort, events=events)


def payload_null_as_empty(cohort: Cohort) -> Cohort:
    """A missing payload value is read as an empty text."""
    assert cohort.patients is not None
    return dataclasses.replace(cohort, patients=cohort.patients.with_columns(pl.col("snp").fill_null("")))


READ_WRONGLY = {
    "disassociation": ("source_records", "source_counts", "nothing_invented"),
    "constraints": ("no_row_lost", "rows_generalize_source_rows", "no_other_codes"),
    "censoring": ("every_patient_once", "mentions_read", "mentions_read"),
    "trajectories": ("source_patients", "pairs_read", "pairs_read"),
    "linked": ("every_patient", "lost_rows", "own_rows"),
    "visits": ("every_patient_once", "labels_read", "labels_read"),
    "condensation": ("strata_counts", "levels_of_groups", "permissible_values"),
    "k-anonymity": ("every_row_once", "typical_values", "permissible_values"),
}
"""Method -> the check that sees a lost row, one that sees cut codes, one that sees an empty value for a missing one."""


def refuted(case: Case, out: Path, anonymized: Anonymized) -> list[str]:
    """The checks that fail on what a faulty method made, with the true source."""
    return [each.name for each in check(write(anonymized, out), case.source()).failures]


def made_by(case: Case, cohort: Cohort, population: Cohort | None) -> Anonymized:
    more = {} if population is None else {"population": population}
    anonymized: Anonymized = case.method.protect(cohort, randomness=Randomness.of(3), **more)
    return anonymized


@pytest.mark.parametrize("name", CASES)
def test_without_a_fault_nothing_is_refuted(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    result = protect(case.cohort, case.method, tmp_path / "out", seed=3, population=case.population)
    assert result.verification.passed


@pytest.mark.parametrize(("place", "fault"), enumerate([lose_a_row, cut_to_two]))
@pytest.mark.parametrize("name", CASES)
def test_a_fault_of_the_reader_is_refuted(name: str, place: int, fault: Fault, tmp_path: Path) -> None:
    case = CASES[name]
    assert READ_WRONGLY[name][place] in refuted(
        case, tmp_path / "out", made_by(case, fault(case.cohort), case.population)
    )


@pytest.mark.parametrize("name", CASES)
def test_a_null_read_as_empty_is_refuted(name: str, tmp_path: Path) -> None:
    true, false = null_as_empty(CASES[name])
    assert READ_WRONGLY[name][2] in refuted(
        true, tmp_path / "out", made_by(false, false.cohort, false.population)
    )


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if getattr(case.method, "payload", ())]
)
def test_a_null_of_the_payload_read_as_empty_is_refuted(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    assert "payload" in " ".join(
        refuted(case, tmp_path / "out", made_by(case, payload_null_as_empty(case.cohort), case.population))
    )


def lists_cut(table: pa.Table) -> pa.Table:
    """Every list of codes keeps two at most; a column of text keeps two values."""
    for place, field in enumerate(table.schema):
        column = table.column(place).combine_chunks()
        if pa.types.is_list(field.type):
            cut = [None if codes is None else codes[:2] for codes in column.to_pylist()]
            table = table.set_column(place, field, pa.array(cut, field.type))
        elif field.name in ("site", "code") and pa.types.is_string(field.type):
            first = sorted({value for value in column.to_pylist() if value is not None})[:2]
            cut = [value if value is None or value in first else first[0] for value in column.to_pylist()]
            table = table.set_column(place, field, pa.array(cut, field.type))
    return table


def last_row_lost(table: pa.Table) -> pa.Table:
    return table.slice(0, table.num_rows - 1)


def nulls_filled(table: pa.Table) -> pa.Table:
    """A missing text is written as an empty one, a missing number as 0, and an empty list as a list of nothing."""
    for place, field in enumerate(table.schema):
        values = table.column(place).combine_chunks().to_pylist()
        empty = {"string": "", "int64": 0, "double": 0.0}.get(str(field.type))
        if None in values and empty is not None:
            values = [empty if value is None else value for value in values]
            table = table.set_column(place, field, pa.array(values, field.type))
        elif pa.types.is_list(field.type):
            values = [value or [""] for value in values]
            table = table.set_column(place, field, pa.array(values, field.type))
    return table


MAIN = {
    "disassociation": "chunks.parquet",
    "constraints": "records.parquet",
    "censoring": "records.parquet",
    "trajectories": "trajectories.parquet",
    "visits": "visits.parquet",
    "linked": "events.parquet",
    "condensation": "table.parquet",
    "k-anonymity": "table.parquet",
}


WRITTEN_WRONGLY: dict[str, dict[Callable[[pa.Table], pa.Table], str]] = {
    "disassociation": {lists_cut: "source_counts", last_row_lost: "codes_of_members", nulls_filled: "chunk_domains"},
    "constraints": {lists_cut: "no_row_lost", last_row_lost: "record_numbers", nulls_filled: "labels_are_listed"},
    "censoring": {lists_cut: "censored_alike", last_row_lost: "every_patient_once", nulls_filled: "payload"},
    "trajectories": {lists_cut: "sorted_by_age", last_row_lost: "k_anonymous", nulls_filled: "source_payload"},
    "visits": {lists_cut: "labels_shown", last_row_lost: "labels_shown", nulls_filled: "payload"},
    "linked": {lists_cut: "joined_keys", last_row_lost: "lost_rows"},  # its tables have neither nulls nor lists
    "condensation": {lists_cut: "levels_of_groups", last_row_lost: "rows", nulls_filled: "permissible_values"},
    "k-anonymity": {lists_cut: "typical_values", last_row_lost: "rows", nulls_filled: "permissible_values"},
}  # fmt: skip
"""Method -> each fault of a writer that can be planted, and a check that sees it."""


@pytest.mark.parametrize(
    ("name", "fault"), [(name, fault) for name, faults in WRITTEN_WRONGLY.items() for fault in faults]
)
def test_a_fault_of_the_writer_is_refuted(name: str, fault, tmp_path: Path) -> None:
    case = CASES[name]
    if name == "constraints":  # somebody whose record is released empty
        rare = case.cohort.require_events().head(1).with_columns(patient=pl.lit("q"), code=pl.lit("V10.1"))
        case = dataclasses.replace(case, cohort=with_rows(case.cohort, rare))
    anonymized = made_by(case, case.cohort, case.population)
    file = MAIN[anonymized.method]
    if fault is nulls_filled and anonymized.method in ("trajectories", "visits"):
        file = "records.parquet"  # the file of theirs that has nulls

    def spoilt(table: ReleaseTable) -> ReleaseTable:
        if table.path != file:
            return table
        whole = pa.Table.from_batches(table.batches(), table.schema)
        names = [pa.field(each.name, plain_type(each.type)) for each in whole.schema]
        after = fault(whole.cast(pa.schema(names)))
        if after.equals(whole.cast(pa.schema(names))):
            pytest.fail("the fault changes nothing")
        return ReleaseTable.of(file, after)

    spoiled = dataclasses.replace(anonymized, tables=tuple(spoilt(table) for table in anonymized.tables))
    assert WRITTEN_WRONGLY[name][fault] in refuted(case, tmp_path / "out", spoiled)


@pytest.fixture
def cutting_reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The method's reader of released visits cuts sets of three and more codes to two."""
    sound = visit_lists.read_visit_lists

    def cutting(file: str | Path) -> VisitLists:
        visits = sound(file)
        keep = (
            pl.Series(visits.values)
            .to_frame("value")
            .with_columns(visit=pl.Series(range(len(visits))).repeat_by(pl.Series(visits.sizes())).explode())
        )
        kept = keep.filter(pl.int_range(pl.len()).over("visit") < 2)
        sizes = visits.sizes().clip(max=2)
        offsets = pl.concat([pl.Series([0]), pl.Series(sizes).cum_sum()]).to_numpy()
        values = kept["value"].to_numpy()
        return VisitLists(visits.record, visits.visit, offsets, values, visits.labels)

    for module in ("visit_lists", "selection", "measures"):
        monkeypatch.setattr(f"leeward.methods.visits.{module}.read_visit_lists", cutting)
    yield


def test_an_extract_drawn_by_a_reader_that_cuts_sets_is_refuted(tmp_path: Path, cutting_reader: None) -> None:
    from leeward.errors import VerificationFailed

    case = CASES["visits"]
    protect(case.cohort, case.method, tmp_path / "master", seed=3)
    with pytest.raises(VerificationFailed, match="same_as_master"):
        extract(
            tmp_path / "master",
            case.cohort.patients["patient"].head(60),  # type: ignore[index]
            tmp_path / "extract",
            seed=3,
            membership_is_secret="a test",
        )
    assert verify(tmp_path / "master").passed
