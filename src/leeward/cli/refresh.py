"""`leeward refresh`: the next version of a release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from leeward.cli.options import (
    flag,
    formats_option,
    json_option,
    out_option,
    print_json,
    read_like,
    reason_option,
    register_option,
    threads_option,
    with_source,
)
from leeward.cli.telling import print_styled, summary, tell_register, told


@click.command()
@click.argument("master", metavar="MASTER")
@click.argument("path", metavar="NEW")
@flag("--wait", "N", "Visits: for up to N batches hold back a visit whose codes nearly k patients share.",
      type=click.IntRange(min=0), default=0)  # fmt: skip
@flag("--records", None,
      "Whether returning patients keep their record [default: kept for visits, else apart].",
      type=click.Choice(["kept", "apart"]))  # fmt: skip
@flag(
    "--withdrawn", "FILE", "Patients who withdrew, one identifier a line: nothing new of theirs is released."
)
@flag("--published", "COHORT",
      "Source of the first version, read like NEW [default: the one that its custody/spec.yaml names].")  # fmt: skip
@flag("--seed", "N", "For tests and studies only.", type=int)
@formats_option
@threads_option
@out_option
@reason_option
@register_option
@with_source
@json_option
def refresh(
    master: str, source: Any, withdrawn: str | None, published: str | None, as_json: bool, **flags: Any
) -> None:  # fmt: skip
    """Release the next version of MASTER: its rows as they are, and after them what is new in NEW.

    Visits that were published already are left out, also corrected ones, and counted. Nothing published changes, so
    no two versions tell more than each of them. NEW is read like the source of MASTER where no flags say otherwise.

    \b
    Examples:
      leeward refresh master new.csv -o master-2
      leeward refresh master new.csv --wait 2 -o master-2
      leeward refresh master new.csv --visit enc --withdrawn withdrawn.txt -o master-2

    Exit status: 0 done; 2 bad input; 3 too few patients are new, and how many more are needed; 4 verification failed.
    In the last three cases nothing is written.
    """
    from leeward.release import Release
    from leeward.release.spec import SourceSpec, resolve_source
    from leeward.runs.progress import watch
    from leeward.runs.refresh import read_withdrawn
    from leeward.runs.refresh import refresh as run
    from leeward.runs.specs import read_custody_spec, read_source

    spec = read_custody_spec(Release.open(master))
    if spec is not None and source == SourceSpec(path=source.path):
        source = replace(spec.source, path=source.path)
    source = resolve_source(source, Path.cwd())
    gone = read_withdrawn(withdrawn)
    with watch(None) as say:
        say("Reading the source")
        before = None if published is None else read_source(read_like(source, published))
        result = run(
            master, read_source(source), source=source, published=before, withdrawn=gone, tell=say,
            **flags,
        )  # fmt: skip
    tell_register(result)
    if as_json:
        return print_json(summary(result))
    versions = result.release.manifest["versions"]
    opening = f"Version {len(versions)}: {result.release.records:,} records, {versions[-1]['records']:,} of them new."
    print_styled(told(result, opening, list(_counts(result.measures["refresh"]))))


def _counts(counts: Mapping[str, int]) -> Iterator[str]:
    """What became of NEW."""
    from leeward.arrays import count_noun

    visits = f", {counts['visits']:,} visits" if "visits" in counts else ""
    yield f"The batch has {counts['patients']:,} patients{visits}."
    if counts["published"]:
        yield f"{counts['published']:,} of NEW were published before and were left out."
    if counts["corrected"]:
        yield (
            f"{counts['corrected']:,} were published before with other codes: the correction was left out, as no row "
            "changes. A new line (`leeward protect`) has it."
        )
    if counts["waiting"]:
        yield f"{counts['waiting']:,} visits wait in custody for more patients like them."
    if counts["withdrawn"]:
        yield (
            f"Nothing new is released of {count_noun('patient', counts['withdrawn'])} who withdrew. What was published "
            "of them leaves with a new line, under new numbers."
        )
    if counts["unknown"]:
        yield (
            f"{counts['unknown']:,} of those who withdrew are in no version and not in NEW. Look whether their "
            "identifiers are written as in the data."
        )
