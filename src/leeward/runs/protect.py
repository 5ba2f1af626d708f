"""The story of a run: protect, write aside, verify from the files, measure, report, rename.

The command line and the library both call it; nothing of a release is visible before all of it is done.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.cohort.readers.copies import copies
from leeward.errors import BadInput
from leeward.fields import build, nearest
from leeward.methods import METHODS
from leeward.randomness import Randomness
from leeward.release import Anonymized, Release, draft
from leeward.release.folder import check_out
from leeward.release.reading import manifest_name
from leeward.release.spec import Handover, SourceSpec, Spec
from leeward.report.summary import Summary, result_html
from leeward.runs.memory import engine_name, is_roomy, require_memory, require_memory_to_read, size_of
from leeward.runs.progress import STAGES, Tell, watch
from leeward.runs.registering import Handing, method_facts, refuse_counted, registered
from leeward.runs.reports import summary_of, write_report
from leeward.runs.specs import Method, no_events, parameters_of, read_missing, read_source
from leeward.runs.writing import measure_release, require_passed, write_verified
from leeward.verify import Source, Verification
from leeward.verify import verify as check

if TYPE_CHECKING:
    import polars as pl

    from leeward.cohort.cohort import Cohort
    from leeward.engine import Engine
    from leeward.runs.stored import Stored


NOT_STARTED = "Spark was not started, because it would have no work (of {} it runs: {})"

SPEC_WORDS = {"utility": "policy"}
"""Words of the spec that a parameter class calls otherwise."""


@dataclass(frozen=True)
class Result:
    """A release that was written, verified and measured.

    Attributes
    ----------
    path : Path
        Release folder.
    release : Release
        The release.
    verification : Verification
        Every check of the written files, and whether all passed.
    measures : mapping
        Every figure of the report (`custody/measures.json`).
    report : Path
        `custody/report.html`.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> result = lw.protect(cohort, lw.Disassociation(k=5, m=2), "release")
    >>> result
    Result(...: disassociation, 300 records, verified)
    >>> result.verification.passed
    True
    """

    path: Path
    release: Release
    verification: Verification
    measures: Mapping[str, Any]
    report: Path

    @property
    def summary(self) -> Summary:
        """What the release is safe against, what not, and what it cost."""
        return summary_of(self.release, self.measures if "source" in self.measures else None)

    def __repr__(self) -> str:
        return f"Result({self.path}: {self.release.method}, {self.release.records:,} records, verified)"

    def _repr_html_(self) -> str:
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
    formats: Sequence[str] = (),
    measures: Sequence[Any] = (),
    population: Cohort | None = None,
    source: SourceSpec | None = None,
    population_source: SourceSpec | None = None,
    handover: Mapping[str, Any] | None = None,
    reason: str | None = None,
    register: str | Path | None = None,
    allow_memory: bool = False,
    tell: Tell | None = None,
) -> Result:
    """Protect a cohort and write a release that has passed its own verification.

    Parameters
    ----------
    cohort : Cohort
        The source, from `read`.
    method : parameters of a method
        For example `Disassociation(k=5, m=2)`.
    out : str or Path
        Folder to write; it must not exist.
    engine : str or mapping, optional
        `local`, `spark`, or `{"spark": {"master": "local[2]"}}`.
    threads : int, optional
        Number of threads; all processors by default.
    seed : int, optional
        For tests and studies only: the release is then marked as seeded.
    formats : sequence of str, optional
        `("parquet",)`: no CSV copy; `("csv",)`: a CSV copy of any size. By default, one of up to 10 MB in all.
    measures : sequence, optional
        Measures as in a spec: `"are"` or `{"are": {"min_support": 0.0125}}`. By default, those of the report.
    population : Cohort, optional
        The population, for methods that need one.
    source, population_source : SourceSpec, optional
        Where both were read, for `custody/spec.yaml`, so that `verify` can read them again.
    handover : mapping, optional
        `recipient`, `line` and `purpose`, for the register of releases.
    reason : str, optional
        Why the release may be out beside earlier ones of the same patients, where no proof covers both.
    register : str or Path, optional
        File or URL of the register of releases, where the house file names none.
    allow_memory : bool, optional
        Run even if less memory is free than needed.
    tell : callable, optional
        Called with the name of each stage; by default a line on the terminal.

    Returns
    -------
    Result
        The release with its verification, measures and report.

    Raises
    ------
    BadInput
        An argument is wrong, or `out` exists.
    GuaranteeUnreachable
        The guarantee cannot be met on this cohort.
    VerificationFailed
        The verifier refuted the release. After any error, nothing is left at `out`.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> result = lw.protect(cohort, lw.Disassociation(k=5, m=2), "release")
    >>> result.release.records
    300
    """
    from leeward.engine import at_most

    asked = parameters_of(method)
    spec = Spec(
        source=source or SourceSpec(format="memory", name=cohort.name),
        method=asked,
        population=population_source
        or (None if population is None else SourceSpec(format="memory", name=population.name)),
        measure=tuple(measures),
        engine=engine,
        formats=tuple(formats),  # type: ignore[arg-type]  # checked when made
        seed=seed,
        release=None if handover is None else build(Handover, handover, "handover"),
    )
    with at_most(threads), watch(tell, STAGES) as say:
        handing = Handing(spec.release or Handover(), reason, register)
        return _release(spec, method, cohort, population, out, threads, allow_memory, say, handing)


def run_spec(
    spec: Spec,
    out: str | Path,
    *,
    threads: int | None = None,
    reason: str | None = None,
    register: str | Path | None = None,
    allow_memory: bool = False,
    tell: Tell | None = None,
) -> Result:
    """Read the source of a spec and `protect` it; arguments as of `run`."""
    from leeward.engine import at_most, keeps_rows

    check_out(Path(out))
    method = method_of(spec.method, spec.plan)
    as_run = dataclasses.replace(
        spec,
        method=parameters_of(method),
        plan=(),
        versions=None,
    )
    handing = Handing(spec.release or Handover(), reason, register)
    with at_most(threads), watch(tell, STAGES) as say, copies():
        say("Reading the source")
        if keeps_rows(as_run.engine):
            from leeward.runs.there import release_there

            refuse_counted(handing)
            release = partial(_release_in_worker, as_run, method, allow_memory)
            done = release_there(as_run, method, Path(out).absolute(), threads, say, release)
            return open_result(Path(out).absolute(), *done)
        from leeward.runs.stored import stored_sources

        with stored_sources(as_run, method, Path(out)) as stored:
            if stored is not None:
                return _release(as_run, method, *stored, out, threads, allow_memory, say, handing)
        read = _read(as_run, allow_memory)
        return _release(as_run, method, *read, out, threads, allow_memory, say, handing)


def _read(spec: Spec, allow_memory: bool) -> tuple[Cohort, Cohort | None]:
    """The source and the population in memory."""
    for each in (spec.source, spec.population):
        if each is not None and not allow_memory:
            require_memory_to_read(each, str(spec.method["name"]))
    return read_source(spec.source), read_missing(None, spec.population)


def _release_in_worker(
    spec: Spec,
    method: Method,
    allow_memory: bool,
    stored: Stored | None,
    out: Path,
    engine: Engine,
    randomness: Randomness,
) -> tuple[Verification, Mapping[str, Any]]:
    read = stored or _read(spec, allow_memory)
    done = _release(spec, method, *read, out, None, allow_memory, lambda _: None, None, engine, randomness)
    return done.verification, done.measures


def _release(
    spec: Spec,
    method: Method,
    cohort: Cohort,
    population: Cohort | None,
    out: str | Path,
    threads: int | None,
    allow_memory: bool,
    say: Tell,
    handing: Handing | None,
    worker: Engine | None = None,
    randomness: Randomness | None = None,
) -> Result:
    """`handing`: None in a worker. `worker`: the engine in the place of the spec's, whose worker this is. `randomness`:
    None for the spec's."""
    from leeward.engine import running

    asked: Any = worker or spec.engine
    told: tuple[str, ...] = ()
    # a population on the disk is counted here
    on_spark = method.uses_engine(size_of(cohort)[0]) and (population is None or not population.files)
    if engine_name(asked) != "local" and not on_spark and worker is None:
        asked, told = "local", (NOT_STARTED.format(method.name, method.ON_ENGINE or "nothing"),)
    engine = engine_name(asked)
    for each in (cohort, population):
        if each is not None and not allow_memory:
            require_memory(method.name, each, engine, on_spark=on_spark)
    roomy = is_roomy(method.name, cohort, engine)

    def measured(made: Anonymized) -> Mapping[str, Any]:
        figures = measure_release(pending, cohort, spec.measure, made, population)
        for each in (cohort, population):
            if each is not None and each.files:
                each.let_go()  # the verifier is next, and reads the files
        return figures

    randomness = randomness or Randomness.of(spec.seed)
    with (
        registered(out, handing, cohort.identifiers, **method_facts(method)) as registration,
        draft(out) as pending,
        running(asked, threads) as runner,
    ):
        say(f"Protecting {cohort.name} ({method.name})")
        spec = dataclasses.replace(spec, method=parameters_of(method.over(cohort)[0]))
        verification, figures = write_verified(
            pending,
            # Named nowhere here, so that it is let go once it is written.
            _with_notices(
                told,
                method.protect(cohort, runner, randomness=randomness, population=population),
            ),
            spec,
            lambda: verify_or_raise(pending.folder, cohort, population, method),
            measured,
            say,
            roomy=roomy,
        )
        registration.settle(pending, cohort)
        say("Writing the report")
        write_report(pending.folder)
    return open_result(pending.out, verification, figures)


