"""A cohort against what custody keeps of its drawing: the payload's digest, and the reason why membership is secret."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.forging import changed, restate
from tests.laws.cases import cohort_of_events

import leeward as lw

RECORDS = "share/data/records.parquet"
NOW = dt.datetime(2020, 1, 2, 3, 4, 5, 678901)
VALUES: dict[str, pl.Series] = {
    "snp": pl.Series(["AA", None, "AG", 'quoted "x"\n']),
    "level": pl.Series(["low", None, "high", "low"], dtype=pl.Categorical),
    "count": pl.Series([1, None, 3, 4], dtype=pl.Int8),
    "dose": pl.Series([0.1, None, float("nan"), 1e300], dtype=pl.Float32),
    "kept": pl.Series([True, None, False, True]),
    "born": pl.Series([NOW.date(), None, NOW.date(), NOW.date()]),
    "seen": pl.Series([NOW, None, NOW, NOW]).dt.replace_time_zone("Europe/Berlin"),
    "at": pl.Series([NOW, None, NOW, NOW], dtype=pl.Datetime("ns")),
    "stay": pl.Series([dt.timedelta(days=1), None, dt.timedelta(seconds=1), dt.timedelta(0)]),
    "paid": pl.Series([Decimal("1.50"), None, Decimal("2.25"), Decimal(0)]),
    "genes": pl.Series([["a"], None, ["b", "c"], []]),
    "counts": pl.Series([[1, 2], None, [3], []]),
    "key": pl.Series([b"\xff", None, b"a", b""]),
}
"""A column of every kind of value that a payload can have."""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cohort with payload of all kinds; its master lies beside it."""
    folder, cohort = tmp_path_factory.mktemp("drawn"), cohort_of_events()
    lw.protect(cohort, lw.Visits(k=3), folder / "master", seed=7)
    patients = cohort.require_events()["patient"].unique().sort()
    payload = pl.DataFrame(
        {"patient": patients, **{n: v.gather([i % 4 for i in range(60)]) for n, v in VALUES.items()}}
    )
    reason = "inclusion was drawn by lot"
    return lw.extract(
        folder / "master", patients[:30], folder / "out", payload=payload, membership_is_secret=reason, seed=7
    ).path


def failures(out: Path) -> set[str]:
    return {check.name for check in lw.verify(out).failures}


def test_a_cohort_with_payload_of_every_kind_is_verified(drawn: Path) -> None:
    found = lw.verify(drawn)
    assert found.passed and found["payload_as_drawn"].passed and found["reason_as_given"].passed
    assert pl.read_parquet(drawn / RECORDS).columns[1:] == list(VALUES)


def test_payload_of_every_kind_but_bytes_is_in_csv_too(drawn: Path, tmp_path: Path) -> None:
    people = cohort_of_events().require_events()["patient"].unique().sort()[:30]
    held = {
        name: values.gather([i % 4 for i in range(30)]) for name, values in VALUES.items() if name != "key"
    }
    out = tmp_path / "out"
    lw.extract(drawn.parent / "master", people, out, payload=pl.DataFrame({"patient": people, **held}),
               membership_is_secret="inclusion was drawn by lot")  # fmt: skip
    assert (out / RECORDS).with_suffix(".csv").is_file() and not (drawn / RECORDS).with_suffix(
        ".csv"
    ).exists()


def exchanged(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Two members exchange a value that differs."""
    column = table[name].to_list()
    other = next(row for row, value in enumerate(column) if repr(value) != repr(column[0]))
    order = list(range(table.height))
    order[0], order[other] = other, 0
    return table.with_columns(table[name].gather(order))


@pytest.mark.parametrize("name", VALUES)
def test_exchanged_payload_is_refuted(name: str, drawn: Path, tmp_path: Path) -> None:
    out = beside_master(drawn, tmp_path)
    with_records(out, lambda table: exchanged(table, name))
    assert failures(out) == {"payload_as_drawn"}


CHANGES: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "a value is another": lambda t: t.with_columns(pl.Series("snp", ["TT", *t["snp"][1:].to_list()])),
    "all values are one": lambda t: t.with_columns(pl.lit("AA").alias("snp")),
    "nulls are empty": lambda t: t.with_columns(pl.col("snp").fill_null("")),
    "rows turned by one": lambda t: t.with_columns(pl.col(*VALUES).gather([*range(1, t.height), 0])),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_payload_is_refuted(name: str, drawn: Path, tmp_path: Path) -> None:
    out = beside_master(drawn, tmp_path)
    with_records(out, CHANGES[name])
    assert failures(out) == {"payload_as_drawn"}


def beside_master(drawn: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(drawn, tmp_path / "copy"))


def with_records(out: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """Change the records' payload in place, under a manifest that fits."""
    again = changed(out, out.with_name("again"), RECORDS, change)
    shutil.rmtree(out)
    again.rename(out)


@pytest.mark.parametrize("reason", ["nobody can know", "", None])
def test_another_reason_is_refuted(reason: Any, drawn: Path, tmp_path: Path) -> None:
    out = beside_master(drawn, tmp_path)
    file = out / "share/release.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    manifest["parameters"] |= {"membership_is_secret": reason}
    if reason is None:
        del manifest["parameters"]["membership_is_secret"]
    file.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    restate(out)
    assert ({"reason_as_given"} if reason != "" else {"parameters"}) <= failures(out)


def test_damaged_custody_of_the_drawing_is_refuted(drawn: Path, tmp_path: Path) -> None:
    out = beside_master(drawn, tmp_path)
    (out / "custody/data/drawing.parquet").write_bytes(b"PAR1")
    restate(out)
    assert "reason_as_given" in failures(out)


def test_a_cohort_of_an_earlier_version_says_what_was_not_seen(drawn: Path, tmp_path: Path) -> None:
    out = beside_master(drawn, tmp_path)
    (out / "custody/data/drawing.parquet").unlink()
    (out / "custody/digests.json").unlink()
    found = lw.verify(out)
    assert found.passed and any("payload that joined" in each for each in found.unchecked)
    assert not any("payload that joined" in each for each in lw.verify(drawn).unchecked)


def test_the_masters_place_may_be_corrected(drawn: Path, tmp_path: Path) -> None:
    """It is no evidence: the master is known by its digest."""
    out = beside_master(drawn, tmp_path)
    note = out / "custody/master.json"
    content = json.loads(note.read_text(encoding="utf-8"))
    shutil.copytree(content["path"], tmp_path / "moved")
    note.write_text(json.dumps({**content, "path": "../moved"}), encoding="utf-8")
    assert lw.verify(out).passed


def test_a_cohort_without_payload_or_reason_is_verified(tmp_path: Path) -> None:
    cohort = cohort_of_events()
    lw.protect(cohort, lw.Visits(k=3), tmp_path / "master", seed=7)
    everybody = cohort.require_events()["patient"].unique()
    out = lw.extract(tmp_path / "master", everybody, tmp_path / "out", seed=7).path
    found = lw.verify(out)
    assert found.passed and found["reason_as_given"].passed and found["payload_as_drawn"].passed
    assert pl.read_parquet(out / "custody/data/drawing.parquet").row(0) == (None, None)
