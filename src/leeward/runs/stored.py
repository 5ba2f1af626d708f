"""Runs of a table larger than memory: its events are on the disk, and no step holds more than one part of them.

What is held of all patients are their codes in numbers (`cohort.lenses`), and while disassociation makes its release
and the verifier reads it the nodes of the release (docs/how-to/large-data.md). The bytes of the release are those of a
cohort in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leeward.cohort.cohort import Cohort
from leeward.cohort.readers.stored import can_store, estimate_rows, store
from leeward.release.aside import work_beside
from leeward.release.spec import SourceSpec, Spec
from leeward.runs.memory import engine_name, fits


@contextmanager
def stored_source(spec: Spec, method: Any, out: Path) -> Iterator[Cohort | None]:
    """The source in files beside `out`; None where the run does not go by parts: it is no plain table of events in
    files, rows name the vocabularies of their codes, there is one partition, or memory is enough."""
    if not is_plain(spec) or not method.can_store() or not _is_large(spec, method):
        yield None
        return
    with work_beside(out) as work:
        cohort = store_source(spec.source, work)
        yield None if cohort is not None and _is_one_partition(spec, method, cohort) else cohort


def store_source(source: SourceSpec, work: Path) -> Cohort | None:
    return store(
        str(source.path),
        work,
        source.columns or None,
        source.vocabulary,
        frozenset(text.strip() for text in source.missing),
        date_format=source.date_format,
        accept_unknown=source.accept_unknown,
        code_separator=source.code_separator,
    )


def source_fits(method: Any, source: SourceSpec) -> bool:
    rows = estimate_rows(str(source.path))
    return fits(method.name, rows, rows)


def is_plain(spec: Spec) -> bool:
    """Whether the source is a table of events in files, and the only one."""
    source = spec.source
    further = (source.query, source.table, source.concepts, source.lines, source.drop, source.domains)
    plain = spec.population is None and not any(further)
    return plain and can_store(source.path, source.format, source.vocabulary)


def _is_large(spec: Spec, method: Any) -> bool:
    if method.name == "disassociation":  # it costs utility there, and is asked for
        return (method.partitions or 1) > 1 or (
            method.partitions is None and engine_name(spec.engine) == "spark"
        )
    return not source_fits(method, spec.source)


def _is_one_partition(spec: Spec, method: Any, cohort: Cohort) -> bool:
    if method.name != "disassociation":
        return False
    from leeward.methods.disassociation.method import partitions_of

    return partitions_of(method, cohort.supports().patients, engine_name(spec.engine)) < 2
