"""With share/ and one code of a patient: at least k records fit, or none."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from tests.laws.cases import CODES, cohort_of_events

import leeward as lw


def test_one_code_fits_k_records_or_none(tmp_path: Path) -> None:
    share = lw.protect(cohort_of_events(), lw.Suppression(k=5), tmp_path / "out", seed=1).release.share
    records = pl.read_parquet(share / "data/records.parquet")
    fits = [records.filter(pl.col("codes").list.contains(code)).height for code in CODES]
    assert all(found == 0 or found >= 5 for found in fits) and max(fits) >= 5
