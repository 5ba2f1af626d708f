"""Tables larger than memory are cut by patient; the releases of the parts are the release of the whole."""

from __future__ import annotations

import stat
from pathlib import Path

import polars as pl
import pytest

import leeward as lw
from leeward.errors import BadInput

CODES = ("250.00", "401.9", "272.4")
ROWS = pl.DataFrame(
    {
        "pid": [f" {n % 90} " if n % 7 == 0 else str(n % 90) for n in range(270)],
        "icd": [CODES[n // 90] for n in range(270)],
        "day": [f"2020-01-{n % 27 + 1:02d}" for n in range(270)],
    }
)


@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
def test_every_row_is_in_one_part_with_its_patient(tmp_path: Path, ending: str) -> None:
    source = tmp_path / f"events.{ending}"
    if ending == "parquet":
        ROWS.write_parquet(source)
    else:
        ROWS.write_csv(source, compression="gzip" if ending.endswith("gz") else "uncompressed")
    rows = lw.split(source, tmp_path / "parts", 4, "pid")
    parts = [pl.read_parquet(file) for file in sorted((tmp_path / "parts").iterdir())]
    assert [part.height for part in parts] == rows and sum(rows) == ROWS.height
    assert pl.concat(parts).sort(pl.all()).equals(ROWS.sort(pl.all()))
    people = [set(part["pid"].str.strip_chars()) for part in parts]
    assert sum(map(len, people)) == 90 and sum(bool(each) for each in people) > 1
    assert stat.S_IMODE((tmp_path / "parts").stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "parts").iterdir()} == {0o600}


def test_each_part_is_a_release_and_together_they_are_everybody(tmp_path: Path) -> None:
    source = tmp_path / "events.csv"
    ROWS.write_csv(source)
    lw.split(source, tmp_path / "parts", 2, "pid")
    records = 0
    for number in (1, 2):
        file = tmp_path / "parts" / f"part-{number:03d}.parquet"
        part = lw.read(file, columns={"patient": "pid", "code": "icd"})
        records += lw.protect(part, lw.Disassociation(k=3, m=2), tmp_path / str(number)).release.records
        assert lw.verify(tmp_path / str(number), part).passed
    assert records == 90


def test_rows_of_a_table_of_patients_are_drawn_one_by_one(tmp_path: Path) -> None:
    pl.DataFrame({"age": range(400)}).write_parquet(tmp_path / "table.parquet")
    rows = lw.split(tmp_path / "table.parquet", tmp_path / "parts", 2)
    assert sum(rows) == 400 and min(rows) > 120  # 120: below it once in 10^15


def test_nothing_stays_of_a_table_that_cannot_be_cut(tmp_path: Path) -> None:
    (tmp_path / "broken.csv").write_text("pid,icd\n1,250.00\n2\n")
    (tmp_path / "empty.csv").write_text("pid,icd\n")
    for name, patient, words in (
        ("broken.csv", "pid", "row 2"),
        ("broken.csv", "pit", "Did you mean 'pid'"),
        ("empty.csv", "pid", "no rows"),
    ):
        with pytest.raises(BadInput, match=words):
            lw.split(tmp_path / name, tmp_path / "parts", 2, patient)
    with pytest.raises(BadInput, match="--parts must be between 2 and"):
        lw.split(tmp_path / "empty.csv", tmp_path / "parts", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.csv", "empty.csv"]
