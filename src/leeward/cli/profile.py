"""`leeward profile`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from leeward.arrays import count_noun
from leeward.cli.options import json_option, print_json, print_lines, with_source
from leeward.cli.telling import format_notice

CODES_SHOWN = 10


@click.command()
@click.argument("path", metavar="COHORT")
@with_source
@click.option(
    "--k",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Fewer than k patients who share codes is a risk.",
)
@json_option
def profile(source: Any, k: int, as_json: bool) -> None:
    """Describe COHORT: its content, what is odd in it (with row numbers), and the risk of releasing it as it is.

    \b
    Examples:
      leeward profile events.csv --patient pid --code icd
      leeward profile diabetic_data.csv.gz --patient patient_nbr --code diag_1,diag_2,diag_3 --missing '?'
      --json
    """
    from leeward.runs.protect import profile as figures_of
    from leeward.runs.protect import read_source, watch

    with watch(None) as say:
        say("Reading")
        cohort = read_source(replace(source, accept_unknown=True))  # a profile lists them
        say("Counting how many patients share what")
        figures = figures_of(cohort, k=k)
    if as_json:
        print_json(figures)
    else:
        print_lines(*profile_lines(figures))


def profile_lines(figures: Mapping[str, Any]) -> list[str]:
    """The profile for a person."""
    source, codes = figures["source"], figures["codes"]
    lines = [
        f"{source['name']}: {count_noun('patient', source['patients'])}, {count_noun('event', source['events'])}, "
        f"{count_noun('distinct code', source['codes'])}"
        + (f" ({source['vocabulary']})" if source["vocabulary"] else ""),
        f"Codes per patient: mean {codes['mean']:.2f}, median {codes['median']:g}, most {codes['most']:,}",
        "",
        "Notices" if figures["notices"] else "Notices: none",
        *(f"  {format_notice(notice)}" for notice in figures["notices"]),
        "",
        (
            f"Most frequent codes (of {source['codes']:,}; {codes['below_k']:,} occur in fewer than "
            f"{figures['k']} patients)"
        ),
        *(
            f"  {row['code']:<12} {row['patients']:>10,}  {row['share']:6.1%}  {row['name']}".rstrip()
            for row in codes["frequent"][:CODES_SHOWN]
        ),
        "",
        f"Risk if released as it is: patients found among fewer than {figures['k']} by up to m of their codes",
        *(
            f"  m = {row['m']} {'     ' if row['patients_exact'] else 'about'} {row['below_k']:>10,}  "
            f"{row['below_k_share']:6.1%}   unique: {row['unique']:,} ({row['unique_share']:.1%})"
            for row in figures["risk"]["by_m"]
        ),
    ]
    return lines
