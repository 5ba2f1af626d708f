"""`leeward cohort`: draw a cohort from a master release of visits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from leeward.cli.options import commas, json_option, out_option, print_json, print_lines, with_source


@click.command()
@click.argument("master", metavar="MASTER")
@click.option(
    "--select",
    "selection",
    required=True,
    metavar="PATIENTS.csv|EXPRESSION",
    help="A file with a column of identifiers, or an SQL expression over patient, payload, codes and visits.",
)
@click.option(
    "--payload", metavar="FILE", help="A table of the patients, such as genotypes, to go along unprotected."
)
@click.option(
    "--column", "column", default="patient", show_default=True, help="The identifier's column in these files."
)
@click.option(
    "--source", "path", metavar="COHORT", help="The master's original, to measure what the cohort lost."
)
@click.option("--seed", type=int, metavar="N", help="For tests and studies only.")
@click.option(
    "--format", "formats", metavar="parquet,csv", callback=commas, help="Parquet is always written."
)
@out_option
@with_source
@json_option
def cohort(
    master: str,
    selection: str,
    payload: str | None,
    column: str,
    source: Any,
    seed: int | None,
    formats: tuple[str, ...],
    out: str,
    as_json: bool,
) -> None:
    """Draw a cohort from MASTER, a release by `leeward visits` of the whole population.

    The cohort shows its patients exactly as the master does, so cohorts that overlap agree. Its k speaks of the
    population; how many share a visit inside the cohort is counted and stated too.

    \b
    Examples:
      leeward cohort master --select patients.csv -o cohort
      leeward cohort master --select "array_contains(codes, '250.00')" --payload genotypes.csv -o cohort
      leeward cohort master --select patients.csv --source events.csv --visit enc -o cohort

    Exit status: 0 done; 2 bad input; 4 verification failed. In the last two cases nothing is written.
    """
    from leeward.workflow import read_source, watched

    with watched(None) as say:
        original = None
        if source is not None:
            say("Reading the source")
            original = read_source(source)
        say("Drawing the cohort")
        result = extract(
            master,
            selection,
            out,
            payload=payload,
            column=column,
            original=original,
            seed=seed,
            formats=formats,
        )
    shared = result["measures"]["method"]["shared_by"]
    if as_json:
        print_json(result)
        return
    print_lines(
        f"{result['records']:,} records drawn from a master of {shared['population']:,} (k = {shared['k']}).",
        f"Verified: {len(result['verification']['checks'])} checks of the written files passed.",
        f"In the population, at least {shared['population_smallest']:,} patients share each visit's set.",
        f"Inside the cohort, {shared['few_share']:.1%} of the visits have a set that fewer than {shared['k']} members "
        f"share, {shared['alone_share']:.1%} one that a single member has: who knows that a person is in the cohort is "
        "not held off.",
        *(f"Note: {notice['message']}" for notice in result["measures"]["notices"]),
        f"For the recipient: {result['share']}",
        f"Report:            {result['report']}",
    )


def extract(
    master: str | Path,
    selection: Any,
    out: str | Path,
    *,
    payload: Any = None,
    column: str = "patient",
    original: Any = None,
    measures: Any = (),
    seed: int | None = None,
    formats: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Draw a cohort and write it as a release that has passed its own verification.

    Parameters
    ----------
    master : path of the master's folder.
    selection : a file, an expression, or a Polars series of identifiers.
    payload : a file or a Polars frame with the column `column`.
    original : the master's source as a Cohort, to measure what the cohort lost against its own originals.
    measures : as in a spec's `measure:`; they need `original`.

    Raises
    ------
    BadInput, VerificationFailed
        Nothing is left at `out`.
    """
    import hashlib
    import json

    import polars as pl

    from leeward.errors import BadInput, VerificationFailed
    from leeward.protect.visits import extract as drawing
    from leeward.randomness import Randomness
    from leeward.release import draft
    from leeward.verify import verify
    from leeward.workflow import refusal, reported

    opened = drawing.Master.open(str(master))
    patients = selection if isinstance(selection, pl.Series) else _selected(opened, str(selection), column)
    records, strangers = drawing.records_of(opened, patients)
    if not len(records):
        raise BadInput("--select: none of these patients is in the master.")
    notices = (
        (f"{strangers:,} of the patients named are not in the master and were left out.",)
        if strangers
        else ()
    )
    carried = None if payload is None else _carried(payload, column, opened, records)
    with draft(out) as pending:
        anonymized = drawing.extract(opened, records, carried, notices, Randomness.of(seed))
        pending.write(anonymized, formats=("parquet", *formats))
        manifest = (opened.release.share / "release.json").read_bytes()
        note = {"path": str(Path(master).absolute()), "sha256": hashlib.sha256(manifest).hexdigest()}
        pending.put_json("custody/master.json", note)
        outcome = verify(pending.folder)
        if not outcome.passed:
            raise VerificationFailed(f"{refusal(outcome)} Nothing was written.")
        pending.put_json("custody/verification.json", outcome.to_json())
        whole = json.loads(((opened.release.custody or Path()) / "measures.json").read_text(encoding="utf-8"))
        figures = {
            "source": {**whole["source"], "name": f"{Path(master).name} (master)", "patients": len(records)},
            "notices": [{"kind": "method", "message": n, "count": strangers, "rows": []} for n in notices],
            "method": {**anonymized.custody, "population": drawing.population_counts(opened.release, whole)},
        }
        pending.put_json("custody/measures.json", figures)
        if original is not None:
            figures |= _measured(pending.folder, original, opened.people, records, measures)
            pending.put_json("custody/measures.json", figures)
        reported(pending.folder)
    folder = Path(out)
    return {
        "release": str(folder),
        "share": str(folder / "share"),
        "report": str(folder / "custody" / "report.html"),
        "records": len(records),
        "verification": outcome.to_json(),
        "measures": figures,
    }


