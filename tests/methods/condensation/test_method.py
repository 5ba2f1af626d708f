"""The method as a whole: its guarantee for every output, its options, and what it refuses."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cohort.sources import read_table
from tests.methods.condensation.tables import PLAN, lung, no_repetitions, small_tables  # noqa: F401  # a fixture
from tests.spark_fixture import spark_engine  # noqa: F401  # a fixture

from leeward.cohort import Cohort
from leeward.engine import make
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.condensation import Condensation
from leeward.methods.condensation import method as condensing
from leeward.methods.condensation import pilot as pilots
from leeward.methods.k_anonymity import KAnonymity
from leeward.randomness import Randomness
from leeward.release import Anonymized

ALGORITHMS = ("balanced", "improved", "condensation", "tfrp")


def table_of(made: Anonymized) -> pl.DataFrame:
    frame = pl.from_arrow(pa.Table.from_batches(list(made.tables[0].batches()), made.tables[0].schema))
    assert isinstance(frame, pl.DataFrame)
    return frame


def custody(made: Anonymized, name: str) -> pl.DataFrame:
    (table,) = [each for each in made.custody_tables if each.path == name]
    frame = pl.from_arrow(pa.Table.from_batches(list(table.batches()), table.schema))
    assert isinstance(frame, pl.DataFrame)
    return frame


def run(cohort: Cohort, seed: int = 1, **parameters: Any) -> Anonymized:
    return Condensation(**parameters).protect(cohort, randomness=Randomness.of(seed))


@settings(max_examples=25)
@given(small_tables(), st.sampled_from(ALGORITHMS), st.booleans(), st.sampled_from(["level", "impute"]))
def test_the_guarantee_holds(
    case: tuple[pl.DataFrame, int], algorithm: str, exact: bool, missing: str
) -> None:
    frame, k = case
    cohort = read_table(frame)
    extra: dict[str, Any] = {} if algorithm == "tfrp" or not exact else {"synthesis": "exact"}
    coarse = algorithm in ("balanced", "improved") and k < 10  # smaller groups take no exact times
    extra |= {"coarsen_time": True} if coarse else {}
    try:
        made = run(cohort, k=k, algorithm=algorithm, strata="event", time="time", missing=missing, **extra)
    except GuaranteeUnreachable:
        assert frame["event"].value_counts()["count"].max() < k
        return
    except BadInput as error:
        assert "looks like an identifier" in str(error)
        return
    released = table_of(made)
    assert released.schema == frame.schema
    sizes = custody(made, "source_rows.parquet")["group"].value_counts()["count"]
    assert sizes.min() >= k
    whole = frame.group_by("event").len().filter(pl.col("len") >= k)
    assert released.group_by("event").len().sort("event").equals(whole.sort("event"))
    if algorithm in ("balanced", "improved") and not coarse:
        kept = frame.join(whole, on="event", how="semi")
        for value in whole["event"]:
            assert sorted(released.filter(pl.col("event") == value)["time"]) == sorted(
                kept.filter(pl.col("event") == value)["time"]
            )
    for name in frame.columns:
        known, before = released[name].drop_nulls(), frame[name].drop_nulls()
        if name in ("site", "yes", "constant", "event"):
            assert set(known) <= set(before)
        elif len(known):
            assert before.min() <= known.min()
            assert known.max() <= before.max()
        if missing == "impute" and len(before):
            assert released[name].null_count() == 0


def test_the_same_seed_gives_the_same_rows_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condensing, "CELL_ROWS", 200)
    cohort = lung(900)
    one, two = (
        table_of(
            Condensation(k=20, plan=PLAN).protect(
                cohort, make("local", threads=threads), randomness=Randomness.of(3)
            )
        )
        for threads in (1, 3)
    )
    assert one.equals(two)
    other = table_of(run(cohort, 4, k=20, plan=PLAN))
    assert not one.equals(other)


def test_partitioning_keeps_the_guarantee(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condensing, "CELL_ROWS", 100)
    made = run(lung(900), k=20, plan=PLAN)
    assert made.custody["cells"] > 4
    assert made.custody["least"] >= 20
    assert made.records == 900


def test_spark_gives_what_local_gives(
    spark_engine: Any,  # noqa: F811  # the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(condensing, "CELL_ROWS", 100)
    cohort = lung(400)
    method = Condensation(k=20, plan=PLAN)
    local, spark = (
        table_of(method.protect(cohort, engine, randomness=Randomness.of(3)))
        for engine in (make("local"), spark_engine)
    )
    assert local.equals(spark)


def test_balanced_groups_have_k_to_2k_minus_1_rows_and_keep_their_levels() -> None:
    cohort = lung(1_000)
    made = run(cohort, k=30, plan=PLAN)
    assert cohort.patients is not None
    groups = custody(made, "source_rows.parquet")
    assert groups["group"].value_counts()["count"].max() <= 59
    before = cohort.patients[groups["row"].to_numpy() - 1].with_columns(groups["group"])
    after = table_of(made).with_columns(custody(made, "released_rows.parquet")["group"])
    # Race's rarest level is below k and withheld, so its groups may differ.
    for name in ("Stage", "Gender", "VitalStat", "SurvInterval"):
        counts = [each.group_by("group", name).len().sort("group", name) for each in (before, after)]
        assert counts[0].equals(counts[1]), name


def test_groups_stand_on_one_side_of_the_plans_logistic_models() -> None:
    """Time above the median of the deceased: no group mixes, so the outcome goes with levels as often as before."""
    cohort = lung(1_000)
    assert cohort.patients is not None
    cut = cohort.patients.filter(pl.col("VitalStat") == 0)["SurvInterval"].median()
    made = run(cohort, k=30, plan=PLAN)
    after = table_of(made).with_columns(custody(made, "released_rows.parquet")["group"])
    dead = after.filter(pl.col("VitalStat") == 0).with_columns(above=pl.col("SurvInterval") > cut)
    assert dead.group_by("group").agg(pl.col("above").n_unique())["above"].max() == 1
    frames = (cohort.patients, table_of(made))
    counts = [
        each.filter(pl.col("VitalStat") == 0)
        .group_by((pl.col("SurvInterval") > cut).alias("above"), "Stage")
        .len()
        .sort("above", "Stage")
        for each in frames
    ]
    assert counts[0].equals(counts[1])
    mixed = run(cohort, k=30, plan=PLAN[:2])
    dead = table_of(mixed).with_columns(custody(mixed, "released_rows.parquet")["group"])
    dead = dead.filter(pl.col("VitalStat") == 0).with_columns(above=pl.col("SurvInterval") > cut)
    assert dead.group_by("group").agg(pl.col("above").n_unique())["above"].max() == 2


def test_a_side_below_k_is_not_cut_off() -> None:
    frame = pl.DataFrame({"y": [1] * 7 + [0] * 53, "x": range(60)})
    plan = ({"logistic": {"response": "y", "covariates": ["x"]}},)
    for k, sides in ((7, 2), (8, 1)):
        made = run(read_table(frame), k=k, plan=plan)
        assert made.custody["cells"] == sides
        assert made.custody["least"] >= k
        assert table_of(made)["y"].sum() == 7


def test_rows_are_shuffled() -> None:
    made = run(lung(600), k=20, plan=PLAN)
    group = custody(made, "released_rows.parquet")["group"].to_numpy()
    assert (np.diff(group) >= 0).mean() < 0.7


def test_coarsened_times_are_group_medians() -> None:
    cohort = lung(600)
    made = run(cohort, k=20, plan=PLAN, coarsen_time=True)
    after = table_of(made).with_columns(custody(made, "released_rows.parquet")["group"])
    assert after.group_by("group").agg(pl.col("SurvInterval").n_unique())["SurvInterval"].max() == 1
    assert not any("Exact survival times" in text for text in made.guarantee.not_protected)
    exact = run(cohort, k=20, plan=PLAN)
    assert any("Exact survival times" in text for text in exact.guarantee.not_protected)


def test_missing_values_stay_missing_or_are_imputed() -> None:
    frame = lung(600).patients
    assert frame is not None
    gone = frame.with_columns(
        pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise(pl.col("DiagAge")).alias("DiagAge"),
        pl.when(pl.int_range(pl.len()) % 4 == 0).then(None).otherwise(pl.col("Stage")).alias("Stage"),
        pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise(pl.col("TobaccoUse")).alias("TobaccoUse"),
    )
    cohort = read_table(gone)
    kept = table_of(run(cohort, k=20, strata="VitalStat"))
    assert (kept["DiagAge"].null_count(), kept["Stage"].null_count()) == (120, 150)
    assert kept["TobaccoUse"].null_count() == 0  # one missing value, fewer than k: it would show
    filled = table_of(run(cohort, k=20, strata="VitalStat", missing="impute"))
    assert sum(filled[name].null_count() for name in filled.columns) == 0


def test_rare_levels_are_withheld_or_kept() -> None:
    frame = lung(600).patients
    assert frame is not None
    once = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("rare")).otherwise(pl.col("Stage")).alias("Stage")
    )
    cohort = read_table(once)
    made = run(cohort, k=20, strata="VitalStat")
    assert "rare" not in table_of(made)["Stage"].to_list()
    assert made.custody["withheld_levels"]["Stage"] == 1
    assert any("were withheld" in notice for notice in made.notices)
    kept = run(cohort, k=20, strata="VitalStat", rare="keep")
    assert "rare" in table_of(kept)["Stage"].to_list()
    assert any("Rare levels" in text for text in kept.guarantee.not_protected)


def test_a_stratum_below_k_is_withheld_and_reported() -> None:
    frame = pl.DataFrame({"s": ["a"] * 50 + ["b"] * 3, "x": range(53)})
    made = run(read_table(frame), k=10, strata="s")
    assert made.records == 50
    assert set(table_of(made)["s"]) == {"a"}
    assert made.custody["withheld_rows"] == 3
    assert any("3 rows in strata of fewer than 10" in notice for notice in made.notices)


def test_constant_empty_and_date_columns() -> None:
    n = 60
    start = datetime.date(2010, 1, 1)
    frame = pl.DataFrame(
        {
            "constant": ["x y"] * n,
            "empty": pl.Series([None] * n, dtype=pl.String),
            "day": [start + datetime.timedelta(days=7 * i) for i in range(n)],
            "flag": [i % 3 == 0 for i in range(n)],
        }
    )
    released = table_of(run(read_table(frame), k=10))
    assert released.schema == frame.schema
    assert released["constant"].unique().to_list() == ["x y"]
    assert released["empty"].null_count() == n
    assert released["day"].min() >= frame["day"].min()
    assert released["flag"].sum() == 20


def test_wide_tables() -> None:
    random = np.random.default_rng(1)
    frame = pl.DataFrame({f"g{i}": random.normal(size=60) for i in range(150)})
    made = run(read_table(frame), k=10)
    assert made.records == 60
    assert table_of(made).width == 150


def test_exact_synthesis_keeps_group_moments_in_the_release() -> None:
    """Continuous columns that are neither rounded nor clipped come out with the group's mean and covariance."""
    random = np.random.default_rng(1)
    frame = pl.DataFrame({name: random.normal(size=400) for name in "abc"})
    domains = {name: {"low": -1e6, "high": 1e6} for name in "abc"}
    made = run(read_table(frame, domains=domains), k=40, synthesis="exact", algorithm="improved")
    source = custody(made, "source_rows.parquet")
    before = frame[source["row"].to_numpy() - 1].to_numpy()
    after, group = table_of(made).to_numpy(), custody(made, "released_rows.parquet")["group"].to_numpy()
    for number in source["group"].unique():
        own, new = before[source["group"].to_numpy() == number], after[group == number]
        assert np.abs(own.mean(axis=0) - new.mean(axis=0)).max() < 1e-9
        assert np.abs(np.cov(own.T) - np.cov(new.T)).max() < 1e-9


