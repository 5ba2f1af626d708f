"""Pools keep to the bound, and stand in one place."""

from __future__ import annotations

import ast
import os
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.waiting import LONG, wait_until

import leeward
from leeward import engine
from leeward.engine.local import at_most, available_threads, beside, over_blocks, pool, processors

SOURCE = Path(leeward.__file__).parent
POOLS = {"ThreadPoolExecutor", "ProcessPoolExecutor", "Pool", "Thread", "sched_getaffinity", "cpu_count"}


def most_at_once(executor: object, tasks: int = 6) -> tuple[int, set[int]]:
    """The most tasks at work at one time, and the threads that did them."""
    lock, now, most, threads = threading.Lock(), 0, 0, set[int]()

    def task(_: int) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            threads.add(threading.get_ident())
        time.sleep(0.01)
        with lock:
            now -= 1

    with executor as workers:  # type: ignore[attr-defined]
        list(workers.map(task, range(tasks)))
    return most, threads


def test_one_thread_is_the_caller() -> None:
    with at_most(1):
        for executor in (pool(), pool(8), beside()):
            assert most_at_once(executor) == (1, {threading.get_ident()})
        assert over_blocks(lambda a, b: threading.get_ident(), 1000) == [threading.get_ident()] * 4


def test_no_pool_is_larger_than_the_bound() -> None:
    with at_most(2):
        most, threads = most_at_once(pool(8), 12)
        assert most <= 2 and len(threads) <= 2 and threading.get_ident() not in threads
    assert most_at_once(pool(3), 12)[0] <= 3


def test_the_bound_reaches_pools_inside_of_pools() -> None:
    with at_most(1), pool() as workers:
        assert workers.submit(available_threads).result(timeout=LONG) == 1
    with at_most(3), pool() as workers:
        assert workers.submit(available_threads).result(timeout=LONG) == 3
    assert available_threads() == processors()


def test_an_inner_bound_ends_with_its_block() -> None:
    with at_most(4):
        with at_most(2):
            assert available_threads() == 2
        with at_most(None):
            assert available_threads() == 4
        assert available_threads() == 4 and engine.make("local").threads == 4


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 1000])
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_blocks_cover_the_range_in_order(n: int, threads: int) -> None:
    blocks = over_blocks(lambda low, high: (low, high), n, threads=threads)
    assert [i for low, high in blocks for i in range(low, high)] == list(range(n))


def test_an_error_reaches_the_caller() -> None:
    def broken(_: int) -> None:
        raise KeyError("no")

    for bound in (1, 2):
        with at_most(bound), pool() as workers, pytest.raises(KeyError):
            list(workers.map(broken, range(3)))


def test_blocks_are_done_by_the_caller_and_by_threads_that_stay() -> None:
    """Threads are compared, not their identities: those are given anew once a thread has ended."""
    seen: set[threading.Thread] = set()
    awaited = 3

    def block(low: int, high: int) -> None:
        seen.add(threading.current_thread())
        wait_until(lambda: len(seen) >= awaited, "all threads come")

    before = set(threading.enumerate())
    with at_most(3):
        for _ in range(10):
            over_blocks(block, 12, smallest=1)
        assert threading.current_thread() in seen and len(seen) == 3
    assert set(threading.enumerate()) <= before  # none is left at work
    seen.clear()
    awaited = 2
    over_blocks(block, 12, threads=2, smallest=1)
    assert threading.current_thread() in seen and len(seen) == 2 and set(threading.enumerate()) <= before


@pytest.mark.parametrize("bound", [1, 3])
@pytest.mark.parametrize("outside", [False, True])
def test_a_block_that_fails_is_told_when_no_other_is_at_work(bound: int, outside: bool) -> None:
    at_work: list[int] = []

    def block(low: int, high: int) -> None:
        at_work.append(low)
        time.sleep(0.001 * low)
        at_work.remove(low)
        if low == 6:
            raise IndexError("no")

    with nullcontext() if outside else at_most(bound):
        with pytest.raises(IndexError, match="no"):
            over_blocks(block, 12, threads=bound, smallest=1)
        assert at_work == []


def test_blocks_of_blocks_wait_for_no_thread() -> None:
    def block(low: int, high: int) -> list[int]:
        return over_blocks(lambda a, b: low + a, 4, smallest=1)

    with at_most(2):
        assert over_blocks(block, 4, smallest=1) == [[low + a for a in range(4)] for low in range(4)]


def test_a_system_without_affinity_counts_its_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert processors() == os.cpu_count()


def test_no_pool_outside_the_engine() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        # The watch over the memory is a thread that works on nothing.
        if path in {SOURCE / "engine" / "local.py", SOURCE / "memory.py"}:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and (node.module or "") in {
                "concurrent.futures",
                "concurrent",
                "multiprocessing",
                "multiprocessing.pool",
                "threading",
                "os",
            }:
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                names = (
                    [node.attr] if node.value.id in {"os", "futures", "threading", "multiprocessing"} else []
                )
            found += [
                f"{path.relative_to(SOURCE)}, line {node.lineno}: {name}" for name in POOLS & set(names)
            ]
    assert found == []
