"""`sensitive: standard`: the data's codes of the list are in item chunks only, and the manifest names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from tests.methods.disassociation.shapes import cohort_of

from leeward.errors import BadInput
from leeward.methods.disassociation import Disassociation
from leeward.release import Release
from leeward.runs import protect as workflow
from leeward.runs.running import run

LISTED = ["042", "303.90", "311"]
RECORDS = [
    ("250.00", "311", *(("303.90",) if i % 2 else ()), *(("042",) if i < 2 else ())) for i in range(12)
]
RECORDS += [("401.9", "250.00") for _ in range(8)]


def released(out: Path, records: list[tuple[str, ...]] = RECORDS, **more: Any) -> Release:
    made = workflow.protect(cohort_of(records, "icd9"), Disassociation(k=3, m=2, **more), out, seed=1)
    assert made.verification.passed
    return made.release


def kinds_of(release: Release) -> dict[str, set[str]]:
    rows = (
        release.table("chunks.parquet")
        .select("kind", "codes")
        .collect()
        .explode("codes", empty_as_null=False)
    )
    return {code[0]: set(part["kind"]) for code, part in rows.group_by("codes")}


def test_the_listed_codes_are_in_item_chunks_and_the_manifest_names_them(tmp_path: Path) -> None:
    plain = kinds_of(released(tmp_path / "plain"))
    assert plain["311"] == {"record"}  # the release without the list shows with what it goes together
    release = released(tmp_path / "out", sensitive=("standard", "401.9"), diversity=None)
    assert release.parameters["sensitive"] == ["042", "303.90", "311", "401.9"]
    assert all(kinds_of(release)[code] == {"item"} for code in (*LISTED, "401.9"))
    assert release.custody is not None
    spec = yaml.safe_load((release.custody / "spec.yaml").read_text())
    assert spec["method"]["sensitive"] == [
        "042",
        "303.90",
        "311",
        "401.9",
    ]  # as run: a later list changes nothing
    notices = [each["message"] for each in (release.custody_json("measures.json") or {})["notices"]]
    assert any("mental health 1" in text and "HIV 1" in text for text in notices)


def test_repeats_of_a_listed_code_are_sensitive_too(tmp_path: Path) -> None:
    release = released(tmp_path / "out", sensitive=("standard",), repeats=True)
    assert release.parameters["sensitive"] == LISTED
    assert kinds_of(release)["311#1"] == {"item"}


@pytest.mark.parametrize("more", [{}, {"diversity": 3}])
def test_without_a_listed_code_nothing_is_sensitive_and_a_notice_says_so(tmp_path: Path, more: Any) -> None:
    release = released(tmp_path / "out", RECORDS[12:], sensitive=("standard",), **more)
    assert "sensitive" not in release.parameters
    assert release.custody is not None
    notices = [each["message"] for each in (release.custody_json("measures.json") or {})["notices"]]
    assert any("the data have none" in text for text in notices)


def test_a_vocabulary_without_a_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"list of codes of ICD-9-CM and ICD-10-CM; .* has none"):
        Disassociation(k=3, m=2, sensitive=("standard",)).protect(cohort_of([("A", "B")] * 5))


def test_a_table_on_the_disk_gives_the_same_codes(tmp_path: Path) -> None:
    rows = [(p, code) for p, codes in enumerate(RECORDS * 3) for code in codes]
    pl.DataFrame(rows, schema=["patient", "code"], orient="row").write_csv(tmp_path / "events.csv")
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "source: {path: events.csv, columns: {patient: patient, code: code}, vocabulary: icd9}\n"
        "method: {name: disassociation, k: 3, m: 2, partitions: 2, sensitive: [standard]}\nseed: 1\n"
    )
    made = run(spec, tmp_path / "out")
    assert made.verification.passed
    assert made.release.parameters["sensitive"] == LISTED
