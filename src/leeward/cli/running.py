"""What `protect`, `demo` and the commands of methods share: run a spec and print the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from leeward.cli.options import OF_PATIENTS, print_json, with_patients
from leeward.cli.telling import print_styled, told
from leeward.errors import BadInput, GuaranteeUnreachable

if TYPE_CHECKING:
    from leeward.runs.protect import Result


def run_and_tell(
    method: str,
    source: Any,
    *,
    out: str,
    engine: str,
    threads: int | None,
    seed: int | None,
    formats: tuple[str, ...],
    measure: tuple[str, ...],
    allow_memory: bool,
    as_json: bool,
    population: Any = None,
    **parameters: Any,
) -> None:
    """Run a method's flags as a spec; every flag that is no run option is a parameter of the method.

    A flag that is left out is not in the spec, so the default is that of the parameter class. Messages name flags.
    The command's context may have a function that takes the spec instead (`leeward spec init`).
    """
    from dataclasses import replace
    from pathlib import Path

    from leeward.cli.flags import FLAGS, name_flags
    from leeward.methods import METHODS
    from leeward.release.spec import Spec, resolve_paths
    from leeward.runs.protect import method_of, parameters_class, run

    given = {key: value for key, value in parameters.items() if value not in (None, ())}
    wanted = tuple(name for key in OF_PATIENTS for name in given.get(key, ()))
    if wanted:
        source = with_patients(source, wanted, METHODS[method].columns)
        if population is not None:
            known = list(given.get("demographics", ()))
            columns = {name: column for name, column in source.columns.items() if name != "patients"}
            population = replace(population, columns={**columns, **({"patients": known} if known else {})})
    try:
        spec = Spec(
            source=source,
            method={"name": method, **given},
            population=population,
            engine=engine,
            seed=seed,
            formats=tuple(dict.fromkeys(("parquet", *formats))),  # type: ignore[arg-type]  # checked when made
            measure=measure,
        )
        method_of(spec.method)
        write = click.get_current_context().obj
        if write is not None:
            write(spec)
            return
        done = run(resolve_paths(spec, Path.cwd()), out, threads=threads, allow_memory=allow_memory)
    except (BadInput, GuaranteeUnreachable) as error:
        kind = BadInput if isinstance(error, BadInput) else GuaranteeUnreachable
        raise kind(name_flags(str(error), parameters_class(method), FLAGS)) from None
    tell(done, as_json)


def tell(result: Result, as_json: bool) -> None:
    """Print what was written, for a person or as JSON."""
    if as_json:
        print_json(summary(result))
        return
    from leeward.report.summary import headline

    release = result.release
    print_styled(
        told(
            f"{headline(release)}.",
            release,
            result.summary,
            result.verification.to_json(),
            result.measures,
            result.report,
        )
    )


def summary(result: Result) -> dict[str, Any]:
    """The figures of a run as JSON."""
    return {
        "release": str(result.path),
        "share": str(result.release.share),
        "report": str(result.report),
        "method": result.release.method,
        "parameters": result.release.parameters,
        "guarantee": result.release.guarantee,
        "records": result.release.records,
        "summary": result.summary.to_json(),
        "verification": result.verification.to_json(),
        "measures": dict(result.measures),
    }
