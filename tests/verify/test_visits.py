"""The verifier of visits is tested by breaking releases: each planted violation is caught, and by the right check."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.forging import by_method, changed
from tests.methods.visits.frames import cohort

from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.methods.visits import Visits
from leeward.runs.extract import extract
from leeward.runs.protect import protect, verify
from leeward.verify.visits import source as visits_source
from leeward.verify.visits.layout import VisitLists, read_visits

CODES = [f"{category}.{digit}" for category in (250, 272, 401, 428, 780) for digit in range(3)]


def made_up(people: int = 80) -> Cohort:
    draws = np.random.Generator(np.random.Philox(key=11))
    appeal = 1 / np.arange(1, len(CODES) + 1)
    records = {
        f"p{n:03d}": [
            list(draws.choice(CODES, size=draws.integers(1, 4), p=appeal / appeal.sum()))
            for _ in range(draws.integers(1, 4))
        ]
        for n in range(people)
    }
    patients = pl.DataFrame({"patient": list(records), "snp": draws.integers(0, 3, people)})
    return cohort(records, patients)


VARIANTS = {
    "visit": {},
    "code": {"level": "code"},
    "containment": {"level": "containment", "merge_visits": True},
    "codes": {"level": "codes"},
    "codes_merged": {"level": "codes", "merge_visits": True, "m": 3},
    "generalize": {"enforce": "generalize"},
    "merged": {"merge_visits": True},
    "payload": {"payload": ("snp",)},
}


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A sound release of each variant, verified with its source while it was written."""
    folder = tmp_path_factory.mktemp("visits")
    for name, parameters in VARIANTS.items():
        protect(made_up(), Visits(k=3, **parameters), folder / name, seed=1)
    extract(folder / "payload", "snp >= 1", folder / "extract", membership_is_secret="a test", seed=1)
    return {name: folder / name for name in (*VARIANTS, "extract")}


