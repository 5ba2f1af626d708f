"""`leeward condense` and `leeward synth registry`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.options import commas, run_options
from leeward.cli.running import run_and_tell


@click.command()
@click.argument("path", metavar="TABLE")
@click.option("--k", type=int, required=True, help="Fewest patients in a group, at least 2.")
@click.option(
    "--algorithm",
    type=click.Choice(["balanced", "improved", "condensation", "tfrp", "auto"]),
    help="balanced (default): halving and each group's own values; improved: Gal et al. 2014; condensation: Aggarwal "
    "and Yu; tfrp: two fixed reference points; auto: what keeps the plan best on a sample.",
)
@click.option(
    "--plan", metavar="FILE.yaml", help="The recipient's models: a list under `plan:`, as in a spec."
)
@click.option(
    "--strata",
    metavar="COL[,COL…]",
    callback=commas,
    help="Columns never mixed [default: the plan's events].",
)
@click.option("--time", metavar="COL[,COL…]", callback=commas, help="Survival times [default: the plan's].")
@click.option(
    "--response",
    metavar="COL[,COL…]",
    callback=commas,
    help="Columns with more weight [default: the plan's].",
)
@click.option("--weight", metavar="0…1|pilot", help="Weight of the response [default: 0.5].")
@click.option("--grouping", type=click.Choice(["halving", "kmeans"]), help="In place of the algorithm's own.")
@click.option("--synthesis", type=click.Choice(["sampled", "exact"]), help="How means and covariances hold.")
@click.option("--marginals", type=click.Choice(["group", "nearest"]), help="In place of the algorithm's own.")
@click.option("--draw", type=click.Choice(["normal", "uniform"]), help="How components are drawn.")
@click.option("--coarsen-time", is_flag=True, help="Publish group medians in place of exact times.")
@click.option(
    "--missing-values",
    "missing",
    type=click.Choice(["level", "impute"]),
    help="level (default): missing values stay missing; impute: drawn inside the group.",
)
@click.option(
    "--rare",
    type=click.Choice(["withhold", "keep"]),
    help="Levels that fewer than K patients have [default: withhold].",
)
@click.option("--cell-rows", type=int, metavar="N", help="Rows that are grouped at a time.")
@click.option(
    "--repetitions",
    type=int,
    metavar="N",
    help="Further tables to measure the plan over [default: 19 with a plan].",
)
@click.option("--patient", metavar="COL", help="Column of the patient's identifier, never released.")
@click.option("--drop", metavar="COL[,COL…]", callback=commas, help="Columns to leave out.")
@click.option(
    "--domains", metavar="FILE.yaml", help="Permissible values by column, as in a spec's `source.domains`."
)
@click.option(
    "--missing", "absent", metavar="TEXT", multiple=True, help="A text that means 'missing'. Repeatable."
)
@run_options
def condense(path: str, **flags: Any) -> None:
    """Release the TABLE of patients as synthetic rows that keep the recipient's regression models.

    Groups of at least K similar patients are replaced by as many synthetic ones with the group's means and covariances.

    \b
    Examples:
      leeward condense registry.csv --k 100 --plan plan.yaml -o release
      leeward condense registry.csv --k 50 --strata VitalStat --time SurvInterval --drop id -o release
      leeward condense registry.csv --k 100 --plan plan.yaml --algorithm auto --coarsen-time -o release

    TABLE is a CSV, TSV or Parquet file, one row a patient. Exit status: 0 done; 2 bad input; 3 fewer than K patients;
    4 verification failed. In the last three cases nothing is written.
    """
    from leeward.release.spec import SourceSpec

    patient, domains, plan = (flags.pop(name) for name in ("patient", "domains", "plan"))
    source = SourceSpec(
        path=path,
        format="table",
        columns={} if patient is None else {"patient": patient},
        missing=flags.pop("absent"),
        drop=flags.pop("drop"),
        domains=None if domains is None else content_of(domains, "domains", dict),
    )
    run_and_tell(
        "condensation",
        source,
        plan=() if plan is None else tuple(content_of(plan, "plan", list)),
        weight=weight_of(flags.pop("weight")),
        **flags,
    )


def weight_of(text: str | None) -> float | str | None:
    """`0.4` as a number; `pilot` as it is."""
    from leeward.errors import BadInput

    if text is None or text == "pilot":
        return text
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"--weight must be a number between 0 and 1, or pilot; got {text}.") from None


def content_of(path: str, key: str, kind: type) -> Any:
    """The YAML file's content, or what stands under `key` in it.

    Raises
    ------
    BadInput
        No such file, no YAML, or another kind of content.
    """
    from pathlib import Path

    import yaml

    from leeward.errors import BadInput

    file = Path(path)
    if not file.is_file():
        raise BadInput(f"{path}: there is no such file.")
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        raise BadInput(f"{path}: not valid YAML.") from None
    if isinstance(content, dict) and key in content:
        content = content[key]
    if not isinstance(content, kind):
        raise BadInput(
            f"{path}: a {'list' if kind is list else 'mapping'} is expected, under `{key}:` or by itself."
        )
    return content


def as_released(release: Any, source: Any) -> Any:
    """A source given by flags, read as the release's own source was where that is a table (`drop`, `domains`)."""
    from dataclasses import replace

    from leeward.release.spec import load

    spec_file = None if release.custody is None else release.custody / "spec.yaml"
    if source is None or spec_file is None or not spec_file.is_file():
        return source
    known = load(spec_file).source
    return source if known.format != "table" else replace(known, path=source.path)


@click.command()
@click.option(
    "--patients", type=click.IntRange(min=1), metavar="N", help="Rows [default: the paper's number of cases]."
)
@click.option("-o", "--out", required=True, metavar="FILE", help="A .parquet, .csv or .csv.gz file.")
@click.option(
    "--site", type=click.Choice(["colon", "lung"]), default="lung", show_default=True, help="Tumour."
)
@click.option(
    "--variables",
    type=click.IntRange(2, 13),
    default=9,
    show_default=True,
    help="Columns, the paper's first.",
)
@click.option("--seed", type=int, metavar="N", help="The same seed gives the same file.")
def registry(patients: int | None, out: str, site: str, variables: int, seed: int | None) -> None:
    """Write a made-up cancer registry with the nine variables of Gal et al. 2014, and up to four more.

    \b
    Examples:
      leeward synth registry --site colon -o colon.csv
      leeward synth registry --patients 430000 --variables 13 -o registry.parquet
    """
    from pathlib import Path

    from leeward.errors import BadInput
    from leeward.synthetic.registry import write_registry

    if Path(out).exists():
        raise BadInput(f"{out}: exists already; name another file with -o, or remove this one.")
    rows = write_registry(out, patients, site, variables, seed)
    click.echo(f"{out}: {rows:,} patients, {variables} variables")
