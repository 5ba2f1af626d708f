"""A release of a table larger than memory: read, protected, written and verified a part at a time.

The process that starts it holds the distinct codes, the nodes of the release, and one part (docs/scale.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.cohort.readers.stored import can_store as can_store_table
from leeward.cohort.readers.stored import store
from leeward.methods.disassociation import Disassociation
from leeward.randomness import Randomness
from leeward.runs.memory import engine_name, fits, require_memory_of_stored
from leeward.runs.profile import reader_notices
from leeward.runs.progress import STAGES, Tell, watch
from leeward.runs.specs import Method, read_source, spec_of
from leeward.runs.writing import measure_release, require_passed, write_verified

if TYPE_CHECKING:
    from leeward.cohort.stored import StoredCohort
    from leeward.release.content import Anonymized
    from leeward.release.folder import Draft
    from leeward.release.spec import Spec
    from leeward.verify import Verification


def can_store(spec: Spec, method: Any) -> bool:
    """Whether a run goes by parts on the disk: disassociation in partitions, of a table of events in files."""
    source = spec.source
    further = (source.query, source.table, source.concepts, source.lines, source.drop, source.domains)
    return (
        isinstance(method, Disassociation)
        and spec.population is None
        and not any(further)
        and method.can_store(engine_name(spec.engine))
        and can_store_table(source.path, source.format, source.vocabulary)
    )


def run_stored(
    spec: Spec,
    method: Method,
    out: Path,
    *,
    threads: int | None,
    allow_memory: bool,
    tell: Tell | None,
) -> tuple[Path, Verification, Mapping[str, Any]] | None:
    """The release, its verification and its figures; None where there would be one partition, or rows name the
    vocabularies of their codes: then the table is read as ever.

    Raises
    ------
    BadInput, GuaranteeUnreachable, VerificationFailed
        Nothing is left at `out`.
    """
    from leeward.engine import at_most, make
    from leeward.methods.disassociation.method import partitions_of, protect_on_disk
    from leeward.release import draft
    from leeward.release.aside import work_beside

    asked = method
    assert isinstance(method, Disassociation)  # what `can_store` asks for
    source = spec.source
    with at_most(threads), watch(tell, STAGES) as say, work_beside(out) as work:
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
        if cohort is None or partitions_of(method, cohort.patients, engine_name(spec.engine)) < 2:
            return None
        if not allow_memory:
            require_memory_of_stored(cohort.patients, cohort.events)
        with draft(out) as pending:
            full = spec_of(
                cohort.head, asked, spec.engine, spec.seed, spec.formats, spec.measure, None, source
            )
            runner = make(spec.engine, threads=threads)
            say(f"Protecting {cohort.head.name} ({method.name})")
            anonymized = protect_on_disk(method, cohort, runner, Randomness.of(spec.seed), work)
            verification, figures = write_verified(
                pending,
                anonymized,
                full,
                lambda: require_passed(verify_stored(pending.folder, cohort)),
                lambda made: figures_of(pending, cohort, spec, made),
                say,
                roomy=False,
            )
    return pending.out, verification, figures


def verify_stored(folder: Path, cohort: StoredCohort) -> Verification:
    """The verification of a written release beside the cohort on the disk."""
    import polars as pl

    from leeward.release.reading import manifest_name
    from leeward.verify import Source, verify

    none = pl.DataFrame({"patient": [], "code": []}, schema={"patient": pl.Int64, "code": pl.String})
    known = Source(none, vocabulary=cohort.head.vocabulary, names={}, stored=cohort.files)
    return verify(folder, known, manifest_name(folder))


def figures_of(pending: Draft, cohort: StoredCohort, spec: Spec, made: Anonymized) -> Mapping[str, Any]:
    """`measures.json`. Measures compare the whole table with the whole release: where memory is too little for both,
    none is made, and a notice says so."""
    if fits("disassociation", cohort.patients, cohort.events):
        return measure_release(pending, read_source(spec.source), spec.measure, made)
    message = (
        "not measured: the table and the release together are larger than the free memory; `leeward measure OUT "
        "--source TABLE` measures the release on a machine with more"
    )
    notices = [{"kind": "method", "message": text, "count": 1, "rows": []} for text in made.notices]
    notices.append({"kind": "measure", "message": message, "count": 1, "rows": []})
    return {
        "source": cohort.facts(),
        "notices": [*reader_notices(cohort.head), *notices],
        "method": dict(made.custody),
    }
