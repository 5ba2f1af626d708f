"""Linked tables: k in every joined view (docs/methods/linked.md)."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import linked as oracle

import leeward as lw
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.linked import Linked
from leeward.methods.linked.method import suppress
from leeward.methods.linked.parameters import VIEWS
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

EIGHT = """
p1 F 2020-03-01 250 2020-03-31 401
p2 F 2019-05-10 250 2019-06-09 401
p3 F 2021-01-05 250
p4 F 2020-07-01 401 2020-07-31 401
p5 M 2020-02-01 401 2020-03-02 250
p6 M 2018-02-01 401 2018-03-03 401
p7 M 2020-09-09 401 2020-10-09 585
p8 M 2020-01-01 585 2020-01-31 401
"""


def cohort_of(rows: list[tuple[str, dict[str, Any], list[tuple[str, str]]]]) -> Cohort:
    """(patient, demographics, [(date, code)]); each date is a visit."""
    flat = [(patient, dt.date.fromisoformat(date), code) for patient, _, held in rows for date, code in held]
    events = pl.DataFrame(
        {
            "patient": [patient for patient, _, _ in flat],
            "date": [date for _, date, _ in flat],
            "code": pl.Series(
                [code for *_, code in flat], dtype=pl.Enum(sorted({code for *_, code in flat}))
            ),
            "row": pl.Series(range(1, len(flat) + 1), dtype=pl.UInt32),
        }
    )
    return Cohort(events, pl.DataFrame([{"patient": p, **values} for p, values, _ in rows]), name="made up")


def eight_patients() -> Cohort:
    rows = []
    for line in EIGHT.strip().splitlines():
        patient, sex, *held = line.split()
        rows.append((patient, {"sex": sex}, list(zip(held[::2], held[1::2], strict=True))))
    return cohort_of(rows)


def people(n: int = 80, seed: int = 1) -> Cohort:
    """Patients with a sex, an age, and one to four visits of one or two of eight codes."""
    draw = np.random.Generator(np.random.Philox(seed))
    rows = []
    for i in range(n):
        first = dt.date(2020, 1, 1) + dt.timedelta(int(draw.integers(0, 700)))
        days = [0, *draw.integers(1, 200, int(draw.integers(0, 4))).tolist()]
        held = [
            ((first + dt.timedelta(day)).isoformat(), f"c{int(draw.integers(0, 8) * draw.random())}")
            for day in days
            for _ in range(int(draw.integers(1, 3)))
        ]
        rows.append(
            (f"p{i:03}", {"sex": "FM"[int(draw.integers(0, 2))], "age": int(draw.integers(20, 90))}, held)
        )
    return cohort_of(rows)


def protect(cohort: Cohort, **parameters: Any) -> dict[str, pl.DataFrame]:
    return tables(Linked(**{"k": 2, **parameters}).protect(cohort, randomness=Randomness.of(5)))


def tables(made: Anonymized) -> dict[str, pl.DataFrame]:
    return {
        t.path.partition(".")[0]: pl.DataFrame(pa.Table.from_batches(t.batches(), t.schema))
        for t in made.tables
    }


def shown(found: dict[str, pl.DataFrame]) -> list[tuple[str, int, str]]:
    """Sex, day, code of every released event, sorted."""
    joined = (
        found["events"].join(found["visits"], on=["record", "visit"]).join(found["patients"], on="record")
    )
    return sorted(joined.select("sex", "day", "code").rows())


SEX = {"demographics": ("sex",), "keep": {"sex": "exact"}}


def test_worked_example_of_eight_patients_unique_only_after_the_join() -> None:
    """Each table has k = 2 alone; p5 is the only man with 250, and that is taken out."""
    cohort = eight_patients()
    counts = cohort.require_events().group_by("code").agg(pl.col("patient").n_unique())
    assert counts["patient"].min() == 2
    found = protect(cohort, **SEX)
    joined = found["events"].join(found["patients"], on="record")
    assert joined.filter(pl.col("sex") == "M")["code"].unique().sort().to_list() == ["401", "585"]
    assert joined.filter(pl.col("sex") == "F")["code"].unique().sort().to_list() == ["250", "401"]
    bare = protect(cohort)
    assert bare["events"].height == found["events"].height + 1


def test_worked_example_of_eight_patients_with_days() -> None:
    """(M, 30, 585) and (M, 0, 585) are each one patient's: then 585 is left at no day."""
    found = protect(eight_patients(), **SEX, views=("patients+visits+events",), days=30)
    assert shown(found) == sorted(
        [("F", 0, "250")] * 3 + [("F", 30, "401")] * 3 + [("M", 0, "401")] * 3 + [("M", 30, "401")] * 2
    )
    assert found["visits"]["day"].unique().sort().to_list() == [0, 30]


