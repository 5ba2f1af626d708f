"""Cohorts drawn from a master: they agree, carry their payload, state both figures; what cannot be drawn says why."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from tests.verify.test_visits import made_up

from leeward.cli.main import status_of
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.visits import Visits
from leeward.release import Release
from leeward.runs.extract import extract
from leeward.runs.protect import protect


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("master") / "master"
    protect(made_up(), Visits(k=3, payload=("snp",)), folder)
    return folder


def visits_by_patient(folder: Path) -> dict[str, list[list[str]]]:
    release = Release.open(folder)
    assert release.custody is not None
    people = dict(
        pl.read_parquet(release.custody / "data" / "patients.parquet").select("record", "patient").rows()
    )
    found: dict[str, list[list[str]]] = {patient: [] for patient in people.values()}
    for record, codes in release.table("visits.parquet").select("record", "codes").collect().rows():
        found[people[record]].append(codes)
    return {patient: sorted(visits) for patient, visits in found.items()}


def test_overlapping_cohorts_agree_on_every_shared_patient(master: Path, tmp_path: Path) -> None:
    names = pl.Series("patient", sorted(made_up().require_events()["patient"].unique()))
    extract(master, names.head(50), tmp_path / "one", membership_is_secret="a test")
    extract(master, names.tail(50), tmp_path / "two", membership_is_secret="a test")
    one, two, whole = (visits_by_patient(folder) for folder in (tmp_path / "one", tmp_path / "two", master))
    shared = one.keys() & two.keys()
    assert len(one) == len(two) == 50
    assert len(shared) == 20
    assert all(one[patient] == two[patient] == whole[patient] for patient in shared)


def test_payload_joins_at_extraction(master: Path, tmp_path: Path) -> None:
    people = made_up().patients
    assert people is not None
    genotypes = people.select("patient", dna=pl.col("patient").str.to_uppercase()).head(70)
    result = extract(
        master, people["patient"].head(60), tmp_path / "one", payload=genotypes, membership_is_secret="a test"
    )
    release = Release.open(tmp_path / "one")
    records = release.table("records.parquet").collect()
    assert records.columns == ["record", "snp", "dna"]
    owners = pl.read_parquet(tmp_path / "one" / "custody" / "data" / "patients.parquet")
    joined = records.join(owners, on="record").join(people, on="patient", suffix="_true")
    assert (joined["dna"] == joined["patient"].str.to_uppercase()).all()
    assert (joined["snp"] == joined["snp_true"]).all()
    assert result.verification.passed


def test_both_figures_are_stated_and_true(master: Path, tmp_path: Path) -> None:
    result = extract(master, "snp = 2", tmp_path / "one", original=made_up(), membership_is_secret="a test")
    shared = result.measures["method"]["shared_by"]
    sets: dict[tuple[str, ...], set[str]] = {}
    mine = visits_by_patient(tmp_path / "one")
    for patient, visits in mine.items():
        for codes in visits:
            sets.setdefault(tuple(codes), set()).add(patient)
    every = [tuple(codes) for visits in mine.values() for codes in visits]
    assert shared["few"] == sum(len(sets[codes]) < 3 for codes in every)
    assert shared["alone"] == sum(len(sets[codes]) == 1 for codes in every)
    assert shared["population_smallest"] >= 3 > shared["smallest"]
    release = Release.open(tmp_path / "one")
    assert f"{shared['few']:,} of {shared['visits']:,} visits" in release.guarantee["not_protected"][0]
    assert release.parameters["population"] == 80
    retention = result.measures["retention"]
    assert retention["dc"]["released"] == sum(len({c for v in visits for c in v}) for visits in mine.values())
    assert retention["dc"]["original_population"] < 1


def test_selection_by_released_codes_and_by_file(master: Path, tmp_path: Path) -> None:
    by_code = extract(
        master,
        "array_contains(codes, '250.0') AND visits >= 2",
        tmp_path / "one",
        membership_is_secret="a test",
    )
    whole = visits_by_patient(master)
    wanted = {p for p, visits in whole.items() if len(visits) >= 2 and any("250.0" in v for v in visits)}
    assert set(visits_by_patient(tmp_path / "one")) == wanted
    assert by_code.release.records == len(wanted)
    pl.DataFrame({"pid": [*sorted(wanted), "nobody"]}).write_csv(tmp_path / "wanted.csv")
    by_file = extract(master, tmp_path / "wanted.csv", tmp_path / "two", membership_is_secret="a test")
    assert set(visits_by_patient(tmp_path / "two")) == wanted
    assert "1 of the patients named are not in the master" in by_file.measures["notices"][0]["message"]


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ("nosuch.csv", "--select: nosuch.csv: no such file."),
        ("sno = 2", "neither a file nor an expression over the columns patient, snp, codes, visits"),
        ("snp = 7", "none of these patients is in the master"),
    ],
)
def test_what_cannot_be_drawn(master: Path, tmp_path: Path, selection: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        extract(master, selection, tmp_path / "one")
    assert not (tmp_path / "one").exists()


def test_a_cohort_is_not_drawn_from_a_master_that_was_changed(master: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(master, tmp_path / "master"))
    file = copy / "share/data/visits.parquet"
    visits = pl.read_parquet(file)
    visits.with_columns(codes=pl.col("codes").reverse()).write_parquet(file)
    with pytest.raises(BadInput, match=r"visits\.parquet: not the file that was released"):
        extract(copy, "snp = 2", tmp_path / "one", membership_is_secret="a test")
    assert not (tmp_path / "one").exists()


def test_a_cohort_is_not_drawn_from_a_cohort(master: Path, tmp_path: Path) -> None:
    extract(master, "snp = 2", tmp_path / "one", membership_is_secret="a test")
    with pytest.raises(BadInput, match="a cohort already drawn"):
        extract(tmp_path / "one", "snp = 2", tmp_path / "two")


def test_fewer_members_than_k_are_refused(master: Path, tmp_path: Path) -> None:
    with pytest.raises(GuaranteeUnreachable, match="the cohort has 2 members and k is 3"):
        extract(
            master, pl.Series("patient", ["p001", "p002"]), tmp_path / "one", membership_is_secret="a test"
        )
    assert not (tmp_path / "one").exists()


def test_a_reason_is_asked_for_where_members_are_alone_and_kept(master: Path, tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"% of the cohort's visits have a set of codes that fewer than 3 members share"
    ):
        extract(master, "snp = 2", tmp_path / "one")
    assert not (tmp_path / "one").exists()
    with pytest.raises(BadInput, match="--membership-is-secret"):
        extract(master, "snp = 2", tmp_path / "one", membership_is_secret="  ")
    extract(master, "snp = 2", tmp_path / "one", membership_is_secret="nobody is told")
    assert Release.open(tmp_path / "one").parameters["membership_is_secret"] == "nobody is told"


def test_a_whole_master_needs_no_reason(master: Path, tmp_path: Path) -> None:
    names = made_up().require_events()["patient"].unique()
    result = extract(master, names, tmp_path / "one")
    assert result.measures["method"]["shared_by"]["few"] == 0


def test_records_that_another_cohort_would_show_alike_are_counted(master: Path, tmp_path: Path) -> None:
    """Two cohorts are joined by all visits of a record: the figures say how many records that finds."""
    result = extract(master, "snp >= 1", tmp_path / "one", membership_is_secret="a test")
    shared = result.measures["method"]["shared_by"]
    keys = {p: tuple(map(tuple, visits)) for p, visits in visits_by_patient(tmp_path / "one").items()}
    everywhere = Counter(tuple(map(tuple, visits)) for visits in visits_by_patient(master).values())
    here = Counter(keys.values())
    assert shared["members"] == len(keys)
    assert shared["members_alone"] == sum(bool(key) and here[key] == 1 for key in keys.values())
    assert (
        shared["members_alone_population"] == sum(bool(k) and everywhere[k] == 1 for k in keys.values()) > 0
    )
    release = Release.open(tmp_path / "one")
    assert (
        f"{shared['members_alone_population']:,} of {len(keys)} records"
        in release.guarantee["not_protected"][1]
    )
    notices = " ".join(notice["message"] for notice in result.measures["notices"])
    assert "joins the payloads of both" not in notices or release.parameters.get("payload")


def test_merged_visits_at_level_visit_leave_no_record_alone(tmp_path: Path) -> None:
    protect(made_up(), Visits(k=3, merge_visits=True), tmp_path / "master")
    names = made_up().require_events()["patient"].unique().sort().head(60)
    result = extract(tmp_path / "master", names, tmp_path / "one", membership_is_secret="a test")
    assert result.measures["method"]["shared_by"]["members_alone_population"] == 0


def test_payload_with_a_patient_twice_is_refused(master: Path, tmp_path: Path) -> None:
    twice = pl.DataFrame({"patient": ["p001", "p001"], "dna": ["A", "B"]})
    with pytest.raises(BadInput, match="is there more than once"):
        extract(master, "snp = 2", tmp_path / "one", payload=twice)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = made_up()
    events = source.require_events().with_columns(pl.col("code").cast(pl.String)).drop("row")
    events.write_csv(tmp_path / "events.csv")
    flags = ["--patient", "patient", "--code", "code", "--visit", "visit"]
    assert (
        status_of(["visits", str(tmp_path / "events.csv"), *flags, "--k", "3", "-o", str(tmp_path / "m")])
        == 0
    )
    events.select("patient").head(40).unique().write_csv(tmp_path / "who.csv")
    drawn = ["cohort", str(tmp_path / "m"), "--select", str(tmp_path / "who.csv"), "-o", str(tmp_path / "c")]
    assert status_of([*drawn, "--source", str(tmp_path / "events.csv"), *flags]) == 2
    drawn += ["--membership-is-secret", "nobody is told"]
    assert status_of([*drawn, "--source", str(tmp_path / "events.csv"), *flags]) == 0
    assert "nobody may learn who is in the cohort" in " ".join(capsys.readouterr().out.split())
    assert status_of(["verify", str(tmp_path / "c")]) == 0
    assert (
        status_of(["visits", str(tmp_path / "events.csv"), *flags, "--k", "81", "-o", str(tmp_path / "n")])
        == 3
    )
    assert status_of(["visits", str(tmp_path / "events.csv"), "--k", "1", "-o", str(tmp_path / "n")]) == 2
    assert not (tmp_path / "n").exists()
