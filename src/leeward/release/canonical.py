"""A digest of what a release says, whatever the order of its rows and the numbers that were drawn for its records.

Numbers that are drawn (`DRAWN`) only say what belongs together. So each number is told by what its rows say, then by
the numbers it stands beside, until nothing more is told apart; releases of equal digests differ by these numbers alone.
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np
import polars as pl

from leeward.arrays import AnyArray
from leeward.contracts import contract_of
from leeward.release.manifest import to_json_text
from leeward.release.reading import Release

DRAWN: Final = {"visits": ("record", "visit"), "disassociation": ("node", "chunk", "subrecord")}
"""Columns of drawn numbers, each inside of the one before. Other methods' visits and positions keep an order."""

RECORD: Final = ("record",)


def content_digest(release: Release) -> str:
    """SHA-256 of the method, its parameters, and the rows of all data files in a canonical form."""
    drawn = DRAWN.get(release.method, RECORD)
    told = {"method": release.method, "parameters": dict(release.parameters)}
    digest = hashlib.sha256(to_json_text(told).encode())
    said: list[AnyArray] = []
    contract = contract_of(release.method)
    own = {path for path, _ in contract.files_of(release.parameters)} if contract else set()
    copied = {name.removesuffix(".parquet") + ".csv" for name in release.names()} - {each[5:] for each in own}
    parents: pl.DataFrame | None = None
    for place, name in enumerate(each for each in release.names() if each not in copied):
        table = release.table(name).collect()
        keys = [column for column in drawn if column in table.columns]
        if "parent" in table.columns and keys:
            parents = table.select(keys[0], "parent")
            table = table.drop("parent")
        rows = _hashes_of_rows(table, keys, place)
        if keys:
            said.append(_sums(table.select(keys), rows))
        else:
            digest.update(name.encode() + np.sort(rows).tobytes())
    numbers = _joined(said)
    if parents is not None:
        numbers = _refine(numbers, parents)
    digest.update(np.sort(numbers).tobytes())
    return digest.hexdigest()


def _mix(values: AnyArray, salt: int) -> AnyArray:
    """Scramble 64-bit numbers (the finisher of SplitMix64), so that sums of them tell multisets apart."""
    found = values.astype(np.uint64) + np.uint64((0x9E3779B97F4A7C15 * (salt + 1)) % 2**64)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return found ^ (found >> np.uint64(31))


def _hashes_of_rows(table: pl.DataFrame, keys: list[str], place: int) -> AnyArray:
    """uint64 of each row's text without its numbers: the first 8 bytes of its SHA-256."""
    if table.width == len(keys):
        return _mix(np.zeros(table.height, np.uint64), place)
    texts = table.select(pl.struct(pl.exclude(keys)).struct.json_encode().alias("text"))["text"]
    known = texts.unique()
    first = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") for text in known]
    found = pl.DataFrame({"text": known, "hash": pl.Series(first, dtype=pl.UInt64)})
    rows = texts.to_frame().join(found, on="text", how="left", maintain_order="left")["hash"]
    return _mix(rows.to_numpy(), place)


def _sums(keys: pl.DataFrame, rows: AnyArray) -> AnyArray:
    """What a table says of each of its outermost numbers (0, 1, …), gathered from the innermost ones."""
    names = keys.columns
    frame = keys.with_columns(color=pl.Series(rows))
    while len(names) > 1:
        sums = frame.group_by(names).agg(pl.col("color").sum())
        frame = sums.with_columns(color=pl.Series(_mix(sums["color"].to_numpy(), len(names))))
        names = names[:-1]
    found = np.zeros(1 + max(frame[names[0]].to_list(), default=-1), np.uint64)
    np.add.at(found, frame[names[0]].to_numpy(), frame["color"].to_numpy())
    return found


def _joined(said: list[AnyArray]) -> AnyArray:
    """What all tables say of each outermost number."""
    total = np.zeros(max(map(len, said), default=0), np.uint64)
    for salt, part in enumerate(said):
        total[: len(part)] += _mix(part, salt)
    return total


def _refine(colors: AnyArray, parents: pl.DataFrame) -> AnyArray:
    """Tell each node by its parent and its children, too, as long as that tells more nodes apart."""
    below = parents.drop_nulls()
    child, parent = below[below.columns[0]].to_numpy(), below["parent"].to_numpy()
    apart = -1
    while len(np.unique(colors)) > apart:
        apart = len(np.unique(colors))
        above, sums = np.zeros_like(colors), np.zeros_like(colors)
        above[child] = _mix(colors[parent], 101)
        np.add.at(sums, parent, _mix(colors[child], 102))
        colors = _mix(colors + above + _mix(sums, 103), 104)
    return colors
