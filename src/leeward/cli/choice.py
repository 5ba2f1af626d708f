"""Choice of a method: `leeward recommend`, `explore`, `compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from leeward.cli.options import (
    commas,
    flag,
    json_option,
    new_option,
    print_json,
    print_lines,
    print_result,
    schema_option,
    switch,
    threads_option,
)

if TYPE_CHECKING:
    from leeward.advise.frontier import Spot
    from leeward.runs.explore import Exploration


@click.command()
@click.argument("plan_file", metavar="PLAN.yaml")
@flag("-o --out", "FOLDER", "Folder to write with the advice and runnable specs; must not exist yet.")
@flag(
    "--sample",
    "N",
    "Largest number of patients to try a spec on.",
    type=click.IntRange(min=10),
    default=100000,
)
@flag("--why", "METHOD", "Print the reasons for one method.")
@json_option
@schema_option("plan", "leeward.advise.plan", "plan_schema")
def recommend(plan_file: str, out: str | None, sample: int, why: str | None, as_json: bool) -> None:
    """Recommend a method, k, m and epsilon for the data, recipient and analyses in PLAN.yaml. For the custodian only.

    Rules choose and give their reasons. Every recommended spec was run on the data (or a sample), verified and
    measured; a method that was not measured is "with care" at best. `leeward explore` measures more.

    \b
    A plan:
      source:    {path: events.parquet, columns: {patient: pid, code: icd, age: age}}
      recipient: {who: named researchers, controls: [contract], knows: {codes: 2, in_study: true}}
      threshold: 0.1
      plan:
        - counts: {of: "hierarchy:1", within: "10 %", from: 50}
        - query:  {questions: 20, within: "20 patients"}

    \b
    Examples:
      leeward recommend plan.yaml
      leeward recommend plan.yaml --why disassociation
      leeward recommend plan.yaml -o advice
    """
    from leeward.advise.wording import lines_of, why_lines
    from leeward.runs.recommend import recommend as advise
    from leeward.runs.recommend import write_specs

    found = advise(None, plan_file, sample=sample)
    files = [] if out is None else write_specs(found, out)
    lines = lines_of(found, [str(file) for file in files]) if why is None else why_lines(found, why)
    print_result(as_json, found.to_json(), lines)


@click.command()
@click.argument("spec", metavar="SPEC.yaml")
@flag("--vary varied", "NAME=VALUE,…", "A parameter and its values, such as k=2,5,11. Repeatable.", multiple=True,
      required=True)  # fmt: skip
@flag("--methods", "METHOD,…", "Other methods to try, with their defaults.", callback=commas)
@flag("--plan", "PLAN.yaml", "The analyses to measure, and the threshold [default: the spec's plan].")
@flag("--repeat", None, "Runs of each point, each with its own seed.", type=click.IntRange(min=1, max=100),
      default=1)  # fmt: skip
@flag("--sample", "N", "Explore only N patients. Methods lose more than on all the data.",
      type=click.IntRange(min=10))  # fmt: skip
@flag("-o --out", "FOLDER", "Folder for the custodian. A stopped exploration is resumed.", required=True)
@switch("--csv as_csv", "Write explore.csv beside explore.parquet.")
@threads_option
@json_option
def explore(varied: tuple[str, ...], as_csv: bool, as_json: bool, **flags: Any) -> None:
    """Try SPEC.yaml with varied parameters; compare the risk of each release with how well it serves a plan.

    Each point is released, verified, measured and deleted. FOLDER gets explore.parquet and explore.html.

    \b
    Examples:
      leeward explore spec.yaml --vary k=2,5,11,20 --vary m=1,2 -o explored
      leeward explore spec.yaml --vary k=5,14 --methods constraints,visits --plan plan.yaml -o explored
    """
    from leeward.advise.grid import parse_variations
    from leeward.release.aside import own_file
    from leeward.runs.explore import explore as run

    found = run(vary=parse_variations(varied), **flags)
    if as_csv:
        found.points.write_csv(own_file(found.folder / "explore.csv"))
    _print_exploration(found, as_json)


def _print_exploration(found: Exploration, as_json: bool) -> None:
    """What was tried: every point as JSON; for a person how many, what failed, and the best of each line."""
    from leeward.advise.frontier import by_attacker, spots_of
    from leeward.advise.page import describe_spec

    rows = found.points.to_dicts()
    if as_json:
        return print_json({"folder": str(found.folder), "lines": list(found.lines), "points": rows})
    failed = [row for row in rows if row["status"] != "verified"]
    lines = [f"{len(rows):,} runs, {len(rows) - len(failed):,} verified."]
    lines += [
        f"No release of {describe_spec(row['spec'])} ({row['status']}): {row['message']}" for row in failed
    ]
    for place, title in enumerate(found.lines, start=1):
        lines += [f"{title}:", *_frontiers(by_attacker(spots_of(rows, place)))]
    words = {row["spec"]: row["risk_in_words"] for row in reversed(rows) if row["risk_in_words"]}
    lines += [f"Maximum risk of {describe_spec(spec)}: {risk}." for spec, risk in reversed(words.items())]
    print_lines(*lines, f"Page:  {found.page}", f"Table: {found.table}")


def _frontiers(spots: Mapping[str, Sequence[Spot]]) -> list[str]:
    lines = []
    for knows, each in spots.items():
        lines += [f"  the frontier for attackers who know {knows}", *frontier_lines(each)]
    return lines or ["  no release serves it"]


def frontier_lines(spots: Sequence[Spot]) -> list[str]:
    """The frontier of one attacker's points; of those that are equal the first and how many."""
    from leeward.advise.frontier import chance_of, frontier
    from leeward.advise.page import describe_spec

    best: dict[tuple[float, float], list[str]] = {}
    for spot in frontier(spots):
        line = f"    risk {chance_of(spot)}  kept {100 * spot.value:.1f} %  {spot.verdict}  {describe_spec(spot.spec)}"
        best.setdefault((spot.risk, spot.value), []).append(line)
    return [same[0] + (f", and {len(same) - 1} alike" if len(same) > 1 else "") for same in best.values()]


@click.command()
@click.argument("outs", metavar="OUT1 OUT2 …", nargs=-1, required=True)
@flag("--plan", "PLAN.yaml", "The analyses to measure, and the threshold.")
@new_option
@json_option
def compare(outs: tuple[str, ...], plan: str | None, out: str, as_json: bool) -> None:
    """Compare the risk of finished releases of one source with how well each serves a plan.

    Each release is verified again, against its source.

    \b
    Example:
      leeward compare release-1 release-2 --plan plan.yaml -o compared
    """
    from leeward.runs.compare import compare as run

    _print_exploration(run(outs, out, plan=plan), as_json)
