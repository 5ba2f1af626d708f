"""`leeward show OUT`."""

from __future__ import annotations

import click

from leeward.cli.options import json_option, print_json


@click.command()
@click.argument("out", metavar="OUT")
@json_option
def show(out: str, as_json: bool) -> None:
    """Say what the release folder OUT is: what it is safe against, what not, what it cost, and who may have it.

    \b
    Examples:
      leeward show release
      leeward show release/share --json
    """
    from leeward.cli.telling import label_lines, print_styled, summary_lines
    from leeward.release import Release
    from leeward.report.summary import headline
    from leeward.runs.reports import summary_of, summary_of_share

    release = Release.open(out)
    measures = release.custody_json("measures.json")
    whole = measures is not None and "source" in measures
    summary = summary_of(release, measures) if whole and measures is not None else summary_of_share(release)
    verification = release.custody_json("verification.json")
    if as_json:
        print_json(
            {
                "method": release.method,
                "records": release.records,
                "seeded": release.seeded,
                "files": list(release.names()),
                "verified": None if verification is None else verification["passed"],
                "summary": summary.to_json(),
            }
        )
        return
    lines = [
        f"{headline(release)}.",
        *summary_lines(summary),
        *label_lines("Files", ", ".join(release.names())),
    ]
    if release.seeded:
        lines += label_lines("Seeded", "for tests and studies only: nobody else may have it.", "red")
    elif release.custody is None:
        lines += label_lines("Who", "this is a share alone, as a recipient has it.")
    else:
        lines += label_lines(
            "Who", f"{release.share} is for the recipient; {release.custody} stays with you."
        )
    if verification is not None:
        word = "passed" if verification["passed"] else "FAILED"
        lines += label_lines("Verified", f"{word} when it was made; `leeward verify {out}` checks it again.")
    print_styled(lines)
