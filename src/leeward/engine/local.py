"""The local engine: Polars for relational steps, a pool of threads (or of processes) for kernels; and the only pools of
the house, with how many threads a run may use.

`at_most(threads)` bounds everything that is started inside it, in whatever thread, so that a measure deep in a
report keeps to `--threads` without having it handed down. With one thread all work is done by the caller.
"""

from __future__ import annotations

import itertools
import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl
import polars.selectors as cs
import pyarrow as pa

if TYPE_CHECKING:
    import narwhals as nw

    Frame = nw.LazyFrame[Any]
else:  # an annotation only: most commands hand no frame of Narwhals about
    Frame = Any

Kernel = Callable[[pa.Table], pa.Table]
"""A pure function of one group's rows; it never knows where it runs."""

Task = Callable[[int, Path], pa.Table]
"""A long piece of work: a pure function of a number and of the files of this number in a folder (`part_file`)."""

UNSEEN = (
    "the workers of the cluster do not see this folder. Work in one that they see, or leave `shared` out of the "
    "engine: rows go through this process then."
)
"""Said of a folder that is not there for a worker."""

TASK = "task"

# pyarrow looks for pandas at its first array, and of two threads that make theirs together one fails: it looks now.
pa.array(np.zeros(1))

Result = TypeVar("Result")

BLOCKS_A_THREAD = 4
SMALLEST_BLOCK = 16

BLOCK_ROWS = 20_000
"""Small groups go to a thread in blocks of about this many rows, so that the hand-over costs little."""

_bound: ContextVar[int | None] = ContextVar("threads", default=None)
_helpers: ContextVar[Executor | None] = ContextVar("helpers", default=None)


def processors() -> int:
    """The processors that this process may use; where the system does not say (macOS), those of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_threads() -> int:
    """Threads that work may be shared out to: the bound of `at_most`, or the processors."""
    return _bound.get() or processors()


@contextmanager
def at_most(threads: int | None) -> Iterator[None]:
    """Inside, `available_threads` is `threads` and no pool has more; None leaves the bound as it is."""
    bound = _bound.set(threads or _bound.get())
    try:
        with _Threads(max(1, available_threads() - 1)) as helpers:  # started when first used
            token = _helpers.set(helpers)
            try:
                yield
            finally:
                _helpers.reset(token)
    finally:
        _bound.reset(bound)


class _Caller(Executor):
    """Work is done when it is submitted, by the thread that submits it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


class _Threads(ThreadPoolExecutor):
    """Threads that know the bound of the thread that submits."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(copy_context().run, fn, *args, **kwargs)

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> bool | None:
        """Waits for the work, unless the caller was interrupted: a kernel may go on for minutes."""
        if kind is None or issubclass(kind, Exception):
            return super().__exit__(kind, *rest)
        self.shutdown(wait=False, cancel_futures=True)
        return None


def pool(threads: int | None = None) -> Executor:
    """A pool of `threads` (default: all there are), never above the bound, for a `with`. Its work should release the
    GIL."""
    most = available_threads()
    size = most if threads is None else min(threads, _bound.get() or threads)
    return _Threads(size) if size > 1 else _Caller()


def beside(*, at_once: bool = True) -> Executor:
    """One thread beside the caller's, or with a bound of 1, or not `at_once`, the caller itself."""
    return _Threads(1) if at_once and available_threads() > 1 else _Caller()


def ahead(items: Iterator[Result]) -> Iterator[Result]:
    """The items, the next one made in a thread while the caller works on the last."""
    with beside() as other:
        waiting = other.submit(next, items, None)
        while (item := waiting.result()) is not None:
            waiting = other.submit(next, items, None)
            yield item


