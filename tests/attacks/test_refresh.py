"""Whoever has several masters made from scratch finds patients below k; whoever has several versions finds none."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from tests.attacks import refresh as attacker
from tests.attacks.refresh import Codes, Row, attack, rows_of
from tests.runs.made_lines import cohort, line, visits

import leeward as lw

K = 5
BATCHES = 3


@pytest.fixture(scope="module")
def batches() -> list[pl.DataFrame]:
    return visits(500, BATCHES, 12, 3, again=0.4)


def linked(master: Path, source: pl.DataFrame) -> tuple[list[Row], dict[int, tuple[str, Codes]]]:
    """The rows of a master under the numbers of patients, and of each source visit its patient and what is shown."""
    people = dict(
        pl.read_parquet(master / "custody/data/patients.parquet").select("record", "patient").rows()
    )
    of_row = dict(enumerate(source["visit"].to_list(), 1))
    where = {
        (r, v): of_row[row] for r, v, row in pl.read_parquet(master / "custody/data/visits.parquet").rows()
    }
    rows, images = [], {}
    for record, visit, codes in pl.read_parquet(master / "share/data/visits.parquet").rows():
        person, shown = int(people[record][1:]), frozenset(codes)
        rows.append((person, shown))
        images[where[record, visit]] = (people[record], shown)
    return rows, images


def test_masters_made_from_scratch_leave_patients_below_k(
    batches: list[pl.DataFrame], tmp_path: Path
) -> None:
    tables, images = [], []
    for n in range(1, BATCHES + 1):
        source = pl.concat(batches[:n])
        lw.protect(
            cohort(source), lw.Visits(k=K, policy="none"), tmp_path / str(n), seed=n, measures=(), tell=print
        )
        rows, shown = linked(tmp_path / str(n), source)
        tables.append(rows)
        images.append(shown)
    everything = {visit: person for shown in images for visit, (person, _) in shown.items()}
    known = [
        (int(person[1:]), [shown[visit][1] if visit in shown else frozenset() for shown in images])
        for visit, person in everything.items()
    ]
    found = attack(tables, known, K)
    assert found.known > 500
    assert found.below_k > 50
    assert found.alone > 0


@pytest.mark.parametrize("wait", [0, 1])
def test_versions_leave_k_records_each(batches: list[pl.DataFrame], wait: int, tmp_path: Path) -> None:
    versions = line(tmp_path, lw.Visits(k=K, policy="none"), batches, wait=wait)
    assert len(versions) == BATCHES
    tables = [rows_of(version / "share") for version in versions]
    known, seen = [], 0
    for j, table in enumerate(tables):  # rows are appended: a version's own are its last
        for record, codes in table[seen:]:
            known.append((record, [codes if at >= j else frozenset() for at in range(BATCHES)]))
        seen = len(table)
    found = attack(tables, known, K)
    assert found.known == len(tables[-1]) > 500
    assert found.below_k == 0
    file = tmp_path / "known.csv"
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows(
            [str(person), *(" ".join(sorted(each)) for each in shown)] for person, shown in known
        )
    program = [
        sys.executable,
        attacker.__file__,
        str(K),
        str(file),
        *(str(version / "share") for version in versions),
    ]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith(f"0 of {found.known:,} known visits")
