"""`leeward demo`."""

from __future__ import annotations

import os
import sys

import click

from leeward.cli.options import json_option
from leeward.cli.running import tell

PATIENTS = 300
INTERPRETED = 1_000
"""Up to so many patients kernels run as plain Python: compiling them would take longer."""

COHORT_SEED = 1
"""Of the made-up cohort only; the release draws from the operating system like any other."""

NEXT = """
Kernels ran as plain Python. The first run of `leeward demo --patients 5000` or on data of your own compiles about
a hundred of them, once for all runs: one to two minutes."""


@click.command()
@click.option("-o", "--out", default="leeward-demo", show_default=True, help="The release folder to write.")
@click.option(
    "--patients",
    type=click.IntRange(min=100),
    metavar="N",
    default=PATIENTS,
    show_default=True,
    help="How many to make up.",
)
@json_option
def demo(out: str, patients: int, as_json: bool) -> None:
    """Release a made-up cohort by disassociation, and print where its report is.

    Up to 1,000 patients are released without compiling anything, in some seconds.

    \b
    Examples:
      leeward demo
      leeward demo --patients 5000 -o somewhere
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from leeward.cohort.readers import read
    from leeward.release.folder import check_out
    from leeward.runs.protect import method_of, protect
    from leeward.synthetic import write_codes

    check_out(Path(out))
    interpreted = patients <= INTERPRETED and sys.argv[1:2] == ["demo"] and "numba" not in sys.modules
    if interpreted:  # the process is this command's alone; Numba looks when it is imported
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    with TemporaryDirectory() as folder:
        events = Path(folder) / "made-up-cohort.csv"
        write_codes(events, patients, seed=COHORT_SEED)
        cohort = read(events)
    method = method_of(
        {"name": "disassociation", "k": 5, "m": 2, "utility": {"policy": "hierarchy", "level": 1}}
    )
    tell(protect(cohort, method, out), as_json)
    if interpreted and not as_json:
        click.echo(NEXT)
