"""`leeward index`: the count index of notes or of a cohort, and the budget of its answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leeward.cli.options import commas, json_option, print_json, print_lines, with_source

if TYPE_CHECKING:
    import polars as pl

    from leeward.queries.index.build import Built
    from leeward.queries.language.vocabulary import Vocabulary
    from leeward.queries.privacy.accounting import Budget
    from leeward.release.spec import SourceSpec

SHARE_KNOWN = 0.5
"""A vocabulary is taken for a table's when it has at least this share of the table's distinct terms."""
TABLES = ("notes.parquet", "table.parquet")
"""A folder of annotated notes holds its table under one of these names."""


@click.command()
@click.argument("path", metavar="COHORT|TABLE")
@with_source
@click.option("--epsilon-total", required=True, metavar="E", help="Budget of all answers together.")
@click.option(
    "-o", "--out", required=True, metavar="INDEX", help="The index folder to write; must not exist."
)
@click.option("--terms", metavar="icd9|icd10|lexicon|FILE",
              help="The public vocabulary; a file is a hierarchy (CSV node,parent) or a list of terms (.txt) "
              "[default: --vocabulary, or the one recognised].")  # fmt: skip
@click.option("--qid", metavar="COL[,COL…]", callback=commas,
              help="Columns that may be asked for [default: all of a table of notes; none of a cohort].")  # fmt: skip
@click.option("--domain", multiple=True, metavar="NAME=FIRST..LAST|NAME=VALUE,VALUE",
              help="Permissible values of a quasi-identifier, public. Repeatable.")  # fmt: skip
@click.option("--row", type=click.Choice(["visit", "patient"]),
              help="What a row of a cohort is, in which all terms of a query must be [default: a visit where "
              "visits or dates are known, else the patient].")  # fmt: skip
@click.option("--max-rows-per-patient", "limit", type=click.IntRange(min=1), metavar="N",
              help="Keep N notes or visits of a patient, drawn at random: needed to count notes.")  # fmt: skip
@click.option("--parent", metavar="INDEX|ID", help="The index (or data set) that these data descend from.")
@click.option("--ledger", "url", metavar="URL", envvar="LEEWARD_LEDGER",
              help="Database that keeps the budget [default: a ledger in INDEX].")  # fmt: skip
@click.option("--unit", type=click.Choice(["patient", "note"]), default="patient", show_default=True,
              help="What the budget protects.")  # fmt: skip
@click.option(
    "--threshold", type=click.IntRange(min=1), metavar="N", help="Noisy counts below N are hidden; public."
)
@click.option("--accounting", type=click.Choice(["pure", "zcdp"]), default="pure", show_default=True,
              help="How answers add up: by their sum, or by zero-concentrated privacy.")  # fmt: skip
@click.option("--delta", type=float, metavar="D", help="With --accounting zcdp, for example 1e-6.")
@click.option("--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True)
@click.option(
    "--seed", type=int, metavar="N", help="For tests and studies only: draws the rows kept of a patient."
)
@json_option
def index(source: Any, epsilon_total: str, out: str, as_json: bool, **flags: Any) -> None:
    """Index the notes in TABLE (by `leeward notes annotate`) or the codes of COHORT, for differentially private counts.

    The index is the exact data in another form: it stays with the custodian. Recipients ask `leeward query`, and every
    answer is paid from the budget that is given here, once. The same data indexed again keep their budget in a ledger
    that knows them.

    \b
    Examples:
      leeward index notes/table.parquet --terms lexicon --epsilon-total 5 -o INDEX
      leeward index events.csv --patient pid --code icd --date day --epsilon-total 5 -o INDEX
      leeward index diabetic_data.csv.gz --patient patient_nbr --code diag_1,diag_2,diag_3 --missing '?' \\
          --vocabulary icd9 --qid race,gender --domain gender=male,female --epsilon-total 5 -o INDEX

    Exit status: 0 done; 2 bad input (nothing is written).
    """
    from leeward.queries.privacy.accounting import Budget, micro

    budget = Budget(
        epsilon=micro(epsilon_total, "epsilon_total"), accounting=flags["accounting"], delta=flags["delta"]
    )
    with beside(Path(out).absolute()) as folder:
        built = built_of(source, folder, flags)
        registered(built, folder, budget, flags)
    told = facts(built, out, epsilon_total, flags)
    if as_json:
        print_json(told)
    else:
        print_lines(*lines_of(told))


@contextmanager
def beside(out: Path) -> Iterator[Path]:
    """The name of a folder beside `out` that becomes `out` when all is done, and is removed when not."""
    import secrets
    import shutil

    from leeward.errors import BadInput

    if out.exists() or out.is_symlink():
        raise BadInput(f"{out}: exists already; an index is never overwritten. Name another folder with -o.")
    folder = out.with_name(f"{out.name}.partial-{secrets.token_hex(4)}")
    try:
        yield folder
        folder.rename(out)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def built_of(source: SourceSpec, folder: Path, flags: dict[str, Any]) -> Built:
    """The index in `folder`, of a table of notes or of a cohort."""
    from leeward.cli.bringing import domains_of, domains_of_notes, vocabulary_of
    from leeward.engine import make
    from leeward.queries.index.build import index_cohort, index_events, index_table
    from leeward.randomness import Randomness
    from leeward.runs.protect import read_source, watched

    common: dict[str, Any] = {
        "domains": domains_of(flags["domain"]),
        "max_rows_per_patient": flags["limit"],
        "parent": parent_of(flags["parent"]),
        "randomness": Randomness.of(flags["seed"]),
    }
    named = flags["terms"] or source.vocabulary
    with watched(None) as say:
        say("Reading")
        table = table_of_notes(source)
        if table is not None:
            _refuse_row(flags["row"])
            terms = vocabulary_of(named) if named else vocabulary_of_table(table)
            say("Indexing")
            left_out = [] if not flags["qid"] else unwanted(table.columns, flags["qid"])
            common["domains"] = {**domains_of_notes(table.columns, left_out), **common["domains"]}
            return index_table(table, folder, terms=terms, leave_out=left_out, **common)
        if flags["engine"] == "spark" and (straight := columns_of_parquet(source)) is not None and named:
            say("Indexing through Spark")
            return index_events(
                str(source.path), folder, make("spark"), terms=vocabulary_of(named), attributes=flags["qid"],
                columns=straight, row=flags["row"], **common,
            )  # fmt: skip
        cohort = read_source(with_attributes(source, flags["qid"]))
        known = named or cohort.vocabulary
        terms = None if known is None else vocabulary_of(known)
        say("Indexing")
        common["row"] = flags["row"]
        if flags["engine"] == "local":
            return index_cohort(cohort, folder, terms=terms, **common)
        from leeward.queries.language.open_vocabulary import AnyText

        events, attributes = events_with_attributes(cohort)
        found = terms or AnyText()
        return index_events(events, folder, make("spark"), terms=found, attributes=attributes, **common)


def columns_of_parquet(source: SourceSpec) -> dict[str, str] | None:
    """Role -> column of a plain Parquet file of events, which Spark can read by itself; None for anything else."""
    import polars as pl

    columns = dict(source.columns)
    plain = source.format in (None, "events") and not source.lines and not source.missing
    path = Path(str(source.path))
    if not plain or path.suffix != ".parquet" or not path.is_file() or "birth" in columns:
        return None
    if isinstance(columns.get("code", ""), list):
        return None
    available = pl.read_parquet_schema(path)
    roles = {role: columns.get(role, role) for role in ("patient", "code")}
    roles |= {role: columns.get(role, role) for role in ("visit", "date", "age")
              if role in columns or (not columns and role in available)}  # fmt: skip
    dates = roles.get("date")
    return None if dates is not None and dates in available and not available[dates].is_temporal() else roles


def events_with_attributes(cohort: Any) -> tuple[pl.DataFrame, list[str]]:
    """The events with the patients' attributes in each, and the names of these."""
    events, people = cohort.require_events(), cohort.patients
    if people is None:
        return events, []
    names = [column for column in people.columns if column != "patient"]
    return events.drop(*(n for n in names if n in events.columns)).join(
        people, on="patient", how="left"
    ), names


