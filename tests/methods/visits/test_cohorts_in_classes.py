"""Cohorts drawn from a master with demographics: labels as the master has them, what members risk, broken ones."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.forging import by_method, restate, write_parquet
from tests.methods.visits.test_whole_patient import with_people

from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.visits import Visits
from leeward.release import Release
from leeward.runs.extract import extract
from leeward.runs.protect import protect
from leeward.verify import verify

K = 4
NAMES = ["age", "sex"]
SECRET = "a test"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A master, and a cohort of every third patient drawn from it."""
    folder = tmp_path_factory.mktemp("drawn")
    parameters = {"k": K, "demographics": tuple(NAMES), "keep": {"age": 20, "sex": "exact"}}
    protect(with_people(200), Visits(**parameters, payload=("snp",)), folder / "master", seed=1)
    chosen = with_people(200).require_events()["patient"].unique().sort().gather_every(3)
    extract(folder / "master", chosen, folder / "cohort", membership_is_secret=SECRET, seed=1)
    return folder


def by_patient(out: Path) -> dict[str, tuple[str, str, str | None]]:
    people = pl.read_parquet(out / "custody/data/patients.parquet").select("record", "patient")
    rows = pl.read_parquet(out / "share/data/records.parquet").join(people, on="record")
    return {row["patient"]: (row["age"], row["sex"], row["snp"]) for row in rows.iter_rows(named=True)}


def test_labels_and_payload_are_the_masters_and_classes_count_the_cohort(folder: Path) -> None:
    mine, whole = by_patient(folder / "cohort"), by_patient(folder / "master")
    assert len(mine) == 67 and all(whole[patient] == labels for patient, labels in mine.items())
    records = pl.read_parquet(folder / "cohort/share/data/records.parquet")
    assert records.columns == ["record", *NAMES, "snp"]
    classes = pl.read_parquet(folder / "cohort/share/data/classes.parquet")
    assert {(a, s): n for _, a, s, n in classes.iter_rows()} == Counter((a, s) for a, s, _ in mine.values())
    assert by_method(verify(folder / "cohort")) == set()


def test_what_members_risk_is_counted_in_their_class(folder: Path) -> None:
    release = Release.open(folder / "cohort")
    labels = pl.read_parquet(folder / "cohort/share/data/records.parquet").select("record", *NAMES)
    visits = release.table("visits.parquet").collect().join(labels, on="record")
    sets: dict[tuple[str, ...], set[int]] = {}
    for row in visits.iter_rows(named=True):
        sets.setdefault((row["age"], row["sex"], *row["codes"]), set()).add(row["record"])
    few = sum(len(sets[(r["age"], r["sex"], *r["codes"])]) < K for r in visits.iter_rows(named=True))
    sizes = Counter(labels.select(NAMES).rows())
    below = sum(n for n in sizes.values() if n < K)
    first, second = release.guarantee["not_protected"][:2]
    assert f"{few:,} of {visits.height:,} visits" in first
    assert f"the exact age and sex of that person. {below} of 67 members" in second
    assert release.guarantee["facts"]["demographics"] == NAMES


def test_members_are_chosen_by_their_labels(folder: Path, tmp_path: Path) -> None:
    classes = pl.read_parquet(folder / "master/share/data/classes.parquet")
    one = classes.row(0, named=True)
    found = extract(
        folder / "master", f"age = '{one['age']}' AND sex = '{one['sex']}'", tmp_path / "one",
        membership_is_secret=SECRET,
    )  # fmt: skip
    assert found.release.records == one["records"] and found.verification.passed
    assert pl.read_parquet(tmp_path / "one/share/data/classes.parquet").height == 1


def test_what_is_not_drawn(folder: Path, tmp_path: Path) -> None:
    people = with_people(200).require_events()["patient"].unique().sort()
    with pytest.raises(GuaranteeUnreachable, match="has 3 members and k is 4"):
        extract(folder / "master", people.head(3), tmp_path / "one", membership_is_secret=SECRET)
    with pytest.raises(BadInput, match="with the same released demographics share"):
        extract(folder / "master", people.head(20), tmp_path / "one")
    assert not (tmp_path / "one").exists()


def test_a_master_of_merged_visits_at_level_codes(tmp_path: Path) -> None:
    method = Visits(k=3, level="codes", m=2, merge_visits=True, demographics=("sex",), keep={"sex": "exact"})
    protect(with_people(60), method, tmp_path / "master")
    found = extract(tmp_path / "master", "sex = 'F'", tmp_path / "cohort", membership_is_secret=SECRET)
    assert found.verification.passed and found.release.records == 20


def broken(
    folder: Path, tmp_path: Path, name: str, changed: Callable[[pl.DataFrame], pl.DataFrame]
) -> set[str]:
    """The checks of the cohort that fail once one of its files was changed."""
    out = tmp_path / "cohort"
    shutil.copytree(folder / "cohort", out)
    file = out / "share/data" / name
    write_parquet(changed(pl.read_parquet(file)), file)
    restate(out)
    return by_method(verify(out))


def test_two_records_with_each_others_labels(folder: Path, tmp_path: Path) -> None:
    def swapped(records: pl.DataFrame) -> pl.DataFrame:
        rows = records.rows(named=True)
        b = next(
            i for i, row in enumerate(rows) if (row["age"], row["sex"]) != (rows[0]["age"], rows[0]["sex"])
        )
        labels = {0: rows[b], b: rows[0]}
        return records.with_columns(
            pl.Series(name, [labels.get(i, row)[name] for i, row in enumerate(rows)]) for name in NAMES
        )

    assert broken(folder, tmp_path, "records.parquet", swapped) == {"same_demographics"}


def test_a_record_with_the_labels_of_no_class(folder: Path, tmp_path: Path) -> None:
    def stranger(records: pl.DataFrame) -> pl.DataFrame:
        return records.with_columns(age=pl.when(pl.col("record") == 7).then(pl.lit("*")).otherwise("age"))

    assert broken(folder, tmp_path, "records.parquet", stranger) == {"record_classes", "same_demographics"}


def test_a_label_of_the_master_that_no_member_has_in_the_hierarchy(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "cohort"
    shutil.copytree(folder / "cohort", out)
    file = out / "share/data/hierarchies/age.csv"
    file.write_text(file.read_text() + '"0-19","0-39"\n')
    restate(out)
    assert by_method(verify(out)) == {"hierarchies", "hierarchies_in_order"}


def test_a_master_whose_classes_are_not_as_it_states(folder: Path, tmp_path: Path) -> None:
    for name in ("master", "cohort"):
        shutil.copytree(folder / name, tmp_path / name)
    file = tmp_path / "master/share/data/classes.parquet"
    write_parquet(pl.read_parquet(file).with_columns(records=pl.col("records") + 1), file)
    restate(tmp_path / "master")
    manifest = (tmp_path / "master/share/release.json").read_bytes()
    note = {"path": str(tmp_path / "master"), "sha256": hashlib.sha256(manifest).hexdigest()}
    (tmp_path / "cohort/custody/master.json").write_text(json.dumps(note))
    assert by_method(verify(tmp_path / "cohort")) == {"master_classes"}
