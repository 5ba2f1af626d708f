"""`leeward protect`, and the commands of methods: flags follow from the parameters, text and examples are in HELP.

`getattr(leeward.cli.methods, "k-anonymize")` is the command of that name.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from leeward.cli.flags import FLAGS, name_flags, parameter_options
from leeward.cli.options import (
    OF_PATIENTS,
    engine_config_option,
    flag,
    handing_options,
    handover_of,
    json_option,
    memory_option,
    out_option,
    read_like,
    run_options,
    schema_option,
    threads_option,
    with_patients,
    with_source,
    with_table,
)
from leeward.cli.telling import tell
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods import METHODS

HELP = {
    "censoring": """Release repeated diagnosis codes in SAMPLE, censored to a k-map of the population P.

    Mentions of codes are removed until every record of SAMPLE is contained in the records of at least K people of P.

    \b
    Examples:
      leeward censor sample.csv --population everybody.csv --k 5 --cap 3 -o release
      leeward censor sample.csv --population everybody.csv --patient pid --code icd --visit enc \\
          --k 5 --caps 250=4,401=2 --cap 1 --payload dna -o release
      leeward censor sample.csv --population everybody.csv --k 10 --cap 3 --scope record -o release
    """,
    "condensation": """Release the TABLE of patients as synthetic rows that keep the recipient's regression models.

    Groups of at least K similar patients are replaced by as many synthetic ones with the group's means and covariances.

    \b
    Examples:
      leeward condense registry.csv --k 100 --plan models.yaml -o release
      leeward condense registry.csv --k 50 --strata VitalStat --time SurvInterval --drop Race -o release
      leeward condense registry.csv --k 100 --plan models.yaml --algorithm auto --coarsen-time -o release
    """,
    "constraints": """Release the diagnosis codes in EVENTS, generalized and suppressed.

    Codes of one utility constraint may be merged, `(a,b)`; codes that cannot be protected this way are suppressed.
    Every set of up to M released codes is then in no record or in at least K.

    \b
    Examples:
      leeward constrain events.csv --patient pid --code icd --k 5 --m 2 --policy hierarchy:2 -o release
      leeward constrain events.csv --algorithm apriori --k 5 --m 2 --vocabulary icd9 -o release
      leeward constrain events.csv --k 5 --privacy known.txt --policy file:studies.csv -o release
      leeward constrain --mapping constrained/share/data/codes.parquet later.csv -o later
    """,
    "disassociation": """Release the diagnosis codes in EVENTS by disassociation.

    For up to M codes of a patient, at least one data set that could have produced the release has K patients
    who match. No code is suppressed or generalized; combinations of rare codes are hidden.

    \b
    Examples:
      leeward disassociate events.csv --patient pid --code icd --k 5 --m 2 -o release
      leeward disassociate claims.csv --code diag_1,diag_2,diag_3 --missing '?' --k 5 --m 2 -o release
      leeward disassociate claims.csv --code diag_1,diag_2,diag_3 --demographics age,sex \\
          --keep age:10,sex:exact --k 5 --m 2 -o release
      leeward disassociate baskets.txt --lines --k 3 --m 2 --format parquet,csv -o release
      leeward disassociate events.csv --vocabulary icd9 --k 5 --m 2 --sensitive standard -o release
    """,
    "k-anonymity": """Release the TABLE of patients so that at least K rows agree on all quasi-identifiers.

    The rows of a group take the group's typical values in these columns.

    \b
    Examples:
      leeward k-anonymize registry.csv --k 5 --quasi-identifiers DiagAge,Gender,Race -o release
      leeward k-anonymize registry.csv --k 5 --plan models.yaml -o release
      leeward k-anonymize registry.csv --k 5 --sensitive-columns Stage:2 --closeness SurvInterval:0.2 -o release
    """,
    "linked": """Release patients, visits and codes in EVENTS as tables that can be joined.

    Whoever knows a row of a join that VIEW names finds at least K patients; what fewer share is suppressed.

    \b
    Examples:
      leeward link claims.csv --code diag_1,diag_2,diag_3 --visit claim --demographics age,sex --k 5 -o release
      leeward link events.csv --patient pid --code icd --k 5 --views patients+events+events -o release
    """,
    "trajectories": """Release the codes in EVENTS with the age at each, or with its date.

    An attacker who knows all of a patient's codes and ages finds at least K identical records. Codes and ages
    are generalized along hierarchies; those that cannot be grouped are suppressed.

    \b
    Examples:
      leeward trajectories events.csv --patient pid --code icd --age age --vocabulary icd9 --k 5 -o release
      leeward trajectories events.parquet --age age --vocabulary codes.csv --age-hierarchy hipaa --k 5 -o release
      leeward trajectories events.csv --age age --vocabulary icd9 --k 5 --clustering alignment \\
          --weights 0.8,0.2 --odd-ages "leave out" -o release
      leeward trajectories events.csv --date day --time 2000-2019 --vocabulary icd9 --k 5 -o release
    """,
    "visits": """Release the visits in EVENTS: at least K patients have exactly the set of codes of each visit.

    Give the whole population; draw the cohorts that you share from the release, with `leeward cohort`.

    \b
    Examples:
      leeward visits events.csv --patient pid --code icd --visit enc --k 5 -o master
      leeward visits claims.csv --code diag_1,diag_2,diag_3 --visit claim --k 5 --enforce generalize -o master
      leeward cohort master --select patients.csv -o cohort
    """,
}
"""A method's text before its last paragraph; its first example is that of `leeward spec init`, too."""

