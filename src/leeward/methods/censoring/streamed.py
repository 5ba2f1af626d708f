"""A population behind an engine: it is counted block by block and never held as a whole.

Distinguishability is a sum over people, so a population may be cut anywhere between people. Each question is one pass:
count each patient's codes, gather patients into blocks, index a block, answer, add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from leeward.analysis.containment import Index, Multisets
from leeward.analysis.containment.index import Projection, merge_rows
from leeward.arrays import Int64s
from leeward.engine import Engine, Frame
from leeward.errors import BadInput

BLOCK_ROWS = 2_000_000
"""Rows of a block, about: some hundred thousand people, whose index fits the memory of one worker."""
SUFFIX = 2
"""Identifiers that are no numbers are gathered by their last characters, which differ more evenly than the first."""

ANSWER = pa.schema([("place", pa.int64()), ("value", pa.int64())])
OVERLAP = pa.schema([("record", pa.int64()), ("row", pa.binary()), ("weight", pa.int64())])
COLUMNS = ("patient", "code")


class Streamed:
    """Implements `Population` on an engine. `source`: one row a recorded code: `patient`, `code` as the sample spells
    it, where known `visit`. `codes`: the sample's, sorted. `caps`: int64[codes]; counts above these are not
    distinguished. `originals`: records that will be asked for in any case; they are counted in the first pass."""

    asks_at_once = True
    threads = 1

    def __init__(
        self,
        engine: Engine,
        source: str | Path | pl.DataFrame,
        codes: Sequence[str],
        caps: Int64s,
        originals: Multisets,
    ) -> None:
        self._engine = engine
        self._codes = tuple(codes)
        self.caps = caps
        self._originals = originals
        self._frame = mentions(self._in_blocks(check_columns(engine.frame(source))))
        self._survey()

    def _in_blocks(self, events: Frame) -> Frame:
        """`events` with the block of each patient; any function of the identifier will do."""
        patient = nw.col("patient")
        if events.collect_schema()["patient"].is_integer():
            rows = int(self._engine.collect(events.select(rows=nw.len())).item())
            return events.with_columns(block=patient.abs() % max(1, -(-rows // BLOCK_ROWS)))
        return events.with_columns(block=patient.cast(nw.String).str.tail(SUFFIX))

    def _survey(self) -> None:
        """The first pass: people, supports, and the sample's original records."""
        items = int(self.caps.sum())
        answers = self._add(partial(survey, originals=self._originals), 1 + items + len(self._originals))
        self.n = int(answers[0])
        self._supports = answers[1 : 1 + items]
        self._original_counts = answers[1 + items :]

    def supports(self) -> Int64s:
        return self._supports

    def counts(self, asked: Multisets, limit: int | None = None) -> Int64s:
        if asked is self._originals:
            return self._original_counts
        return self._add(partial(count_in_block, asked=asked, limit=limit), len(asked))

    def projections(self, asked: Multisets, floors: Int64s) -> Iterator[Projection]:
        if not len(asked):
            return
        kernel = partial(overlaps_in_block, asked=asked, floors=floors)
        overlaps = self._map(kernel, OVERLAP).sort_by("record")
        bounds = np.searchsorted(overlaps["record"].to_numpy(), np.arange(len(asked) + 1))
        for r in range(len(asked)):
            part = overlaps.slice(bounds[r], bounds[r + 1] - bounds[r])
            levels = asked.record(r)[1]
            rows = np.frombuffer(b"".join(part["row"].to_pylist()), np.uint16).reshape(-1, len(levels))
            yield merge_rows(rows, part["weight"].to_numpy().astype(np.int64), levels)

    def _add(self, answer: Any, places: int) -> Int64s:
        table = self._map(answer, ANSWER)
        total = np.zeros(places, np.int64)
        np.add.at(total, table["place"].to_numpy(), table["value"].to_numpy())
        return total

    def _map(self, answer: Any, schema: pa.Schema) -> pa.Table:
        kernel = partial(on_block, answer=answer, codes=self._codes, caps=self.caps)
        return self._engine.map_groups(self._frame, "block", kernel, schema, order=())


def check_columns(frame: Frame) -> Frame:
    names = frame.collect_schema().names()
    for name in COLUMNS:
        if name not in names:
            raise BadInput(f"population: no column '{name}'; a streamed population has `patient` and `code`.")
    return frame


def mentions(events: Frame) -> Frame:
    """`block`, `patient`, `code`, `mentions` of events; with a visit column a code counts once a visit."""
    keys = ("block", *COLUMNS)
    if "visit" in events.collect_schema().names():
        visit = nw.col("visit")
        known = events.filter(~visit.is_null()).unique([*keys, "visit"], keep="any").select(*keys)
        events = nw.concat([known, events.filter(visit.is_null()).select(*keys)])
    return events.select(*keys).group_by(*keys).agg(mentions=nw.len())


def on_block(table: pa.Table, answer: Any, codes: Sequence[str], caps: Int64s) -> pa.Table:
    """Index the people of one block and answer."""
    return answer(Index(people_of(table, codes), caps))


def people_of(table: pa.Table, codes: Sequence[str]) -> Multisets:
    patient = table["patient"].combine_chunks().dictionary_encode()
    person = patient.indices.to_numpy().astype(np.int64)
    code = (
        pc.fill_null(pc.index_in(table["code"], pa.array(codes, pa.string())), -1).to_numpy().astype(np.int64)
    )
    kept = np.flatnonzero(code >= 0)
    kept = kept[np.lexsort((code[kept], person[kept]))]
    held = np.bincount(person[kept], minlength=len(patient.dictionary))
    offsets = np.concatenate([[0], np.cumsum(held)]).astype(np.int64)
    return Multisets(
        offsets, code[kept].astype(np.int32), table["mentions"].to_numpy()[kept].astype(np.int32)
    )


def survey(index: Index, originals: Multisets) -> pa.Table:
    return _answer(np.concatenate([[index.n], index.supports(), index.counts(originals)]))


def count_in_block(index: Index, asked: Multisets, limit: int | None) -> pa.Table:
    return _answer(index.counts(asked, limit))


def overlaps_in_block(index: Index, asked: Multisets, floors: Int64s) -> pa.Table:
    """The block's distinct overlaps with each record."""
    found = list(index.projections(asked, floors))
    lengths = [len(projection.weights) for projection in found]
    rows = [row.tobytes() for projection in found for row in projection.rows]
    weights = np.concatenate([np.zeros(0, np.int64), *(projection.weights for projection in found)])
    record = np.repeat(np.arange(len(found)), lengths)
    return pa.table([pa.array(record), pa.array(rows, pa.binary()), pa.array(weights)], schema=OVERLAP)


def _answer(values: Int64s) -> pa.Table:
    places = np.flatnonzero(values)
    return pa.table([pa.array(places), pa.array(values[places].astype(np.int64))], schema=ANSWER)
