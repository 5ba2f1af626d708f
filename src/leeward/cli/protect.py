"""`leeward protect`."""

from __future__ import annotations

import click

from leeward.cli.options import json_option, out_option, threads_option
from leeward.cli.running import tell


@click.command()
@click.argument("spec_file", metavar="SPEC.yaml")
@out_option
@threads_option
@json_option
def protect(spec_file: str, out: str, threads: int | None, as_json: bool) -> None:
    """Release a cohort as SPEC.yaml says, into the folder OUT.

    OUT/share is for the recipient, OUT/custody stays with you. The release is verified before it appears.

    \b
    A spec:
      source:  {format: events, path: events.parquet, columns: {patient: pid, code: icd}}
      method:  {name: disassociation, k: 5, m: 2, utility: {policy: hierarchy, level: 1}}
      measure: [{are: {workload: frequent, min_support: 0.0125}}, {mre: {}}]
      engine:  local
      formats: [parquet, csv]

    \b
    Example:
      leeward protect spec.yaml -o release
    """
    from leeward.release.spec import load
    from leeward.runs.protect import run

    tell(run(load(spec_file), out, threads=threads), as_json)
