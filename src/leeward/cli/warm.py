"""`leeward warm`: run every method once on made-up data, so that its kernels are compiled."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

import click

PLAN = """plan:
  - cox: {time: SurvInterval, event: VitalStat, event_value: 1, covariates: [DiagAge, Stage, Gender]}
  - logistic: {time: SurvInterval, event: VitalStat, event_value: 1, covariates: [DiagAge, Stage]}
"""

MADE_UP = (
    "synth codes --patients 400 --codes 120 --mean 5 --seed 1 -o codes.csv",
    "synth repeats --patients 3000 --sample sample.csv --sample-patients 200 --seed 1 -o population.csv",
    "synth trajectories --patients 150 --seed 1 -o pairs.csv",
    "synth visits --patients 300 --seed 1 -o visits",
    "synth registry --patients 600 --seed 1 -o registry.csv",
    "synth notes --patients 30 --seed 1 -o notes.parquet",
)
"""What the runs below read."""

RUNS = (
    "profile codes.csv --vocabulary icd9",
    "disassociate codes.csv --vocabulary icd9 --k 5 --m 2 --policy hierarchy:1 -o d1",
    "disassociate codes.csv --k 3 --m 3 --partitioning paper --safe --nested -o d2",
    "disassociate codes.csv --k 3 --m 2 --sensitive 228.11 --diversity 3 --reconstructions 1 -o d3",
    "disassociate codes.csv --k 3 --m 2 --partitions 2 -o d4",
    "disassociate codes.csv --k 3 --m 2 --attacker algorithm -o d5",
    "constrain codes.csv --vocabulary icd9 --k 5 --m 2 --policy hierarchy:2 -o c1",
    "constrain codes.csv --vocabulary icd9 --k 5 --m 2 --policy hierarchy:2 --algorithm ugaclip -o c2",
    "constrain codes.csv --vocabulary icd9 --k 5 --m 2 --algorithm apriori -o c3",
    "censor sample.csv --population population.csv --k 5 --cap 3 -o r1",
    "censor sample.csv --population population.csv --k 5 --cap 3 --scope record -o r2",
    "censor sample.csv --population population.csv --k 5 --cap 3 --scope groups -o r3",
    "trajectories pairs.csv --age age --vocabulary icd9 --k 5 -o t1",
    "trajectories pairs.csv --age age --vocabulary icd9 --k 5 --clustering cells --policy hierarchy:1 -o t2",
    "trajectories pairs.csv --age age --vocabulary icd9 --k 5 --clustering cells --order free -o t3",
    "link visits/events.parquet --visit visit --k 5 -o l1",
    "visits visits/events.parquet --visit visit --k 5 -o v1",
    "visits visits/events.parquet --visit visit --k 5 --enforce generalize --vocabulary icd9 -o v2",
    "visits visits/events.parquet --visit visit --k 5 --level containment --merge-visits -o v3",
    "visits visits/events.parquet --visit visit --k 5 --level code -o v4",
    "visits visits/events.parquet --visit visit --k 5 --level codes --m 2 -o v5",
    "visits visits/events.parquet --visit visit --k 5 --level codes --m 3 --merge-visits -o v6",
    "condense registry.csv --k 30 --plan plan.yaml -o g1",
    "condense registry.csv --k 30 --plan plan.yaml --algorithm improved -o g2",
    "condense registry.csv --k 30 --plan plan.yaml --algorithm condensation -o g3",
    "condense registry.csv --k 30 --plan plan.yaml --algorithm tfrp -o g4",
    "k-anonymize registry.csv --k 5 --quasi-identifiers DiagAge,Stage -o k1",
    "notes annotate notes.parquet -o n1",
    "index codes.csv --epsilon-total 50 -o index",
    "itemsets index --epsilon 5 --yes -o itemsets",
)
"""One run for each way through a kernel that a first user is likely to take."""

EXTRAS = {
    "synth notes": "faker",
    "condense": "scipy",
    "notes": "faker",
    "index": "opendp",
    "itemsets": "opendp",
}
"""What runs begin with that need an extra, and a module of it."""


@click.command()
def warm() -> None:
    """Compile every kernel now, for a container image or before a demonstration.

    Runs each method once on made-up data in a temporary folder. Kernels that are compiled already are skipped, as are
    methods whose extra is not installed. Takes one to four minutes if none is compiled.

    \b
    Example:
      leeward warm
    """
    from importlib.util import find_spec
    from tempfile import TemporaryDirectory
    from time import monotonic

    from leeward.compiling import compilations

    begun = monotonic()
    failed = []
    out_of_reach = tuple(run for run, module in EXTRAS.items() if find_spec(module) is None)
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ["LEEWARD_STATE"] = str(Path(folder, "state"))  # made-up data are not remembered as indexed
        Path("plan.yaml").write_text(PLAN, encoding="utf-8")
        for line in (*MADE_UP, *RUNS):
            if line.startswith(out_of_reach):
                continue
            click.echo(f"{line.split(' -o ')[0]}", err=True)
            if _run(line.split()) != 0:
                failed.append(line)
    click.echo(f"{compilations.count} kernels compiled in {monotonic() - begun:.0f} s.")
    if failed:
        raise click.ClickException(f"{len(failed)} runs ended in an error: {'; '.join(failed)}")


def _run(arguments: list[str]) -> int:
    """Run one command line in this process, silently; returns its exit status."""
    from leeward.cli.main import status_of

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return status_of(arguments)
