"""`leeward demo`."""

from __future__ import annotations

import click

from leeward.cli.options import json_option
from leeward.cli.running import tell

PATIENTS = 5_000
COHORT_SEED = 1
"""Of the made-up cohort only; the release draws from the operating system like any other."""


@click.command()
@click.option("-o", "--out", default="leeward-demo", show_default=True, help="The release folder to write.")
@json_option
def demo(out: str, as_json: bool) -> None:
    """Release a made-up cohort of 5,000 patients by disassociation, and print where its report is.

    \b
    Examples:
      leeward demo
      leeward demo -o somewhere
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from leeward.cohort.readers import read
    from leeward.release.folder import check_out
    from leeward.runs.protect import method_of, protect
    from leeward.synthetic import write_codes

    check_out(Path(out))
    with TemporaryDirectory() as folder:
        events = Path(folder) / "made-up-cohort.csv"
        write_codes(events, PATIENTS, seed=COHORT_SEED)
        cohort = read(events)
    method = method_of(
        {"name": "disassociation", "k": 5, "m": 2, "utility": {"policy": "hierarchy", "level": 1}}
    )
    tell(protect(cohort, method, out), as_json)