def processes(workers: int) -> Executor:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Spawned: forked children of a process with threads may hang on a lock that one of these held.
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def over_blocks(
    work: Callable[[int, int], Result],
    n: int,
    *,
    threads: int | None = None,
    smallest: int = SMALLEST_BLOCK,
) -> list[Result]:
    """`work(low, high)` over 0 … n in blocks of at least `smallest`; the results in order.

    `n` of 0 is one empty block. The caller works too, beside threads that stay for the next blocks inside `at_most`:
    starting one takes longer than many a block.
    """
    most = threads or available_threads()
    size = max(smallest, -(-n // (most * BLOCKS_A_THREAD)))
    bounds = [(low, min(low + size, n)) for low in range(0, n, size)] or [(0, 0)]
    waiting = deque(enumerate(bounds))
    results: dict[int, Result] = {}

    def take() -> None:
        while True:
            try:
                block, (low, high) = waiting.popleft()
            except IndexError:
                return
            try:
                results[block] = work(low, high)
            except BaseException:
                waiting.clear()
                raise

    others = min(most, _bound.get() or most, len(bounds)) - 1
    with _at_hand(others) as helpers:
        takers = [*(helpers.submit(take) for _ in range(others)), _Caller().submit(take)]
        begun = [each for each in takers if not each.cancel()]
        wait(begun)
    for each in begun:
        each.result()
    return [results[block] for block in range(len(bounds))]


@contextmanager
def _at_hand(threads: int) -> Iterator[Executor]:
    """The helpers of `at_most`; outside of it some of one's own."""
    kept = _helpers.get()
    if kept is not None or not threads:
        yield kept or _Caller()
        return
    with _Threads(threads) as helpers:
        yield helpers


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The one Arrow type that kernels see for a logical type: no large or view variants, no dictionaries."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or kind == pa.string_view():
        return pa.string()
    if pa.types.is_large_binary(kind) or kind == pa.binary_view():
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_unsigned_integer(kind):
        return pa.int64()
    return kind


def plain_table(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([(field.name, plain_type(field.type)) for field in table.schema]))


def plain_frame(frame: pl.LazyFrame) -> pl.LazyFrame:
    return frame.with_columns(
        cs.enum().cast(pl.String), cs.categorical().cast(pl.String), cs.unsigned_integer().cast(pl.Int64)
    )


def order_of(columns: Sequence[str], by: str, order: Sequence[str] | None) -> list[str]:
    chosen = columns if order is None else order
    return [column for column in chosen if column != by]


def check_schema(result: pa.Table, schema: pa.Schema) -> pa.Table:
    """The kernel's result, refused when it is not of the promised schema."""
    if not isinstance(result, pa.Table) or result.schema.names != schema.names:
        got = result.schema.names if isinstance(result, pa.Table) else type(result).__name__
        raise ValueError(f"the kernel promised the columns {schema.names} and returned {got}")
    return result.cast(schema)


@dataclass(frozen=True)
class LocalEngine:
    """Relational steps as Narwhals lazy frames, and kernels over groups, on this machine. Kernels run side by side in
    threads if they release the GIL.

    Frames hold plain types, as those of every engine: categories become text and unsigned whole numbers Int64. The
    order of rows in a frame means nothing: sort what you collect.

    With `processes` each group of rows goes to one of `threads` processes instead, this one among them, for kernels of
    plain Python; such a kernel can be pickled, and the caller's main module may be imported again. `told(rows)` reports
    progress.
    """

    threads: int
    name: str = "local"
    ends: bool = False
    """Whether it is closed at the end of a run."""
    processes: bool = False
    told: Callable[[int], None] | None = None

    def frame(self, source: pl.DataFrame | pl.LazyFrame | str | Path) -> Frame:
        import narwhals as nw

        polars = pl.scan_parquet(source) if isinstance(source, (str, Path)) else source.lazy()
        return nw.from_native(plain_frame(polars))

    def collect(self, frame: Frame) -> pl.DataFrame:
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
        """`kernel` on the rows of each value of `by`; results joined in ascending order of `by`.

        The rows of a group come to the kernel sorted by `order`; None sorts by all columns from left to right, so that
        a kernel gives the same on every engine; an empty sequence promises that the kernel does not mind. Text arrives
        as `pa.string()`. What the kernel returns must have `schema`. Raises ValueError for a null in `by` and for a
        result with other columns.
        """
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

    def map_tasks(
        self,
        numbers: Sequence[int],
        kernel: Task,
        schema: pa.Schema,
        folder: Path,
        takes: Sequence[str],
        gives: Sequence[str],
    ) -> pa.Table:
        """`kernel(number, folder)` for each number; results, of `schema`, in their order. `takes` and `gives` name the
        files that the kernel reads and writes for its number: where it runs there may be no others. Numbers ascend."""
        with pool(self.threads) as workers:
            parts = list(workers.map(lambda number: check_schema(kernel(number, folder), schema), numbers))
        return pa.concat_tables([schema.empty_table(), *parts]).combine_chunks()

    def there(self, work: Callable[[], Result]) -> Result:
        """What `work` gives, done where patients' rows may be: of an engine that is `shared` in a worker."""
        return work()

    def close(self) -> None:
        """Nothing is held."""


def part_file(folder: Path, part: str, number: int) -> Path:
    """The file of a task in a folder of tasks."""
    return folder / f"{part}-{number}.parquet"


@contextmanager
def whole_or_not(folder: Path) -> Iterator[Path]:
    """A folder whose files come into `folder` when the block ends well, each at once: a task may run twice, side by
    side, or be killed."""
    with TemporaryDirectory(prefix="attempt-", dir=folder) as place:
        yield Path(place)
        for file in Path(place).iterdir():
            file.replace(folder / file.name)


def once(file: Path, work: Callable[[], Result]) -> Result:
    """What `work` gives, which is at `file` from then on: it is not done again."""
    if not file.is_file():
        done = work()
        with whole_or_not(file.parent) as aside:
            (aside / file.name).write_bytes(pickle.dumps(done))
    result: Result = pickle.loads(file.read_bytes())
    return result


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
    """The kernel's results in the order of the groups. The caller works too, above all while the others start."""
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
