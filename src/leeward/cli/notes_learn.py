"""`leeward notes train` and `evaluate`, and `leeward synth notes`: corpora of annotated notes, made up or real."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from leeward.notes.corpora.evaluation import Counts, Evaluation
    from leeward.notes.spans import AnnotatedNote
    from leeward.synthetic.notes import Split

SYNTHETIC: dict[str, Split] = {
    "synthetic": "training",
    "synthetic-held-out": "held-out",
    "synthetic-sealed": "sealed",
}
"""Names of corpora that are made up on the spot."""
FORMATS = click.Choice(["i2b2", "brat", "conll", "jsonl"])


def _corpus_options(command: Any) -> Any:
    for option in (
        click.option(
            "--seed", type=int, metavar="N", help="The same seed gives the same notes, models and figures."
        ),
        click.option(
            "--notes", "count", type=click.IntRange(min=1), metavar="N", help="Number of synthetic notes."
        ),
        click.option(
            "--labels", metavar="FILE", help="CSV label,kind,category: what labels of the corpus mean."
        ),
        click.option(
            "--format", "format_", type=FORMATS, help="Of the corpus; by default its files' endings tell."
        ),
    ):
        command = option(command)
    return command


@click.command()
@click.option(
    "--corpus", default="synthetic", show_default=True, metavar="synthetic|PATH", help="What to learn from."
)
@click.option("-o", "--out", required=True, metavar="DIR", help="A new folder for the models.")
@_corpus_options
def train(
    corpus: str, out: str, format_: str | None, labels: str | None, count: int | None, seed: int | None
) -> None:
    """Train the two learned annotators (SVM, CRF) and write them with their provenance into DIR.

    \b
    Examples:
      leeward notes train --corpus synthetic --seed 1 -o models
      leeward notes train --corpus i2b2-2014/training --format i2b2 --seed 1 -o models
      leeward notes train --corpus notes.jsonl --seed 1 -o models

    PATH is a file or folder of notes with spans: i2b2 XML, brat (.txt with .ann), CoNLL (BIO) or JSONL. The shipped
    models come from the first example. Exit status: 0 done; 2 bad input, nothing written.
    """
    from leeward.notes.annotators.learned import load_dictionary
    from leeward.notes.annotators.learned.training import SYNTHETIC_NOTES
    from leeward.notes.annotators.learned.training import train as train_models
    from leeward.runs.protect import watch

    notes, provenance = _notes(corpus, format_, labels, count or SYNTHETIC_NOTES, seed)
    with watch(None) as say:
        card = train_models(notes, load_dictionary(), out, seed, corpus=provenance, progress=say)
    click.echo(f"{out}: models of {card['notes']:,} notes, {card['tokens']:,} tokens")


@click.command()
@click.option(
    "--corpus",
    default="synthetic-held-out",
    show_default=True,
    metavar="synthetic-held-out|synthetic-sealed|PATH",
    help="What to measure on.",
)
@click.option(
    "--models", metavar="DIR", help="As `leeward notes train` wrote them [default: the shipped ones]."
)
@click.option("--json", "as_json", is_flag=True, help="Print every figure as JSON.")
@_corpus_options
def evaluate(
    corpus: str,
    models: str | None,
    format_: str | None,
    labels: str | None,
    count: int | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Measure each annotator and their ensemble against annotated notes.

    Precision, recall and F of spans by kind and, for the ensemble, by category; recall of the words of identities; how
    many denied, doubted or family mentions are kept as the patient's; the terms that reach the table.

    \b
    Examples:
      leeward notes evaluate --seed 7
      leeward notes evaluate --corpus annotated/ --format brat --json
      leeward notes evaluate --corpus notes.jsonl --labels labels.csv --models models

    PATH is a file or folder of notes with spans, as for `leeward notes train`. Exit status: 0 done; 2 bad input.
    """
    from pathlib import Path

    from leeward.notes.corpora.evaluation import evaluate as measure
    from leeward.notes.pipeline import members

    notes, provenance = _notes(corpus, format_, labels, count or 500, seed)
    results = [
        measure(name, notes, annotate) for name, annotate in members(Path(models) if models else None).items()
    ]
    if as_json:
        figures = [result.as_json() for result in results]
        real_text = {} if models else {"real_text": _real_text()}
        click.echo(json.dumps({"corpus": provenance, "annotators": figures, **real_text}, indent=2))
        return
    real = _on_real_text() if corpus in SYNTHETIC and models is None else []
    for line in [*_summary(results), *real, "", *_categories(results[-1])]:
        click.echo(line)


