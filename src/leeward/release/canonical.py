"""A digest of what a release says, whatever the order of its rows and the numbers that were drawn for its records.

Numbers that are drawn (`DRAWN`) only say what belongs together. So a number is told by the rows that have it, and a
node of clusters by those below it, too; releases of equal digests differ by such numbers alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from graphlib import TopologicalSorter
from typing import Final

import polars as pl

from leeward.contracts import contract_of
from leeward.release.manifest import to_json_text
from leeward.release.reading import Release

DRAWN: Final = {"visits": ("record", "visit"), "disassociation": ("node", "chunk", "subrecord")}
"""Columns of drawn numbers, each inside of the one before. Other methods' visits and positions keep an order."""


def content_digest(release: Release) -> str:
    """SHA-256 of the method, its parameters, and the rows of all data files in a canonical form."""
    contract = contract_of(release.method)
    own = {path for path, _ in contract.files_of(release.parameters)} if contract else set()
    copied = {name.removesuffix(".parquet") + ".csv" for name in release.names()} - {each[5:] for each in own}
    said = [to_json_text({"method": release.method, "parameters": dict(release.parameters)})]
    told: list[pl.DataFrame] = []
    parents: pl.DataFrame | None = None
    for name in (each for each in release.names() if each not in copied):
        table = release.table(name).collect()
        keys = [column for column in DRAWN.get(release.method, ("record",)) if column in table.columns]
        if "parent" in table.columns and keys:
            parents = table.select(keys[0], "parent").drop_nulls()
            table = table.drop("parent")
        text = pl.struct(pl.exclude(keys)).struct.json_encode() if table.width > len(keys) else pl.lit("")
        rows = table.select(*keys, text=text)
        while keys:
            joined = pl.col("text").str.join(chr(28 + len(keys)))  # no text of a row has such a sign
            rows = rows.sort(*keys, "text").group_by(keys, maintain_order=True).agg(joined)
            keys = keys[:-1]
        if rows.width > 1:
            told.append(rows.select(pl.nth(0).alias("number"), text=name + "\x1c" + pl.col("text")))
        else:
            said.append(name + _digest_of(rows["text"]))
    if told:
        numbers = pl.concat(told).group_by("number").agg(pl.col("text").sort().str.join("\x1b"))
        said.append(_digest_of(numbers["text"] if parents is None else _trees(numbers, parents)))
    return _digest_of(said)


def _digest_of(texts: Iterable[str]) -> str:
    """Of texts in whatever order."""
    digest = hashlib.sha256()
    for text in sorted(texts):
        digest.update(text.encode() + b"\x1a")
    return digest.hexdigest()


def _trees(numbers: pl.DataFrame, parents: pl.DataFrame) -> Iterable[str]:
    """What each tree of nodes says: its root's text and what those below it say."""
    texts: dict[int, str] = dict(numbers.iter_rows())
    below: dict[int, list[int]] = {node: [] for node in texts}
    for node, parent in parents.iter_rows():
        below[parent].append(node)
    for node in TopologicalSorter(below).static_order():  # those below come first
        texts[node] = _digest_of([texts[node], *(texts.pop(each) for each in below[node])])
    return texts.values()
