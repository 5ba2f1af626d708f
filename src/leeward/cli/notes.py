"""`leeward notes`: annotate, decrypt, train, evaluate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leeward.cli.main import LazyGroup
from leeward.cli.options import (
    commas,
    engine_option,
    flag,
    json_option,
    out_option,
    print_lines,
    print_result,
    stack,
    switch,
    threads_option,
)

if TYPE_CHECKING:
    from leeward.notes.corpora.evaluation import Evaluation
    from leeward.notes.spans import AnnotatedNote
    from leeward.synthetic.notes import Split


ACTIONS = {
    "annotate": (
        "notes",
        "Turn notes into a table of quasi-identifiers and health terms, and texts without identities.",
    ),
    "decrypt": ("notes", "Restore encrypted identities with the key."),
    "train": ("notes", "Train the learned annotators on annotated notes."),
    "evaluate": ("notes", "Measure the annotators against annotated notes."),
}
"""Each thing that can be done with notes. A new one adds a row."""


@click.group(cls=LazyGroup, table=ACTIONS)
def notes() -> None:
    """Process clinical notes: remove identities, make a table of quasi-identifiers and health terms.

    \b
    Example:
      leeward notes annotate notes.csv -o OUT
    """


COLUMNS = {
    "text": "--text-column", "patient": "--patient", "note": "--note", "date": "--date", "sex": "--sex", "age": "--age",
    "birth_date": "--birth", "race": "--race", "zip": "--zip", "place": "--place",
}  # fmt: skip
"""Role of a column in a table of notes -> its flag."""


column_options = stack(
    *(
        flag(f"{name} {role}",
             "COL", f"Column of the {role.replace('birth_date', 'date of birth')} in a table of notes "
             f"[default: {role}].")
        for role, name in COLUMNS.items()
    )
)  # fmt: skip
"""A flag for each column of a table of notes."""

key_options = stack(
    flag("--recipient", "NAME", "Use the recipient's own key [default: the common key]."),
    flag("--key", "FILE", "Key file to use instead."),
)


@click.command()
@click.argument("notes", metavar="NOTES")
@out_option
@column_options
@flag("--metadata", "FILE", "Registration data: a table with the column patient or note.")
@flag("--text mode", None, "Write the texts too, with identities removed, replaced or encrypted.",
      type=click.Choice(["removed", "surrogates", "encrypted"]))  # fmt: skip
@flag(
    "--zip3",
    "hhs,CODES",
    "Keep the first three digits of ZIP codes in what is shared, but write 000 for these "
    "areas: hhs (17, by the census of 2000), three digits of others [default: no digit is kept].",
    callback=commas,
)
@flag("--i2b2", None, "Write the table as an i2b2 star too, whole for custody or by Safe Harbor to share.",
      type=click.Choice(["full", "safe-harbor"]))  # fmt: skip
@key_options
@flag("--lexicon", "PATH",
      "Health terms: CSV, OBO, or a folder of OMOP, UMLS or SNOMED files [default: the project's own].",
      default="leeward", show_default=False)  # fmt: skip
@flag("--members", "rules,dictionary,svm,crf", "Annotators to use [default: all that are installed].",
      callback=commas)  # fmt: skip
@flag("--review", "N", "Notes on the review page.", type=click.IntRange(min=0), default=100)
@engine_option
@threads_option
@flag("--seed", "N",
      "For tests and studies only: order of rows, sample and, unless one is named, the key follow "
      "from it.", type=int)  # fmt: skip
@switch("--any-language", "Annotate notes that are not in English too; the annotators read English only.")
@json_option
def annotate(notes: str, out: str, mode: str | None, as_json: bool, **flags: Any) -> None:
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
      leeward notes annotate notes.parquet --i2b2 safe-harbor --zip3 hhs -o OUT
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
    OUT/share/i2b2             with --i2b2 safe-harbor (OUT/custody/i2b2 with full): the table as an i2b2 star

    Exit status: 0 done; 2 bad input (nothing is written).
    """
    from leeward.runs.annotate import annotate as run

    given = {role: column for role in COLUMNS if (column := flags.pop(role)) is not None}
    result = run(notes, out, columns=given, mode=mode, processes=True, **flags)
    if foreign := result["other_languages"]:
        listed = ", ".join(f"{count:,} in {language}" for language, count in foreign.items())
        click.echo(
            f"leeward: WARNING: notes in a language that the annotators cannot read: {listed}. Most of what identifies "
            "patients in them was not found.",
            err=True,
        )
    print_result(as_json, result, _annotated_lines(result, Path(out), mode))


