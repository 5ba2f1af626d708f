"""`leeward constrain`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.flags import parameter_options
from leeward.cli.options import run_options, with_source
from leeward.cli.running import run_and_tell
from leeward.methods.constraints.parameters import Constraints


@click.command()
@click.argument("path", metavar="EVENTS")
@parameter_options(Constraints, optional=("k",))
@with_source
@run_options
def constrain(source: Any, **flags: Any) -> None:
    """Release the diagnosis codes in EVENTS, generalized and suppressed.

    Codes of one utility constraint may be merged, `(a,b)`; codes that cannot be protected this way are suppressed.
    Every set of up to M released codes is then in no record or in at least K.

    \b
    Examples:
      leeward constrain events.csv --patient pid --code icd --k 5 --m 2 --policy hierarchy:2 -o release
      leeward constrain events.csv --algorithm apriori --k 5 --m 2 --vocabulary icd9 -o release
      leeward constrain events.csv --k 5 --privacy known.txt --policy file:studies.csv -o release
      leeward constrain --mapping release/share/data/codes.parquet later.csv -o later

    EVENTS is a CSV, TSV, Parquet, .xlsx, SAS, Stata or SPSS file, a .zip of one, a folder, a glob or a database. Exit
    status: 0 done; 2 bad input; 3 the guarantee cannot be met on this data; 4 verification failed. In the last three
    cases nothing is written.
    """
    flags = {**flags, **_promises_of_mapping(flags)}
    run_and_tell("constraints", source, **flags)


def _promises_of_mapping(flags: dict[str, Any]) -> dict[str, Any]:
    """k and m of the release that a mapping comes from, where the user gave none."""
    if flags["mapping"] is None or (flags["k"] is not None and (flags["m"] or flags["privacy"])):
        return {}
    from pathlib import Path

    from leeward.errors import BadInput
    from leeward.release import Release

    try:
        guarantee = Release.open(Path(flags["mapping"]).absolute().parent.parent).guarantee
    except BadInput:
        raise BadInput(
            f"{Path(flags['mapping']).name}: no release around this mapping; give --k and --m (or --privacy)."
        ) from None
    found = {} if flags["k"] is not None else {"k": guarantee["k"]}
    if flags["m"] is None and flags["privacy"] is None:
        if "m" not in guarantee:
            raise BadInput("the mapping protects listed code sets; give them again with --privacy FILE.")
        found["m"] = guarantee["m"]
    return found
