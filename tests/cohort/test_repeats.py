"""The synthetic repeats have the published shape, whatever the chunks, and nobody stands twice in the sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from leeward.analysis.containment import Index, Multisets
from leeward.arrays import offsets_of
from leeward.errors import BadInput
from leeward.methods.censoring import gccens
from leeward.randomness import Randomness
from leeward.synthetic import repeats


@pytest.fixture(scope="module")
def counts() -> np.ndarray:
    sizes = (100_000, 100_000, 100_000, repeats.PATIENTS - 300_000)
    streams = (Randomness.of(4).stream("repeats", number) for number in range(len(sizes)))
    return np.concatenate([repeats._counts(*drawn) for drawn in zip(streams, sizes, strict=True)])


def test_the_population_has_the_thesis_means(counts: np.ndarray) -> None:
    assert counts.mean(axis=0) == pytest.approx(repeats.POPULATION_MEANS, abs=0.05)
    assert (counts.sum(axis=1) >= 1).all()


def test_the_sample_has_the_thesis_means_and_share_of_unique_patients(counts: np.ndarray) -> None:
    picked = repeats.draw_sample(counts.astype(np.int16), repeats.SAMPLE_PATIENTS, Randomness.of(4))
    assert len(np.unique(picked)) == repeats.SAMPLE_PATIENTS
    assert counts[picked].mean(axis=0) == pytest.approx(repeats.SAMPLE_MEANS, abs=0.2)
    sample = counts[picked]
    unique = [(counts >= record).all(axis=1).sum() == 1 for record in sample[::11]]
    assert np.mean(unique) == pytest.approx(repeats.UNIQUE, abs=0.05)


def test_caps_of_three_fall_as_in_the_thesis(counts: np.ndarray) -> None:
    """Table 1 of the thesis: mean losses .046, .046 and .091."""
    picked = repeats.draw_sample(counts.astype(np.int16), repeats.SAMPLE_PATIENTS, Randomness.of(4))
    population, sample = (as_multisets(np.minimum(each, 3)) for each in (counts, counts[picked]))
    index = Index(population, np.full(4, 3), 2)
    lost = {}
    for k in (5, 10, 25):
        caps = gccens.censor(index, sample, k).caps
        before = np.minimum(counts[picked], 3)
        lost[k] = 1 - np.minimum(before, caps).sum(axis=1) / before.sum(axis=1)
    assert 0.02 <= lost[5].mean() <= 0.06
    assert lost[5].mean() <= lost[10].mean() <= 0.08
    assert lost[10].mean() <= lost[25].mean() <= 0.14


def as_multisets(counts: np.ndarray) -> Multisets:
    held = counts > 0
    codes = np.broadcast_to(np.arange(4, dtype=np.int32), counts.shape)[held]
    return Multisets(offsets_of(held.sum(axis=1)), codes, counts[held].astype(np.int32))


@pytest.mark.parametrize("codes", [4, 30])
def test_the_sample_is_part_of_the_population(tmp_path: Path, codes: int) -> None:
    rows = repeats.write_repeats(
        tmp_path / "p.parquet", 3_000, codes, 1, sample=tmp_path / "s.parquet", sample_patients=50
    )
    population, sample = (pl.read_parquet(tmp_path / name) for name in ("p.parquet", "s.parquet"))
    assert population.height == rows
    assert sample["patient"].n_unique() == 50
    theirs = population.filter(pl.col("patient").is_in(sample["patient"].unique().implode()))
    assert theirs.equals(sample)
    assert population["code"].n_unique() <= codes
    assert {"250", "272", "401", "724"} <= set(population["code"].cast(pl.String))


def test_same_seed_same_rows(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        repeats.write_repeats(tmp_path / name, 500, 12, 9)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize("wrong", [{"patients": 10}, {"codes": 3}, {"sample_patients": 600}])
def test_wrong_parameters(tmp_path: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(BadInput, match=next(iter(wrong))):
        repeats.write_repeats(tmp_path / "a.parquet", **{"patients": 1_000, **wrong})
