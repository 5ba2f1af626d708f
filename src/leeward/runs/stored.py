"""A release of a table larger than memory: read, protected, written and verified a part at a time.

The process that starts it holds the distinct codes, the nodes of the release, and one part (docs/how-to/large-data.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from leeward.cohort.readers.stored import can_store, store
from leeward.cohort.stored import StoredCohort
from leeward.engine import make
from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.method import partitions_of, protect_on_disk
from leeward.randomness import Randomness
from leeward.release import draft
from leeward.release.aside import work_beside
from leeward.release.content import Anonymized
from leeward.release.folder import Draft
from leeward.release.reading import manifest_name
from leeward.release.spec import Spec
from leeward.runs.memory import engine_name, fits, require_memory_of_stored
from leeward.runs.progress import Tell
from leeward.runs.specs import no_events, parameters_of, read_source
from leeward.runs.writing import about, measure_release, require_passed, write_verified
from leeward.verify import Source, Verification, verify


def run_stored(
    spec: Spec, method: Any, out: Path, threads: int | None, allow_memory: bool, say: Tell
) -> tuple[Path, Verification, Mapping[str, Any]] | None:
    """The release, its verification and its figures; None where the table is read as ever: it is no plain table of
    events in files, there would be one partition, or rows name the vocabularies of their codes.

    Raises BadInput, GuaranteeUnreachable, VerificationFailed: nothing is left at `out`.
    """
    source, engine = spec.source, engine_name(spec.engine)
    if not _is_plain(spec) or not isinstance(method, Disassociation) or not method.can_store(engine):
        return None
    with work_beside(out) as work:
        say("Reading the source")
        cohort = store(
            str(source.path),
            work,
            source.columns or None,
            source.vocabulary,
            frozenset(text.strip() for text in source.missing),
            accept_unknown=source.accept_unknown,
            code_separator=source.code_separator,
        )
        if cohort is None or partitions_of(method, cohort.patients, engine) < 2:
            return None
        if not allow_memory:
            require_memory_of_stored(cohort.patients, cohort.events)
        with draft(out) as pending:
            runner = make(spec.engine, threads=threads)
            say(f"Protecting {cohort.head.name} ({method.name})")
            filled: Any = method.over(cohort.head, cohort.codes)[0]
            spec = replace(spec, method=parameters_of(filled))
            verification, figures = write_verified(
                pending,
                protect_on_disk(method, cohort, runner, Randomness.of(spec.seed), work),
                spec,
                lambda: require_passed(verify_stored(pending.folder, cohort)),
                lambda made: figures_of(pending, cohort, spec, made),
                say,
                roomy=False,
            )
    return pending.out, verification, figures


def _is_plain(spec: Spec) -> bool:
    """Whether the source is a table of events in files, and the only one."""
    source = spec.source
    further = (source.query, source.table, source.concepts, source.lines, source.drop, source.domains)
    plain = spec.population is None and not any(further)
    return plain and can_store(source.path, source.format, source.vocabulary)


def verify_stored(folder: Path, cohort: StoredCohort) -> Verification:
    known = Source(no_events(), vocabulary=cohort.head.vocabulary, names={}, stored=cohort.files)
    return verify(folder, known, manifest_name(folder))


def figures_of(pending: Draft, cohort: StoredCohort, spec: Spec, made: Anonymized) -> Mapping[str, Any]:
    """`measures.json`. Measures compare the whole table with the whole release: where memory is too little for both,
    none is made, and a notice says so."""
    if fits("disassociation", cohort.patients, cohort.events):
        return measure_release(pending, read_source(spec.source), spec.measure, made)
    message = (
        "not measured: the table and the release need more memory than is free; run `leeward measure OUT "
        "--source TABLE` on a larger machine"
    )
    known = about(cohort.head, cohort.facts(), made)
    known["notices"].append({"kind": "measure", "message": message, "count": 1, "rows": []})
    return known