def _annotated_lines(result: Mapping[str, Any], out: Path, mode: str | None) -> list[str]:
    spans = result["spans"]
    lines = [
        f"{result['notes']:,} notes of {result['patients']:,} patients read by {', '.join(result['members'])}.",
        f"Found: {spans['EID']:,} identities, {spans['QID']:,} quasi-identifiers, {spans['HMI']:,} health terms.",
        f"In the table: {result['terms']:,} different terms, {result['terms_per_note']:.1f} a note.",
    ]
    if count := result["control_characters"]:
        lines.append(f"Note: control characters removed from the notes: {count:,}.")
    if count := result["disagreeing"]:
        lines.append(f"Note: the patient data of {count:,} notes disagree; see `disagrees`.")
    lines += [f"Table:  {out / 'custody/table.parquet'}", f"Review: {out / 'custody/review.html'}"]
    if result["key"]:
        lost = "without it the identities are lost: keep a copy"
        why = lost if mode == "encrypted" else "kept for the next release to the same recipient"
        lines.append(f"Key:    {result['key']} ({why})")
    if mode:
        texts = out / "share/text.parquet"
        lines.append(f"Texts:  {texts} (look at the review page before you pass them on)")
    return lines


@click.command()
@click.argument("path", metavar="OUT")
@key_options
@flag("-o --out", "FILE", "A .parquet or .csv file; must not exist yet.", required=True)
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
    print_lines(f"{out}: {count:,} texts with their identities. Protect it like the notes.")


SYNTHETIC: dict[str, Split] = {
    "synthetic": "training",
    "synthetic-held-out": "held-out",
    "synthetic-sealed": "sealed",
}
"""Names of corpora that are made up on the spot."""


corpus_options = stack(
    flag("--format format_", None, "Format of the corpus [default: by the names of its files].",
         type=click.Choice(["i2b2", "brat", "conll", "jsonl"])),
    flag("--labels", "FILE", "CSV label,kind,category with the meaning of the corpus's labels."),
    flag("--notes count", "N", "Number of synthetic notes.", type=click.IntRange(min=1)),
    flag("--seed", "N", "The same seed gives the same notes, models and figures.", type=int),
)  # fmt: skip


@click.command()
@flag("--corpus", "synthetic|PATH", "What to learn from.", default="synthetic")
@flag("-o --out", "DIR", "A new folder for the models.", required=True)
@corpus_options
def train(out: str, seed: int | None, **corpus: Any) -> None:
    """Train the two learned annotators (SVM, CRF) and write them with their provenance into DIR.

    \b
    Examples:
      leeward notes train --corpus synthetic --seed 1 -o models
      leeward notes train --corpus i2b2-2014/training --format i2b2 --seed 1 -o models
      leeward notes train --corpus gold.jsonl --seed 1 -o models

    PATH is a file or folder of notes with spans: i2b2 XML, brat (.txt with .ann), CoNLL (BIO) or JSONL. The shipped
    models come from the first example. Exit status: 0 done; 2 bad input, nothing written.
    """
    from leeward.notes.annotators.dictionary import load as load_dictionary
    from leeward.notes.annotators.learned.training import SYNTHETIC_NOTES
    from leeward.notes.annotators.learned.training import train as train_models
    from leeward.runs.progress import watch

    notes, provenance = _notes(SYNTHETIC_NOTES, seed=seed, **corpus)
    with watch(None) as say:
        card = train_models(notes, load_dictionary("leeward"), out, seed, corpus=provenance, progress=say)
    click.echo(f"{out}: models of {card['notes']:,} notes, {card['tokens']:,} tokens")


@click.command()
@flag("--corpus", "synthetic-held-out|synthetic-sealed|PATH", "What to measure on.",
      default="synthetic-held-out")  # fmt: skip
