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
    type=click.Choice(["cubic", "uniform", "one"]),
    default="cubic",
    show_default=True,
    help="How often a code of an item chunk is assumed to occur.",
)
@json_option
def estimate(out: str, sets: tuple[str, ...], prior: str, as_json: bool) -> None:
    """Estimate how many patients have all of CODES (joined by commas) in the disassociated RELEASE.

    Low and high hold for the original data whatever the prior; the expected count depends on it.

    \b
    Examples:
      leeward estimate release/share 296.00,692.71
      leeward estimate release/share 296.00 296.00,692.71 --json
    """
    from leeward.errors import BadInput
    from leeward.methods.disassociation.measures.estimates import estimates
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
    found = estimates(published, queries, prior)
    rows: list[dict[str, Any]] = [
        {"codes": list(query), "low": int(low), "expected": float(expected), "high": int(high)}
        for query, low, expected, high in zip(queries, found.low, found.expected, found.high, strict=True)
    ]
    if as_json:
        print_json({"prior": prior, "estimates": rows})
    else:
        print_lines(
            *(
                f"{','.join(r['codes'])}: {r['expected']:.1f} ({r['low']:,} to {r['high']:,}) patients"
                for r in rows
            )
        )
