"""`leeward explore`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from leeward.cli.options import commas, json_option, print_json, print_lines, threads_option

if TYPE_CHECKING:
    from leeward.advise.frontier import Spot


@click.command()
@click.argument("spec_file", metavar="SPEC.yaml")
@click.option("--vary", "varied", metavar="NAME=VALUE,…", multiple=True, required=True,
              help="A parameter and its values, such as k=2,5,11. Repeatable.")  # fmt: skip
@click.option("--methods", metavar="METHOD,…", callback=commas, help="Further methods, from their defaults.")
@click.option(
    "--plan", metavar="PLAN.yaml", help="The lines to measure, and the threshold [default: the spec's plan]."
)
@click.option("--repeat", type=click.IntRange(min=1, max=100), default=1, show_default=True,
              help="Runs of each point, each with a seed of its own.")  # fmt: skip
@click.option("--sample", type=click.IntRange(min=10), metavar="N",
              help="Explore N patients only. Losses are larger than in all of the data.")  # fmt: skip
@click.option("-o", "--out", required=True, metavar="FOLDER",
              help="For the custodian. An exploration that was stopped goes on.")  # fmt: skip
@click.option("--csv", "as_csv", is_flag=True, help="Write explore.csv beside explore.parquet.")
@threads_option
@json_option
def explore(
    spec_file: str,
    varied: tuple[str, ...],
    methods: tuple[str, ...],
    plan: str | None,
    repeat: int,
    sample: int | None,
    out: str,
    as_csv: bool,
    threads: int | None,
    as_json: bool,
) -> None:
    """Try SPEC.yaml with varied parameters: the risk of each release against what it keeps of a plan.

    Each point is released, verified, measured and thrown away. FOLDER gets explore.parquet and explore.html.

    \b
    Examples:
      leeward explore spec.yaml --vary k=2,5,11,20 --vary m=1,2 -o explored
      leeward explore spec.yaml --vary k=5,14 --methods constraints,visits --plan plan.yaml -o explored
    """
    from leeward.advise.grid import parse_variations as values_of
    from leeward.release.aside import own_file
    from leeward.runs.explore import explore as run

    found = run(
        spec_file,
        out,
        vary=values_of(varied),
        methods=methods,
        plan=plan,
        repeat=repeat,
        sample=sample,
        threads=threads,
    )
    if as_csv:
        found.points.write_csv(own_file(found.folder / "explore.csv"))
    if as_json:
        print_json(
            {"folder": str(found.folder), "lines": list(found.lines), "points": found.points.to_dicts()}
        )
    else:
        print_lines(*lines_of(found))


def lines_of(found: object) -> list[str]:
    """What was tried, for a person: how many, what failed, and the best of each line."""
    from leeward.advise.frontier import by_attacker, spots_of
    from leeward.advise.page import describe_spec
    from leeward.runs.explore import Exploration

    assert isinstance(found, Exploration)
    rows = found.points.to_dicts()
    verified = sum(row["status"] == "verified" for row in rows)
    lines = [f"{len(rows):,} runs, {verified:,} verified."]
    lines += [
        f"No release of {describe_spec(row['spec'])} ({row['status']}): {row['message']}"
        for row in rows
        if row["status"] != "verified"
    ]
    for place, title in enumerate(found.lines, start=1):
        lines.append(f"{title}:")
        frontiers = by_attacker(spots_of(rows, place))
        for knows, spots in frontiers.items():
            lines += [f"  the frontier for attackers who know {knows}", *frontier_lines(spots)]
        lines += [] if frontiers else ["  no release serves it"]
    words = {row["spec"]: row["risk_in_words"] for row in reversed(rows) if row["risk_in_words"]}
    lines += [f"Maximum risk of {describe_spec(spec)}: {risk}." for spec, risk in reversed(words.items())]
    return [*lines, f"Page:  {found.page}", f"Table: {found.table}"]


def frontier_lines(spots: Sequence[Spot]) -> list[str]:
    """The frontier of one attacker's points; of those that are equal the first and how many."""
    from leeward.advise.frontier import chance_of, frontier
    from leeward.advise.page import describe_spec

    best: dict[tuple[float, float], list[str]] = {}
    for spot in frontier(spots):
        told = f"    risk {chance_of(spot)}  kept {100 * spot.value:.1f} %  {spot.verdict}  {describe_spec(spot.spec)}"
        best.setdefault((spot.risk, spot.value), []).append(told)
    return [told[0] + (f", and {len(told) - 1} alike" if len(told) > 1 else "") for told in best.values()]
