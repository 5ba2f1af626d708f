"""`leeward measure`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.figures import figure_lines
from leeward.cli.options import commas, json_option, print_json, print_lines, with_source


@click.command()
@click.argument("out", metavar="OUT")
@click.option(
    "--source", "path", required=True, metavar="COHORT", help="The original, with the input flags below."
)
@click.option("--population", metavar="COHORT", help="The population of a k-map; read like --source.")
@with_source
@click.option("--measure", "wanted", metavar="are,mre", callback=commas, help="[default: all that apply]")
@json_option
def measure(out: str, source: Any, population: str | None, wanted: tuple[str, ...], as_json: bool) -> None:
    """Measure what the release OUT lost, against its source COHORT. The figures are for the custodian only.

    \b
    Examples:
      leeward measure release --source events.csv --patient pid --code icd
      leeward measure release --source events.csv --patient pid --code icd --measure are --json
    """
    from dataclasses import replace

    from leeward.cli.options import as_released
    from leeward.release import Release
    from leeward.runs.protect import measure as figures_of
    from leeward.runs.protect import read_source, watched

    release = Release.open(out)
    source = as_released(release, source)
    with watched(None) as say:
        say("Reading the source")
        cohort = read_source(source)
        everyone = None if population is None else read_source(replace(source, path=population))
        say("Measuring")
        figures = figures_of(release, cohort, wanted, everyone)
    if as_json:
        print_json(figures)
    else:
        print_lines(*figure_lines(figures))