def test_the_pilot_chooses_and_keeps_its_choice_in_custody() -> None:
    made = run(lung(500), k=20, plan=PLAN, algorithm="auto")
    pilot = made.custody["pilot"]
    assert len(pilot["tried"]) == 7
    assert pilot["chosen"]["algorithm"] in ("balanced", "improved", "condensation")
    assert made.parameters["algorithm"] == "auto"
    assert "pilot" not in made.parameters


def test_the_pilot_chooses_the_weight_on_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pilots, "SAMPLE_ROWS", 400)
    made = run(lung(900), k=10, plan=PLAN, weight="pilot")
    pilot = made.custody["pilot"]
    assert pilot["rows"] == 400
    assert [(each["algorithm"], each["weight"]) for each in pilot["tried"]] == [
        ("balanced", 0.3),
        ("balanced", 0.5),
        ("balanced", 0.7),
    ]
    best = min(pilot["tried"], key=lambda each: each["score"])
    assert pilot["chosen"] == {"algorithm": "balanced", "weight": best["weight"]}
    assert made.custody["weight"] == best["weight"]
    assert made.parameters["weight"] == "pilot"


def test_auto_leaves_out_what_cannot_do_what_was_asked() -> None:
    made = run(lung(400), k=20, plan=PLAN, algorithm="auto", coarsen_time=True)
    assert {each["algorithm"] for each in made.custody["pilot"]["tried"]} == {"balanced", "improved"}
    assert not any("Exact survival times" in text for text in made.guarantee.not_protected)


