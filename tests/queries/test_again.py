"""Damage of an index is found before a charge, and indexing the same patients again gives no second budget."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.queries.made import five_notes, table

from leeward.cli.counts import lines_of
from leeward.errors import BadInput
from leeward.queries import state
from leeward.queries.answer.api import audit, query
from leeward.queries.index.counts import Index
from leeward.runs import data_sets
from leeward.runs.index import index

FILES = ("aliases.arrow", "bitmaps.bin", "directory.arrow", "index.json", "vocabulary.arrow")


def indexed(notes: pl.DataFrame, out: Path, **options: Any) -> Path:
    index(notes, out, epsilon_total=5, terms="lexicon", **options)
    return out


def many(patients: int, first: int = 0) -> pl.DataFrame:
    words = ("fever", "headache", "chills", "nausea", "fatigue", "diarrhea", "joint pain", "cough", "rash")
    rows = [
        (
            f"p{i}",
            "2009-04",
            20 + i % 50,
            "F",
            "12301",
            ", ".join(w for j, w in enumerate(words) if (i + 1) >> j & 1),
        )
        for i in range(first, first + patients)
    ]
    return table(rows)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [0.1, 0.5, 0.95])
def test_damage_is_found_before_the_charge(tmp_path: Path, name: str, place: float) -> None:
    out = indexed(five_notes(), tmp_path / "index")
    file = out / name
    data = bytearray(file.read_bytes())
    data[int(place * len(data))] ^= 4
    file.write_bytes(data)
    with pytest.raises(BadInput):
        query(out, "fever", epsilon=0.5)
    data[int(place * len(data))] ^= 4
    file.write_bytes(data)
    assert audit(out).spent == 0


def test_a_folder_that_is_not_there_is_told_as_that(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no such folder"):
        query(tmp_path / "nowhere", "fever", epsilon=0.5)


def test_files_are_the_owners_alone(tmp_path: Path) -> None:
    out = indexed(five_notes(), tmp_path / "index")
    assert {stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {0o600}


def test_the_same_rows_keep_their_budget(tmp_path: Path) -> None:
    first = indexed(many(100), tmp_path / "first")
    assert query(first, "fever", epsilon=2).remaining == 3_000_000
    again = indexed(many(100).sample(fraction=1.0, shuffle=True, seed=1), tmp_path / "again")
    assert Index(again).meta.id == Index(first).meta.id
    assert query(again, "fever", epsilon=2).cost == 0, "a question is paid once"
    assert query(again, "chills", epsilon=1).remaining == 2_000_000
    with pytest.raises(BadInput, match="on other terms"):
        index(many(100), tmp_path / "more", epsilon_total=50, terms="lexicon")
    assert not (tmp_path / "more").exists()


def test_a_budget_that_is_shared_is_told_with_what_is_left(tmp_path: Path) -> None:
    first = index(many(100), tmp_path / "first", epsilon_total=5, terms="lexicon")
    assert (first["shared_with"], first["remaining"]) == (None, 5)
    assert "Budget: epsilon 5 for each patient, all answers together." in lines_of(first)
    query(tmp_path / "first", "fever", epsilon=1.5)
    again = index(many(100), tmp_path / "again", epsilon_total=5, terms="lexicon")
    assert (again["shared_with"], again["remaining"]) == (str(tmp_path / "first"), 3.5)
    told = f"all answers together, shared with {tmp_path / 'first'}; 3.5 left."
    assert f"Budget: epsilon 5 for each patient, {told}" in lines_of(again)


@pytest.mark.parametrize(
    ("patients", "first"), [(99, 0), (99, 1), (120, 0)], ids=["last", "first", "extended"]
)
def test_nearly_the_same_patients_need_a_reason(tmp_path: Path, patients: int, first: int) -> None:
    indexed(many(100), tmp_path / "one")
    with pytest.raises(BadInput, match="share most of their patients"):
        indexed(many(patients, first), tmp_path / "two")
    assert not (tmp_path / "two").exists()
    indexed(many(patients, first), tmp_path / "two", new_budget="consent was given anew")


@pytest.mark.parametrize(
    ("before", "now"),
    [((100, 0), (100, 40)), ((100, 0), (40, 60)), ((40, 60), (400, 0))],
    ids=["60 of 100", "a part of them", "ten times as many around them"],
)
def test_more_than_half_of_the_smaller_data_set_are_the_same_patients(
    tmp_path: Path, before: tuple[int, int], now: tuple[int, int]
) -> None:
    """Each (patients, first of them). Who was indexed before gets no second budget, however many come with them."""
    indexed(many(*before), tmp_path / "one")
    with pytest.raises(BadInput, match="share most of their patients"):
        indexed(many(*now), tmp_path / "two")


def test_less_than_half_of_the_smaller_data_set_are_others(tmp_path: Path) -> None:
    indexed(many(100), tmp_path / "one")
    indexed(many(100, first=60), tmp_path / "two")  # 40 of 100


@pytest.mark.parametrize(
    ("before", "now", "common", "expected"),
    [
        (60, 200_000, 60, 1.0),
        (60, 200_000, 24, 0.4),
        (50_000, 50_000, 30_000, 0.6),
        (50_000, 5_000, 3_000, 0.6),
    ],
)
def test_the_overlap_is_a_part_of_the_smaller_data_set(
    before: int, now: int, common: int, expected: float
) -> None:
    """Of many patients a sketch keeps some. Those of a small data set are found among any number of others."""
    generator = np.random.Generator(np.random.Philox(1))
    numbers = generator.integers(2**63, size=before + now - common, dtype=np.uint64)
    known, mine = np.sort(numbers[:before]), np.sort(numbers[before - common :])
    found = data_sets.overlap(mine, known[: data_sets.SKETCH].tolist())
    assert found == pytest.approx(expected, abs=0.0 if before < data_sets.SKETCH else 0.15)


def test_a_sketch_says_nothing_without_its_key(tmp_path: Path) -> None:
    """Whoever reads it could otherwise try what a guessed patient's rows hold."""
    opened = Index(indexed(many(100), tmp_path / "one"))
    found = [data_sets.hashes_of(opened, key).tolist() for key in (b"", b"one key", b"another key")]
    (known,) = data_sets.find_similar(opened)
    assert [len(each) for each in (*found, known.sketch)] == [100] * 4
    assert len({*found[0], *found[1], *found[2], *known.sketch}) == 400


def test_each_place_that_remembers_has_a_key_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, sketches = indexed(many(100), tmp_path / "one"), []
    for name in ("one place", "another"):
        monkeypatch.setenv(state.VARIABLE, str(tmp_path / name))
        data_sets.remember(Index(out), out)
        (known,) = data_sets.find_similar(Index(out))
        sketches.append(set(known.sketch))
        kept = tmp_path / name / data_sets.FOLDER
        assert stat.S_IMODE(kept.stat().st_mode) == 0o700
        assert {stat.S_IMODE(each.stat().st_mode) for each in kept.iterdir()} == {0o600}
    assert not sketches[0] & sketches[1]


def test_other_patients_get_a_budget_of_their_own(tmp_path: Path) -> None:
    indexed(many(60), tmp_path / "one")
    other = indexed(many(60, first=60), tmp_path / "two")
    assert query(other, "fever", epsilon=1).remaining == 4_000_000


def test_a_ledger_that_is_gone_needs_a_reason(tmp_path: Path) -> None:
    first = indexed(many(50), tmp_path / "first")
    (first / "ledger.db").rename(tmp_path / "gone")
    with pytest.raises(BadInput, match="hold the same rows"):
        indexed(many(50), tmp_path / "again")
