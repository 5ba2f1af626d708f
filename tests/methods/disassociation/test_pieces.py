"""A release measured in pieces of whole trees: the figures of the whole, however many pieces there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.published import running_example
from tests.oracles.published import write as write_release

import leeward as lw
from leeward.methods.disassociation.measures import DEFAULTS, measure, pieces
from leeward.methods.disassociation.measures.estimates import PRIORS, read_once
from leeward.release import Release
from leeward.runs.writing import reidentification

ASKED = [each if isinstance(each, dict) else {each: {}} for each in DEFAULTS]


def figures(release: Release, cohort: lw.Cohort) -> dict[str, Any]:
    more = [{"are": {"workload": "frequent", "min_support": 0.1, "prior": prior}} for prior in PRIORS]
    return measure(release, cohort, [*ASKED, *more]) | reidentification(release, cohort, None)


def same(one: Any, other: Any) -> bool:
    """Sums of fractions are made in another order."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == pytest.approx(other, rel=1e-9) if isinstance(one, float) else one == other


def in_pieces(patch: pytest.MonkeyPatch, records: int) -> None:
    patch.setattr(pieces, "MOST_AT_ONCE", 0)
    patch.setattr(pieces, "RECORDS_A_PIECE", records)
    pieces._cut.cache_clear()


@given(
    st.integers(0, 99),
    st.integers(60, 300),
    st.sampled_from(["recut", "fitted"]),
    st.sampled_from(["operation", "counts", "rules"]),
)
@settings(max_examples=8)
def test_figures_of_1_3_and_7_pieces_are_those_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, seed: int, people: int, partitioning: str, attacker: str
) -> None:
    draw = np.random.default_rng(seed)
    codes = [f"{250 + c}.0" for c in draw.zipf(1.3, 5 * people).clip(max=25)]
    cohort = lw.read(
        pl.DataFrame({"patient": draw.integers(0, people, len(codes)), "code": codes}), vocabulary="icd9"
    )
    kind = {"partitioning": partitioning} if attacker != "rules" else {}
    method = lw.Disassociation(k=3, m=2, policy="hierarchy:1", attacker=attacker, **kind)  # type: ignore[arg-type]  # a case
    out = lw.protect(cohort, method, tmp_path_factory.mktemp("of") / "OUT", seed=seed).path
    release = Release.open(out)
    whole = figures(release, cohort)
    assert whole["mre"]["constraints"] and whole["placement"]["covers"]["pairs"] >= 0
    made = set()
    for number in (1, 3, 7):
        with pytest.MonkeyPatch.context() as patch:
            in_pieces(patch, -(-release.records // number))
            files = pieces.published_of(release).files
            assert 1 <= len(files) <= number
            made.add(len(files))
            assert same(figures(release, cohort), whole), number
            assert all(file.is_file() for file in files)
    pieces._cut.cache_clear()
    assert not any(file.exists() for file in files)
    assert max(made) > 1 or (read_once(release).parent < 0).sum() == 1


def test_trees_are_cut_by_their_records(tmp_path: Path) -> None:
    """As many pieces as there are trees, where a piece has room for one; each has whole trees."""
    out = write_release(tmp_path / "OUT", 3 * running_example(), 3, 2)
    release = Release.open(out)
    whole = read_once(release)
    with pytest.MonkeyPatch.context() as patch:
        in_pieces(patch, 1)
        found = pieces.published_of(release)
        each = list(found.pieces())
    assert len(each) == (whole.parent < 0).sum() == 3
    assert sum(int(p.records[p.leaf].sum()) for p in each) == release.records
    assert all((p.parent < 0).sum() == 1 and p.codes == whole.codes for p in each)
    assert found.parent is None  # nothing reads the pieces as if they were the whole
    pieces._cut.cache_clear()
