"""The story of a run: protect, write aside, verify from the files, measure, report, rename.

The command line and the library both call it; nothing of a release is visible before all of it is done.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.errors import BadInput
from leeward.fields import build, nearest
from leeward.randomness import Randomness
from leeward.release.spec import SourceSpec, Spec, load
from leeward.runs.memory import engine_name, is_roomy, require_memory, require_memory_to_read
from leeward.runs.profile import profile as profile
from leeward.runs.progress import STAGES
from leeward.runs.progress import Tell as Tell
from leeward.runs.progress import watch as watch
from leeward.runs.reports import sections_of as sections_of
from leeward.runs.reports import summary_of
from leeward.runs.specs import Method as Method
from leeward.runs.specs import in_memory, spec_of
from leeward.runs.specs import read_source as read_source
from leeward.runs.writing import measure_release as measure_release
from leeward.runs.writing import refusal as refusal
from leeward.runs.writing import require_passed, write_verified

if TYPE_CHECKING:
    import polars as pl

    from leeward.cohort.cohort import Cohort
    from leeward.release import Release
    from leeward.report.summary import Summary
    from leeward.verify import Verification

SPEC_WORDS = {"utility": "policy"}
"""Words of the spec that a parameter class calls otherwise."""


@dataclass(frozen=True)
class Result:
    """A release that was written, verified and measured.

    Attributes
    ----------
    path : Path
        The release folder.
    release : Release
        The release, opened.
    verification : Verification
        What the verifier checked in the written files, and the outcome.
    measures : mapping
        Every figure of the report (`custody/measures.json`).
    report : Path
        `custody/report.html`.
    """

    path: Path
    release: Release
    verification: Verification
    measures: Mapping[str, Any]
    report: Path

    @property
    def summary(self) -> Summary:
        """What the release is safe against, what not, and what it cost."""
        return summary_of(self.release, self.measures)

    def __repr__(self) -> str:
        return f"Result({self.path}: {self.release.method}, {self.release.records:,} records, verified)"

    def _repr_html_(self) -> str:
        from leeward.report.summary import result_html

        return result_html(
            self.release, self.verification.to_json(), self.measures, self.report, self.summary
        )


def protect(
    cohort: Cohort,
    method: Method,
    out: str | Path,
    *,
    engine: Any = "local",
    threads: int | None = None,
    seed: int | None = None,
    formats: Sequence[str] = ("parquet",),
    measures: Sequence[Any] = (),
    population: Cohort | None = None,
    source: SourceSpec | None = None,
    population_source: SourceSpec | None = None,
    allow_memory: bool = False,
    tell: Tell | None = None,
) -> Result:
    """Protect a cohort and write a release that has passed its own verification.

    Parameters
    ----------
    cohort : Cohort
    method : a parameter class such as `Disassociation(k=5, m=2)`
    out : path
        A folder that does not exist yet.
    engine : str or mapping
        `local`, `spark`, or `{"spark": {"master": "local[2]"}}`.
    threads : int, optional
        Default: all processors.
    seed : int, optional
        For tests and studies only: the release is then marked as seeded. Left out, randomness comes from
        the operating system.
    formats : sequence of str
        `parquet` (always written), `csv`.
    measures : sequence
        What to measure, as in a spec: `"are"` or `{"are": {"min_support": 0.0125}}`; empty: what the method's
        report needs.
    population : Cohort, optional
        Where the method's model needs one.
    source, population_source : SourceSpec, optional
        Where cohort and population came from, for `custody/spec.yaml` (`leeward verify` reads them again).
    allow_memory : bool
        Run even where less memory is free than such a run needs.
    tell : callable, optional
        Called with each stage; by default a line on the terminal.

    Raises
    ------
    BadInput, GuaranteeUnreachable, VerificationFailed
        Nothing is left at `out`.
    """
    from leeward.engine import at_most, make
    from leeward.release import draft

    if not allow_memory:
        for each in (cohort, population):
            if each is not None:
                require_memory(method.name, each, engine_name(engine))
    with at_most(threads), watch(tell, STAGES) as say, draft(out) as pending:
        everyone = population_source or in_memory(population)
        spec = spec_of(cohort, method, engine, seed, formats, measures, everyone, source)
        runner = make(engine, threads=threads)
        say(f"Protecting {cohort.name} ({method.name})")
        anonymized = method.protect(cohort, runner, randomness=Randomness.of(seed), population=population)
        roomy = is_roomy(method.name, cohort, engine_name(engine))
        verification, figures = write_verified(
            pending,
            anonymized,
            spec,
            lambda: verify_or_raise(pending.folder, cohort, population),
            lambda made: measure_release(pending, cohort, measures, made, population),
            say,
            roomy=roomy,
        )
    return open_result(pending.out, verification, figures)


def run(
    spec: Spec | str | Path,
    out: str | Path,
    *,
    threads: int | None = None,
    allow_memory: bool = False,
    tell: Tell | None = None,
) -> Result:
    """Run a spec (or the file of a spec): read its source, then `protect`.

    Raises
    ------
    BadInput, GuaranteeUnreachable, VerificationFailed
        Nothing is left at `out`.
    """
    from leeward.engine import at_most
    from leeward.methods import METHODS
    from leeward.release.folder import check_out

    spec = spec if isinstance(spec, Spec) else load(spec)
    check_out(Path(out))
    method = method_of(spec.method, spec.plan)
    row = METHODS[method.name]
    if row.in_parts:
        from leeward.runs.stored import can_store, run_stored

        if can_store(spec, method):
            done = run_stored(spec, method, Path(out), threads=threads, allow_memory=allow_memory, tell=tell)
            if done is not None:
                return open_result(*done)
    if not allow_memory:
        for each in (spec.source, spec.population):
            if each is not None:
                require_memory_to_read(each, method.name)
    with at_most(threads), watch(tell, STAGES) as say:
        say("Reading the source")
        cohort = read_source(spec.source)
        population = None if spec.population is None else read_source(spec.population)
        return protect(
            cohort,
            method,
            out,
            engine=spec.engine,
            threads=threads,
            seed=spec.seed,
            formats=spec.formats,
            measures=spec.measure,
            population=population,
            source=spec.source,
            population_source=spec.population,
            allow_memory=allow_memory,
            tell=say,
        )


def method_of(parameters: Mapping[str, Any], plan: Sequence[Any] = ()) -> Method:
    """The parameter object of a spec's `method:` mapping; methods that follow the recipient's plan get it.

    Raises
    ------
    BadInput
        Unknown method, unknown or missing parameter, value out of range.
    """
    name = str(parameters.get("name"))
    kind = parameters_class(name)
    rest = {key: value for key, value in parameters.items() if key != "name"}
    if plan and any(each.name == "plan" for each in dataclasses.fields(kind)):
        rest.setdefault("plan", list(plan))
    method: Method = build(kind, rest, "method", aliases=SPEC_WORDS)
    return method


def parameters_class(name: str) -> Any:
    """The parameter class of a method. BadInput for an unknown one."""
    from leeward.methods import METHODS

    if name not in METHODS:
        raise BadInput(f"`method`: unknown `{name}`{nearest(name, METHODS)}")
    return METHODS[name].parameters_class()


def verify(
    path: str | Path,
    source: Cohort | None = None,
    population: Cohort | None = None,
    answers: Sequence[tuple[str, str]] | None = None,
) -> Verification:
    """Check the guarantee of a release from its files alone; with the source, also that it is all there; a catalogue of
    itemsets with the `answers` that its ledger keeps (`runs.itemsets.read_stored_answers`).

    Raises
    ------
    BadInput
        `path` is no release. A refuted guarantee is a failed check, not an error: see `.passed`.
    """
    from leeward.release.aside import refuse_unfinished
    from leeward.release.reading import manifest_name
    from leeward.verify import Source
    from leeward.verify import verify as check

    refuse_unfinished(Path(path))
    if source is None:
        if population is not None:
            raise BadInput("`population` also needs the source (--source).")
        known = None if answers is None else Source(_no_events(), answers=answers)
        return check(path, known, manifest_name(path))
    everyone = None if population is None else population.events
    names = {code: (each.name, each.patients) for code, each in source.names.items()}
    people = None if population is None else population.patients
    known = Source(_events_of(source), source.patients, everyone, names, source.vocabulary, people)
    return check(path, known, manifest_name(path))


def _events_of(source: Cohort) -> pl.DataFrame:
    """The events; none for a table of patients, whose methods look at the patients alone."""
    return _no_events() if source.events is None and source.patients is not None else source.require_events()


def _no_events() -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame({"patient": [], "code": []}, schema={"patient": pl.Int64, "code": pl.String})


def measure(
    release: Release | str | Path,
    cohort: Cohort,
    wanted: Sequence[Any] = (),
    population: Cohort | None = None,
) -> dict[str, Any]:
    """What a release lost, against its source, and the risk before: JSON-able figures, for the custodian
    only.

    `wanted` as in a spec's `measure:`; empty: all that apply to the method. `population` for methods whose
    model speaks of one.
    """
    from leeward.release import Release
    from leeward.runs.measure import measure as figures_of

    opened = release if isinstance(release, Release) else Release.open(release)
    return figures_of(opened, cohort, list(wanted), population)


def verify_or_raise(
    folder: Path, cohort: Cohort | None = None, population: Cohort | None = None
) -> Verification:
    """The verification of a written release, or VerificationFailed with what was refuted."""
    return require_passed(verify(folder, cohort, population))


def open_release(path: str | Path) -> Release:
    """A release on disk: its manifest, guarantee and tables. BadInput where the folder is none."""
    from leeward.release import Release

    return Release.open(path)


def open_result(path: Path, verification: Verification, measures: Mapping[str, Any]) -> Result:
    """The result of a run whose release is at `path`."""
    from leeward.release import Release

    return Result(path, Release.open(path), verification, measures, path / "custody" / "report.html")
