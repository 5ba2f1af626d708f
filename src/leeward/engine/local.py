"""The local engine: Polars for relational steps, a pool of threads for kernels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa

from leeward.engine._arrow import checked, order_of, plain_frame, plain_table
from leeward.engine.engine import Frame, Kernel

BLOCK_ROWS = 20_000
"""Small groups go to a thread in blocks of about this many rows, so that the hand-over costs little."""


def available_threads() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class LocalEngine:
    """Everything in this process. Kernels must release the GIL to run side by side."""

    threads: int
    name: str = "local"

    def frame(self, source: pl.DataFrame | pl.LazyFrame | str | Path) -> Frame:
        """A lazy frame over a Polars frame or a Parquet path."""
        polars = pl.scan_parquet(source) if isinstance(source, (str, Path)) else source.lazy()
        return nw.from_native(plain_frame(polars))

    def collect(self, frame: Frame) -> pl.DataFrame:
        """The rows of a lazy frame, in no particular order."""
        native: pl.LazyFrame = frame.to_native()
        return plain_frame(native).collect()

    def map_groups(
        self,
        frame: Frame | pl.DataFrame,
        by: str,
        kernel: Kernel,
        schema: pa.Schema,
        order: Sequence[str] | None = None,
    ) -> pa.Table:
        """`kernel` on the rows of each value of `by`; see `Engine.map_groups`."""
        native: pl.LazyFrame = frame.lazy() if isinstance(frame, pl.DataFrame) else frame.to_native()
        rows = plain_frame(native).collect()
        if rows[by].null_count():
            raise ValueError(f"the grouping column '{by}' has nulls")
        rows = rows.sort(by, *order_of(rows.columns, by, order), maintain_order=True)
        table = plain_table(rows.to_arrow())
        bounds = _bounds(rows[by])
        del rows

        def run(block: tuple[int, int]) -> list[pa.Table]:
            first, last = block
            return [
                checked(kernel(table.slice(bounds[g], bounds[g + 1] - bounds[g])), schema)
                for g in range(first, last)
            ]

        with ThreadPoolExecutor(self.threads) as pool:
            parts = [part for done in pool.map(run, _blocks(bounds)) for part in done]
        return pa.concat_tables([schema.empty_table(), *parts]).combine_chunks()

    def close(self) -> None:
        """Nothing is held."""


def _bounds(keys: pl.Series) -> list[int]:
    """Where each run of equal keys begins, and the end of the last."""
    if not len(keys):
        return [0]
    starts = np.flatnonzero(keys.ne_missing(keys.shift(1)).to_numpy())
    starts = starts if len(starts) and starts[0] == 0 else np.concatenate(([0], starts))
    return [*starts.tolist(), len(keys)]


def _blocks(bounds: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Runs of groups, first to last exclusive, of about BLOCK_ROWS rows."""
    first = 0
    for group in range(len(bounds) - 1):
        if bounds[group + 1] - bounds[first] >= BLOCK_ROWS:
            yield first, group + 1
            first = group + 1
    if first < len(bounds) - 1:
        yield first, len(bounds) - 1
