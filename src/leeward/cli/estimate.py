"""`leeward estimate`, for recipients."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.options import json_option, print_json, print_lines


@click.command()
@click.argument("out", metavar="RELEASE")
@click.argument("sets", metavar="CODES…", nargs=-1, required=True)
@click.option(
    "--prior",
    type=click.Choice(["occupancy", "cubic", "graded", "uniform", "one"]),
    help="Disassociation: how often a code of an item chunk is assumed to occur in its cluster [default: occupancy].",
)
@click.option(
    "--where",
    "wanted",
    metavar="COLUMN=LABEL",
    multiple=True,
    help="Only patients with these demographics, such as age=70-79. Repeatable.",
)
@json_option
def estimate(
    out: str, sets: tuple[str, ...], prior: str | None, wanted: tuple[str, ...], as_json: bool
) -> None:
    """Estimate how many patients have all of CODES (joined by commas) in RELEASE. A generalized label, such as
    (410,411), asks for any of its codes.

    Low and high hold for the original data. The expected count of a disassociated release depends on the prior; that of
    released records counts what they show.

    \b
    Examples:
      leeward estimate release/share 296.00,692.71
      leeward estimate release/share 296.00 296.00,692.71 --json
      leeward estimate release/share '(410,411),250.00'
      leeward estimate release/share 250.00 --where age=70-79 --where sex=Female
    """
    from leeward.methods.disassociation.measures.estimates import DEFAULT
    from leeward.release import Release
    from leeward.runs.estimate import codes_of, estimates

    queries = [codes_of(text) for text in sets]
    where, release = _where(wanted), Release.open(out)
    if prior is None and release.method == "disassociation":
        prior = DEFAULT
    rows: list[dict[str, Any]] = [
        {"codes": query, "low": found.low, "expected": found.expected, "high": found.high}
        for query, found in zip(queries, estimates(release, queries, prior, where), strict=True)
    ]
    if as_json:
        print_json(
            {**({"prior": prior} if prior else {}), **({"where": where} if where else {}), "estimates": rows}
        )
    else:
        print_lines(
            *(
                f"{','.join(r['codes'])}: {r['expected']:.1f} ({r['low']:,} to {r['high']:,}) patients"
                for r in rows
            )
        )


def _where(wanted: tuple[str, ...]) -> dict[str, str]:
    """`COLUMN=LABEL` as a mapping. BadInput for another form, or a column twice."""
    from leeward.errors import BadInput

    pairs = [(name.strip(), label.strip()) for name, _, label in (each.partition("=") for each in wanted)]
    if not all(name and label for name, label in pairs):
        raise BadInput("--where: write COLUMN=LABEL, for example --where age=70-79.")
    if len(dict(pairs)) < len(pairs):
        raise BadInput("--where: a column is given twice; give each one label.")
    return dict(pairs)
