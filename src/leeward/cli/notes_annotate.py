"""`leeward notes annotate` and `leeward notes decrypt`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from leeward.cli.options import commas, json_option, out_option, print_json, print_lines, threads_option

COLUMNS = {
    "text": "--text-column", "patient": "--patient", "note": "--note", "date": "--date", "sex": "--sex", "age": "--age",
    "birth_date": "--birth", "race": "--race", "zip": "--zip", "place": "--place",
}  # fmt: skip
"""Role of a column in a table of notes -> its flag."""


def column_options(function: Any) -> Any:
    """A flag for each column of a table of notes."""
    for role, flag in reversed(COLUMNS.items()):
        shown_as = "date of birth" if role == "birth_date" else role
        what = f"Column of the {shown_as} in a table of notes [default: {role}]."
        function = click.option(flag, role, metavar="COL", help=what)(function)
    return function


def key_options(function: Any) -> Any:
    """Which key: a recipient's, which is kept, or the one in a file."""
    for flag, metavar, what in (
        ("--key", "FILE", "The key in a file instead."),
        ("--recipient", "NAME", "The key that is kept for a recipient [default: the one for everybody]."),
    ):
        function = click.option(flag, metavar=metavar, help=what)(function)
    return function


@click.command()
@click.argument("notes", metavar="NOTES")
@out_option
@column_options
@click.option(
    "--metadata", metavar="FILE", help="Registration data: a table with the column patient or note."
)
@click.option(
    "--text",
    "mode",
    type=click.Choice(["removed", "surrogates", "encrypted"]),
    help="Write the texts too, with identities removed, replaced or encrypted.",
)
@key_options
@click.option(
    "--lexicon",
    default="leeward",
    metavar="PATH",
    help="Health terms: CSV, OBO, or a folder of OMOP, UMLS or SNOMED files [default: the project's own].",
)
@click.option(
    "--members",
    metavar="rules,dictionary,svm,crf",
    callback=commas,
    help="Annotators of the ensemble [default: all that are there].",
)
@click.option(
    "--review",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    metavar="N",
    help="Notes on the review page.",
)
@click.option("--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True)
@threads_option
@click.option(
    "--seed",
    type=int,
    metavar="N",
    help="For tests and studies only: order of rows, sample and, unless one is named, the key follow from it.",
)
@click.option(
    "--any-language",
    is_flag=True,
    help="Annotate notes that are not in English too; the annotators read English only.",
)
@json_option
def annotate(
    notes: str,
    out: str,
    metadata: str | None,
    mode: str | None,
    key: str | None,
    recipient: str | None,
    lexicon: str,
    members: tuple[str, ...],
    review: int,
    engine: str,
    threads: int | None,
    seed: int | None,
    any_language: bool,
    as_json: bool,
    **columns: str | None,
) -> None:
    """Turn clinical NOTES into a table of quasi-identifiers and health terms, without identities.

    NOTES is a folder of text files (a subfolder is a patient), a CSV, TSV, Parquet or JSON lines file with a column
    of text, or FHIR NDJSON with DocumentReference.

    From three million characters on, notes are shared by as many processes as --threads allows; the files are the same.

    \b
    Examples:
      leeward notes annotate notes.csv -o OUT
      leeward notes annotate folder --metadata registration.csv -o OUT
      leeward notes annotate notes.parquet --text removed -o OUT
      leeward notes annotate notes.parquet --text surrogates --recipient city-university -o OUT
      leeward notes annotate DocumentReference.ndjson --text encrypted --key ~/notes.key -o OUT
      leeward notes decrypt OUT --key ~/notes.key -o texts.parquet

    Pseudonyms, surrogates, shifts of dates and tokens follow from a key, made where it is not there. A recipient's is
    kept, so that later releases have the same surrogates: with others, whoever compares two releases of the same notes
    sees what is made up. Surrogates keep the days between dates; take --text removed where a date of many patients is
    known.

    \b
    OUT/custody/table.parquet  one row a note: for `leeward index`, not for recipients
    OUT/custody/review.html    notes with what was found coloured, for your spot check
    OUT/share/text.parquet     with --text only: the texts, and (but for surrogates) what was replaced where

    Exit status: 0 done; 2 bad input (nothing is written).
    """
    from leeward.runs.annotate import annotate as run

    result = run(
        notes,
        out,
        columns={role: column for role, column in columns.items() if column is not None},
        metadata=metadata,
        mode=mode,
        key=key,
        recipient=recipient,
        lexicon=lexicon,
        members=members,
        review=review,
        engine=engine,
        threads=threads,
        processes=True,
        seed=seed,
        any_language=any_language,
    )
    foreign = result["other_languages"]
    if foreign:
        listed = ", ".join(f"{count:,} in {language}" for language, count in foreign.items())
        click.echo(
            f"leeward: WARNING: notes in a language that the annotators do not read: {listed}. Most of what identifies "
            "patients in them was not found.",
            err=True,
        )
    if as_json:
        print_json(result)
        return
    spans, shown = result["spans"], Path(out)
    lines = [
        f"{result['notes']:,} notes of {result['patients']:,} patients read by {', '.join(result['members'])}.",
        f"Found: {spans['EID']:,} identities, {spans['QID']:,} quasi-identifiers, {spans['HMI']:,} health terms.",
        f"In the table: {result['terms']:,} different terms, {result['terms_per_note']:.1f} a note.",
    ]
    if result["control_characters"]:
        lines.append(
            f"Note: control characters of the notes that were left out: {result['control_characters']:,}."
        )
    if result["disagreeing"]:
        lines.append(f"Note: the patient data of {result['disagreeing']:,} notes disagree; see `disagrees`.")
    lines += [f"Table:  {shown / 'custody/table.parquet'}", f"Review: {shown / 'custody/review.html'}"]
    if result["key"]:
        lost = "without it nobody reads the identities again: keep a copy"
        why = lost if mode == "encrypted" else "kept for the next release to the same recipient"
        lines.append(f"Key:    {result['key']} ({why})")
    if mode:
        lines.append(
            f"Texts:  {shown / 'share/text.parquet'} (look at the review page before you pass them on)"
        )
    print_lines(*lines)


@click.command()
@click.argument("path", metavar="OUT")
@key_options
@click.option(
    "-o", "--out", required=True, metavar="FILE", help="A .parquet or .csv file; must not exist yet."
)
def decrypt(path: str, key: str | None, recipient: str | None, out: str) -> None:
    """Put the identities back into the texts of OUT, which `leeward notes annotate --text encrypted` wrote.

    \b
    Examples:
      leeward notes decrypt OUT --recipient city-university -o texts.parquet
      leeward notes decrypt OUT --key ~/notes.key -o texts.parquet

    Exit status: 0 done; 2 bad input, such as another key (nothing is written).
    """
    from leeward.runs.annotate import decrypt as run

    count = run(path, key, out, recipient)
    print_lines(f"{out}: {count:,} texts with their identities. Keep it as you keep the notes.")
