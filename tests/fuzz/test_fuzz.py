"""A short run of the fuzzer (`make fuzz` for a long one), and that it finds what is planted."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.fuzz.__main__ import one, run
from tests.fuzz.counting import LostRows, plain_rows, rows_accounted
from tests.fuzz.entries import ENTRIES

from leeward.cohort import read


def test_no_input_is_a_fault() -> None:
    found = run(264, seed=20, first=0, only=[])
    assert found["faults"] == {}
    assert found["inputs"] == 264 and found["ok"] > 36 and found["refused"] > 60
    assert found["inputs whose rows were counted"] > 24


def test_the_fuzzer_finds_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(random: object, folder: Path) -> None:
        raise KeyError("a code")

    monkeypatch.setitem(ENTRIES, "events", broken)
    assert one("events", 1, 1, tmp_path).startswith("fault: KeyError in test_fuzz.py")


def test_lost_rows_are_a_fault() -> None:
    cohort = read(pl.DataFrame({"patient": [1, 2, 3], "code": ["401.9", None, "250.00"]}))
    rows_accounted(cohort, 3)
    with pytest.raises(LostRows):
        rows_accounted(cohort, 4)


def test_rows_of_a_file_are_counted_where_its_form_leaves_no_doubt() -> None:
    assert plain_rows(b"patient,code\n1,401.9\n,\n2,\n") == 2
    assert plain_rows(b'patient,code\n1,"a\nb"\n') is None
    assert plain_rows(b"patient,code\n1,401.9,3\n") is None
