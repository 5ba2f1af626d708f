"""Known identities and lists of replaced spans: of no use against the product's texts, enough against weak ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from tests.attacks.notes import outside_the_list, residual

from leeward import annotate

PEOPLE = ("Brown", "Whitaker", "Delgado", "Thornton")
NUMBERS = ("555-201-3344", "MRN 4471923")
TEXTS = [
    f"Mr. {name} was seen by Dr. {doctor} on 04/12/2009 for fever and cough. Call 555-201-3344. MRN 4471923."
    for name, doctor in zip(PEOPLE, reversed(PEOPLE), strict=True)
]


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("notes") / "notes.csv"
    pl.DataFrame({"patient": [f"p{i}" for i in range(len(TEXTS))], "text": TEXTS}).write_csv(path)
    return path


def released(notes: Path, out: Path, mode: str) -> Path:
    annotate(notes, out, mode=mode, members=("rules", "dictionary"), seed=1)
    return out / "share"


@pytest.mark.parametrize("mode", ["removed", "surrogates"])
def test_no_known_identity_is_left_in_plain_notes(notes: Path, tmp_path: Path, mode: str) -> None:
    share = released(notes, tmp_path / "out", mode)
    assert residual(share, (*PEOPLE, *NUMBERS)) == set()
    if mode == "surrogates":
        assert outside_the_list(share) is None


def test_texts_as_they_were_and_a_list_of_spans_beside_surrogates_are_found_out(
    notes: Path, tmp_path: Path
) -> None:
    share = released(notes, tmp_path / "out", "surrogates")
    shutil.copy(tmp_path / "out" / "custody" / "replacements.parquet", share)
    texts = pl.read_parquet(share / "text.parquet")
    missed = texts.with_columns(text=pl.col("text") + " Dr. Quorraxanthippe agrees.")
    missed.write_parquet(share / "text.parquet")
    assert outside_the_list(share) == {"Quorraxanthippe"}
    texts.with_columns(text=pl.Series(TEXTS)).write_parquet(share / "text.parquet")
    assert residual(share, (*PEOPLE, *NUMBERS)) == {*PEOPLE, *NUMBERS}
