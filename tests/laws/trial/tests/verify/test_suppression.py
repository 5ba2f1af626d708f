"""The verifier of suppression, by breaking releases: one violation a test."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest
from tests.forging import write_parquet
from tests.laws.cases import cohort_of_events

import leeward as lw


def broken(folder: Path, records: pl.DataFrame) -> Path:
    file, manifest = folder / "share/data/records.parquet", folder / "share/release.json"
    write_parquet(records, file)
    content = json.loads(manifest.read_text())
    content["files"][0] |= {"sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "rows": records.height}
    manifest.write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    ("check", "change"),
    [
        ("codes_of_k", lambda t: pl.concat([t[:-1], pl.DataFrame({"codes": [["rare"]]})])),
        ("every_patient", lambda t: t[:-1]),
    ],
)
def test_a_break_is_caught(check: str, change, tmp_path: Path) -> None:
    cohort = cohort_of_events()
    out = lw.protect(cohort, lw.Suppression(k=3), tmp_path / "out", seed=1).path
    changed = change(pl.read_parquet(out / "share/data/records.parquet"))
    assert check in {each.name for each in lw.verify(broken(out, changed), cohort).failures}
