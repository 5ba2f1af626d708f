"""Synthetic claims: long visits, codes that recur, a rare tail, and the same file for the same seed."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from leeward import BadInput
from leeward.cohort import read
from leeward.synthetic import write_claims
from leeward.vocabulary.icd import ICD9CM

DIAGNOSES = [f"diag_{i}" for i in range(1, 11)]


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    file = tmp_path_factory.mktemp("claims") / "claims.parquet"
    assert write_claims(file, 12_000, seed=1) == pl.read_parquet(file).height
    return pl.read_parquet(file)


def long(claims: pl.DataFrame) -> pl.DataFrame:
    return claims.unpivot(index=["patient", "claim"], on=DIAGNOSES, value_name="code").drop_nulls("code")


def test_the_shape_is_that_of_inpatient_claims(claims: pl.DataFrame) -> None:
    rows = long(claims)
    patients = claims["patient"].n_unique()
    assert patients == 12_000
    assert claims.height / patients == pytest.approx(1.8, abs=0.1)
    assert rows.height / claims.height == pytest.approx(8.5, abs=0.2)
    assert 12.5 < rows.select("patient", "code").unique().height / patients < 14.5
    support = rows.select("patient", "code").unique()["code"].value_counts()["count"]
    assert len(support) > 3_500
    assert (support < 5).mean() > 0.4
    assert 0.25 < support.max() / patients < 0.6


def test_no_claim_has_a_code_twice_and_none_has_a_gap(claims: pl.DataFrame) -> None:
    rows = long(claims)
    assert rows.height == rows.unique(["claim", "code"]).height
    filled = claims.select(pl.concat_list(pl.col(DIAGNOSES).is_not_null()).alias("filled"))
    assert filled["filled"].list.eval(pl.element().cast(pl.Int8).diff().max()).list.first().max() <= 0
    assert claims["diag_1"].null_count() == 0


def recurring(rows: pl.DataFrame) -> int:
    """Patients' codes that two or more of their claims have, of codes that few patients have."""
    rare = rows.filter(pl.col("patient").n_unique().over("code") < 60)
    return rare.group_by("patient", "code").agg(pl.col("claim").n_unique()).filter(pl.col("claim") > 1).height


def test_codes_recur_in_later_claims_more_than_by_chance(claims: pl.DataFrame) -> None:
    rows = long(claims)
    assert recurring(rows) > 300
    assert recurring(rows) > 3 * recurring(rows.with_columns(pl.col("code").shuffle(seed=3)))


def test_comorbidity_follows_chapters(claims: pl.DataFrame) -> None:
    rows = long(claims).with_columns(
        chapter=pl.col("code").map_elements(lambda code: str(ICD9CM.level(code, 3)), return_dtype=pl.String)
    )
    within = rows.group_by("claim").agg(pl.col("chapter").n_unique() / pl.len())["chapter"].mean()
    mixed = rows.with_columns(pl.col("chapter").shuffle(seed=1))
    apart = mixed.group_by("claim").agg(pl.col("chapter").n_unique() / pl.len())["chapter"].mean()
    assert within < 0.97 * apart  # type: ignore[operator]  # both have rows


def test_claims_are_dated_in_order_and_ages_fit(claims: pl.DataFrame) -> None:
    ordered = claims.select((pl.col("date").diff() >= pl.duration(days=0)).over("patient").all())
    assert ordered.item()
    assert claims["age"].min() >= 25  # type: ignore[operator]  # there are rows
    assert claims["age"].max() <= 99  # type: ignore[operator]


def test_the_seed_decides(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_claims(tmp_path / f"{name}.csv", 300, 500, seed)
    a, b, c = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_the_reader_takes_it_in_wide_form(tmp_path: Path) -> None:
    file = tmp_path / "claims.csv.gz"
    write_claims(file, 200, 500, seed=4)
    cohort = read(file, columns={"patient": "patient", "code": DIAGNOSES, "visit": "claim", "date": "date"})
    assert len(cohort.code_sets()) == 200


@pytest.mark.parametrize(
    ("patients", "codes", "name"),
    [(0, 500, "a.csv"), (5, 99, "a.csv"), (5, 500, "a.txt"), (5, 500, "no/a.csv")],
)
def test_bad_parameters(tmp_path: Path, patients: int, codes: int, name: str) -> None:
    with pytest.raises(BadInput):
        write_claims(tmp_path / name, patients, codes)
    assert list(tmp_path.iterdir()) == []
