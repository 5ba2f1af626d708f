"""`leeward cohort`: draw a cohort from a master release of visits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from leeward.cli.options import (
    flag,
    formats_option,
    handing_options,
    handover_of,
    json_option,
    out_option,
    print_json,
    with_source,
)
from leeward.cli.telling import print_styled, summary, tell_register, told


@click.command()
@click.argument("master", metavar="MASTER")
@flag("--select selection", "PATIENTS.csv|EXPRESSION",
      "A file with a column of identifiers, or an SQL expression over patient, payload, codes and visits.",
      required=True)  # fmt: skip
@flag("--payload", "FILE", "Table of the patients, such as genotypes, to release unprotected.")
@flag("--source path", "COHORT", "Source of the master, to measure what the cohort lost.")
@flag("--membership-is-secret", "REASON",
      "Why nobody can know who is in the cohort; required if fewer than k members share the codes of a "
      "visit.")  # fmt: skip
@flag("--seed", "N", "For tests and studies only.", type=int)
@formats_option
@out_option
@handing_options
@partial(with_source, also=("patient",))
@json_option
def cohort(source: Any, patient: str | None, as_json: bool, **flags: Any) -> None:
    """Draw a cohort from MASTER, a release by `leeward visits` of the whole population.

    The cohort shows its patients exactly as the master does, so cohorts that overlap agree. Its k refers to the
    population; the release also states how many members of the cohort share a visit.

    \b
    Examples:
      leeward cohort master --select patients.csv --patient pid -o cohort
      leeward cohort master --select patients.csv --membership-is-secret "enrolled without a public list" -o cohort
      leeward cohort master --select "array_contains(codes, '250.00')" --payload genotypes.csv \\
          --membership-is-secret "no criteria published" -o cohort
      leeward cohort master --select patients.csv --source events.csv --visit enc -o cohort

    Exit status: 0 done; 2 bad input; 3 fewer members than k; 4 verification failed. In the last three cases nothing is
    written.
    """
    from leeward.runs.extract import extract
    from leeward.runs.progress import watch
    from leeward.runs.specs import read_source

    with watch(None) as say:
        original = None
        if source is not None:
            say("Reading the source")
            original = read_source(source)
        say("Drawing the cohort")
        handover = handover_of(flags)
        result = extract(column=patient or "patient", original=original, handover=handover, **flags)
    tell_register(result)
    if as_json:
        stated = ("method", "parameters", "guarantee")  # the master's
        return print_json({name: each for name, each in summary(result).items() if name not in stated})
    shared = result.measures["method"]["shared_by"]
    opening = f"{result.release.records:,} records drawn from a master of {shared['population']:,} (k = {shared['k']})."
    print_styled(told(result, opening, _shared_lines(shared)))


def _shared_lines(shared: Mapping[str, Any]) -> list[str]:
    """How many share each visit's set of codes, in the cohort and in the population."""
    k = shared["k"]
    lines = [
        f"Inside the cohort {shared['few_share']:.1%} of the visits have a set that fewer than {k} members share, "
        f"{shared['alone_share']:.1%} one that a single member has: nobody may learn who is in the cohort."
        if shared["few"]
        else f"Inside the cohort too, at least {k} members share each visit's set.",
        f"In the population, at least {shared['population_smallest']:,} patients share each visit's set.",
    ]
    if shared.get("few_in_class") is not None:
        lines.append(
            f"{shared['few_in_class']:,} members are released with demographics that fewer than {k} members have; in "
            f"the population at least {shared['population_smallest_class']:,} patients have them."
        )
    return lines