def test_worked_example_of_eight_patients_two_codes() -> None:
    """Only p1 and p2 have 250 and 401 among the women; among the men nobody shares two codes but p7 and p8."""
    found = protect(eight_patients(), **SEX, views=("patients+events+events",))
    joined = found["events"].join(found["patients"], on="record").select("record", "sex", "code").unique()
    held = joined.group_by("record", "sex").agg(pl.col("code").sort()).select("sex", "code").rows()
    assert sorted((sex, *codes) for sex, codes in held) == [
        ("F", "250"), ("F", "250", "401"), ("F", "250", "401"), ("F", "401"),
        ("M", "401"), ("M", "401"), ("M", "401", "585"), ("M", "401", "585"),
    ]  # fmt: skip


def test_all_dates_of_a_patient_move_together() -> None:
    cohort = people()
    found = protect(cohort, views=("patients+visits",), days=1, k=2)
    made = Linked(k=2, views=("patients+visits",), days=1).protect(cohort, randomness=Randomness.of(5))
    (places,) = (t for t in made.custody_tables if t.path == "records.parquet")
    place = pl.DataFrame(pa.Table.from_batches(places.batches(), places.schema))
    patients = cohort.require_events()["patient"].unique().sort()
    dates = cohort.require_events().group_by("patient").agg(pl.col("date").unique().sort())
    own = dict(dates.rows())
    for record, days in found["visits"].group_by("record").agg("day").rows():
        true = own[patients[place["place"][record]]]
        assert set(days) <= {(each - true[0]).days for each in true}


events_of_patients = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=60
)


@given(events_of_patients, st.integers(2, 4), st.sets(st.sampled_from(VIEWS), min_size=1))
def test_suppression_is_the_oracles(rows: list[tuple[int, int, int]], k: int, views: set[str]) -> None:
    joins = Linked(k=k, views=tuple(views), days=1 if any("visits" in v for v in views) else None).joins
    events = sorted({(patient, 10 * patient + visit, visit % 2, f"c{code}") for patient, visit, code in rows})
    visits = sorted({each[:3] for each in events})
    wanted = oracle.suppress(visits, events, k, joins)
    numbers = {"record": pl.Int32, "visit": pl.Int32, "day": pl.Int64}
    frame = pl.DataFrame(events, schema={**numbers, "code": pl.String}, orient="row").with_columns(
        pl.col("code").str.slice(1).cast(pl.Int32), pl.lit(0).alias("class")
    )
    found = suppress(
        pl.DataFrame(visits, schema=numbers, orient="row").with_columns(pl.lit(0).alias("class")),
        frame,
        k,
        joins,
    )
    assert sorted(found[0].select("record", "visit", "day").rows()) == sorted(wanted[0])
    left = found[1].select("record", "visit", "day", pl.format("c{}", "code").alias("code")).rows()
    assert sorted(left) == sorted(wanted[1])
    for view in joins:
        assert all(
            len(who) >= k for who in oracle.holders(oracle.rows_of(view, wanted[1], wanted[0])).values()
        )


@pytest.mark.parametrize("recoding", ["full", "local"])
def test_levels_are_searched_and_the_release_verifies(recoding: str, tmp_path: Path) -> None:
    method = Linked(
        k=4,
        views=("patients+visits+events",),
        days=60,
        demographics=("age", "sex"),
        recoding=recoding,  # type: ignore[arg-type]
    )
    result = lw.protect(people(200), method, tmp_path / "out", seed=1)
    assert result.verification.passed and result.verification.with_source
    assert result.verification["own_rows"].passed and result.verification["views_of_k"].figures["rows"] > 10
    assert result.release.guarantee["facts"]["views"] == ["patients+visits+events"]
    assert result.release.guarantee["attacker"].startswith(
        "knows the exact age and sex of a patient and one code with"
    )
    assert len(result.measures["method"]["demographics_search"]) > 1


def test_classes_are_cut_until_none_can_be() -> None:
    found = protect(eight_patients(), k=4, demographics=("sex",), recoding="local")
    assert sorted(found["patients"]["sex"]) == ["F"] * 4 + ["M"] * 4