FILES = {
    "EVENTS": "EVENTS is a CSV, TSV, Parquet, .xlsx, SAS, Stata or SPSS file, a .zip of one, a folder, a glob or a "
              "database.",
    "SAMPLE": "SAMPLE and P are CSV, TSV or Parquet files, folders or globs, with the same columns.",
    "TABLE": "TABLE is a CSV, TSV, Parquet, .xlsx, SAS, Stata or SPSS file, or a .zip of one, one row per patient.",
}  # fmt: skip
UNREACHABLE = {"SAMPLE": "K is above the number of people in P", "TABLE": "fewer than K patients"}

POPULATION = (
    "P lists everybody from whom SAMPLE could have been drawn, such as all patients of the hospital, with "
    "the columns of SAMPLE. Each released record then fits at least K people of P."
)
REQUIRED = {"disassociation": ("k", "m")}
OPTIONAL = {"constraints": ("k",)}
"""Parameters that the command line asks for, or does not, unlike the class."""


def __getattr__(name: str) -> click.Command:
    for method, row in METHODS.items():
        if row.command == name:
            return command_of(method)
    raise AttributeError(name)


def command_of(name: str) -> click.Command:
    """The command of a method: input flags for its kind of source, one flag per parameter, and the run flags."""
    method = METHODS[name]
    kind = "SAMPLE" if name == "censoring" else "TABLE" if method.source == "table" else "EVENTS"
    cls = method.parameters_class()

    def run(source: Any, population: str | None = None, **flags: Any) -> None:
        if name == "constraints":
            flags |= _promises_of_mapping(flags)
        run_and_tell(name, source, population=read_like(source, population), **flags)

    end = UNREACHABLE.get(kind, "the guarantee cannot be met on this data")
    run.__doc__ = f"""{HELP.get(name, method.line)}
    {FILES[kind]} Exit status: 0 done; 2 bad input; 3 {end}; 4 verification failed. In the last three cases nothing is
    written.
    """
    command = (with_table if kind == "TABLE" else with_source)(run_options(run))
    command = parameter_options(cls, required=REQUIRED.get(name, ()), optional=OPTIONAL.get(name, ()))(
        command
    )
    if kind == "SAMPLE":
        words = "Population that the sample comes from; read like SAMPLE. Required."
        command = flag("--population", "P", words, callback=_require_population)(command)
    return click.command(method.command)(click.argument("path", metavar=kind)(command))


