"""`leeward disassociate`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.flags import parameter_options
from leeward.cli.options import run_options, with_source
from leeward.cli.running import run_and_tell
from leeward.methods.disassociation.parameters import Disassociation


@click.command()
@click.argument("path", metavar="EVENTS")
@parameter_options(Disassociation, required=("k", "m"))
@with_source
@run_options
def disassociate(source: Any, **flags: Any) -> None:
    """Release the diagnosis codes in EVENTS by disassociation.

    An attacker who knows any M codes of a patient cannot narrow that patient down to fewer than K candidate
    records. No code is suppressed or generalized; what is hidden is which rare codes go together.

    \b
    Examples:
      leeward disassociate events.csv --patient pid --code icd --k 5 --m 2 -o release
      leeward disassociate diabetic_data.csv.gz --patient patient_nbr --code diag_1,diag_2,diag_3 \\
          --missing '?' --k 5 --m 2 --policy hierarchy:1 -o release
      leeward disassociate baskets.txt --lines --k 3 --m 2 --format parquet,csv -o release

    EVENTS is a CSV, TSV, Parquet, .xlsx, SAS, Stata or SPSS file, a .zip of one, a folder, a glob or a database. Exit
    status: 0 done; 2 bad input; 3 the guarantee cannot be met on this data; 4 verification failed. In the last three
    cases nothing is written.
    """
    run_and_tell("disassociation", source, **flags)
