"""Demographics and codes in one release (docs/methods/whole-patient.md)."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.attacks.whole_patient import read as read_as_attacker
from tests.spark_fixture import spark_engine  # noqa: F401  # a fixture

import leeward as lw
from leeward.cohort.cohort import Cohort
from leeward.engine import Engine
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.disassociation import Disassociation
from leeward.randomness import Randomness
from leeward.release import write
from leeward.release.content import Anonymized

TEN = """
62 F 250 401 428
64 F 250 401
67 F 250 401 585
63 M 401 414 428
68 M 401 414
70 M 250 401 414
74 M 250 428
78 M 250 401
45 F 250 493
52 F 401 493 585
"""
PARAMETERS = {
    "k": 3,
    "m": 2,
    "attacker": "operation",
    "demographics": ("age", "sex"),
    "keep": {"age": 20, "sex": "exact"},
}


def cohort_of(people: list[tuple[dict[str, Any], tuple[str, ...]]]) -> Cohort:
    rows = [(patient, code) for patient, (_, codes) in enumerate(people) for code in codes]
    domain = sorted({code for _, code in rows})
    events = pl.DataFrame(
        {
            "patient": [patient for patient, _ in rows],
            "code": pl.Series([code for _, code in rows], dtype=pl.Enum(domain)),
            "row": pl.Series(range(1, len(rows) + 1), dtype=pl.UInt32),
        }
    )
    patients = pl.DataFrame([{"patient": p, **values} for p, (values, _) in enumerate(people)])
    return Cohort(events, patients, name="made up")


def ten_patients() -> Cohort:
    lines = [line.split() for line in TEN.strip().splitlines()]
    return cohort_of([({"age": int(age), "sex": sex}, tuple(codes)) for age, sex, *codes in lines])


def people(n: int = 90, seed: int = 1) -> Cohort:
    """Patients with an age, a sex, a post code, a result, and one to five of 14 codes."""
    draw = np.random.Generator(np.random.Philox(seed))
    weights = 1 / np.arange(1, 15)
    found = []
    for _ in range(n):
        held = draw.choice(14, int(draw.integers(1, 6)), False, weights / weights.sum())
        values = {
            "age": None if draw.random() < 0.05 else int(draw.integers(20, 90)),
            "sex": "FM"[int(draw.integers(0, 2))],
            "zip": f"44{int(draw.integers(100, 140))}",
            "result": ["low", "high", None][int(draw.integers(0, 3))],
            "test": [None, None, None, "a", "b"][(len(found) * 7 + len(found) // 5) % 5],
        }
        found.append((values, tuple(f"c{code:02}" for code in held)))
    return cohort_of(found)


def tables(made: Anonymized) -> dict[str, pl.DataFrame]:
    return {t.path: pl.DataFrame(pa.Table.from_batches(t.batches(), t.schema)) for t in made.tables}


def protect(cohort: Cohort, engine: Engine | None = None, **parameters: Any) -> Anonymized:
    method = Disassociation(**{**PARAMETERS, **parameters})
    return method.protect(cohort, engine, randomness=Randomness.of(7))


def test_worked_example_of_ten_patients_classes() -> None:
    made = protect(ten_patients())
    classes = tables(made)["classes.parquet"]
    assert classes.rows() == [(0, "40-79", "F", 5), (1, "60-79", "M", 5)]
    assert made.custody["patients_in_small_classes"] == 2
    assert made.custody["patients_taken_into_small_classes"] == 3
    assert tables(made)["hierarchies/age.csv"].rows() == [("*", ""), ("40-79", "*"), ("60-79", "40-79")]
    assert set(tables(made)["hierarchies/sex.csv"].rows()) == {("*", ""), ("F", "*"), ("M", "*")}


def test_worked_example_of_ten_patients_clusters() -> None:
    made = tables(protect(ten_patients()))
    nodes = made["nodes.parquet"]
    assert nodes.select("kind", "records", "class").sort("class").rows() == [
        ("cluster", 5, 0),
        ("cluster", 5, 1),
    ]
    shown = made["chunks.parquet"].join(nodes, on="node")
    domains = {
        (row["class"], row["chunk"], row["kind"]): sorted({c for codes in row["codes"] for c in codes})
        for row in shown.group_by("class", "chunk", "kind").agg("codes").rows(named=True)
    }
    assert domains == {
        (0, 0, "record"): ["250", "401"],
        (0, 1, "item"): ["428", "493", "585"],
        (1, 0, "record"): ["401", "414"],
        (1, 1, "record"): ["250"],
        (1, 2, "item"): ["428"],
    }


CANDIDATES = {
    "F": {
        "250": 4, "401": 4, "428": 5, "493": 5, "585": 5, "250 401": 3, "250 428": 4, "250 493": 4, "250 585": 4,
        "401 428": 4, "401 493": 4, "401 585": 4, "493 585": 5,
    },
    "M": {
        "250": 3, "401": 4, "414": 3, "428": 5, "250 401": 3, "250 414": 3, "250 428": 3, "401 414": 3, "401 428": 4,
        "414 428": 3,
    },
}  # fmt: skip


def test_worked_example_of_ten_patients_candidates_of_demographics_and_every_pair(tmp_path: Path) -> None:
    release = read_as_attacker(write(protect(ten_patients()), tmp_path / "out") / "share")
    tried = set()
    for line in TEN.strip().splitlines():
        age, sex, *codes = line.split()
        known = {"age": age, "sex": sex}
        assert release.candidates(known, frozenset()) == 5
        for size in (1, 2):
            for chosen in combinations(codes, size):
                tried.add((sex, " ".join(chosen)))
                assert release.candidates(known, frozenset(chosen)) == CANDIDATES[sex][" ".join(chosen)]
    assert len(tried) == sum(map(len, CANDIDATES.values()))


def test_a_joint_cluster_would_have_shared_428_without_classes() -> None:
    made = Disassociation(k=3, m=2, attacker="operation", max_cluster=6).protect(
        ten_patients(), randomness=Randomness.of(7)
    )
    chunks = tables(made)["chunks.parquet"]
    assert ["428"] in chunks.filter(pl.col("kind") != "item")["codes"].to_list()


def test_the_release_verifies_and_says_what_it_is(tmp_path: Path) -> None:
    result = lw.protect(people(), Disassociation(**PARAMETERS, payload=("result",)), tmp_path / "out", seed=3)
    guarantee = result.release.guarantee
    assert result.verification.passed and result.verification.with_source
    assert guarantee["facts"]["demographics"] == ["age", "sex"]
    assert guarantee["facts"]["released_as_is"] == ["result"]
    assert guarantee["attacker"].startswith("knows the exact age and sex of a patient and up to 2")
    assert "(result)" in " ".join(guarantee["not_protected"])
    assert result.release.parameters["keep"] == {"age": 20, "sex": "exact"}
    notices = " ".join(each["message"] for each in result.measures["notices"])
    assert "have no value of `age`: a category of their own" in notices
    assert lw.verify(result.path / "share").passed


def test_payload_is_shuffled_inside_clusters_and_complete() -> None:
    cohort = people()
    made = tables(protect(cohort, payload=("result", "zip")))
    payload, nodes = made["payload.parquet"], made["nodes.parquet"]
    counts = payload.group_by("node", "column").len().join(nodes, on="node")
    assert (counts["len"] == counts["records"]).all() and set(counts["kind"]) == {"cluster"}
    assert cohort.patients is not None
    for name in ("result", "zip"):
        shown = payload.filter(pl.col("column") == name)["value"]
        assert sorted(shown.fill_null("")) == sorted(cohort.patients[name].fill_null(""))


@pytest.mark.parametrize("small", ["merge", "suppress", "drop"])
@pytest.mark.parametrize("k", [2, 4])
def test_small_classes_every_way(small: str, k: int, tmp_path: Path) -> None:
    names = ("age", "sex", "zip")
    keep = {"age": 10, "sex": "exact", "zip": 4}
    cohort = people(240)
    result = lw.protect(
        cohort,
        Disassociation(k=k, m=2, demographics=names, keep=keep, small=small),  # type: ignore[arg-type]
        tmp_path / "out",
        seed=1,
    )
    classes = pl.read_parquet(result.path / "share/data/classes.parquet")
    assert classes["records"].min() >= k and classes["records"].sum() == result.release.records  # type: ignore[operator]
    left_out = result.measures["method"]["patients_left_out"]
    assert result.release.records + left_out == 240 and (left_out > 0) is (small == "drop")
    if small == "suppress":
        assert ("*", "*", "*") in classes.select(names).rows()


@pytest.mark.parametrize("attacker", ["counts", "rules"])
def test_threads_and_spark_change_nothing(attacker: str, spark_engine: Engine) -> None:  # noqa: F811
    from leeward.engine import make

    cohort = people(160)
    parameters = {"attacker": attacker, "payload": ("result",), "reconstructions": 1}
    first = protect(cohort, make("local", threads=1), **parameters)
    for engine in (make("local", threads=3), spark_engine):
        again = protect(cohort, engine, **parameters)
        assert [t.path for t in again.tables] == [t.path for t in first.tables]
        for one, other in zip(first.tables, again.tables, strict=True):
            assert list(one.batches()) == list(other.batches()), one.path


def test_sensitive_codes_stay_rare_in_every_cluster() -> None:
    made = protect(people(120), sensitive=("c01",), diversity=2)
    assert {"clusters_merged_for_diversity", "suppressed_occurrences"} <= set(made.custody)
    chunks = tables(made)["chunks.parquet"].explode("codes", empty_as_null=False)
    assert set(chunks.filter(pl.col("codes") == "c01")["kind"]) <= {"item"}


def test_one_class_is_the_release_without_demographics() -> None:
    cohort = people()
    whole = protect(cohort, keep={"age": "all", "sex": "all"})
    bare = Disassociation(k=3, m=2, attacker="operation").protect(cohort, randomness=Randomness.of(7))
    assert tables(whole)["classes.parquet"].rows() == [(0, "*", "*", 90)]
    assert tables(whole)["chunks.parquet"].equals(tables(bare)["chunks.parquet"])
    assert tables(whole)["nodes.parquet"].drop("class").equals(tables(bare)["nodes.parquet"])


def identified() -> Cohort:
    cohort = people(40)
    assert cohort.patients is not None
    return Cohort(cohort.events, cohort.patients.with_columns(mrn=pl.int_range(pl.len()).cast(pl.String)))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"demographics": ("age", "mrn"), "keep": None}, "`mrn` is an identifier: 40 of 40 patients"),
        (
            {"demographics": ("age", "six"), "keep": None},
            "no column 'six' of the patients. Did you mean 'sex'",
        ),
        ({"demographics": ("age", "age"), "keep": None}, "names a column twice"),
        ({"keep": {"zip": 4}}, "names `zip`, which is not in `demographics`"),
        ({"keep": {"age": 7}}, "`keep.age`: keep 1, 5, 10, 20 or 40 years"),
        ({"keep": {"sex": 1}}, "`keep.sex`: this column has no hierarchy"),
        ({"keep": {"age": "decades"}}, "must be a whole number, `exact` or `all`"),
        ({"keep": {"age": 0}}, "at least 1"),
        ({"payload": ("sex",)}, "in `demographics` and in `payload`"),
        ({"demographics": (), "keep": None, "payload": ("sex",)}, "`payload` needs `demographics`"),
        (
            {"sensitive_columns": {"sex": 2}},
            "`sex` is in `sensitive_columns` and in `demographics` or `payload`",
        ),
        (
            {"sensitive_columns": {"zip": 1}},
            "`sensitive_columns.zip` must be a whole number of at least 2; got 1.",
        ),
        (
            {"demographics": (), "keep": None, "sensitive_columns": {"sex": 2}},
            "`sensitive_columns` needs `demographics`",
        ),
        ({"sensitive_columns": {"hvi": 2}}, "no column 'hvi' of the patients"),
        ({"partitions": 4}, "leave `partitions` out"),
        ({"hierarchies": {"sex": "nowhere.csv"}}, "neither intervals, prefix, exact nor a file"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:30],
)
def test_demographics_that_cannot_be_released(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as stopped:
        protect(identified(), **parameters)
    assert message in str(stopped.value)


def test_a_sensitive_column_is_counted_by_class_and_rare_in_each(tmp_path: Path) -> None:
    cohort = people(240)
    method = Disassociation(**PARAMETERS, sensitive_columns={"test": 3})
    result = lw.protect(cohort, method, tmp_path / "out", seed=3)
    counts = pl.read_parquet(result.path / "share/data/sensitive.parquet")
    classes = pl.read_parquet(result.path / "share/data/classes.parquet")
    sums = counts.group_by("class").agg(pl.col("records").sum()).sort("class")
    assert sums["records"].to_list() == classes["records"].to_list()
    named = counts.drop_nulls("value").join(classes, on="class")
    assert (named["records"] * 3 <= named["records_right"]).all()
    bare = lw.protect(cohort, Disassociation(**PARAMETERS), tmp_path / "bare", seed=3)
    joined = result.measures["method"]["classes_joined_for_diversity"]
    assert joined == bare.measures["method"]["classes"] - classes.height
    assert result.verification.passed and result.verification["sensitive_source"].passed
    assert result.release.guarantee["facts"]["diversity"] == {"test": 3}
    assert "(test)" in result.release.guarantee["not_protected"][-1]
    assert "test L = 3" in (result.path / "share/README.md").read_text(encoding="utf-8")


def test_a_sensitive_value_of_too_many_patients_is_unreachable() -> None:
    with pytest.raises(
        GuaranteeUnreachable, match=r"`sensitive_columns.result`: \d+ of 90 patients have the same value"
    ):
        protect(people(), sensitive_columns={"result": 4})


def test_fewer_than_k_patients_and_nobody_left_are_unreachable() -> None:
    with pytest.raises(GuaranteeUnreachable):
        protect(ten_patients(), k=11)
    with pytest.raises(GuaranteeUnreachable, match="would leave nobody"):
        protect(ten_patients(), k=6, small="drop")


def test_a_hierarchy_that_lacks_a_value_is_refused_without_naming_it(tmp_path: Path) -> None:
    file = tmp_path / "sexes.csv"
    file.write_text("node,parent\nany,\nF,any\n")
    with pytest.raises(BadInput, match=r"sexes.csv lacks 1 of the 2 distinct values of column `sex`"):
        protect(ten_patients(), hierarchies={"sex": str(file)})


def test_a_hierarchy_of_a_file_is_verified_beside_the_source(tmp_path: Path) -> None:
    file = tmp_path / "zips.csv"
    zips = [f"44{n}" for n in range(100, 140)]
    lines = ["node,parent", "ohio,", "north,ohio", "south,ohio"]
    file.write_text("\n".join([*lines, *(f"{z},{'north' if z < '44120' else 'south'}" for z in zips)]) + "\n")
    result = lw.protect(
        people(),
        Disassociation(
            k=3, m=2, demographics=("sex", "zip"), keep={"zip": 1}, hierarchies={"zip": str(file)}
        ),
        tmp_path / "out",
    )
    classes = pl.read_parquet(result.path / "share/data/classes.parquet")
    assert set(classes["zip"]) <= {"north", "south", "ohio"}
    assert result.verification["class_source"].passed
    assert result.release.parameters["hierarchies"] == {"zip": "file"}
    assert str(tmp_path) not in (result.path / "share/release.json").read_text()


@pytest.mark.parametrize("recoding", ["full", "local"])
def test_levels_that_are_not_kept_are_searched_by_running_the_method(recoding: str, tmp_path: Path) -> None:
    method = Disassociation(k=4, m=2, demographics=("age", "sex"), recoding=recoding)  # type: ignore[arg-type]
    cohort = people(300)
    result = lw.protect(cohort, method, tmp_path / "out", seed=5)
    searched = result.measures["method"]["demographics_search"]
    assert len(searched) > 1 and result.release.parameters["recoding"] == recoding
    assert "Loss of demographics against loss of codes" in result.report.read_text(encoding="utf-8")
    figures = result.measures["method"]
    lost = figures["item_occurrences"] / figures["occurrences"]
    loss = sum(figures["demographics_loss"].values()) / 2
    best = min(point["objective"] for point in searched)
    assert loss + lost == pytest.approx(best, abs=0.08)
    again = method.protect(cohort, randomness=Randomness.of(6)).custody["demographics_search"]
    assert [p["candidate"] for p in again] == [p["candidate"] for p in searched]
