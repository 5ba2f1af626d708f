"""How much memory this process may still take, and a watch that ends it with a sentence before the system kills it.

Counted from what Linux says: free memory of the machine, limits of control groups (both versions, from the process's
own group upwards), of the address space and of the data segment. Elsewhere nothing is known, and nothing is refused.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MARGIN = 128 * 2**20
"""Bytes that the watch leaves free: more than a run takes between two looks."""

EVERY, SELDOM = 0.02, 0.5
"""Seconds between two looks, at least and at most."""

FASTEST = 16 * 2**30
"""Bytes a second: no process takes memory faster, so the next look waits while that much is left."""

GROUPS = ((Path("/sys/fs/cgroup"), "", "memory.max", "memory.current"),
          (Path("/sys/fs/cgroup/unified"), "", "memory.max", "memory.current"),
          (Path("/sys/fs/cgroup/memory"), "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"))  # fmt: skip
"""Where control groups are mounted, the controller's name in /proc/self/cgroup, and their files."""

ARENA = {"MIMALLOC_ARENA_RESERVE": "65536"}
"""Arrow's allocator maps 64 MiB at its first buffer, in place of 1 GiB, all of which counts against a limit."""

UNBOUNDED = 2**60
"""Limits above it are none."""


def free_memory() -> int | None:
    """Bytes that this process may still take; None where the system does not say."""
    of_machine = _kilobytes(Path("/proc/meminfo"), "MemAvailable")
    found = (of_machine, _of_groups(), *_of_limits())
    return min((free for free in found if free is not None), default=None)


def memory_in_use() -> int:
    """Bytes that this process holds; 0 where the system does not say."""
    return _status("VmRSS") or 0


def _of_limits() -> list[int]:
    """What `ulimit -v` and `ulimit -d` leave: of the address space, and of what is mapped to be written."""
    try:
        import resource
    except ImportError:  # not a system with such limits
        return []
    left = []
    for kind, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        limit, taken = resource.getrlimit(kind)[0], _status(name)
        if limit != resource.RLIM_INFINITY and taken is not None:
            left.append(max(0, limit - taken))
    return left


def _of_groups() -> int | None:
    """The least that the process's group or one above it has left."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    own = {controller: path for _, controllers, path in (line.split(":", 2) for line in lines)
           for controller in controllers.split(",")}  # fmt: skip
    left = []
    for root, controller, limit_file, usage_file in GROUPS:
        if controller not in own:
            continue
        group = root / own[controller].lstrip("/")
        for folder in (group, *group.parents):
            if not folder.is_relative_to(root):
                break
            limit, usage = _number(folder / limit_file), _number(folder / usage_file)
            if limit is not None and usage is not None and limit < UNBOUNDED:
                left.append(max(0, limit - usage + _cache(folder)))
    return min(left, default=None)


def _cache(folder: Path) -> int:
    """Bytes of files' pages in a group, which the system gives back before it ends a process."""
    found = 0
    with suppress(OSError, ValueError):
        for line in (folder / "memory.stat").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(" ")
            if name in ("inactive_file", "active_file"):
                found += int(value)
    return found


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # no such file, or `max`
        return None


def _status(name: str) -> int | None:
    return _kilobytes(Path("/proc/self/status"), name)


def _kilobytes(path: Path, name: str) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return None


@contextmanager
def watch_memory(end: Callable[[], None]) -> Iterator[None]:
    """Call `end`, from a thread of its own, when less than `MARGIN` is left; `end` ends the process."""
    if os.name != "posix" or free_memory() is None:
        yield
        return
    if _of_limits():
        os.environ.update(ARENA | os.environ)  # before Arrow is loaded, which reads it
    over = threading.Event()

    def watch() -> None:
        wait = EVERY
        while not over.wait(wait):
            free = free_memory()
            if free is None:
                continue
            if free < MARGIN:
                end()
            wait = min(SELDOM, max(EVERY, (free - MARGIN) / FASTEST))

    threading.Thread(target=watch, name="memory", daemon=True).start()
    try:
        yield
    finally:
        over.set()