def _selected(master: Any, selection: str, column: str) -> Any:
    """The identifiers of a file, or of an expression."""
    from leeward.protect.visits.extract import chosen_by

    if not Path(selection).is_file():
        return chosen_by(master, selection)
    table = _table(selection)
    if table.width == 1:
        return table.to_series()
    return table[_named(selection, table.columns, column)]


def _carried(payload: Any, column: str, master: Any, records: Any) -> Any:
    import polars as pl

    from leeward.protect.visits.extract import payload_columns

    table = payload if isinstance(payload, pl.DataFrame) else _table(str(payload))
    return payload_columns(table, _named("--payload", table.columns, column), master, records)


def _named(file: str, columns: list[str], column: str) -> str:
    from leeward.errors import BadInput

    if column not in columns:
        raise BadInput(
            f"{Path(file).name}: no column '{column}' among {', '.join(columns)}; name it with --column."
        )
    return column


def _table(path: str) -> Any:
    """A CSV, TSV or Parquet file."""
    import polars as pl

    from leeward.errors import BadInput

    try:
        if path.endswith(".parquet"):
            return pl.read_parquet(path)
        return pl.read_csv(path, separator="\t" if ".tsv" in path else ",", infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError):
        raise BadInput(
            f"{path}: cannot be read as a table; give a CSV, TSV or Parquet file with a header."
        ) from None


def _measured(folder: Path, original: Any, people: Any, records: Any, wanted: Any) -> dict[str, Any]:
    """Measures of the extract against the same patients' originals."""
    return _figures(folder, restricted(original, people.sort("record")["patient"].gather(records)), wanted)


def _figures(folder: Path, original: Any, wanted: Any) -> dict[str, Any]:
    from leeward.workflow import measure

    return measure(folder, original, wanted)


def restricted(original: Any, patients: Any) -> Any:
    """The cohort of some of its patients; codes that none of them has are gone."""
    import polars as pl

    from leeward.cohort.cohort import Cohort

    chosen = patients.implode()
    events = original.require_events().filter(pl.col("patient").is_in(chosen))
    codes = events["code"].cast(pl.String)
    events = events.with_columns(codes.cast(pl.Enum(codes.unique().sort())))
    attributes = (
        None if original.patients is None else original.patients.filter(pl.col("patient").is_in(chosen))
    )
    return Cohort(events=events, patients=attributes, name=original.name, vocabulary=original.vocabulary)
