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
    default="occupancy",
    show_default=True,
    help="How often a code of an item chunk is assumed to occur in its cluster.",
)
@click.option(
    "--where",
    "wanted",
    metavar="COLUMN=LABEL",
    multiple=True,
    help="Only patients with these demographics, such as age=70-79. Repeatable.",
)
@json_option
def estimate(out: str, sets: tuple[str, ...], prior: str, wanted: tuple[str, ...], as_json: bool) -> None:
    """Estimate how many patients have all of CODES (joined by commas) in the disassociated RELEASE.

    Low and high hold for the original data whatever the prior; the expected count depends on it.

    \b
    Examples:
      leeward estimate release/share 296.00,692.71
      leeward estimate release/share 296.00 296.00,692.71 --json
      leeward estimate release/share 250.00 --where age=70-79 --where sex=Female
    """
    from leeward.errors import BadInput
    from leeward.methods.disassociation.measures.estimates import estimates, estimates_where
    from leeward.methods.disassociation.measures.published import read
    from leeward.methods.disassociation.measures.unknown_codes import require_codes
    from leeward.release import Release

    queries = [tuple(code.strip() for code in text.split(",")) for text in sets]
    if not all(all(query) for query in queries):
        raise BadInput("CODES: a code between the commas is empty.")
    release = Release.open(out)
    if release.method != "disassociation":
        raise BadInput(
            f"{out}: counts are estimated from disassociated releases; this one is {release.method}."
        )
    published = read(release.share)
    require_codes(release, queries, published.number)
    where = _where(wanted)
    found = (
        estimates_where(release, published, queries, where, prior)
        if where
        else estimates(published, queries, prior)
    )
    rows: list[dict[str, Any]] = [
        {"codes": list(query), "low": int(low), "expected": float(expected), "high": int(high)}
        for query, low, expected, high in zip(queries, found.low, found.expected, found.high, strict=True)
    ]
    if as_json:
        print_json({"prior": prior, **({"where": where} if where else {}), "estimates": rows})
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