def test_no_table_tells_the_order_of_the_source() -> None:
    """With every patient's own code the tables' order would show at once."""
    cohort = cohort_of([(f"p{i:02}", {}, [("2020-01-01", "c1")] * 2) for i in range(40)])
    made = Linked(k=2).protect(cohort, randomness=Randomness.of(5))
    (places,) = (t for t in made.custody_tables if t.path == "records.parquet")
    place = pl.DataFrame(pa.Table.from_batches(places.batches(), places.schema))["place"].to_list()
    assert sorted(place) == list(range(40)) != place


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"views": ("patients+event",)}, "There is no table `event`. Did you mean 'events'?"),
        ({"views": ("patients",)}, "`views[1]` must be one of patients+events, patients+visits,"),
        ({"views": ()}, "`views` is empty; name at least one of"),
        ({"views": ("patients+visits",)}, "`views` has a view with visits, which needs `days`"),
        ({"days": 30}, "`days` would be released in no view; add patients+visits to `views`"),
        ({"days": 0}, "`days` must be a whole number of at least 1; got 0."),
        ({"demographics": ("sx",)}, "no column 'sx' of the patients. Did you mean 'sex'?"),
    ],
)
def test_parameters_that_do_not_fit(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as stopped:
        protect(eight_patients(), **parameters)
    assert message in str(stopped.value)


def test_views_are_named_in_any_order() -> None:
    assert Linked(k=2, views=("events+patients",)).views == ("patients+events",)


def test_days_need_dates_of_every_visit() -> None:
    cohort = eight_patients()
    events = cohort.require_events()
    dated = {"views": ("patients+visits",), "days": 7}
    without = Cohort(events.drop("date"), cohort.patients, name="made up")
    with pytest.raises(BadInput, match="made up: `days` needs dates, and none were read"):
        protect(without, **dated)
    gaps = events.with_columns(pl.when(pl.col("row") > 2).then("date"), visit="row")
    with pytest.raises(BadInput, match=r"2 visits have none \(rows 1, 2\)"):
        protect(Cohort(gaps, cohort.patients, name="made up"), **dated)


def test_a_visit_has_its_earliest_date(tmp_path: Path) -> None:
    rows = [
        (f"p{i}", {}, [("2020-01-01", "c1"), ("2020-01-11", "c1"), ("2020-01-04", "c2")]) for i in range(4)
    ]
    cohort = cohort_of(rows)
    events = cohort.require_events().with_columns(visit=pl.Series([1, 2, 2] * 4))
    cohort = Cohort(events, cohort.patients, name="made up")
    result = lw.protect(
        cohort, Linked(k=2, views=("patients+visits+events",), days=1), tmp_path / "out", seed=1
    )
    visits = pl.read_parquet(result.path / "share/data/visits.parquet")
    assert set(visits["day"]) == {0, 3} and result.verification["own_rows"].passed


def test_fewer_than_k_patients() -> None:
    with pytest.raises(GuaranteeUnreachable, match="8 patients with a code, fewer than k = 9"):
        protect(eight_patients(), k=9)


def test_report_of_joins_risk_and_cost_counted_by_hand(tmp_path: Path) -> None:
    """The worked example with demographics: of the men p5 alone has 250, p7 and p8 have 585 with 401."""
    views = ("patients+visits+events",)
    method = Linked(k=2, views=views, days=30, demographics=("sex",), keep={"sex": "exact"})
    result = lw.protect(eight_patients(), method, tmp_path / "out", seed=1)
    found = {each["view"]: each for each in result.measures["views"]["views"]}
    assert list(found) == ["patients+events", "patients+visits", "patients+visits+events"]
    # patients and codes: p1 p2 250 401, p3 250, p4 401, p5 401 250, p6 401, p7 p8 401 585
    assert (found["patients+events"]["rows"], found["patients+events"]["at_risk"]) == (13, 1)
    assert found["patients+visits"]["at_risk"] == 0 and found["patients+visits"]["lost"] == 0
    # alone: p4 (0, 401), p5 (30, 250), p7 (30, 585), p8 (0, 585)
    dated = found["patients+visits+events"]
    assert (dated["rows"], dated["at_risk"], dated["alone"], dated["after"]) == (15, 4, 4, 0)
    assert dated["lost"] == result.measures["views"]["lost"] == pytest.approx(4 / 15)
    assert found["patients+events"]["lost"] == pytest.approx(1 / 15)
    # without demographics: (30, 250), (30, 585), (0, 585)
    assert result.measures["views"]["lost_without"] == pytest.approx(3 / 15)
    demographics = result.measures["demographics"]
    assert demographics["outside_bounds"] == 0 and demographics["after"]["below_k"] == 0
    page = result.report.read_text(encoding="utf-8")
    for words in (
        "Risk before and after, by join",
        "What it cost, by join",
        "Demographics and codes together",
    ):
        assert words in page
    assert "knows the exact sex of a patient and one code with its day" in page
    assert [each.what for each in result.summary.costs][1] == "of the events are suppressed"
    assert result.measures["kept"]["pairs"] == 13


@pytest.mark.parametrize(("released", "lost", "told"), [(90, 0, False), (40, 0, True), (74, 9, True)])
def test_a_release_of_few_codes_says_that_little_is_left(released: int, lost: int, told: bool) -> None:
    """Three quarters of the pairs may be those of the most frequent code of ten."""
    from leeward.methods.linked.report import costs

    measures = {"kept": {"pairs": 100, "released": released, "error": 0.5, "codes": 10, "codes_lost": lost}}
    said = costs(None, measures).little_left  # type: ignore[arg-type]  # the figures alone are asked for
    assert bool(said) == told and (
        not told or f"{10 - lost} of 10 codes are left, and {released}.0 %" in said
    )
