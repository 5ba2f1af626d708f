"""Threads: how many this run may use, and the only pools of the house.

`at_most(threads)` bounds everything that is started inside it, in whatever thread, so that a measure deep in a
report keeps to `--threads` without having it handed down. With one thread all work is done by the caller.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")

BLOCKS_A_THREAD = 4
SMALLEST_BLOCK = 16

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
    """A pool of `threads`, or of as many as there are; never more than the bound. To be used in a `with`.

    Its work should release the interpreter's lock, as compiled kernels do.
    """
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
    """A pool of processes, for kernels of plain Python."""
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
