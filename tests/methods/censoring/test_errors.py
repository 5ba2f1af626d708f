"""What is refused, and what the message says: counts and rows, never a patient or a code of theirs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from tests.methods.censoring.frames import CAPS, POPULATION, SAMPLE, cohort, released, table

from leeward.engine import LocalEngine
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.censoring import Censoring
from leeward.randomness import Randomness


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": 1}, "`k` must be a whole number of at least 2; got 1"),
        ({"k": 2, "cap": 0}, "`cap` must be a whole number from 1 to 65,535; got 0"),
        ({"k": 2, "caps": {250: 1}}, "`caps` must have keys of text, quoted"),
        ({"k": 2, "caps": {"250": -1}}, "`caps.250` must be a whole number from 0"),
        ({"k": 2, "scope": "both"}, "`scope` must be `global`, `raise`, `record` or `groups`; got `both`"),
    ],
)
def test_parameters(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Censoring(**wrong)


def test_a_population_is_needed() -> None:
    with pytest.raises(BadInput, match="needs the population"):
        Censoring(k=2, scope="global").protect(cohort(SAMPLE))


@pytest.mark.parametrize("engine", [None, "streamed"])
def test_k_above_the_population(engine, tmp_path) -> None:
    population: Any = cohort(POPULATION)
    if engine:
        population.events.with_columns(pl.col("code").cast(pl.String)).write_parquet(tmp_path / "p.parquet")
        population = tmp_path / "p.parquet"
    with pytest.raises(GuaranteeUnreachable, match=r"`k` is 8 and the population has 7 people"):
        Censoring(k=8, scope="global").protect(cohort(SAMPLE), LocalEngine(1), population=population)


def test_records_that_no_population_record_contains_are_named_by_their_rows() -> None:
    sample = [["250"], ["401", "724"], ["250", "250", "272"], ["999"]]
    with pytest.raises(BadInput, match=r"2 records of the sample .* \(beginning in rows 2, 7\)") as raised:
        Censoring(k=2, scope="global").protect(cohort(sample, "sample.csv"), population=cohort(POPULATION))
    assert "sample.csv" in str(raised.value)
    for secret in ("999", "724", "401"):
        assert secret not in str(raised.value)


def test_codes_without_a_cap_are_censored_with_a_notice() -> None:
    method = Censoring(k=2, scope="global", caps={"250": 2})
    anonymized = method.protect(cohort(SAMPLE), randomness=Randomness.of(1), population=cohort(POPULATION))
    assert released(anonymized) == [["250"], [], ["250", "250"]]
    assert any("2 codes of the sample without a cap" in notice for notice in anonymized.notices)
    assert any("1 of 3 records are released without any code" in notice for notice in anonymized.notices)


def test_cap_serves_the_codes_that_caps_does_not_name() -> None:
    method = Censoring(k=2, scope="global", caps={"250": 1}, cap=1)
    anonymized = method.protect(cohort(SAMPLE), randomness=Randomness.of(1), population=cohort(POPULATION))
    assert released(anonymized) == [["250"], ["272", "724"], ["250", "272"]]
    assert not anonymized.notices


def test_without_caps_the_sample_is_scanned() -> None:
    anonymized = Censoring(k=2, scope="global").protect(cohort(SAMPLE), population=cohort(POPULATION))
    caps = table(anonymized.custody_tables[1])
    assert dict(zip(caps["code"], caps["cap"], strict=True)) == {"250": 2, "272": 2, "724": 1}
    assert "caps" not in anonymized.parameters


def test_a_patient_twice_in_the_patients_table_of_the_population() -> None:
    patients = pl.DataFrame({"patient": [1, 2, 3, 2, 4, 5, 6, 7]})
    with pytest.raises(BadInput, match=r"1 patients more than once \(rows 2, 4\)"):
        Censoring(k=2, scope="global").protect(
            cohort(SAMPLE), population=replace(cohort(POPULATION), patients=patients)
        )


def test_a_patient_twice_under_two_spellings() -> None:
    population = cohort(POPULATION)
    assert population.events is not None
    names = pl.Series(["ann"] * 3 + [" Ann"] * 4 + ["bo"] * (population.events.height - 7))
    doubled = replace(population, events=population.events.with_columns(patient=names))
    with pytest.raises(BadInput, match=r"2 patients differ .* \(beginning in rows 1, 4\)") as raised:
        Censoring(k=2, scope="global").protect(cohort(SAMPLE), population=doubled)
    assert "ann" not in str(raised.value).lower().replace("cannot", "")


def test_the_payload_rides_along_in_the_order_of_its_records() -> None:
    sample = replace(cohort(SAMPLE), patients=pl.DataFrame({"patient": [3, 1, 2], "dna": ["GC", "CT", "AC"]}))
    anonymized = Censoring(k=2, scope="global", caps=CAPS, payload=("dna",)).protect(
        sample, population=cohort(POPULATION)
    )
    rows = dict(
        zip(table(anonymized.tables[0])["dna"], table(anonymized.tables[0])["codes"].to_list(), strict=True)
    )
    assert rows == {"CT": ["250"], "AC": ["272", "724"], "GC": ["250", "272"]}


@pytest.mark.parametrize("name", ["rna", "patient_id"])
def test_an_unknown_payload_column(name: str) -> None:
    sample = replace(cohort(SAMPLE), patients=pl.DataFrame({"patient": [1, 2, 3], "dna": ["a", "b", "c"]}))
    with pytest.raises(BadInput, match=f"no payload column '{name}' among the patients' columns: dna"):
        Censoring(k=2, scope="global", payload=(name,)).protect(sample, population=cohort(POPULATION))


def test_unlike_visit_columns_are_noticed() -> None:
    sample = cohort([["250"]], visit=pl.Series(["a"]))
    anonymized = Censoring(k=2, scope="global").protect(sample, population=cohort(POPULATION))
    assert any("visit column" in notice for notice in anonymized.notices)


def test_a_streamed_population_needs_its_columns(tmp_path) -> None:
    pl.DataFrame({"patient": [1], "icd": ["250"]}).write_parquet(tmp_path / "p.parquet")
    with pytest.raises(BadInput, match="no column 'code'"):
        Censoring(k=2, scope="global").protect(
            cohort(SAMPLE), LocalEngine(1), population=tmp_path / "p.parquet"
        )


def test_nothing_of_the_source_is_in_the_shared_parameters() -> None:
    anonymized = Censoring(k=2, scope="global", cap=2).protect(cohort(SAMPLE), population=cohort(POPULATION))
    assert anonymized.parameters == {"k": 2, "scope": "global", "cap": 2}
    assert anonymized.guarantee.k == 2
    assert "full records" in " ".join(anonymized.guarantee.not_protected)