def table_of_notes(source: SourceSpec) -> pl.DataFrame | None:
    """The table of notes that a path names: Parquet with the columns patient and terms; None for anything else."""
    import polars as pl

    from leeward.errors import BadInput

    path = Path(str(source.path))
    if path.is_dir():
        path = next((path / sub / name for sub in ("", "custody", "custody/data", "data") for name in TABLES
                     if (path / sub / name).is_file()), path)  # fmt: skip
    if not path.is_file() or path.suffix != ".parquet":
        return None
    try:
        schema = pl.read_parquet_schema(path)
    except pl.exceptions.PolarsError:
        raise BadInput(f"{path.name}: not a Parquet file, or a damaged one.") from None
    if not {"patient", "terms"} <= set(schema) or not isinstance(schema["terms"], pl.List):
        return None
    return pl.read_parquet(path)


def unwanted(columns: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The columns of a table of notes that are neither its own nor asked for."""
    from leeward.errors import BadInput
    from leeward.queries.index.rows import NOTE_COLUMNS

    for name in wanted:
        if name not in columns:
            raise BadInput(f"--qid: the table has no column {name!r}; it has {', '.join(columns)}.")
    return [column for column in columns if column not in wanted and column not in NOTE_COLUMNS]


def vocabulary_of_table(table: pl.DataFrame) -> Vocabulary | None:
    """The project's lexicon where it has most of a table's terms; else None: any text is a term."""
    from leeward.cli.bringing import lexicon_terms
    from leeward.queries.index.rows import flattened

    distinct = flattened(table["terms"]).drop_nulls().unique().to_list()
    terms = lexicon_terms()
    known = sum(terms.term_of(term) is not None for term in distinct)
    return terms if distinct and known >= SHARE_KNOWN * len(distinct) else None


def with_attributes(source: SourceSpec, columns: Sequence[str]) -> SourceSpec:
    """The source with its attributes read too."""
    import dataclasses

    if not columns:
        return source
    named = dict(source.columns)
    if source.format in (None, "events"):
        named.setdefault("patient", "patient")
        named.setdefault("code", "code")
    return dataclasses.replace(source, columns={**named, "patients": list(columns)})


def parent_of(text: str | None) -> str | None:
    """The identity of a parent: of the index in a folder, or as it is written."""
    from leeward.queries.index.counts import Index

    return Index.open(text).meta.id if text is not None and Path(text).is_dir() else text


def registered(built: Built, folder: Path, budget: Budget, flags: dict[str, Any]) -> None:
    """Give the data set its budget in the ledger."""
    from leeward.queries.ledger import DataSet, make_ledger, register

    ledger = make_ledger(flags["url"] or folder)
    meta = built.index.meta
    try:
        register(
            ledger,
            DataSet(
                id=meta.id,
                budget=budget,
                parent=meta.parent,
                unit=flags["unit"],
                threshold=flags["threshold"],
            ),
        )
    finally:
        ledger.engine.dispose()


def facts(built: Built, out: str, epsilon_total: str, flags: dict[str, Any]) -> dict[str, Any]:
    """What was indexed, for the custodian."""
    index, meta = built.index, built.index.meta
    return {
        "index": out,
        "data_set": meta.id,
        "parent": meta.parent,
        "row": meta.row,
        "rows": index.rows,
        "patients": index.patients,
        "qids": [{"name": q.name, "kind": q.kind, "domain": q.domain} for q in meta.qids],
        "vocabulary": meta.vocabulary,
        "vocabulary_public": meta.vocabulary_public,
        "max_rows_per_patient": meta.max_rows_per_patient,
        "seeded": meta.seeded,
        "left_out": dict(built.left_out),
        "epsilon_total": float(epsilon_total),
        "unit": flags["unit"],
        "threshold": flags["threshold"],
        "accounting": flags["accounting"],
        "delta": flags["delta"],
    }


def lines_of(told: dict[str, Any]) -> list[str]:
    """The facts for a person."""
    kinds = ", ".join(f"{q['name']} ({q['kind']})" for q in told["qids"]) or "none"
    lines = [
        f"{told['rows']:,} rows ({told['row']}s) of {told['patients']:,} patients indexed in {told['index']}.",
        f"Quasi-identifiers: {kinds}",
        f"Vocabulary: {told['vocabulary']}",
        f"Budget: epsilon {told['epsilon_total']:g} for each {told['unit']}, all answers together.",
    ]
    if not told["vocabulary_public"]:
        lines.append(
            "Note: no public vocabulary was named, so any text may be asked for, and what nobody has counts 0 plus "
            "noise; --terms names one."
        )
    if told["max_rows_per_patient"] not in (None, 1):
        lines.append(f"At most {told['max_rows_per_patient']:,} rows of a patient are kept, drawn at random.")
    lines += [f"Left out: {count:,} {why}" for why, count in told["left_out"].items()]
    if told["seeded"]:
        lines.append("Note: the rows kept were drawn with a chosen seed: for tests and studies only.")
    return [*lines, "The index holds exact data and stays with the custodian."]


def _refuse_row(row: str | None) -> None:
    from leeward.errors import BadInput

    if row is not None:
        raise BadInput("--row is for cohorts; a row of a table of notes is a note.")
