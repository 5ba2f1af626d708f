"""One record a line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from leeward import BadInput
from leeward.cohort import read
from leeward.cohort.readers import lines


def test_blanks_and_commas_separate_and_blank_lines_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "baskets.csv"
    file.write_text("401.1 250.00,V10.1\n\n250.00,  401.1\t401.1\n   \nV10.1")
    cohort = read(file, lines=True)
    assert cohort.require_events().rows() == [
        (1, "401.1", 1),
        (1, "250.00", 1),
        (1, "V10.1", 1),
        (3, "250.00", 3),
        (3, "401.1", 3),
        (3, "401.1", 3),
        (5, "V10.1", 5),
    ]
    (notice,) = [n for n in cohort.notices if n.kind == "record without codes"]
    assert (notice.count, notice.rows) == (2, (2, 4))
    assert str(notice) == "2 lines without any code left out (rows 2, 4)"


def test_missing_texts_and_gzip(tmp_path: Path) -> None:
    file = tmp_path / "baskets.txt.gz"
    file.write_bytes(gzip.compress(b"\xef\xbb\xbfa ? b\n?\nc\n"))
    cohort = read(file, format="lines", missing=["?"])
    assert [code for _, code, _ in cohort.require_events().rows()] == ["a", "b", "c"]
    assert {n.kind: n.count for n in cohort.notices} == {"missing code": 2, "record without codes": 1}


def test_blocks_do_not_change_the_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "baskets.txt"
    file.write_text("\n".join(f"c{i % 7} c{i % 5}é" for i in range(200)) + "\n")
    whole = read(file, lines=True).require_events()
    monkeypatch.setattr(lines, "BLOCK_BYTES", 11)
    assert read(file, lines=True).require_events().equals(whole)
    assert whole["patient"].n_unique() == 200


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "b.txt: the file is empty."),
        (b"\n \n", "b.txt: no line has a code; nothing remains to protect."),
        (b"a b\nc\ncaf\xe9 d\n", "b.txt: line 3 is not UTF-8 text; save the file as UTF-8."),
    ],
)
def test_bad_lines(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "b.txt").write_bytes(data)
    with pytest.raises(BadInput) as error:
        read(tmp_path / "b.txt", lines=True)
    assert str(error.value) == message
