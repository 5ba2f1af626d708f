"""Annotated notes into files of brat and CoNLL, for their readers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leeward.notes.corpora.formats import OUTSIDE, START
from leeward.notes.spans import AnnotatedNote, Span
from leeward.notes.vocabulary import tokens_of


def write_brat(folder: Path, notes: Sequence[AnnotatedNote]) -> None:
    """Write notes for brat, to be seen and mended by hand; concepts become notes of the annotator."""
    folder.mkdir(parents=True, exist_ok=True)
    for note in notes:
        rows = []
        for number, span in enumerate(note.spans, 1):
            shown = note.text[span.start : span.end].replace("\n", " ")
            rows.append(f"T{number}\t{span.kind}_{span.category} {span.start} {span.end}\t{shown}\n")
            if not span.asserted:
                rows.append(f"A{number}\tNotAsserted T{number}\n")
            if span.concept:
                rows.append(f"#{number}\tAnnotatorNotes T{number}\t{span.concept}\n")
        (folder / f"{note.name}.txt").write_bytes(note.text.encode())
        (folder / f"{note.name}.ann").write_bytes("".join(rows).encode())


def write_conll(path: Path, notes: Sequence[AnnotatedNote]) -> None:
    """Write notes as BIO rows over tokens; line breaks end sentences."""
    rows: list[str] = []
    for note in notes:
        rows.append(f"{START}\tO\n\n")
        tokens = tokens_of(note.text)
        spans = sorted(note.spans, reverse=True)
        before: Span | None = None
        for word, start in zip(tokens.words, tokens.starts.tolist(), strict=True):
            if word == "\n":
                rows.append("\n")
                continue
            while spans and spans[-1].end <= start:
                spans.pop()
            inside = spans[-1] if spans and spans[-1].start <= start else None
            label = OUTSIDE
            if inside is not None:
                label = f"{'I' if inside is before else 'B'}-{inside.kind}_{inside.category}"
            before = inside
            rows.append(f"{word}\t{label}\n")
        rows.append("\n")
    path.write_bytes("".join(rows).encode())
