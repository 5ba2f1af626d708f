"""Frequent itemsets: the paper's five notes, and the vertical miner against Apriori's definition."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import counts as oracle

from leeward.errors import BadInput
from leeward.queries.index.build import index_table
from leeward.queries.index.counts import Index

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from index_itemsets import Itemsets, frequent_itemsets, patients_in_both, rows_in_both, words_of


@pytest.fixture
def five(tmp_path: Path) -> Index:
    return index_table(pl.DataFrame(oracle.FIVE_NOTES), tmp_path / "index").index


def as_oracle(found: Itemsets) -> dict[oracle.Itemset, int]:
    plain: dict[oracle.Itemset, int] = {}
    for items, support in found.to_dict().items():
        terms = frozenset(value for name, value in items if name == "")
        plain[terms, tuple(sorted(item for item in items if item[0]))] = support
    return plain


def test_the_five_notes(five: Index) -> None:
    """Li & Qin 2017, Figure 4: month + HMI, minimum support 2: 26 frequent itemsets, 11 with a month, all of April.

    Three have support 3 and eight 2; the baseline's relative error on them is 0.2909, the expected Laplace error
    (5/11)/ε.
    """
    found = frequent_itemsets(five, 2, qids=("when",))
    assert len(found) == 26
    monthly = {items: support for items, support in found.to_dict().items() if items[-1][0] == "when"}
    assert len(monthly) == 11
    assert {items[-1] for items in monthly} == {("when", "2009-04")}
    assert sorted(monthly.values()) == [2] * 8 + [3] * 3
    everyone = found.to_dict()
    april = 3 / 5
    baseline = [abs(everyone[items[:-1]] * april - n) / n for items, n in monthly.items()]
    assert np.mean(baseline) == pytest.approx(8 * 0.4 / 11)
    assert np.mean([1 / n for n in monthly.values()]) == pytest.approx(5 / 11)
    assert as_oracle(found) == oracle.itemsets(month_rows(), ["when"], 2)


def month_rows() -> list[dict[str, Any]]:
    return [{**row, "when": row["visit_month"]} for row in oracle.FIVE_NOTES]


def test_every_itemset_has_a_term_and_one_value_of_each_quasi_identifier(five: Index) -> None:
    found = frequent_itemsets(five, 1, qids=("when", "age", "sex", "zip"))
    rows = [{**row, "sex": row["sex"].lower()} for row in month_rows()]
    assert as_oracle(found) == oracle.itemsets(rows, ["when", "age", "sex", "zip"], 1)
    for i in range(len(found)):
        names = [name for name, _ in found[i]]
        assert "" in names
        assert len([name for name in names if name]) == len({name for name in names if name})


NAMES = ("a", "b", "c", "d", "e")
row = st.fixed_dictionaries(
    {
        "patient": st.integers(0, 6),
        "visit_month": st.one_of(st.none(), st.sampled_from(["2009-04", "2009-05"])),
        "sex": st.one_of(st.none(), st.sampled_from(["f", "m"])),
        "terms": st.lists(st.sampled_from(NAMES), max_size=5, unique=True),
    }
)
SCHEMA = {"patient": pl.Int64, "visit_month": pl.String, "sex": pl.String, "terms": pl.List(pl.String)}


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(row, min_size=1, max_size=40).filter(lambda rows: any(r["terms"] for r in rows)),
    least=st.integers(1, 6),
    unit=st.sampled_from(["patient", "note"]),
    max_size=st.one_of(st.none(), st.integers(1, 4)),
)
def test_the_miner_equals_the_definition(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], least: int, unit: Any, max_size: int | None
) -> None:
    index = index_table(pl.DataFrame(rows, schema=SCHEMA), tmp_path_factory.mktemp("i") / "index").index
    found = frequent_itemsets(index, least, qids=("when", "sex"), unit=unit, max_size=max_size)
    named = [{**each, "when": each["visit_month"]} for each in rows]
    wanted = oracle.itemsets(named, ["when", "sex"], least, unit)
    if max_size is not None:
        wanted = {
            itemset: n for itemset, n in wanted.items() if len(itemset[0]) + len(itemset[1]) <= max_size
        }
    assert as_oracle(found) == wanted
    assert len(found) == len(found.to_dict()), "each itemset once"


@settings(deadline=None, max_examples=60)
@given(data=st.data(), counts=st.lists(st.integers(1, 150), min_size=1, max_size=12))
def test_patients_are_counted_by_carries(data: st.DataObject, counts: list[int]) -> None:
    """Patients of one row and of more rows than a word has bits, next to each other."""
    rows = sum(counts)
    patient = np.repeat(np.arange(len(counts)), counts)
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, rows - 1)))), np.uint32)
    words, last = words_of(rows, chosen), words_of(rows, np.cumsum(counts) - 1)
    assert patients_in_both(words, words, last) == len(np.unique(patient[chosen]))
    assert rows_in_both(words, words) == len(chosen)


def test_a_sample_of_many_notes_equals_brute_force(tmp_path: Path) -> None:
    random = np.random.Generator(np.random.Philox(9))
    rows = [
        {
            "patient": int(random.integers(300)),
            "visit_month": f"2020-{int(random.integers(1, 5)):02d}",
            "sex": "f",
            "terms": [
                f"t{t}"
                for t in sorted({int(40 * random.random() ** 2) for _ in range(random.integers(1, 9))})
            ],
        }
        for _ in range(1500)
    ]
    index = index_table(pl.DataFrame(rows, schema=SCHEMA), tmp_path / "index").index
    named = [{**each, "when": each["visit_month"]} for each in rows]
    for unit in ("patient", "note"):
        found = frequent_itemsets(index, 0.02, qids=("when",), unit=unit)
        least = int(np.ceil(0.02 * (index.patients if unit == "patient" else index.rows)))
        assert as_oracle(found) == oracle.itemsets(named, ["when"], least, unit)
        assert len(found) > 200


def test_what_cannot_be_mined_is_refused(five: Index) -> None:
    with pytest.raises(BadInput, match="at least 1 record"):
        frequent_itemsets(five, 0)
    with pytest.raises(BadInput, match="no quasi-identifier"):
        frequent_itemsets(five, 2, qids=("month",))
    with pytest.raises(BadInput, match="more than 10 itemsets"):
        frequent_itemsets(five, 2, limit=10)
    with pytest.raises(BadInput, match="max_size"):
        frequent_itemsets(five, 2, max_size=0)
    assert len(frequent_itemsets(five, 6)) == 0
