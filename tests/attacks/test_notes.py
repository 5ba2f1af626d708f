"""Attacks on texts without identities: of no use against the product's, enough against weak ones.

But for one known day: it tells the shift of a patient's dates, as the README of the release says.
"""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from tests.attacks.notes import outside_the_list, residual, shift_by, unlikeliness, unlisted

from leeward import annotate
from leeward.notes.identities import surrogates
from leeward.notes.identities.keys import Keys, read
from leeward.notes.identities.surrogates import days
from leeward.notes.lexicon.lists import Names

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


def released(notes: Path, out: Path, mode: str, seed: int = 1) -> Path:
    annotate(notes, out, mode=mode, members=("rules", "dictionary"), seed=seed)
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


MISSED = {"quenlivan", "ostermoor", "bravender"}
"""Names that no list has, and annotators miss."""
SEEN = "Mr. James Brown was seen by Dr. Maria Delgado for fever and cough."


def texts_with_missed_names(place: Path, seed: int) -> Path:
    """Sixty released texts of as many patients; three of them show a name that was missed."""
    notes = place / "notes.csv"
    pl.DataFrame({"patient": range(60), "text": [SEEN] * 60}).write_csv(notes)
    share = released(notes, place / "out", "surrogates", seed)
    texts = pl.read_parquet(share / "text.parquet")
    missed = [f" {name.capitalize()} agrees." for name in sorted(MISSED)] + [""] * 57
    texts.with_columns(pl.col("text") + pl.Series(missed)).write_parquet(share / "text.parquet")
    return share


def public() -> set[str]:
    common = Names.common()
    return {*common.first, *common.last}.union(
        *(surrogates.pool(kind).all for kind in ("female", "male", "last"))
    )


def test_missed_names_that_no_list_has_are_among_many_surrogates_that_none_has(tmp_path: Path) -> None:
    found = unlisted(texts_with_missed_names(tmp_path, 1), public())
    assert found >= MISSED and len(found) > 50


def test_surrogates_of_lists_alone_leave_missed_names_for_whoever_knows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surrogates, "_put_together", lambda keys, text, *parts: "Smith")
    assert unlisted(texts_with_missed_names(tmp_path, 2), public()) == MISSED


def test_letters_do_not_tell_a_name_that_no_list_has_from_one_that_is_put_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = surrogates.pool("last").text.split()
    left_out = [name for name in listed[::20] if surrogates.SHORTEST <= len(name) <= surrogates.LONGEST]
    text = "\n".join(("", *(name for place, name in enumerate(listed) if place % 20), ""))

    def told_apart() -> float:
        """The share of pairs in which the name that is put together is the likelier one; half: by chance."""
        keys = Keys.of(bytes(32))
        made = [unlikeliness(surrogates._put_together(keys, text, str(i)).lower(), text) for i in range(500)]
        real = [unlikeliness(name, text) for name in left_out]
        return sum(a < b for a in made for b in real) / (len(made) * len(real))

    assert 0.4 < told_apart() < 0.6
    monkeypatch.setattr(
        surrogates, "_next_piece", lambda text, last, place: "etaoinshrdlucmfwypvbgkjqxz\n"[place % 27]
    )
    assert told_apart() < 0.1


def test_one_known_day_tells_the_shift_of_a_patients_dates(notes: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    for mode in ("surrogates", "removed"):
        annotate(notes, tmp_path / mode, mode=mode, members=("rules", "dictionary"), key=key)
    keys = Keys.of(read(key))
    true = {keys.patient(f"p{i}"): days(keys, f"p{i}") for i in range(len(TEXTS))}
    moved, removed = (
        {
            patient: shift_by(text, date(2009, 4, 12))
            for patient, text in pl.read_parquet(tmp_path / mode / "share" / "text.parquet")
            .select("patient", "text")
            .rows()
        }
        for mode in ("surrogates", "removed")
    )
    assert moved == true and set(removed.values()) == {None}
