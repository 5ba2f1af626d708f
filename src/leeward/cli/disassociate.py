"""`leeward disassociate`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.options import commas, policy_option, run_options, with_source
from leeward.cli.running import run_and_tell


@click.command()
@click.argument("path", metavar="EVENTS")
@click.option("--k", type=int, required=True, help="Fewest candidate records, at least 2.")
@click.option(
    "--m", type=int, required=True, help="Most codes of a patient that an attacker knows, at least 1."
)
@policy_option
@click.option(
    "--partitioning",
    type=click.Choice(["auto", "settled", "paper"]),
    help="settled: records choose a better cluster after the split; paper: as published; auto (default): by k.",
)
@click.option(
    "--max-cluster", type=int, metavar="N", help="Split parts of N records and more [default: 10k, 2k]."
)
@click.option(
    "--recut/--no-recut",
    default=None,
    help="Move records that would lie wholly in an item chunk [default: recut].",
)
@click.option("--refine/--no-refine", default=None, help="Shared chunks across clusters [default: refine].")
@click.option(
    "--max-joint", type=int, metavar="N", help="Join clusters up to N records [default: 80k, no limit]."
)
@click.option(
    "--max-passes", type=int, metavar="N", help="Passes of Refine [default: 24, until nothing changes]."
)
@click.option("--nested", is_flag=True, default=None, help="Shared chunks may repeat codes of chunks below.")
@click.option("--safe", is_flag=True, default=None, help="No code of a chunk gives away another.")
@click.option(
    "--sensitive",
    metavar="CODE[,CODE…]",
    callback=commas,
    help="Codes unknown to attackers; kept in item chunks.",
)
@click.option(
    "--diversity", type=int, metavar="L", help="At most one record in L of a cluster has a sensitive code."
)
@click.option(
    "--repeats", is_flag=True, default=None, help="Count mentions: the second 250.01 becomes 250.01#2."
)
@click.option("--reconstructions", type=int, metavar="N", help="Publish N reconstructed data sets as well.")
@click.option(
    "--prior",
    type=click.Choice(["cubic", "graded", "one", "uniform"]),
    help="Of the counts of item-chunk codes in reconstructions [default: cubic].",
)
@click.option("--partitions", type=int, metavar="N", help="Parts that are disassociated apart.")
@with_source
@run_options
def disassociate(source: Any, **flags: Any) -> None:
    """Release the diagnosis codes in EVENTS by disassociation.

    Whoever knows any M codes of a patient cannot narrow that patient down to fewer than K candidate
    records. No code is suppressed or generalized; what is hidden is which rare codes go together.

    \b
    Examples:
      leeward disassociate events.csv --patient pid --code icd --k 5 --m 2 -o release
      leeward disassociate diabetic_data.csv.gz --patient patient_nbr --code diag_1,diag_2,diag_3 \\
          --missing '?' --k 5 --m 2 --policy hierarchy:1 -o release
      leeward disassociate baskets.txt --lines --k 3 --m 2 --format parquet,csv -o release

    EVENTS is a CSV, TSV or Parquet file, a folder or a glob. Exit status: 0 done; 2 bad input; 3 the
    guarantee cannot be met on this data; 4 verification failed. In the last three cases nothing is written.
    """
    run_and_tell("disassociation", source, **flags)
