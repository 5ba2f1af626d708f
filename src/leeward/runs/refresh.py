"""The story of a refresh: what is new in a source is protected as a batch, and follows the rows that were published.

Nothing published changes (docs/methods/refresh.md). The batch is a release of its own, compared with its source; its
custody is `custody/batches/N`. The new version is verified from its files, against the version before it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.errors import BadInput
from leeward.paths import text_of
from leeward.randomness import Randomness
from leeward.release import Release, draft
from leeward.release.spec import Refresh, SourceSpec, Spec
from leeward.release.versions import append
from leeward.runs.line import Line, Records
from leeward.runs.progress import Tell, watch
from leeward.runs.protect import Result, method_of, verify, verify_or_raise
from leeward.runs.registering import Handing, method_facts, registered
from leeward.runs.reports import write_report
from leeward.runs.specs import parameters_of, read_custody_spec, read_source
from leeward.runs.writing import measure_release, require_passed, write_verified

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort


def refresh(
    master: str | Path,
    new: Cohort,
    out: str | Path,
    *,
    wait: int = 0,
    records: Records | None = None,
    withdrawn: Sequence[Any] = (),
    published: Cohort | None = None,
    threads: int | None = None,
    seed: int | None = None,
    formats: Sequence[str] = (),
    measures: Sequence[Any] = (),
    source: SourceSpec | None = None,
    reason: str | None = None,
    register: str | Path | None = None,
    tell: Tell | None = None,
) -> Result:
    """Release the next version of a release: its rows as they are, and after them a batch of what is new.

    Parameters
    ----------
    master : str or Path
        The last version: the whole release folder, with custody.
    new : Cohort
        New data, from `read`. Visits that were published already are left out.
    out : str or Path
        Folder to write; it must not exist.
    wait : int, optional
        Visits: how many batches a visit may wait in custody, if nearly k patients share its codes, before codes are
        cut.
    records : `kept` or `apart`, optional
        Whether returning patients keep their record (visits, the default there) or get a new one in each batch.
    withdrawn : sequence, optional
        Patients who withdrew their consent: nothing new of theirs is released, in this version and later ones.
    published : Cohort, optional
        The source of the first version, where its spec names none that can be read again.
    threads, seed, formats, measures, source, reason, register, tell : optional
        As in `protect`; `source` is where `new` was read. The register takes recipient, line and purpose of `master`.

    Returns
    -------
    Result
        The new version. `measures["refresh"]` says what was new, what was left out, and what waits.

    Raises
    ------
    BadInput
        The release cannot be refreshed with these data.
    GuaranteeUnreachable
        Too few patients are new; the message says how many are missing.
    VerificationFailed
        The last version or the new one was refuted. After any error, nothing is left at `out`.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_claims("claims.csv", patients=400, codes=100, seed=1)
    >>> columns = {"patient": "patient", "code": ["diag_1", "diag_2"], "visit": "claim"}
    >>> cohort = lw.read("claims.csv", columns=columns)
    >>> first = cohort.restrict(cohort.events["patient"].unique().sort().head(200))
    >>> master = lw.protect(first, lw.Visits(k=5, policy="none"), "master")
    >>> version = lw.refresh("master", cohort, "master-2", published=first)
    >>> len(version.release.manifest["versions"]), version.measures["refresh"]["patients"]
    (2, 200)
    """
    from leeward.engine import at_most

    with at_most(threads), watch(tell) as say:
        say("Checking the last version")
        line = Line.open(Path(master), records, published, seeded=seed is not None)
        require_passed(verify(master))
        say("Looking for what is new")
        batch = line.select(new, withdrawn, wait)
        handing = Handing(line.handover, reason, register)
        with (
            registered(
                out, handing, lambda: line.patients(batch), Path(master), **method_facts(line.method)
            ) as registration,
            draft(out) as pending,
        ):
            say(f"Protecting batch {line.number} ({line.method.name})")
            made = line.protect(batch, Randomness.of(seed), threads)
            spec = Spec(
                source=source or SourceSpec(format="memory", name=new.name),
                method=parameters_of(line.method),
                measure=tuple(measures),
                formats=tuple(formats),  # type: ignore[arg-type]  # checked when they are written
                seed=seed,
                release=line.handover,
                refresh=Refresh(master=str(Path(master).absolute()), wait=wait, records=line.records),
            )
            folder = line.copy_custody(pending.custody / "batches")
            with draft(folder) as part:
                _, measured = write_verified(
                    part,
                    made,
                    spec,
                    lambda: verify_or_raise(part.folder, batch.cohort),
                    lambda made: measure_release(part, batch.cohort, spec.measure, made),
                    say,
                    roomy=True,
                )
            say("Adding it to the version")
            own = Release.open(folder)
            number = line.numbers(own)
            pending.write(append(line.release, own, number, made, line.records), formats=formats)
            line.write_custody(pending, batch, own, number)
            for name in ("spec.yaml", "source_files.json"):
                if (folder / "custody" / name).is_file():
                    shutil.copy(folder / "custody" / name, pending.custody)
            registration.settle(pending)
            if registration.entered is not None:
                shutil.copy(pending.custody / "register.json", folder / "custody")
            say("Writing the report")
            write_report(folder, line.number)
            # Of the batch's own release the custodian's part is kept.
            shutil.rmtree(folder / "share")
            for path in (folder / "custody").iterdir():
                path.rename(folder / path.name)
            (folder / "custody").rmdir()
            shutil.copy(folder / "report.html", pending.custody)
            told = [
                {"kind": "register", "message": each, "count": 1, "rows": []} for each in registration.notices
            ]
            notices = [*measured["notices"], *told]
            figures = {"refresh": batch.counts, "notices": notices}
            pending.put_json("custody/measures.json", figures)
            verification = require_passed(verify(pending.folder, earlier=master))
            pending.put_json("custody/verification.json", verification.to_json())
    report = pending.out / "custody" / "report.html"
    return Result(pending.out, Release.open(pending.out), verification, figures, report)


def read_withdrawn(file: str | None) -> list[str]:
    """The identifiers in a file, one a line; blanks around them, and the mark that some editors begin a file with, are
    no part of them."""
    text = "" if file is None else text_of(Path(file), "list of patients")
    return [name for line in text.removeprefix("\ufeff").splitlines() if (name := line.strip())]


def run_refresh(spec: Spec, asked: Refresh, out: str | Path, **given: Any) -> Result:
    """Run the spec of a next version. BadInput where it names a method, recipient or engine that the line has not."""
    before = read_custody_spec(Release.open(asked.master))
    if before is not None:
        wanted = parameters_of(method_of(spec.method, spec.plan))
        wrong = [f"method.{name}" for name in spec.method if wanted.get(name) != before.method.get(name)]
        if spec.release not in (None, before.release):
            wrong.append("release")
        if wrong:
            raise BadInput(
                f"{asked.master}: the line has another `{wrong[0]}`, and all of its versions have one."
            )
    if spec.engine != "local" or spec.population is not None:
        raise BadInput("`refresh` takes no `engine` but local, and no `population`.")
    return refresh(
        asked.master, read_source(spec.source), out, source=spec.source, wait=asked.wait, records=asked.records,
        withdrawn=read_withdrawn(asked.withdrawn), seed=spec.seed, formats=spec.formats, measures=spec.measure,
        **given,
    )  # fmt: skip
