"""The paper's errors and its baseline, on its own five notes."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.queries.made import TERMS, five_notes

from leeward.queries.index.build import index_table
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.accounting import micro
from leeward.queries.privacy.mechanism import Noise

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from index_itemsets import Itemsets, frequent_itemsets
from replication import (
    MonthItemsets,
    estimated_by_month,
    expected_error,
    relative_error,
    standard_error,
    with_month,
)


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Itemsets:
    """Items are months and health terms; minimum support 2."""
    notes = five_notes().select("note", "patient", "visit_month", "terms")
    index = index_table(notes, tmp_path_factory.mktemp("five") / "index", terms=TERMS).index
    return frequent_itemsets(index, 2, qids=["when"], unit="note")


def test_26_itemsets_11_with_a_month(five: Itemsets) -> None:
    assert len(five) == 26
    found = with_month(five, "when")
    assert (len(found), found.months) == (11, ("2009-04",))
    assert sorted(found.counts.tolist()) == [2] * 8 + [3] * 3


def test_the_month_estimated_baseline(five: Itemsets) -> None:
    """P(April) = 3/5: eight itemsets are estimated wrongly by 0.4, three rightly: 8·0.4/11."""
    assert estimated_by_month(with_month(five, "when"), [3 / 5]) == pytest.approx(0.2909, abs=5e-5)


@pytest.mark.parametrize(("epsilon", "expected"), [(0.1, 4.5455), (0.5, 0.9091), (1, 0.4545)])
def test_expected_laplace_error(five: Itemsets, epsilon: float, expected: float) -> None:
    counts = with_month(five, "when").counts
    assert expected_error(counts, Noise("laplace", micro(epsilon), 1)) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("kind", mechanism.KINDS)
def test_errors_lie_within_standard_errors(five: Itemsets, kind: mechanism.Kind) -> None:
    """2,000 runs; five standard errors, once in two million."""
    counts = with_month(five, "when").counts
    noise = Noise(kind, micro(0.5), 1)
    runs = 2000
    found = float(np.mean([relative_error(counts, noise) for _ in range(runs)]))
    assert abs(found - expected_error(counts, noise)) < 5 * standard_error(counts, noise, runs)


def test_relative_standard_error_of_laplace_is_the_published_one() -> None:
    """√(Σ1/n²)/(Σ1/n)/√R: |Laplace| is exponential, whose deviation is its mean."""
    counts, noise = np.array([2, 3, 10, 40], np.int64), Noise("laplace", micro(0.5), 1)
    relative = standard_error(counts, noise, 5) / expected_error(counts, noise)
    published = math.sqrt(np.sum(1 / counts**2.0)) / np.sum(1 / counts) / math.sqrt(5)
    assert relative == pytest.approx(float(published), rel=1e-9)


def test_the_gate() -> None:
    found = MonthItemsets(np.array([5, 9]), np.array([10, 10]), np.array([0, 0]), ("01",))
    assert found.at_least(6).counts.tolist() == [9]


def test_the_gate_tells_on_which_side_a_count_is() -> None:
    """With one document more the itemset is answered, without it never: no ε bounds that, whatever noise follows. What
    the product hides it hides by the noisy count, which either data set can put on either side."""
    lists = [
        MonthItemsets(np.array([n]), np.array([20]), np.array([0]), ("01",)).at_least(10) for n in (9, 10)
    ]
    assert [len(each) for each in lists] == [0, 1]
    noisy = np.array([9, 10])[:, None] + mechanism.draw(Noise("geometric", micro(0.5), 1), 400)
    assert ((noisy >= 10).any(axis=1) & (noisy < 10).any(axis=1)).all()
