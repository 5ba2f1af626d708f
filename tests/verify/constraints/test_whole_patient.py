"""Generalized records with demographics, broken one way a test: classes, labels, records, codes, source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.forging import by_method
from tests.methods.disassociation.test_whole_patient import people
from tests.verify.disassociation.test_whole_patient import broken as broken_release
from tests.verify.disassociation.test_whole_patient import change, copy_of, exchange_sexes, source_of

from leeward.methods.constraints import Constraints
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Source, verify

K = 4
Frame = pl.DataFrame


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    cohort = people(260, seed=5)
    policy = tmp_path_factory.mktemp("policy") / "policy.txt"
    policy.write_text("c05,c06,c07\nc08,c09,c10,c11\n")
    method = Constraints(
        k=K, m=2, policy=f"file:{policy}", demographics=("age", "sex"), keep={"age": 20, "sex": "exact"}
    )
    out = tmp_path_factory.mktemp("whole") / "out"
    return write(method.protect(cohort, randomness=Randomness.of(3)), out), source_of(cohort)


@pytest.fixture
def broken(made: tuple[Path, Source], tmp_path: Path) -> Callable[..., set[str]]:
    """The failed checks of a copy of which a file was changed."""

    def found(name: str, changed: Callable[[Frame], Frame], *, beside: bool = False) -> set[str]:
        return broken_release(made, tmp_path / f"{name}-{beside}", name, changed, beside=beside)

    return found


def test_records_joined_to_the_wrong_class(made: tuple[Path, Source], tmp_path: Path) -> None:
    """Two records of different classes change their labels: the files agree, the source does not."""
    out = copy_of(made[0], tmp_path / "broken")
    records = pl.read_parquet(out / "share/data/records.parquet")
    held: dict[tuple[str, str], set[str]] = {}
    for row in records.rows(named=True):
        held.setdefault((row["age"], row["sex"]), set()).update(row["codes"])
    one, other = next(
        (a, b)
        for a in records.filter(sex="F").rows(named=True)
        for b in records.filter(sex="M").rows(named=True)
        if a["codes"] != b["codes"]
        and set(a["codes"]) <= held[b["age"], b["sex"]]
        and set(b["codes"]) <= held[a["age"], a["sex"]]
    )
    label = pl.col("record")

    def exchange(table: Frame) -> Frame:
        return table.with_columns(
            pl.when(label == one["record"]).then(pl.lit(other[n]))
            .when(label == other["record"]).then(pl.lit(one[n])).otherwise(pl.col(n)).alias(n)
            for n in ("age", "sex")
        )  # fmt: skip

    change(out, "records.parquet", exchange)
    assert "records_of_patients" in by_method(verify(out, made[1]))


def test_a_label_of_another_class_in_a_record(made: tuple[Path, Source], tmp_path: Path) -> None:
    out = copy_of(made[0], tmp_path / "broken")
    codes = pl.read_parquet(out / "share/data/codes.parquet")
    kept = codes.filter(~pl.col("suppressed"))
    number = kept["class"][0]
    own = set(kept.filter(pl.col("class") == number)["code"])
    foreign = next(code for code in kept["code"] if code not in own)
    classes = pl.read_parquet(out / "share/data/classes.parquet")
    row = classes.filter(pl.col("class") == number).row(0, named=True)
    first = (pl.col("age") == row["age"]) & (pl.col("sex") == row["sex"])

    def forge(table: Frame) -> Frame:
        at = table.filter(first)["record"][0]
        return table.with_columns(
            codes=pl.when(pl.col("record") == at).then(pl.lit([foreign])).otherwise(pl.col("codes"))
        )

    change(out, "records.parquet", forge)
    assert "labels_are_listed" in by_method(verify(out))


def test_a_rare_pair_in_one_class(broken: Callable[..., set[str]]) -> None:
    """All but k - 1 records of a class that hold two labels lose one of them."""

    def thin(table: Frame) -> Frame:
        pairs = table.filter(pl.col("codes").list.len() > 1)
        age, sex, codes = pairs.select("age", "sex", "codes").row(0)
        held = pl.col("codes").list.contains(codes[0]) & pl.col("codes").list.contains(codes[1])
        holders = table.filter(held & (pl.col("age") == age) & (pl.col("sex") == sex))["record"]
        losing = pl.col("record").is_in(holders.to_list()[K - 1 :])
        return table.with_columns(
            codes=pl.when(losing)
            .then(pl.col("codes").list.set_difference([codes[0]]).list.sort())
            .otherwise(pl.col("codes"))
        )

    assert "sets_of_2" in broken("records.parquet", thin)


def test_a_class_that_names_fewer_codes(broken: Callable[..., set[str]]) -> None:
    """Only the suppressed codes that occur in the class: that tells which do."""

    def fewer(table: Frame) -> Frame:
        first = (pl.col("class") == 0) & pl.col("suppressed")
        gone = table.filter(first)["code"][0]
        return table.filter(~(first & (pl.col("code") == gone)))

    assert broken("codes.parquet", fewer) == {"class_codes"}


def test_codes_of_an_unknown_class(broken: Callable[..., set[str]]) -> None:
    assert "class_codes" in broken("codes.parquet", lambda t: t.with_columns(pl.col("class") + 50))


def test_records_in_the_order_of_the_source(made: tuple[Path, Source], tmp_path: Path) -> None:
    """The custodian's own knowledge of classes gives each patient's record; these are then numbered by patient."""
    out = copy_of(made[0], tmp_path / "broken")
    data = out / "share/data"
    codes, classes = pl.read_parquet(data / "codes.parquet"), pl.read_parquet(data / "classes.parquet")
    label = (
        codes.filter(~pl.col("suppressed"))
        .explode("members", empty_as_null=True)
        .select("class", "members", label="code")
    )
    of_patient = pl.read_parquet(out / "custody/data/class_of_patient.parquet")
    own = (
        made[1].events.with_columns(pl.col("code").cast(pl.String)).join(of_patient, on="patient")
        .join(label, left_on=["class", "code"], right_on=["class", "members"], how="left")
        .group_by("patient", "class").agg(pl.col("label").drop_nulls().unique().sort().alias("codes"))
        .join(classes, on="class").select("patient", "age", "sex", key=pl.col("codes").list.join("|"))
        .unique(["age", "sex", "key"], keep="none")
    )  # fmt: skip

    def by_patient(table: Frame) -> Frame:
        keyed = table.with_columns(key=pl.col("codes").list.join("|"))
        rows = keyed.join(own, on=["age", "sex", "key"], how="left").sort("patient", nulls_last=True)
        return rows.select(*table.columns).with_columns(record=pl.int_range(pl.len(), dtype=pl.Int64))

    change(out, "records.parquet", by_patient)
    assert by_method(verify(out, made[1])) == {"order_of_records"}


def test_exchanged_labels_are_found_beside_the_source(made: tuple[Path, Source], tmp_path: Path) -> None:
    """Women are published as men and men as women, everywhere: only the source can tell."""
    out = copy_of(made[0], tmp_path / "broken")
    exchange_sexes(out, "codes.parquet")
    change(out, "records.parquet", lambda t: t.with_columns(sex=pl.col("sex").replace({"F": "M", "M": "F"})))
    assert by_method(verify(out)) == set()
    assert {"class_source", "records_of_patients"} <= by_method(verify(out, made[1]))


def test_candidates_of_patients_are_counted(made: tuple[Path, Source], tmp_path: Path) -> None:
    """Half of the records of a class lose all their labels: patients who had them have too few candidates."""
    out = copy_of(made[0], tmp_path / "broken")
    change(
        out,
        "records.parquet",
        lambda t: t.with_columns(
            codes=pl.when(pl.col("record") % 12 > 0)
            .then(pl.lit([], dtype=pl.List(pl.String)))
            .otherwise(pl.col("codes"))
        ),
    )
    assert {"candidates_of_patients", "records_of_patients"} <= by_method(verify(out, made[1]))


def test_a_source_with_a_code_that_the_release_does_not_name(made: tuple[Path, Source]) -> None:
    events = made[1].events.with_columns(pl.col("code").cast(pl.String))
    more = pl.concat([events, events.head(1).with_columns(code=pl.lit("new"))])
    assert "every_code_accounted_for" in by_method(verify(made[0], Source(more, made[1].patients)))
    fewer = events.filter(pl.col("code") != "c13")
    found = by_method(verify(made[0], Source(fewer, made[1].patients)))
    assert "no_other_codes" in found
