"""The local engine: Polars for relational steps, a pool of threads (or of processes) for kernels."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.engine._arrow import check_schema, order_of, plain_frame, plain_table
from leeward.engine.engine import Frame, Kernel
from leeward.engine.pool import pool, processes

BLOCK_ROWS = 20_000
"""Small groups go to a thread in blocks of about this many rows, so that the hand-over costs little."""


@dataclass(frozen=True)
class LocalEngine:
    """Everything on this machine. Kernels run side by side in threads if they release the GIL.

    With `processes` each group of rows goes to one of `threads` processes instead, this one among them, for kernels of
    plain Python; such a kernel can be pickled, and the caller's main module may be imported again. `told(rows)` reports
    progress.
    """

    threads: int
    name: str = "local"
    processes: bool = False
    told: Callable[[int], None] | None = None

    def frame(self, source: pl.DataFrame | pl.LazyFrame | str | Path) -> Frame:
        """A lazy frame over a Polars frame or a Parquet path."""
        import narwhals as nw

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
        if self.processes and self.threads > 1:
            groups = (table.slice(a, b - a) for a, b in itertools.pairwise(bounds))
            parts = list(_in_processes(kernel, schema, groups, self.threads, self.told))
            return pa.concat_tables([schema.empty_table(), *parts]).combine_chunks()

        def run(block: tuple[int, int]) -> list[pa.Table]:
            first, last = block
            done = []
            for g in range(first, last):
                done.append(check_schema(kernel(table.slice(bounds[g], bounds[g + 1] - bounds[g])), schema))
                if self.told is not None:
                    self.told(bounds[g + 1] - bounds[g])
            return done

        with pool(self.threads) as workers:
            parts = [part for done in workers.map(run, _blocks(bounds)) for part in done]
        return pa.concat_tables([schema.empty_table(), *parts]).combine_chunks()

    @property
    def sees_files(self) -> bool:
        """Kernels run on this machine."""
        return True

    def map_tasks(self, tasks: pl.DataFrame, kernel: Kernel, schema: pa.Schema) -> pa.Table:
        """`kernel` on each row of a small table; see `Engine.map_tasks`."""
        table = plain_table(tasks.sort(tasks.columns[0]).to_arrow())
        with pool(self.threads) as workers:
            parts = list(
                workers.map(lambda i: check_schema(kernel(table.slice(i, 1)), schema), range(table.num_rows))
            )
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


def _in_processes(
    kernel: Kernel,
    schema: pa.Schema,
    groups: Iterable[pa.Table],
    workers: int,
    told: Callable[[int], None] | None,
) -> Iterator[pa.Table]:
    """The kernel's results in the order of the groups. What the others have no hand free for, as long as they start
    above all, the caller does itself."""
    waiting: deque[tuple[int, Future[bytes] | pa.Table]] = deque()
    with processes(workers - 1) as others:
        for group in [*groups, None]:
            if group is not None:
                away = sum(isinstance(result, Future) and not result.done() for _, result in waiting)
                if away < 2 * (workers - 1):
                    waiting.append((group.num_rows, others.submit(_remote, kernel, schema, _pack(group))))
                else:
                    waiting.append((group.num_rows, check_schema(kernel(group), schema)))
            while waiting and (
                group is None or not isinstance(waiting[0][1], Future) or waiting[0][1].done()
            ):
                rows, result = waiting.popleft()
                yield _unpack(result.result()) if isinstance(result, Future) else result
                if told is not None:
                    told(rows)


def _remote(kernel: Kernel, schema: pa.Schema, group: bytes) -> bytes:
    """The kernel in its process."""
    return _pack(check_schema(kernel(_unpack(group)), schema))


def _pack(table: pa.Table) -> bytes:
    """A table as bytes: of a slice only its own rows, unlike pickle."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpack(packed: bytes) -> pa.Table:
    return pa.ipc.open_stream(packed).read_all()