@click.command()
@click.option(
    "--patients", type=click.IntRange(min=1), required=True, metavar="N", help="Number of patients."
)
@click.option(
    "-o", "--out", required=True, metavar="FILE", help="A .parquet file: note, patient, date, text."
)
@click.option(
    "--notes", "count", type=click.IntRange(min=1), metavar="N", help="Notes in all [default: 1 to 3 each]."
)
@click.option("--spans", metavar="FILE", help="A .jsonl file for the notes with their true spans.")
@click.option(
    "--held-out", is_flag=True, help="Templates and identities that the models were not trained with."
)
@click.option("--seed", type=int, metavar="N", help="The same seed gives the same notes.")
def synth(
    patients: int, out: str, count: int | None, spans: str | None, held_out: bool, seed: int | None
) -> None:
    """Write made-up clinical notes of several kinds, as a file with the columns note, patient, date and text.

    \b
    Examples:
      leeward synth notes --patients 1500 --notes 2867 --seed 1 -o notes.parquet
      leeward synth notes --patients 100 -o notes.parquet --spans gold.jsonl
      leeward synth notes --patients 100 --held-out --seed 7 -o notes.parquet --spans gold.jsonl
    """
    from leeward.runs.protect import watch
    from leeward.synthetic.notes import NotePlan, write_notes

    plan = NotePlan(patients, count, "held-out" if held_out else "training", seed)
    with watch(None) as say:
        written = write_notes(out, plan, spans=spans, progress=lambda done: say(f"{done:,} notes"))
    click.echo(f"{out}: {written:,} notes of {patients:,} patients")


def _notes(
    corpus: str, format_: str | None, labels: str | None, count: int, seed: int | None
) -> tuple[list[AnnotatedNote], dict[str, Any]]:
    """The notes of a corpus, and what they are for the record."""
    from pathlib import Path

    from leeward.notes.corpora import mapping_of, read
    from leeward.synthetic.notes import NotePlan, synthetic_notes

    if corpus in SYNTHETIC:
        plan = NotePlan(max(1, count // 2), count, SYNTHETIC[corpus], seed)
        return [note.annotated for note in synthetic_notes(plan)], {
            "name": corpus,
            "notes": count,
            "seed": seed,
        }
    notes = read(corpus, format_, mapping_of(labels))
    return notes, {"name": Path(corpus).name, "notes": len(notes)}


def _summary(results: list[Evaluation]) -> list[str]:
    head = ("annotator", "EID recall", "precision", "words", "protected", "QID F", "HMI F", "terms F", "kept")
    rows = [head, *(_row(result) for result in results)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return [
        f"{results[0].notes:,} notes",
        "",
        *lines,
        "",
        "words: recall of the words of identities. protected: the same, with dates, ZIP codes and places of any role.",
        "kept: share of denied, doubted, past and family mentions asserted as the patient's.",
    ]


def _real_text() -> dict[str, Any]:
    """Counts of the shipped ensemble on real-style notes that a person read (`benchmarks/notes_read.py --write`)."""
    from leeward.notes.annotators.learned import model_folder

    figures: dict[str, Any] = json.loads(model_folder().joinpath("real_text.json").read_text("utf-8"))
    return figures


def _on_real_text() -> list[str]:
    """What made-up notes flatter: the same ensemble on text that nobody made up."""
    real = _real_text()
    kinds = (("names", "found"), ("terms", "asserted"), ("negations", "denied, doubted, past or of others"))
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
    return (
        result.name,
        _figure(eid.recall),
        _figure(eid.precision),
        _figure(result.tokens["EID"].recall),
        _figure(result.tokens["protected"].recall),
        _figure(qid.f),
        _figure(hmi.f),
        _figure(result.terms.f),
        _figure(result.contexts.get("all", Kept()).share),
    )


def _categories(result: Evaluation) -> list[str]:
    lines = [f"{result.name}: {'category':24}{'gold':>7}{'recall':>9}{'found':>7}{'precision':>11}"]
    indent = " " * (len(result.name) + 2)
    for name, counts in sorted(result.spans.items()):
        if ":" in name and not name.startswith("protected"):
            lines.append(indent + _category_line(name, counts))
    return lines


def _category_line(name: str, counts: Counts) -> str:
    return f"{name:24}{counts.gold:>7,}{_figure(counts.recall):>9}{counts.predicted:>7,}{_figure(counts.precision):>11}"


def _figure(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"
