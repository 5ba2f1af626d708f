"""The same index, byte for byte, on every engine, for every cut into stretches and every order of the events."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from tests.spark_fixture import spark_engine

import leeward as lw
from leeward.cohort import Cohort
from leeward.cohort.readers import stored as reading
from leeward.engine import make
from leeward.errors import BadInput
from leeward.queries.index.build import index_cohort, index_events
from leeward.queries.language.query import parse
from leeward.queries.language.vocabulary import Terms
from leeward.randomness import Randomness
from leeward.runs import index, stored

if TYPE_CHECKING:
    from leeward.engine.spark import SparkEngine

__all__ = ["spark_engine"]

CODES = tuple(f"c{i:02d}" for i in range(30))
TERMS = Terms(CODES, parents={code: f"group {code[1]}" for code in CODES}, name="codes")


def events_of(patients: int, text: bool, seed: int = 4) -> pl.DataFrame:
    random = np.random.Generator(np.random.Philox(seed))
    rows = patients * 6
    who = random.integers(0, patients, rows)
    return pl.DataFrame(
        {
            "patient": [f"P{w:05d}" for w in who.tolist()] if text else who,
            "visit": random.integers(0, 5, rows),
            "date": [date(2020, 1, 1) + timedelta(days=int(d)) for d in random.integers(0, 400, rows)],
            "code": [CODES[int(c)] for c in (random.random(rows) ** 2 * len(CODES)).astype(int)],
            "sex": ["fm"[w % 2] for w in who.tolist()],
        }
    )


def cohort_of(events: pl.DataFrame) -> Cohort:
    people = events.select("patient", "sex").unique().sort("patient")
    codes = pl.Enum(sorted(events["code"].unique()))
    return Cohort(events=events.drop("sex").with_columns(pl.col("code").cast(codes)), patients=people)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("row", ["visit", "patient"])
def test_the_local_engine_in_stretches_equals_the_whole(tmp_path: Path, row: str, text: bool) -> None:
    events = events_of(200, text)
    index_cohort(cohort_of(events), tmp_path / "whole", terms=TERMS, row=row)
    expected = contents(tmp_path / "whole")
    for number, at_once in enumerate((500, 64, 1)):
        folder = tmp_path / f"cut{number}"
        index_events(
            events.sample(fraction=1, shuffle=True, seed=number),
            folder,
            make("local", threads=2),
            terms=TERMS,
            attributes=["sex"],
            row=row,
            patients_a_stretch=at_once,
        )
        assert contents(folder) == expected


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("parts", [1, 3, 7])
def test_a_cohort_on_the_disk_gives_the_same_bytes(tmp_path: Path, parts: int, text: bool) -> None:
    whole = cohort_of(events_of(200, text))
    index_cohort(whole, tmp_path / "whole", terms=TERMS)
    events = whole.require_events()
    bounds = events["patient"].unique().sort().gather_every(-(-200 // parts))[1:]
    part = bounds.search_sorted(events["patient"], side="right")
    files = []
    for number in range(parts):
        files.append(tmp_path / f"events-{number}.parquet")
        events.filter(pl.Series(part) == number).write_parquet(files[-1])
    stored = Cohort(files=tuple(files), patients=whole.patients)
    index_cohort(stored, tmp_path / "parts", terms=TERMS)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_what_is_larger_than_memory_is_indexed_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events_of(200, False).drop("sex").write_parquet(tmp_path / "events.parquet")
    asked: dict[str, Any] = {
        "epsilon_total": 3,
        "terms": "icd9",
        "accept_unknown": True,
        "about_patients": 200,
    }
    made = lw.index(tmp_path / "events.parquet", tmp_path / "MEMORY", **asked)
    monkeypatch.setattr(stored, "fits", lambda *size: False)
    monkeypatch.setattr(reading, "ROWS_A_FILE", 300)
    monkeypatch.setattr(reading, "SAMPLED", 1)
    cohorts = []
    monkeypatch.setattr(
        index, "store_source", lambda *of: cohorts.append(stored.store_source(*of)) or cohorts[0]
    )
    again = lw.index(tmp_path / "events.parquet", tmp_path / "OUT", new_budget="the same patients", **asked)
    assert len(cohorts[0].files) > 2
    assert again == made | {"index": str(tmp_path / "OUT")}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["MEMORY", "OUT", "events.parquet"]


def test_blanks_around_an_identifier_make_no_other_patient(tmp_path: Path) -> None:
    events = events_of(60, text=True)
    index_cohort(cohort_of(events), tmp_path / "whole", terms=TERMS)
    blanks = events.with_columns(
        patient=pl.when(pl.int_range(pl.len()) % 3 == 0)
        .then(pl.format(" {}\t", "patient"))
        .otherwise("patient")
    )
    empty = blanks.head(1).with_columns(patient=pl.lit(" "))
    index_events(
        pl.concat([blanks, empty]), tmp_path / "blanks", make("local"), terms=TERMS, attributes=["sex"]
    )
    assert contents(tmp_path / "blanks") == contents(tmp_path / "whole")


@pytest.mark.parametrize("text", [False, True])
def test_spark_gives_the_same_bytes(tmp_path: Path, spark_engine: SparkEngine, text: bool) -> None:
    events = events_of(400, text)
    local = index_cohort(cohort_of(events), tmp_path / "local", terms=TERMS).index
    events.write_parquet(tmp_path / "events.parquet")
    spark = index_events(
        tmp_path / "events.parquet",
        tmp_path / "spark",
        spark_engine,
        terms=TERMS,
        attributes=["sex"],
        patients_a_stretch=150,
    ).index
    assert contents(tmp_path / "spark") == contents(tmp_path / "local")
    query = parse("group 0 & c01", when="2020-03..2020-09", sex="f")
    assert spark.count(query) == local.count(query) > 0


def test_bounded_contributions_do_not_depend_on_the_cut(tmp_path: Path) -> None:
    events = events_of(100, False)
    common: dict[str, Any] = {"terms": TERMS, "max_rows_per_patient": 2, "randomness": Randomness.of(3)}
    index_events(events, tmp_path / "one", make("local"), **common)
    index_events(events, tmp_path / "two", make("local"), patients_a_stretch=7, **common)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_what_is_no_event_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="patient and code"):
        index_events(pl.DataFrame({"patient": [1]}), tmp_path / "x", make("local"), terms=TERMS)
    nothing = pl.DataFrame(
        {"patient": [None], "code": ["c01"]}, schema={"patient": pl.Int64, "code": pl.String}
    )
    with pytest.raises(BadInput, match="no event"):
        index_events(nothing, tmp_path / "x", make("local"), terms=TERMS)
