"""`leeward measure`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.options import commas, json_option, print_json, print_lines, with_source
from leeward.cli.tables import section_lines
from leeward.cli.telling import print_styled, summary_lines

REPORT_ONLY = ("At a glance", "In plain words")
"""Sections of the report that say nothing new beside the summary."""


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
    from leeward.runs.profile import source_facts
    from leeward.runs.protect import measure as figures_of
    from leeward.runs.protect import read_source, watch
    from leeward.runs.reports import sections_of, summary_of

    release = Release.open(out)
    source = as_released(release, source)
    with watch(None) as say:
        say("Reading the source")
        cohort = read_source(source)
        everyone = None if population is None else read_source(replace(source, path=population))
        say("Measuring")
        figures = figures_of(release, cohort, wanted, everyone)
    if as_json:
        print_json(figures)
        return
    measures = {"source": source_facts(cohort), "notices": [], "method": {}, **figures}
    own = sections_of(release.method)
    if own is None:
        print_json(figures)
        return
    print_styled([*summary_lines(summary_of(release, measures)), ""])
    for section in own(release, measures, {"checks": [], "passed": True}):
        if section.title not in REPORT_ONLY:
            print_lines(*section_lines([section]))