def _require_population(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    """The population; without one the error says what it is."""
    if value is None:
        raise click.MissingParameter(POPULATION, ctx, param)
    return value


def _promises_of_mapping(flags: dict[str, Any]) -> dict[str, Any]:
    """k and m of the release that a mapping comes from, where the user gave none."""
    from leeward.release import Release

    if flags["mapping"] is None or (flags["k"] is not None and (flags["m"] or flags["privacy"])):
        return {}
    mapping = Path(flags["mapping"])
    try:
        guarantee = Release.open(mapping.absolute().parent.parent).guarantee
    except BadInput:
        raise BadInput(
            f"{mapping.name}: this mapping is not in a release; give --k and --m (or --privacy)."
        ) from None
    found = {} if flags["k"] is not None else {"k": guarantee["k"]}
    if flags["m"] is None and flags["privacy"] is None:
        if "m" not in guarantee:
            raise BadInput("the mapping protects listed code sets; give them again with --privacy FILE.")
        found["m"] = guarantee["m"]
    return found


def run_and_tell(
    method: str,
    source: Any,
    *,
    out: str,
    engine: Any,
    threads: int | None,
    seed: int | None,
    formats: tuple[str, ...],
    measure: tuple[str, ...],
    allow_memory: bool,
    as_json: bool,
    reason: str | None,
    register: str | None,
    population: Any = None,
    **parameters: Any,
) -> None:
    """Run a method's flags as a spec; every flag that is no run option is a parameter of the method.

    A flag that is left out is not in the spec, so the default is that of the parameter class. Messages name flags.
    The command's context may have a function that takes the spec instead (`leeward spec init`).
    """
    from leeward.release.spec import Handover, Spec, resolve_paths
    from leeward.runs.protect import method_of, parameters_class
    from leeward.runs.running import run

    handover = handover_of(parameters)
    given = {key: value for key, value in parameters.items() if value not in (None, ())}
    if METHODS[method].source == "events":
        source, population = _with_columns(source, population, given, METHODS[method].columns_of(given))
    try:
        spec = Spec(
            source=source,
            method={"name": method, **given},
            population=population,
            engine=engine,
            seed=seed,
            formats=formats,  # type: ignore[arg-type]  # checked when made
            measure=measure,
            release=Handover(**handover) if handover else None,
        )
        method_of(spec.method)
        write = click.get_current_context().obj
        if write is not None:
            write(spec)
            return
        done = run(
            resolve_paths(spec, Path.cwd()),
            out,
            threads=threads,
            reason=reason,
            register=register,
            allow_memory=allow_memory,
        )
    except (BadInput, GuaranteeUnreachable) as error:
        kind = BadInput if isinstance(error, BadInput) else GuaranteeUnreachable
        raise kind(name_flags(str(error), parameters_class(method), FLAGS)) from None
    tell(done, as_json)


def _with_columns(
    source: Any, population: Any, given: dict[str, Any], usual: tuple[str, ...]
) -> tuple[Any, Any]:
    wanted = tuple(name for key in OF_PATIENTS for name in given.get(key, ()))
    if not wanted:
        return source, population
    source = with_patients(source, wanted, usual)
    if population is not None:
        known = list(given.get("demographics", ()))
        columns = {name: column for name, column in source.columns.items() if name != "patients"}
        population = replace(population, columns={**columns, **({"patients": known} if known else {})})
    return source, population


@click.command()
@click.argument("spec_file", metavar="SPEC.yaml")
@out_option
@engine_config_option
@threads_option
@memory_option
@handing_options
@flag("--line", "NAME", "Line of versions that it begins; `leeward refresh` makes the next one.")
@json_option
@schema_option("spec", "leeward.runs.reference", "spec_schema")
def protect(
    spec_file: str,
    out: str,
    engine_config: Any,
    threads: int | None,
    allow_memory: bool,
    as_json: bool,
    reason: str | None,
    register: str | None,
    **flags: Any,
) -> None:
    """Release a cohort as SPEC.yaml defines, into the folder OUT.

    OUT/share is for the recipient, OUT/custody stays with you. The release is verified before it appears.

    \b
    A spec:
      source:  {format: events, path: events.parquet, columns: {patient: pid, code: icd}}
      method:  {name: disassociation, k: 5, m: 2, utility: {policy: hierarchy, level: 1}}
      measure: [{are: {workload: frequent, min_support: 0.0125}}, {mre: {}}]
      engine:  local
      formats: [parquet, csv]
      release: {recipient: university, line: quarters}

    \b
    Examples:
      leeward protect spec.yaml -o release
      leeward protect spec.yaml -o release --recipient university --register register.db
    """
    from leeward.release.spec import Handover, load
    from leeward.runs.running import run

    spec, handover = load(spec_file), handover_of(flags)
    spec = replace(spec, engine=engine_config) if engine_config else spec
    if handover:
        spec = replace(spec, release=replace(spec.release or Handover(), **handover))
    done = run(spec, out, threads=threads, reason=reason, register=register, allow_memory=allow_memory)
    tell(done, as_json)