def test_repetitions_stay_in_custody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condensing, "REPETITIONS", 3)
    made = run(lung(300), k=20, plan=PLAN)
    assert [t.path for t in made.custody_tables if "repetitions" in t.path] == [
        "repetitions/001.parquet",
        "repetitions/002.parquet",
    ]
    assert [t.path for t in made.tables] == ["table.parquet"]
    first, second = custody(made, "repetitions/001.parquet"), custody(made, "repetitions/002.parquet")
    assert not first.equals(second)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k": 1}, "`k` must be a whole number of at least 2; got 1"),
        ({"k": 5, "weight": 1.5}, "`weight` must be a number above 0 and below 1 or `pilot`; got 1.5"),
        ({"k": 5, "algorithm": "auto"}, "give the recipient's `plan`"),
        ({"k": 5, "algorithm": "best"}, "`algorithm` must be `balanced`, `improved`"),
        ({"k": 5, "algorithm": "tfrp", "synthesis": "exact"}, "tfrp publishes centroids"),
        ({"k": 5, "algorithm": "condensation", "coarsen_time": True}, "leave it out"),
        ({"k": 5, "plan": ({"probit": {}},)}, "`plan[1]`: one of linear, logistic, cox"),
        ({"k": 5, "plan": ({"cox": {"time": "t", "covariates": ["x"]}},)}, "needs `time` and `event`"),
        (
            {"k": 5, "plan": ({"linear": {"response": "y", "covariates": ["y"]}},)},
            "an outcome and a covariate",
        ),
    ],
)
def test_parameters_are_checked(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message.replace("[", r"\[").replace("]", r"\]")):
        Condensation(**parameters)