def _with_notices(told: tuple[str, ...], made: Anonymized) -> Anonymized:
    return dataclasses.replace(made, notices=(*told, *made.notices))


def method_of(parameters: Mapping[str, Any], plan: Sequence[Any] = ()) -> Method:
    """The parameter object of a spec's `method:` mapping; methods that follow the recipient's plan get it. Raises
    BadInput for an unknown method, an unknown or missing parameter, or a value out of range."""
    kind = parameters_class(str(parameters.get("name")))
    rest = {key: value for key, value in parameters.items() if key != "name"}
    if plan and any(each.name == "plan" for each in dataclasses.fields(kind)):
        rest.setdefault("plan", list(plan))
    method: Method = build(kind, rest, "method", aliases=SPEC_WORDS)
    return method


def parameters_class(name: str) -> Any:
    """The parameter class of a method. BadInput for an unknown one."""
    if name not in METHODS:
        raise BadInput(f"`method`: unknown `{name}`{nearest(name, METHODS)}")
    return METHODS[name].parameters_class()


def verify(
    path: str | Path,
    source: Cohort | None = None,
    population: Cohort | None = None,
    answers: Sequence[tuple[str, str]] | None = None,
    earlier: str | Path | None = None,
) -> Verification:
    """Check the guarantee of a release from its files alone, or against its source.

    Parameters
    ----------
    path : str or Path
        Release folder, or its `share/` folder.
    source : Cohort, optional
        The source: checks then also that the release agrees with it.
    population : Cohort, optional
        The population, for methods that need one.
    answers : sequence of (str, str), optional
        For a catalogue of itemsets: the answers that its ledger keeps.
    earlier : str or Path, optional
        An earlier version of a release that grows (`refresh`): checks also that no row of it changed or is gone, and
        that what was added keeps k by itself.

    Returns
    -------
    Verification
        Every check. A refuted guarantee is a failed check, not an error: see `passed`.

    Raises
    ------
    BadInput
        `path` is not a release.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> result = lw.protect(cohort, lw.Disassociation(k=5, m=2), "release")
    >>> lw.verify("release").passed
    True
    >>> lw.verify("release", cohort).passed
    True
    """
    if source is not None and "versions" in Release.open(path, compare=False).manifest:
        raise BadInput(
            f"{path}: a release of several batches; each was compared with its source when it was added. Leave out the "
            "source."
        )
    if source is not None:
        known: Source | None = Source(
            _events_of(source),
            source.patients,
            None if population is None else _events_of(population),
            {code: (each.name, each.patients) for code, each in source.names.items()},
            source.vocabulary,
            None if population is None else population.patients,
            stored=source.files,
            population_stored=() if population is None else population.files,
        )
    elif population is not None:
        raise BadInput("`population` also needs the source (--source).")
    else:
        known = None if answers is None else Source(no_events(), answers=answers)
    return check(path, known, manifest_name(path), earlier)


def _events_of(source: Cohort) -> pl.DataFrame:
    """The events; none for a table of patients, whose methods look at the patients alone, and where they are on the
    disk."""
    apart = source.files or (source.events is None and source.patients is not None)
    return no_events() if apart else source.require_events()


def verify_or_raise(
    folder: Path,
    cohort: Cohort | None = None,
    population: Cohort | None = None,
    method: Method | None = None,
) -> Verification:
    """`method`: custody has no spec yet; a hierarchy that it names stands for the cohort's vocabulary."""
    named = getattr(method, "hierarchy", None)
    if cohort is not None and named is not None:
        cohort = dataclasses.replace(cohort, vocabulary=named)
    return require_passed(verify(folder, cohort, population))


def open_result(path: Path, verification: Verification, measures: Mapping[str, Any]) -> Result:
    return Result(path, Release.open(path), verification, measures, path / "custody" / "report.html")
