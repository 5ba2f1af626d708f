"""Want of memory says nothing of a release, nor of a file: it passes through what tells damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.laws.cases import cohort_of_events, events

import leeward as lw
from leeward.cli.main import MORE_MEMORY, status_of
from leeward.cohort.readers import delimited, parquet, values
from leeward.verify import guard

WANT = [MemoryError("none left"), pa.lib.ArrowMemoryError("malloc of size 64 failed")]


def wanting(error: Exception) -> Any:
    def read(*_: Any, **__: Any) -> Any:
        raise error

    return read


@pytest.mark.parametrize("error", WANT, ids=["Python", "Arrow"])
@pytest.mark.parametrize("formed", [True, False])
def test_content_is_not_refuted_by_it(error: Exception, formed: bool) -> None:
    with pytest.raises(MemoryError):
        guard("content", wanting(error), formed=formed)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (pq, "read_metadata"),
        (pq, "read_schema"),
        (pq.ParquetFile, "read"),
        (pq.ParquetFile, "read_row_group"),
        (pq.ParquetFile, "iter_batches"),
    ],
)
@pytest.mark.parametrize(
    "method", [lw.Disassociation(k=3, m=2), lw.Constraints(k=3, m=2, policy="hierarchy:1")]
)
def test_no_check_of_a_release_is_failed_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], owner: Any, name: str,
    method: Any,
) -> None:  # fmt: skip
    lw.protect(cohort_of_events(), method, tmp_path / "out", seed=1)
    monkeypatch.setattr(owner, name, wanting(WANT[1]))
    status = status_of(["verify", str(tmp_path / "out")])
    told = capsys.readouterr()
    assert status in (0, 2) and "failed" not in told.out + told.err
    assert status == 0 or MORE_MEMORY in told.err


def test_a_reader_does_not_call_a_file_damaged_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events().write_parquet(tmp_path / "e.parquet")
    events().write_csv(tmp_path / "e.csv")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", wanting(WANT[1]))
    with pytest.raises(MemoryError):
        list(parquet.batches(tmp_path / "e.parquet", ["patient"]))
    monkeypatch.setattr(pq, "ParquetFile", wanting(WANT[1]))
    with pytest.raises(MemoryError):
        list(parquet.batches(tmp_path / "e.parquet", ["patient"]))
    monkeypatch.setattr(pacsv, "open_csv", wanting(WANT[1]))
    with pytest.raises(MemoryError):
        list(delimited.batches(tmp_path / "e.csv", ["patient"]))
    monkeypatch.setattr(pl, "from_arrow", wanting(WANT[1]))
    with pytest.raises(MemoryError):
        values.plain(pa.array(["a"]), "e.csv", "code")
