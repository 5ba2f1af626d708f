"""Notes as columns: one token a row, its label last (BIO, BIOES or bare labels), an empty row after each sentence.

A text is put together from its tokens: one blank between them, a line break between sentences. A row `-DOCSTART-`
begins a note; a file without one is a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leeward.errors import BadInput
from leeward.notes.corpora.files import files_of, span_in, text_of
from leeward.notes.corpora.labels import Mapping
from leeward.notes.spans import AnnotatedNote, Span

START = "-DOCSTART-"
OUTSIDE = "O"


def read(path: Path, mapping: Mapping) -> list[AnnotatedNote]:
    """The notes of a file, or of a folder's `.conll` files. BadInput names file and row."""
    notes: list[AnnotatedNote] = []
    for file in files_of(path, ".conll"):
        notes += _notes(file, mapping)
    return notes


def _notes(path: Path, mapping: Mapping) -> list[AnnotatedNote]:
    notes: list[AnnotatedNote] = []
    building = _Building(path, mapping)
    for number, row in enumerate(text_of(path).splitlines(), 1):
        columns = row.split("\t") if "\t" in row else row.split()
        if columns and columns[0] == START:
            notes += building.note(len(notes) + 1)
            building = _Building(path, mapping)
        elif not row.strip():
            building.sentence_ends()
        elif len(columns) < 2:
            raise BadInput(
                f"{path}, row {number}: a token and its label are expected, between tabs or blanks."
            )
        else:
            building.add(columns[0], columns[-1].strip(), number)
    return [*notes, *building.note(len(notes) + 1)]


class _Building:
    def __init__(self, path: Path, mapping: Mapping) -> None:
        self.path, self.mapping = path, mapping
        self.pieces: list[str] = []
        self.length = 0
        self.open: tuple[str, int, int, int] | None = None  # label, start, end, row
        self.spans: list[Span] = []
        self.gap = ""

    def add(self, token: str, label: str, row: int) -> None:
        start = self.length + len(self.gap)
        self.pieces += (self.gap, token)
        self.length = end = start + len(token)
        self.gap = " "
        if label == OUTSIDE:
            self.close()
            return
        mark, _, name = label.partition("-")
        if len(mark) != 1 or not name:
            mark, name = "I", label
        if mark not in "BIESLU":
            raise BadInput(f"{self.path}, row {row}: the label must begin with B-, I-, E- or S-, or be O.")
        if self.open is None or mark in "BSU" or self.open[0] != name:
            self.close()
            self.open = (name, start, end, row)
        else:
            self.open = (name, self.open[1], end, self.open[3])
        if mark in "ESLU":
            self.close()

    def close(self) -> None:
        if self.open is not None:
            label, start, end, row = self.open
            where = f"{self.path}, row {row}"
            target = self.mapping.of(label, where)
            if target is not None:
                self.spans.append(span_in("".join(self.pieces), start, end, target, where))
            self.open = None

    def sentence_ends(self) -> None:
        self.close()
        if self.pieces:
            self.gap = "\n"

    def note(self, number: int) -> list[AnnotatedNote]:
        self.close()
        if not self.pieces:
            return []
        return [AnnotatedNote(f"{self.path.stem}-{number}", "".join(self.pieces), tuple(self.spans))]


def write(path: Path, notes: Sequence[AnnotatedNote]) -> None:
    """Write notes as BIO rows over the tokens of `learned.tokens`; line breaks end sentences."""
    from leeward.notes.vocabulary import tokens_of

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
