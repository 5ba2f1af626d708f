"""Synthetic code sets: the same whatever the chunks, with the frequencies and comorbidity they promise."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from leeward import BadInput
from leeward.cohort import CodeSets, read
from leeward.synthetic import code_catalogue, write_codes
from leeward.synthetic.codes import code_weights
from leeward.vocabulary.icd import ICD9CM


def drawn(folder: Path, patients: int, **options: object) -> CodeSets:
    file = folder / "codes.parquet"
    write_codes(file, patients, **options)  # type: ignore[arg-type]  # options by name
    return read(file).code_sets()


def test_the_seed_decides_whatever_the_chunks_and_threads(tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.parquet" for i in range(3)]
    write_codes(files[0], 3_000, 200, 4.0, seed=1, chunk=3_000, threads=1)
    write_codes(files[1], 3_000, 200, 4.0, seed=1, chunk=701, threads=2)
    write_codes(files[2], 3_000, 200, 4.0, seed=2)
    one, other, different = (pl.read_parquet(file) for file in files)
    assert one.equals(other)
    assert not one.equals(different)


def test_without_a_seed_two_files_differ(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_codes(tmp_path / f"{name}.parquet", 500, 50, 3.0)
    assert not pl.read_parquet(tmp_path / "a.parquet").equals(pl.read_parquet(tmp_path / "b.parquet"))


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_csv_holds_the_same_rows_as_parquet(tmp_path: Path, ending: str) -> None:
    text, parquet = tmp_path / f"a.{ending}", tmp_path / "a.parquet"
    assert write_codes(text, 400, 60, 3.0, seed=5, chunk=100) == write_codes(parquet, 400, 60, 3.0, seed=5)
    assert read(text).require_events().equals(read(parquet).require_events())
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([text.name, parquet.name])


def test_sizes(tmp_path: Path) -> None:
    told: list[int] = []
    sets = drawn(tmp_path, 20_000, codes=631, mean=5.1, seed=3, chunk=8_000, progress=told.append)
    assert told == [8_000, 16_000, 20_000]
    assert len(sets) == 20_000
    assert sets.codes == tuple(code_catalogue(631))
    assert abs(sets.lengths().mean() - 5.1) < 0.15
    assert sets.lengths().min() == 1
    assert sets.lengths().max() > 15


def test_twelve_codes_a_patient(tmp_path: Path) -> None:
    sets = drawn(tmp_path, 8_000, codes=631, mean=12, seed=3)
    assert abs(sets.lengths().mean() - 12) < 0.4


def test_a_patient_never_holds_a_code_twice_even_when_codes_are_few(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    write_codes(file, 2_000, 8, 4.0, seed=1)
    frame = pl.read_parquet(file)
    assert frame.height == frame.unique().height


def test_frequencies_follow_zipf_with_a_tail_of_rare_codes(tmp_path: Path) -> None:
    supports = np.sort(drawn(tmp_path, 25_000, codes=631, mean=5.1, seed=1).supports())[::-1]
    middle = np.arange(9, 100)
    slope = np.polyfit(np.log(middle + 1), np.log(supports[middle]), 1)[0]
    assert -1.3 < slope < -0.8
    assert 0.15 < supports[0] / 25_000 < 0.4
    assert (supports < 5).sum() > 40
    assert supports[-1] >= 1


def test_draws_follow_the_weights(tmp_path: Path) -> None:
    """With one code a patient nothing but the weights decides: chi-square over the codes."""
    sets = drawn(tmp_path, 40_000, codes=40, mean=1, seed=11)
    expected = code_weights(40) * 40_000
    statistic = float(((sets.supports() - expected) ** 2 / expected).sum())
    assert statistic < 39 + 5 * (2 * 39) ** 0.5


def test_comorbidity_makes_frequent_pairs_and_triples_beyond_chance(tmp_path: Path) -> None:
    sets = drawn(tmp_path, 10_000, codes=200, mean=6, seed=1)
    together: Counter[tuple[int, ...]] = Counter()
    for r in range(len(sets)):
        record = sets.values[sets.offsets[r] : sets.offsets[r + 1]].tolist()
        together.update(combinations(record, 2))
    share = sets.supports() / len(sets)
    often = {pair: count / len(sets) for pair, count in together.items() if count >= 100}
    lift = {(a, b): p / (share[a] * share[b]) for (a, b), p in often.items()}
    assert len(often) > 50
    assert sum(value > 2 for value in lift.values()) > 10


def test_the_catalogue_has_the_structure_of_icd9() -> None:
    codes = code_catalogue(631)
    assert codes == sorted(set(codes))
    assert all(ICD9CM.is_known(code) and ICD9CM.normalise(code) == code for code in codes)
    categories = Counter(map(ICD9CM.category, codes))
    assert len({ICD9CM.level(code, 3) for code in codes}) == 19
    assert sum(n > 1 for n in categories.values()) > 100
    assert {len(code.partition(".")[2]) for code in codes} == {0, 1, 2}


@pytest.mark.parametrize("codes", [1, 2, 7, 915, 5_000, 12_000])
def test_catalogues_of_any_size(codes: int) -> None:
    assert len(set(code_catalogue(codes))) == codes


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("a.parquet", {"patients": 0}, "`patients` must be at least 1; got 0."),
        ("a.parquet", {"patients": 1, "codes": 0}, "`codes` must be between 1 and 12000; got 0."),
        (
            "a.parquet",
            {"patients": 1, "codes": 10, "mean": 6.0},
            "`mean` must be between 1 and half of `codes`, and at most 40.0; got 6.0.",
        ),
        ("a.parquet", {"patients": 1, "chunk": 0}, "`chunk` must be at least 1; got 0."),
        ("a.json", {"patients": 1}, "a.json: the file must end in .parquet, .csv or .csv.gz."),
        ("no/a.csv", {"patients": 1}, "a.csv: the folder to write into does not exist."),
    ],
)
def test_bad_parameters(tmp_path: Path, name: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(BadInput) as error:
        write_codes(tmp_path / name, **options)
    assert str(error.value) == message


def test_nothing_is_left_when_writing_is_interrupted(tmp_path: Path) -> None:
    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_codes(tmp_path / "a.parquet", 100, 10, 2.0, progress=stop)
    assert list(tmp_path.iterdir()) == []
