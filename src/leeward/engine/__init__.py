"""The engine: the only place that knows where work runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from leeward.engine.local import (
    Frame,
    Kernel,
    LocalEngine,
    Task,
    ahead,
    at_most,
    available_threads,
    beside,
    once,
    over_blocks,
    part_file,
    pool,
    whole_or_not,
)
from leeward.errors import BadInput, did_you_mean

__all__ = [
    "Engine",
    "Frame",
    "Kernel",
    "LocalEngine",
    "Task",
    "ahead",
    "at_most",
    "available_threads",
    "beside",
    "keeps_rows",
    "make",
    "once",
    "over_blocks",
    "part_file",
    "pool",
    "running",
    "whole_or_not",
]

if TYPE_CHECKING:
    from leeward.engine.spark import SparkEngine

Engine: TypeAlias = "LocalEngine | SparkEngine"
"""What every engine offers; methods see nothing else of where work runs."""

NAMES = ("local", "spark")


def make(
    spec: str | Mapping[str, Any] | Engine | None = None, threads: int | None = None, *, shared: bool = False
) -> Engine:
    """The engine of a spec: 'local', 'spark', `{spark: {master: 'local[2]', memory: 4g, config: {…}}}` or
    `{spark: {remote: 'sc://host'}}`.

    `threads` bounds the kernels at work; None uses every core that this process may use. An engine passes. BadInput
    for one that is `shared` where the caller would send it rows.
    """
    if threads is not None and threads < 1:
        raise BadInput(f"`threads` must be at least 1; got {threads}.")
    if spec is None or spec == "local":
        return LocalEngine(threads or available_threads())
    settings: Mapping[str, Any] = {}
    if isinstance(spec, str):
        name = spec
    elif isinstance(spec, Mapping):
        name, settings = _only_entry(spec)
    else:
        return spec
    if name == "local":
        return LocalEngine(_threads(settings, threads))
    if name == "spark":
        from leeward.engine.spark import SparkEngine, SparkSettings

        wanted = SparkSettings.of(settings)
        if wanted.shared and not shared:
            raise BadInput(
                "`shared` of the engine is for `leeward protect SPEC` alone; here rows go through this process: leave "
                "it out."
            )
        return SparkEngine.start(wanted, threads)
    raise BadInput(f"No engine '{name}'.{did_you_mean(name, NAMES)} Engines: {', '.join(NAMES)}.")


@contextmanager
def running(
    spec: str | Mapping[str, Any] | Engine | None = None, threads: int | None = None, *, shared: bool = False
) -> Iterator[Engine]:
    """The engine of a spec for one run, at whose end a session on a server ends too. A session on this machine goes on:
    the next run need not start it."""
    engine = make(spec, threads, shared=shared)
    try:
        yield engine
    finally:
        if engine is not spec and engine.ends:
            engine.close()


def keeps_rows(spec: Any) -> bool:
    """Whether the engine of a spec keeps all rows with its workers (`shared`)."""
    return isinstance(spec, Mapping) and bool((_only_entry(spec)[1]).get("shared"))


def _threads(settings: Mapping[str, Any], threads: int | None) -> int:
    for key in settings:
        if key != "threads":
            hint = did_you_mean(key, ["threads"])
            raise BadInput(f"The local engine has no setting '{key}'.{hint} Settings: threads.")
    chosen = settings.get("threads", threads)
    return available_threads() if chosen is None else int(chosen)


def _only_entry(spec: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if len(spec) != 1:
        raise BadInput(f"The engine is one of {', '.join(NAMES)}; got {len(spec)} entries.")
    ((name, settings),) = spec.items()
    return str(name), settings or {}
