"""Bytes of Parquet files that their rows do not need."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leeward.verify.storage import _rewrite_digest, plain_parquet

ROWS = ["b", "a", "b", None, "c", "a"] * 50


def written(column: pa.Array, file: Path) -> Path:
    table = pa.table({"record": pa.array(range(len(column))), "codes": column})
    with pq.ParquetWriter(
        file, table.schema, compression="zstd", store_schema=False, version="2.6"
    ) as writer:
        writer.write_table(table)
    return file


def numbered(dictionary: list[str]) -> pa.Array:
    numbers = [None if text is None else dictionary.index(text) for text in ROWS]
    return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(dictionary))


def in_lists(column: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(0, len(column) + 1, 2), pa.int32()), column)


@pytest.mark.parametrize("listed", [False, True])
def test_a_dictionary_holds_what_rows_have_in_their_order_and_nothing_else(
    tmp_path: Path, listed: bool
) -> None:
    shape = in_lists if listed else lambda column: column
    path = "codes.list.element" if listed else "codes"
    plain = written(shape(pa.array(ROWS)), tmp_path / "plain")
    assert plain_parquet(plain)
    by_numbers = _rewrite_digest(pq.ParquetFile(plain, read_dictionary=[path]))
    assert (
        by_numbers == _rewrite_digest(pq.ParquetFile(plain)) is not None
    )  # the quick way sees the same bytes
    assert plain_parquet(written(shape(numbered(["b", "a", "c"])), tmp_path / "same"))
    for name, dictionary in (("unused", ["b", "a", "c", "p001"]), ("order", ["a", "b", "c"])):
        assert not plain_parquet(written(shape(numbered(dictionary)), tmp_path / name)), name


def test_damaged_pages_of_another_version_are_read(tmp_path: Path) -> None:
    file = written(pa.array(ROWS), tmp_path / "damaged")
    own = f"version {pa.__version__}".encode()
    foreign = file.read_bytes().replace(own, own[:-1] + (b"0" if own[-1:] != b"0" else b"1"))
    file.write_bytes(foreign)
    assert plain_parquet(file)
    start = pq.read_metadata(file).row_group(0).column(1).data_page_offset + 40
    file.write_bytes(foreign[:start] + b"\xff" * 8 + foreign[start + 8 :])
    assert not plain_parquet(file)