SMALL = pl.DataFrame(
    {"t": [1, 2, 3, None] * 5, "e": [0, 1] * 10, "x": range(20), "name": [f"p{i}" for i in range(20)]}
)


@pytest.mark.parametrize(
    ("frame", "parameters", "error", "message"),
    [
        (SMALL.drop("name"), {"k": 21}, GuaranteeUnreachable, "20 rows are fewer than k = 21"),
        (SMALL, {"k": 5}, BadInput, "column 'name' is in k = 5 rows .* looks like an identifier"),
        (
            SMALL.drop("name"),
            {"k": 5, "time": "t"},
            BadInput,
            r"'t' \(time\) is missing in 5 rows \(rows 4, 8",
        ),
        (SMALL.drop("name"), {"k": 5, "time": "tt"}, BadInput, "'tt', which is not there. Did you mean 't'"),
        (SMALL, {"k": 5, "time": "name"}, BadInput, "the time 'name' must be a number"),
        (
            SMALL.drop("name"),
            {"k": 11, "strata": "e"},
            GuaranteeUnreachable,
            "no stratum of e has k = 11 rows",
        ),
        (SMALL.drop("name"), {"k": 5, "strata": "e", "time": "e"}, BadInput, "a time and a stratum"),
        (
            SMALL.drop("name"),
            {"k": 5, "plan": ({"cox": {"time": "t", "event": "e", "covariates": ["x"]}},)},
            BadInput,
            "'t', an outcome of .* is missing in 5 rows",
        ),
        (
            SMALL.drop("name", "t"),
            {"k": 5, "plan": ({"cox": {"time": "x", "event": "e", "event_value": 3, "covariates": ["x"]}},)},
            BadInput,
            "an outcome and a covariate",
        ),
        (
            SMALL.drop("name").with_columns(y=pl.lit(1)),
            {"k": 5, "plan": ({"cox": {"time": "x", "event": "e", "event_value": 3, "covariates": ["y"]}},)},
            BadInput,
            "no row has the `event_value`",
        ),
        (pl.DataFrame({"a": [[1], [2]]}), {"k": 2}, BadInput, r"column 'a' holds List"),
        (pl.DataFrame({"a": [1.0, float("inf")]}), {"k": 2}, BadInput, r"holds infinity \(row 2\)"),
    ],
)
def test_what_cannot_be_done_says_so(
    frame: pl.DataFrame, parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run(read_table(frame), **parameters)


def test_two_rows_of_one_patient_are_refused() -> None:
    frame = pl.DataFrame({"id": [1, 1, 2, 3], "x": [1, 2, 3, 4]})
    with pytest.raises(BadInput, match=r"1 patients more than once \(rows"):
        run(read_table(frame, columns={"patient": "id"}), k=2)


def test_k_anonymity_of_all_columns() -> None:
    cohort = lung(600)
    made = KAnonymity(k=20).protect(cohort, randomness=Randomness.of(1))
    released = table_of(made)
    assert released.group_by(released.columns).len()["len"].min() >= 20
    assert cohort.patients is not None
    assert released.schema == cohort.patients.schema
    some = KAnonymity(k=20, quasi_identifiers=("DiagAge", "Gender")).protect(
        cohort, randomness=Randomness.of(1)
    )
    assert table_of(some).group_by("DiagAge", "Gender").len()["len"].min() >= 20
    assert sorted(table_of(some)["SurvInterval"]) == sorted(cohort.patients["SurvInterval"])
    with pytest.raises(GuaranteeUnreachable):
        KAnonymity(k=601).protect(cohort)
    with pytest.raises(BadInput):
        KAnonymity(k=1)
