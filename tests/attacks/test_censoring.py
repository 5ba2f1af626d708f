"""k-map: somebody has every record of the population and share/, and looks for the people whom a record can be of.

The attacker does not know who is in the sample (the guarantee's limit), and reads a record as a lower bound.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from tests.laws.cases import cohort_of_events, events, sample

import leeward as lw


def people() -> list[Counter[str]]:
    """The codes of each person of the population, each with its number of mentions (distinct visits)."""
    mentions = events().unique(["patient", "visit", "code"]).group_by("patient").agg("code")["code"].to_list()
    return [Counter(codes) for codes in mentions]


def candidates(record: list[str], population: list[Counter[str]]) -> int:
    wanted = Counter(record)
    return sum(all(person[code] >= count for code, count in wanted.items()) for person in population)


@pytest.mark.parametrize(
    "parameters",
    [{"cap": 2}, {"cap": 3}, *({"cap": 3, "scope": scope} for scope in ("global", "raise", "record"))],
    ids=str,
)
def test_every_record_has_k_candidates(parameters: dict[str, object], tmp_path: Path) -> None:
    method = lw.Censoring(k=4, **parameters)  # type: ignore[arg-type]  # parameters by name
    done = lw.protect(sample(), method, tmp_path / "out", population=cohort_of_events(), seed=1)
    records = pl.read_parquet(done.release.share / "data/records.parquet")["codes"].to_list()
    assert min(candidates(record, people()) for record in records) >= 4
    assert any(records)  # something is released at all


def test_the_same_attack_singles_out_people_in_the_uncensored_sample() -> None:
    population = people()
    alone = sum(candidates(list(person.elements()), population) == 1 for person in population)
    assert alone > len(population) / 2