def broken(release: Path, target: Path, path: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Path:
    """A copy with one file changed and, in `share/`, a manifest that fits the change."""
    return changed(release, target, path, change)


def failures(folder: Path, source: Cohort | None = None) -> set[str]:
    """The failed checks of the method's own."""
    return by_method(verify(folder, source))


def in_first(visits: pl.DataFrame, codes: list[str]) -> pl.DataFrame:
    """The first visit gets other codes."""
    first = pl.int_range(pl.len()) == 0
    return visits.with_columns(codes=pl.when(first).then(pl.lit(sorted(codes))).otherwise("codes"))


VISITS = "share/data/visits.parquet"
ALL_FIVE = ["250.0", "272.0", "401.0", "428.0", "780.0"]


@pytest.mark.parametrize("name", VARIANTS)
def test_sound_releases_pass_with_and_without_source(releases, name: str) -> None:
    assert verify(releases[name]).passed
    assert verify(releases[name], made_up()).passed


def test_a_source_that_was_read_without_visits_refutes_nothing(releases) -> None:
    whole = made_up()
    assert whole.events is not None
    without = replace(whole, events=whole.events.drop("visit"))
    with pytest.raises(BadInput, match="read without visits"):
        verify(releases["visit"], without)


@pytest.mark.parametrize(
    ("name", "check"), [("visit", "visit_sets"), ("generalize", "visit_sets"), ("merged", "visit_sets")]
)
def test_a_set_of_one_patient_is_caught(releases, tmp_path: Path, name: str, check: str) -> None:
    folder = broken(releases[name], tmp_path / "x", VISITS, lambda visits: in_first(visits, ALL_FIVE))
    assert check in failures(folder)


def test_a_set_repeated_by_one_patient_is_still_one_patient(releases, tmp_path: Path) -> None:
    def repeat(visits: pl.DataFrame) -> pl.DataFrame:
        last = visits.filter(pl.col("record") == visits["record"].max())
        rows = [
            last.with_columns(visit=pl.lit(n, pl.Int64), codes=pl.lit(ALL_FIVE)).head(1) for n in range(9)
        ]
        return pl.concat([visits.filter(pl.col("record") != visits["record"].max()), *rows])

    assert "visit_sets" in failures(broken(releases["visit"], tmp_path / "x", VISITS, repeat))


def test_a_rare_code_is_caught_at_level_code(releases, tmp_path: Path) -> None:
    folder = broken(releases["code"], tmp_path / "x", VISITS, lambda visits: in_first(visits, ["999.9"]))
    assert failures(folder) == {"codes"}


def test_a_code_shown_again_through_another_visit_is_caught(releases, tmp_path: Path) -> None:
    """Records show their source visits whole: parts of single visits are then in fewer than k records."""
    sets = pl.read_parquet(releases["containment"] / "custody/data/visit_sets.parquet")
    unions = sets.group_by("record").agg(codes=pl.col("codes").explode(empty_as_null=False).unique().sort())

    def show_all(visits: pl.DataFrame) -> pl.DataFrame:
        whole = visits.drop("codes").join(unions, on="record", how="left").sort("record")
        return whole.select("record", "visit", "codes")

    folder = broken(releases["containment"], tmp_path / "x", VISITS, show_all)
    assert failures(folder) == {"contained_sets"}
    assert failures(folder, made_up()) == {"contained_sets", "contained_source_visits"}


def test_m_codes_of_too_few_are_caught(releases, tmp_path: Path) -> None:
    folder = broken(releases["codes"], tmp_path / "x", VISITS, lambda visits: in_first(visits, ALL_FIVE))
    assert failures(folder) == {"known_codes"}
    folder = broken(releases["codes_merged"], tmp_path / "y", VISITS, show_unions(releases["codes_merged"]))
    assert failures(folder) == {"known_codes"}
    assert failures(folder, made_up()) == {"known_codes", "known_codes_of_source_visits"}


def show_unions(release: Path) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Records show their source visits whole."""
    sets = pl.read_parquet(release / "custody/data/visit_sets.parquet")
    unions = sets.group_by("record").agg(codes=pl.col("codes").explode(empty_as_null=False).unique().sort())
    return lambda visits: (
        visits.drop("codes").join(unions, on="record", how="left").sort("record").select(visits.columns)
    )


def test_visit_sets_of_the_custodian_that_hide_a_code_are_caught(releases, tmp_path: Path) -> None:
    path = "custody/data/visit_sets.parquet"

    def shorten(sets: pl.DataFrame) -> pl.DataFrame:
        return sets.with_columns(codes=pl.col("codes").list.head(1)).filter(pl.col("codes").list.len() > 0)

    folder = broken(releases["containment"], tmp_path / "x", path, shorten)
    assert failures(folder) == {"unions_of_visit_sets"}


def test_containment_cannot_be_checked_from_the_share_alone(releases, tmp_path: Path) -> None:
    shutil.copytree(releases["containment"] / "share", tmp_path / "sent")
    with pytest.raises(BadInput, match="verify the whole release folder"):
        verify(tmp_path / "sent")


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda v: v.with_columns(visit=pl.col("visit") + 1), "visits_numbered"),
        (lambda v: v.with_columns(record=pl.col("record") + 1000), "visits_of_records"),
        (lambda v: v.with_columns(codes=pl.col("codes").list.reverse()), "sets_sorted"),
        (lambda v: v.with_columns(codes=pl.concat_list("codes", "codes").list.sort()), "sets_sorted"),
        (lambda v: v.with_columns(codes=pl.lit([], pl.List(pl.String))), "sets_sorted"),
    ],
)
def test_a_damaged_table_is_caught(releases, tmp_path: Path, change, check: str) -> None:
    assert check in failures(broken(releases["visit"], tmp_path / "x", VISITS, change))


def test_a_missing_record_is_caught(releases, tmp_path: Path) -> None:
    folder = broken(
        releases["visit"], tmp_path / "x", "share/data/records.parquet", lambda r: r.head(r.height - 1)
    )
    assert "records_numbered" in failures(folder)


def test_visits_of_two_patients_exchanged_are_caught_with_the_source(releases, tmp_path: Path) -> None:
    """Every set keeps its holders: only the source tells."""

    def exchange(visits: pl.DataFrame) -> pl.DataFrame:
        highest = visits["record"].max()
        return visits.with_columns(record=highest - pl.col("record")).sort("record", "visit")

    folder = broken(releases["visit"], tmp_path / "x", VISITS, exchange)
    assert failures(folder) == set()
    assert failures(folder, made_up()) & {"parts_of_source_visits", "witness"}


def test_a_visit_cut_in_two_is_caught_with_the_source(releases, tmp_path: Path) -> None:
    """Splitting a visit could satisfy k; the attacker would intersect the pieces."""

    def same_row_twice(witness: pl.DataFrame) -> pl.DataFrame:
        several = witness.filter(pl.len().over("record") > 1)["record"][0]
        row = witness.filter(pl.col("record") == several)["row"][0]
        return witness.with_columns(row=pl.when(pl.col("record") == several).then(row).otherwise("row"))

    folder = broken(releases["visit"], tmp_path / "x", "custody/data/visits.parquet", same_row_twice)
    assert "one_source_visit_each" in failures(folder, made_up())


def test_an_invented_code_is_caught_with_the_source(releases, tmp_path: Path) -> None:
    def invent(visits: pl.DataFrame) -> pl.DataFrame:
        return visits.with_columns(codes=pl.lit(["250.0"]))

    folder = broken(releases["visit"], tmp_path / "x", VISITS, invent)
    assert failures(folder) == set()
    assert failures(folder, made_up()) == {"parts_of_source_visits"}


def test_a_merge_across_groups_is_caught(releases, tmp_path: Path) -> None:
    def mix(codes: pl.DataFrame) -> pl.DataFrame:
        return codes.with_columns(
            label=pl.when(pl.col("code").is_in(["250.0", "401.0"]))
            .then(pl.lit("250.0|401.0"))
            .otherwise("label")
        )

    folder = broken(releases["visit"], tmp_path / "x", "custody/data/codes.parquet", mix)
    assert "merged_inside_groups" in failures(folder, made_up())


def test_exchanged_payload_values_are_caught(releases, tmp_path: Path) -> None:
    folder = broken(
        releases["payload"],
        tmp_path / "x",
        "share/data/records.parquet",
        lambda r: r.with_columns(snp=pl.lit(2, pl.Int64)),
    )
    assert failures(folder, made_up()) == {"payload", "payload_of_patients"}


def test_an_extract_is_checked_against_its_master(releases, tmp_path: Path) -> None:
    assert verify(releases["extract"]).passed
    spoilt = broken(releases["extract"], tmp_path / "x", VISITS, lambda visits: in_first(visits, ALL_FIVE))
    assert failures(spoilt) == {"visit_sets", "same_as_master", "figures_stated"}
    shutil.copytree(releases["extract"] / "share", tmp_path / "sent")
    with pytest.raises(BadInput, match=r"custody/master\.json"):
        verify(tmp_path / "sent")


def in_manifest(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        file = folder / "share/release.json"
        content = json.loads(file.read_text())
        change(content)
        file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    return apply


def figure(sentence: int, step: int) -> Callable[[dict[str, Any]], None]:
    """The first figure of a sentence of the limits, larger."""

    def change(content: dict[str, Any]) -> None:
        lines = content["guarantee"]["not_protected"]
        lines[sentence] = re.sub(r"\d+(?= of)", lambda m: str(int(m[0]) + step), lines[sentence], count=1)

    return change


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda m: m["parameters"].update(policy="hierarchy:3"), "parameters_of_master"),
        (lambda m: m["parameters"].pop("vocabulary"), "parameters_of_master"),
        (lambda m: m["parameters"].update(rescue=True), "parameters_of_master"),
        (lambda m: m["parameters"].pop("membership_is_secret"), "reason_stated"),
        (figure(0, 1), "figures_stated"),
        (figure(1, -1), "figures_stated"),
    ],
    ids=["policy", "vocabulary", "rescue", "reason", "known members", "joined cohorts"],
)
def test_what_a_cohort_says_of_itself_is_counted_and_compared_with_its_master(
    releases, tmp_path: Path, change: Callable[[dict[str, Any]], Any], check: str
) -> None:
    shutil.copytree(releases["extract"], tmp_path / "x")
    shutil.copytree(releases["payload"], tmp_path / "payload")
    in_manifest(change)(tmp_path / "x")
    assert failures(tmp_path / "x") - {"reason_as_given"} == {check}


def test_a_cohort_with_another_payload_than_its_master_is_caught(releases, tmp_path: Path) -> None:
    shutil.copytree(releases["payload"], tmp_path / "payload")
    folder = broken(
        releases["extract"],
        tmp_path / "x",
        "share/data/records.parquet",
        lambda r: r.with_columns(snp=pl.concat([r["snp"][1:], r["snp"][:1]])),
    )
    assert failures(folder) == {"payload_of_master", "payload_as_drawn"}


def test_another_master_than_the_one_named_is_refused(releases, tmp_path: Path) -> None:
    shutil.copytree(releases["extract"], tmp_path / "x")
    note = tmp_path / "x" / "custody" / "master.json"
    named = json.loads(note.read_text())
    note.write_text(json.dumps({**named, "path": str(releases["visit"])}))
    with pytest.raises(BadInput, match="not the master that this cohort was drawn from"):
        verify(tmp_path / "x")


@pytest.mark.parametrize(("name", "key", "check"), [("codes", "m", "m"), ("extract", "k", "master")])
def test_another_number_in_the_guarantee_is_caught(
    releases, tmp_path: Path, name: str, key: str, check: str
) -> None:
    """m of known codes, and the k of a cohort, which must be its master's."""
    shutil.copytree(releases[name], tmp_path / name)
    if name == "extract":  # its note names the master relative to the cohort
        shutil.copytree(releases["payload"], tmp_path / "payload")
    file = tmp_path / name / "share/release.json"
    content = json.loads(file.read_text())
    content["guarantee"][key] += 1
    file.write_text(json.dumps(content))
    assert check in failures(tmp_path / name)


def test_another_column_is_caught(releases, tmp_path: Path) -> None:
    folder = broken(releases["visit"], tmp_path / "x", VISITS, lambda visits: visits)
    file, manifest = folder / VISITS, folder / "share/release.json"
    pl.read_parquet(file).with_columns(day=1).write_parquet(file)
    content = json.loads(manifest.read_text())
    for entry in content["files"]:
        if VISITS.endswith(entry["path"]):
            entry["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(content))
    assert failures(folder) == {"layout"}


def test_merged_visits_shown_apart_are_caught(releases, tmp_path: Path) -> None:
    def apart(visits: pl.DataFrame) -> pl.DataFrame:
        first = visits.head(1).with_columns(visit=pl.lit(1, pl.Int64))
        return pl.concat([visits.head(1), first, visits.tail(-1)])

    assert "one_set_a_record" in failures(broken(releases["containment"], tmp_path / "x", VISITS, apart))


@pytest.mark.parametrize("stated", ["icd10", None])
def test_another_vocabulary_than_the_sources_is_caught(releases, tmp_path: Path, stated: str | None) -> None:
    shutil.copytree(releases["code"], tmp_path / "x")

    def restated(content: dict[str, Any]) -> None:
        content["parameters"] |= {"vocabulary": stated}
        if stated is None:
            del content["parameters"]["vocabulary"]

    in_manifest(restated)(tmp_path / "x")
    assert "vocabulary_of_source" in failures(tmp_path / "x", made_up())


def test_a_patient_more_in_the_source_is_caught(releases) -> None:
    source = made_up()
    events = source.require_events()
    more = events.head(1).with_columns(patient=pl.lit("somebody else"), visit=pl.lit(99_999, pl.Int64))
    assert failures(releases["visit"], replace(source, events=pl.concat([events, more]))) == {
        "every_patient_once",
        "labels_read",
    }


def test_a_code_taken_out_of_a_visit_is_caught(releases, tmp_path: Path) -> None:
    several = pl.col("codes").list.len() > 1
    folder = broken(
        releases["code"],
        tmp_path / "x",
        VISITS,
        lambda visits: visits.with_columns(
            codes=pl.when(several).then(pl.col("codes").list.head(1)).otherwise("codes")
        ),
    )
    assert {each.name for each in verify(folder, made_up()).failures} >= {"labels_shown"}


def test_a_label_that_does_not_name_its_code_is_caught(releases, tmp_path: Path) -> None:
    def exchange(codes: pl.DataFrame) -> pl.DataFrame:
        return codes.with_columns(label=pl.col("label").reverse())

    folder = broken(releases["visit"], tmp_path / "x", "custody/data/codes.parquet", exchange)
    assert "labels" in failures(folder, made_up())


def test_a_node_that_is_not_above_its_code_is_caught(releases, tmp_path: Path) -> None:
    def elsewhere(codes: pl.DataFrame) -> pl.DataFrame:
        return codes.with_columns(above=pl.when(pl.col("above").is_not_null()).then(pl.lit("630-679")))

    folder = broken(releases["generalize"], tmp_path / "x", "custody/data/codes.parquet", elsewhere)
    assert "nodes_above" in failures(folder, made_up())


def test_a_master_whose_files_were_changed_is_caught(releases, tmp_path: Path) -> None:
    shutil.copytree(releases["payload"], tmp_path / "master")
    shutil.copytree(releases["extract"], tmp_path / "x")
    note = tmp_path / "x" / "custody" / "master.json"
    note.write_text(json.dumps({**json.loads(note.read_text()), "path": str(tmp_path / "master")}))
    assert failures(tmp_path / "x") == set()
    file = tmp_path / "master" / VISITS
    pl.read_parquet(file).tail(-1).write_parquet(file)
    assert "master_files" in failures(tmp_path / "x")


def test_files_of_several_row_groups_are_read(tmp_path: Path) -> None:
    codes = [["250.00", "401.9"], ["V10"], [], ["401.9"], ["E812"]]
    table = pa.table({"record": list(range(5)), "visit": list(range(5)), "codes": codes})
    pq.write_table(table, tmp_path / "visits.parquet", row_group_size=2)
    found = read_visits(tmp_path / "visits.parquet")
    spelled = [[found.labels[v] for v in found.values[a:b]] for a, b in itertools.pairwise(found.offsets)]
    assert spelled == codes


@pytest.mark.parametrize("at_once", [1 << 20, 50])
def test_visits_in_the_order_of_their_codes_are_told_of(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(visits_source, "VISITS_AT_ONCE", at_once)
    nothing_kept: Any = SimpleNamespace(kept=lambda name: None)
    drawn = np.random.default_rng(1).integers(0, 9, (400, 3)).astype(np.int32)
    record, visit = np.repeat(np.arange(400), 3), np.tile(np.arange(3), 400)
    for values, passes in ((drawn, True), (np.sort(drawn), False)):
        visits = VisitLists(record, visit, np.arange(1201), values.ravel(), tuple("abcdefghi"))
        assert visits_source.order_of_visits(nothing_kept, visits).passed == passes
        mixed = visits.take(np.random.default_rng(2).permutation(1200))
        assert visits_source.order_of_visits(nothing_kept, mixed).passed == passes


def test_more_codes_than_any_visit_has_are_counted_in_no_more_time(releases, tmp_path: Path) -> None:
    shutil.copytree(releases["codes"], tmp_path / "x")
    in_manifest(lambda m: (m["parameters"].update(m=10**9), m["guarantee"].update(m=10**9)))(tmp_path / "x")
    assert {"known_codes", "words"} <= {check.name for check in verify(tmp_path / "x").failures}
