"""`leeward protect`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.options import (
    json_option,
    memory_option,
    out_option,
    schema_option,
    threads_option,
)
from leeward.cli.running import tell


def _schema() -> dict[str, Any]:
    from leeward.runs.reference import spec_schema

    return spec_schema()


@click.command()
@click.argument("spec_file", metavar="SPEC.yaml")
@out_option
@threads_option
@memory_option
@json_option
@schema_option("spec", _schema)
def protect(spec_file: str, out: str, threads: int | None, allow_memory: bool, as_json: bool) -> None:
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
    from leeward.runs.protect import run

    tell(run(spec_file, out, threads=threads, allow_memory=allow_memory), as_json)