@flag("--models", "DIR", "As `leeward notes train` wrote them [default: the shipped ones].")
@switch("--json as_json", "Print every figure as JSON.")
@corpus_options
def evaluate(models: str | None, as_json: bool, **corpus: Any) -> None:
    """Measure each annotator and their ensemble against annotated notes.

    Precision, recall and F of spans by kind and, for the ensemble, by category; recall of the words of identities; how
    many denied, doubted or family mentions are kept as the patient's; the terms that reach the table.

    \b
    Examples:
      leeward notes evaluate --seed 7
      leeward notes evaluate --corpus annotated/ --format brat --json
      leeward notes evaluate --corpus gold.jsonl --labels labels.csv --models models

    PATH is a file or folder of notes with spans, as for `leeward notes train`. Exit status: 0 done; 2 bad input.
    """
    from leeward.notes.corpora.evaluation import evaluate as measure
    from leeward.notes.pipeline import members

    notes, provenance = _notes(500, **corpus)
    results = [
        measure(name, notes, annotate) for name, annotate in members(Path(models) if models else None).items()
    ]
    if as_json:
        figures = [result.as_json() for result in results]
        real_text = {} if models else {"real_text": _real_text()}
        click.echo(json.dumps({"corpus": provenance, "annotators": figures, **real_text}, indent=2))
        return
    real = _on_real_text() if corpus["corpus"] in SYNTHETIC and models is None else []
    for line in [*_summary(results), *real, "", *_categories(results[-1])]:
        click.echo(line)


def _notes(
    usual: int, corpus: str, format_: str | None, labels: str | None, count: int | None, seed: int | None
) -> tuple[list[AnnotatedNote], dict[str, Any]]:
    """The notes of a corpus, and what they are for the record; `usual` many where no count is given."""
    from leeward.notes.corpora import mapping_of, read
    from leeward.synthetic.notes import NotePlan, synthetic_notes

    if corpus in SYNTHETIC:
        count = count or usual
        plan = NotePlan(max(1, count // 2), count, SYNTHETIC[corpus], seed)
        made = [note.annotated for note in synthetic_notes(plan)]
        return made, {"name": corpus, "notes": count, "seed": seed}
    notes = read(corpus, format_, mapping_of(labels))
    return notes, {"name": Path(corpus).name, "notes": len(notes)}


def _summary(results: list[Evaluation]) -> list[str]:
    head = ("annotator", "EID recall", "precision", "words", "protected", "QID F", "HMI F", "terms F", "kept")
    rows = [head, *map(_row, results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [
        f"{results[0].notes:,} notes",
        "",
        *lines,
        "",
        "words: recall of the words of identities. protected: the same, with dates, ZIP codes and places of any role.",
        "kept: share of negated, uncertain, past and family findings counted as the patient's.",
    ]


def _real_text() -> dict[str, Any]:
    """Counts of the shipped ensemble on real-style notes that a person read (`benchmarks/notes_read.py --write`)."""
    from leeward.notes.annotators.learned import model_folder

    figures: dict[str, Any] = json.loads(model_folder().joinpath("real_text.json").read_text("utf-8"))
    return figures


def _on_real_text() -> list[str]:
    """What made-up notes flatter: the same ensemble on text that nobody made up."""
    real = _real_text()
    kinds = (
        ("names", "found"),
        ("terms", "asserted"),
        ("negations", "negated, uncertain, past or of others"),
    )
    shares = [
        f"{kind} ({what}) {real[f'{kind} right']:,} right, {real[f'{kind} wrong']:,} wrong"
        for kind, what in kinds
    ]
    return [
        "",
        f"Made-up notes flatter. On {real['notes']} real-style notes of {real['source']}, read by a person, it has:",
        f"{'; '.join(shares)}; {real['names missed']:,} names missed (docs/studies/notes.md).",
    ]


def _row(result: Evaluation) -> tuple[str, ...]:
    from leeward.notes.corpora.evaluation import Counts, Kept

    eid, qid, hmi = (result.spans.get(kind, Counts()) for kind in ("EID", "QID", "HMI"))
    words = (result.tokens["EID"].recall, result.tokens["protected"].recall)
    kept = result.contexts.get("all", Kept()).share
    return (
        result.name,
        *map(_figure, (eid.recall, eid.precision, *words, qid.f, hmi.f, result.terms.f, kept)),
    )


def _categories(result: Evaluation) -> list[str]:
    head = f"{'category':24}{'gold':>7}{'recall':>9}{'found':>7}{'precision':>11}"
    rows = [
        f"{name:24}{each.gold:>7,}{_figure(each.recall):>9}{each.predicted:>7,}{_figure(each.precision):>11}"
        for name, each in sorted(result.spans.items())
        if ":" in name and not name.startswith("protected")
    ]
    indent = " " * (len(result.name) + 2)
    return [f"{result.name}: {head}", *(indent + row for row in rows)]


def _figure(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"
