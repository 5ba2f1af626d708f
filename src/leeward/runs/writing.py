"""Writing a release aside: its files, their verification, what was measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.advise.risk import measure_risk
from leeward.advise.thresholds import limits
from leeward.errors import BadInput, VerificationFailed
from leeward.paths import is_folder
from leeward.release import Anonymized, Draft, Release
from leeward.release.manifest import sha256_of
from leeward.release.spec import SourceSpec, Spec, to_yaml
from leeward.runs.measure import measure_what_runs
from leeward.runs.progress import Tell
from leeward.verify import Verification

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort


def write_verified(
    pending: Draft,
    anonymized: Anonymized,
    spec: Spec,
    verified: Callable[[], Verification],
    figures_of: Callable[[Anonymized], Mapping[str, Any]],
    say: Tell,
    *,
    roomy: bool,
) -> tuple[Verification, Mapping[str, Any]]:
    """Write a release aside, verify and measure it (at once where memory is `roomy`), write custody; the report comes
    after."""
    from leeward.engine import beside

    say("Writing the release aside")
    pending.write(anonymized, formats=spec.formats)
    anonymized = dataclasses.replace(anonymized, tables=(), custody_tables=())  # on the disk now
    say("Verifying the written files, measuring what was lost")
    with beside(at_once=roomy) as other:  # both only read the files
        later = other.submit(figures_of, anonymized)
        verification = verified()
        figures = later.result()
    pending.put_json("custody/verification.json", verification.to_json())
    pending.put_json("custody/measures.json", figures)
    pending.put("custody/spec.yaml", to_yaml(spec))
    if files := files_of(spec.source):
        pending.put_json("custody/source_files.json", {"files": files})
    return verification, figures


def files_of(source: SourceSpec) -> list[dict[str, Any]]:
    """`name`, `bytes` and `sha256` of each file of a source, for its custodian: a pattern names them only while the
    folder stays. Nothing for a database or a cohort in memory."""
    from leeward.cohort.readers.copies import local
    from leeward.cohort.readers.files import find_files, readable_files

    place = local(source.path)
    if place is None or "://" in str(place):
        return []
    path = Path(place)
    if is_folder(path):
        own = (each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
        found = sorted({*own, *readable_files(path)})
    else:
        try:
            found = find_files(path)
        except BadInput:  # gone since it was read
            return []
    named = ((str(each.relative_to(path)) if path in each.parents else each.name, each) for each in found)
    return [{"name": name, "bytes": each.stat().st_size, "sha256": sha256_of(each)} for name, each in named]


def measure_release(
    pending: Draft,
    cohort: Cohort,
    wanted: Sequence[Any],
    anonymized: Anonymized,
    population: Cohort | None = None,
) -> dict[str, Any]:
    """`measures.json`: the cohort's size and notices, the method's own facts, and every measure."""
    from leeward.runs.profile import source_facts

    known = about(cohort, source_facts(cohort), anonymized)
    # Measures may rest on the method's facts, and look for them where a custodian finds them.
    pending.put_json("custody/measures.json", known)
    release = Release.open(pending.folder)
    figures, failed = measure_what_runs(release, cohort, wanted, population)
    known["notices"] += failed
    return {**known, **figures, **reidentification(release, cohort, population)}


def reidentification(release: Release, cohort: Cohort, population: Cohort | None) -> dict[str, Any]:
    """Maximum, mean and share above reported thresholds of the risk of the guarantee's attacker, as `reidentification`;
    nothing where the method leaves nothing to count, or the data cannot be brought together."""
    try:
        found = measure_risk(release, cohort, population, limits())
    except BadInput:
        return {}
    return {} if found is None else {"reidentification": found}


def about(cohort: Cohort, facts: Mapping[str, Any], anonymized: Anonymized) -> dict[str, Any]:
    """What was read, what the reader noticed, and the method's facts for the custodian."""
    from leeward.runs.profile import reader_notices

    of_method = [{"kind": "method", "message": text, "count": 1, "rows": []} for text in anonymized.notices]
    return {
        "source": facts,
        "notices": reader_notices(cohort) + of_method,
        "method": dict(anonymized.custody),
    }


def require_passed(outcome: Verification) -> Verification:
    if not outcome.passed:
        raise VerificationFailed(f"{refusal(outcome)} Nothing was written.")
    return outcome


def refusal(outcome: Verification) -> str:
    failed = [check for check in outcome.checks if not check.passed]
    return f"{len(failed)} of {len(outcome.checks)} checks failed. " + " ".join(
        f"{check.name}: {check.detail.rstrip('.')}." for check in failed
    )
