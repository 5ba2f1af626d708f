"""Runs of a table larger than memory: its events are on the disk, and no step holds more than one part of them.

What is held of all patients are their codes in numbers (`cohort.lenses`), and while disassociation makes its release
and the verifier reads it the nodes of the release (docs/how-to/large-data.md). The bytes of the release are those of a
cohort in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leeward.cohort.cohort import Cohort
from leeward.cohort.readers.stored import can_store, estimate_rows, store
from leeward.methods import METHODS
from leeward.release.aside import work_beside
from leeward.release.spec import SourceSpec, Spec
from leeward.runs.memory import engine_name, fits

Stored = tuple[Cohort, Cohort | None]
"""Source and population."""


@contextmanager
def stored_sources(spec: Spec, method: Any, out: Path) -> Iterator[Stored | None]:
    """The source, and the population where there is one, in files beside `out`; None where the run does not go by
    parts: one is no plain table of events in files, rows name the vocabularies of their codes, there is one partition,
    or memory is enough."""
    if not goes_by_parts(spec, method):
        yield None
        return
    with work_beside(out) as work:
        yield store_parts(spec, method, work)


def goes_by_parts(spec: Spec, method: Any) -> bool:
    """Whether the run would go by parts, as far as can be said before the source is read."""
    return can_go_by_parts(spec, method) and _is_large(spec, method)


def can_go_by_parts(spec: Spec, method: Any) -> bool:
    """Whether the method can, and source and population are tables of events in files, each the only one."""
    able = METHODS[method.name].in_parts is not None and method.can_store()
    return able and all(map(is_table, sources_of(spec)))


def store_parts(spec: Spec, method: Any, work: Path) -> Stored | None:
    found = store_sources(spec.source, spec.population, work)
    return None if found and _is_one_partition(spec, method, found[0]) else found


def sources_of(spec: Spec) -> list[SourceSpec]:
    return [each for each in (spec.source, spec.population) if each is not None]


def store_sources(source: SourceSpec, population: SourceSpec | None, work: Path) -> Stored | None:
    """Each in files of its own; None where one cannot be."""
    cohort = store_source(source, work / "source")
    if cohort is None or population is None:
        return None if cohort is None else (cohort, None)
    people = store_source(population, work / "population")
    return None if people is None else (cohort, people)


def store_source(source: SourceSpec, folder: Path) -> Cohort | None:
    folder.mkdir(parents=True)
    return store(
        str(source.path),
        folder,
        source.columns or None,
        source.vocabulary,
        frozenset(text.strip() for text in source.missing),
        date_format=source.date_format,
        accept_unknown=source.accept_unknown,
        code_separator=source.code_separator,
    )


def source_fits(method: str, sources: Sequence[SourceSpec]) -> bool:
    rows = sum(estimate_rows(str(source.path)) for source in sources)
    return fits(method, rows, rows)


def is_table(source: SourceSpec) -> bool:
    further = (source.query, source.table, source.concepts, source.lines, source.drop, source.domains)
    return not any(further) and can_store(source.path, source.format, source.vocabulary)


def _is_large(spec: Spec, method: Any) -> bool:
    if method.name == "disassociation":  # it costs utility there, and is asked for
        return (method.partitions or 1) > 1 or (
            method.partitions is None and engine_name(spec.engine) == "spark"
        )
    return not source_fits(method.name, sources_of(spec))


def _is_one_partition(spec: Spec, method: Any, cohort: Cohort) -> bool:
    if method.name != "disassociation":
        return False
    from leeward.methods.disassociation.method import partitions_of

    return partitions_of(method, cohort.supports().patients, engine_name(spec.engine)) < 2
