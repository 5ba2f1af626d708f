"""The exact sets of patients: overlaps as Python's own sets count them, and nothing for who lacks the key."""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.register import sketch

KEY, OTHER = b"k" * 32, b"o" * 32

identifiers = st.lists(st.integers(0, 400).map(lambda number: f"P{number:03d}"), max_size=200)


@given(identifiers, identifiers)
def test_overlaps_are_those_of_sets(one: list[str], other: list[str]) -> None:
    made = [sketch.sketch_of(pl.Series(each, dtype=pl.String), KEY) for each in (one, other)]
    assert [len(each) for each in made] == [len(set(one)), len(set(other))]
    assert sketch.count_common(*made) == len(set(one) & set(other))


@given(st.lists(st.integers(0, 2**64 - 1), max_size=40), st.lists(st.integers(0, 2**64 - 1), max_size=40))
def test_the_merge_counts_the_whole_range(one: list[int], other: list[int]) -> None:
    arrays = [np.unique(np.array(each, np.uint64)) for each in (one, other)]
    assert sketch.count_common(*arrays) == len(set(one) & set(other))


def test_a_hash_is_the_first_eight_bytes_of_the_keyed_digest() -> None:
    made = sketch.sketch_of(pl.Series(["Ä1"]), KEY)
    wanted = hmac.new(KEY, "patient\0Ä1".encode(), hashlib.sha256).digest()[:8]
    assert sketch.to_bytes(made) == wanted


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (pl.Series([" 17 "]), pl.Series(["17"]), True),
        (pl.Series([17]), pl.Series(["17"]), True),
        (pl.Series([17.0]), pl.Series([17]), True),
        (pl.Series(["A\u0308"]), pl.Series(["Ä"]), True),
        (pl.Series(["17"], dtype=pl.Categorical), pl.Series(["17"]), True),
        (pl.Series(["017"]), pl.Series(["17"]), False),
        (pl.Series(["a1"]), pl.Series(["A1"]), False),
    ],
)
def test_what_is_one_spelling(one: pl.Series, other: pl.Series, equal: bool) -> None:
    made = [sketch.to_bytes(sketch.sketch_of(each, KEY)) for each in (one, other)]
    assert (made[0] == made[1]) is equal


def test_a_set_is_read_as_it_was_kept() -> None:
    made = sketch.sketch_of(pl.Series(range(1000)), KEY)
    assert (sketch.from_bytes(sketch.to_bytes(made)) == made).all()
    assert (np.diff(made) > 0).all()


def test_who_tries_all_identifiers_without_the_key_finds_none() -> None:
    """The attacker has the sketch, its rule and every identifier that there can be; not the key."""
    everybody = pl.Series(range(20_000))
    kept = sketch.sketch_of(everybody[::7], KEY)
    assert sketch.count_common(kept, sketch.sketch_of(everybody, KEY)) == len(kept)  # with the key: all
    assert sketch.count_common(kept, sketch.sketch_of(everybody, OTHER)) == 0
    plain = (
        hashlib.sha256(f"{prefix}{each}".encode()).digest()
        for prefix in ("", "patient\0")
        for each in everybody
    )
    unkeyed = np.unique(np.frombuffer(b"".join(each[:8] for each in plain), "<u8"))
    assert sketch.count_common(kept, unkeyed) == 0


def test_a_key_has_a_name_of_its_own() -> None:
    assert sketch.epoch_of(KEY) != sketch.epoch_of(OTHER)
    assert KEY.hex() not in sketch.epoch_of(KEY)
