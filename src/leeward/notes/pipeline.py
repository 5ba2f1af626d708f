"""Pipeline of a note as an engine's kernel: members, ensemble, context, table row, text without identities."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from leeward.errors import BadInput
from leeward.notes import table
from leeward.notes.annotators.dictionary import Dictionary
from leeward.notes.annotators.dictionary import load as load_dictionary
from leeward.notes.annotators.ensemble import resolve
from leeward.notes.annotators.plausible import plausible
from leeward.notes.annotators.rules import Rules
from leeward.notes.annotators.rules.dates import lower
from leeward.notes.context import assertion as context
from leeward.notes.identities import replacing as identities
from leeward.notes.identities.keys import Keys
from leeward.notes.spans import Span

if TYPE_CHECKING:
    from leeward.notes.annotators.learned.linear import LinearAnnotator

MEMBERS = ("rules", "dictionary", "svm", "crf")
"""All members of the ensemble."""

KNOWN = ("date", "birth_date", "age", "sex", "race", "zip", "place")
"""Metadata of a note, as columns of text."""

INPUT = pa.schema(
    [("row", pa.int64()), ("patient", pa.string()), *((n, pa.string()) for n in KNOWN), ("text", pa.string())]
)

OUTPUT = pa.schema(
    [
        *table.ROW,
        ("text", pa.string()),
        ("starts", pa.list_(pa.int64())),
        ("ends", pa.list_(pa.int64())),
        ("kinds", pa.list_(pa.string())),
        ("categories", pa.list_(pa.string())),
        ("found", pa.list_(pa.string())),
        ("spans", pa.string()),
    ]
)
"""What the kernel gives for a note: its row; the text without identities (null where none was asked for) and, in four
lists, what is where in it; `kind/category` of every span that was found, for counts; and, if asked for, the spans."""


@dataclass(frozen=True)
class Work:
    """Processing of each note; small and picklable, so that it can be sent to workers. `lexicon` is `leeward` or what
    `lexicon.load` reads, `text` what becomes of identities in the text (None: no text is given), `secret` what the keys
    are made of."""

    members: tuple[str, ...]
    lexicon: str = "leeward"
    text: identities.Mode | None = None
    secret: bytes = field(default=b"", repr=False)
    keeps_spans: bool = False
    """Whether rows include the spans (JSON, see `spans_of`), for the review page."""
    run: str = ""
    """Unique identifier of the run, from which tokens of encrypted words are derived."""
    restricted: frozenset[str] | None = None
    """Areas whose ZIP codes become 000, where three digits of the others stay in the text (`identities.zips`)."""

    def __call__(self, group: pa.Table) -> pa.Table:
        """The kernel: a block of notes (`INPUT`, other columns do not matter) to rows (`OUTPUT`)."""
        reader, keys = reader_of(self.members, self.lexicon), Keys.of(self.secret)
        rows = [self._row(reader, keys, note) for note in group.to_pylist()]
        return pa.Table.from_pylist(rows, schema=OUTPUT)

    def _row(self, reader: Reader, keys: Keys, note: Mapping[str, Any]) -> dict[str, Any]:
        text, patient = note["text"], note["patient"]
        low = lower(text)
        spans = reader.read(text, low)
        told, disagrees = table.of_note(text, low, spans, note)
        row = table.row_of(note["row"], keys.patient(patient), told, disagrees, spans)
        row["found"] = [f"{span.kind}/{span.category}" for span in spans]
        row["spans"] = json.dumps(spans) if self.keeps_spans else None
        if self.text is None:
            return {**row, "text": None, "starts": [], "ends": [], "kinds": [], "categories": []}
        of_run = f"{self.run}\x1f{note['row']}"
        year = row["visit_year"] or 2001
        new, done = identities.replace(text, spans, self.text, keys, patient, of_run, year, self.restricted)
        return {
            **row,
            "text": new,
            **{f"{name}s": [getattr(each, name) for each in done] for name in ("start", "end", "kind")},
            "categories": [each.category for each in done],
        }


def spans_of(written: str) -> list[Span]:
    return [Span(*each) for each in json.loads(written)]


@dataclass(frozen=True)
class Reader:
    """The ensemble with its context. Learned members share one look at a text and the dictionary's hits."""

    members: tuple[Rules | Dictionary | LinearAnnotator, ...]
    hits: Dictionary | None = None
    """Whose hits the learned members take as features; None where there are none."""

    def read(self, text: str, low: str | None = None) -> list[Span]:
        """The spans of a note, ascending, without overlaps; health terms that are denied, doubted, past or somebody
        else's are not asserted."""
        low = lower(text) if low is None else low
        return context.judge(text, low, resolve(list(self._answers(text, low))))

    def _answers(self, text: str, low: str) -> Iterator[Sequence[Span]]:
        hits: Sequence[Span] = ()
        if self.hits is not None:
            from leeward.notes.annotators.learned import look

            hits = self.hits.annotate(text)
            looked = look(text, hits)
        for member in self.members:
            if isinstance(member, Rules):
                yield member.annotate_lower(text, low)
            elif isinstance(member, Dictionary):
                yield hits if member is self.hits else member.annotate(text)
            elif self.hits is not None:
                # Names that consist of the lexicon's words alone are dropped.
                yield plausible(text, low, member.annotate_looked(text, looked), self.hits.plain_words)


def available_members() -> tuple[str, ...]:
    """Available members: learned ones only if their models exist."""
    from leeward.notes.annotators.learned import model_folder

    models = {file.stem for file in model_folder().glob("*")}
    return tuple(name for name in MEMBERS if name in {"rules", "dictionary", *models})


@cache
def reader_of(members: tuple[str, ...], lexicon: str = "leeward", models: Path | None = None) -> Reader:
    """The reader with the named members; built once in a process. `models` is a folder that `leeward notes train`
    wrote; the shipped models by default. Raises BadInput for an unknown member, a lexicon that cannot be read, or a
    model that is not there."""
    for name in members:
        if name not in MEMBERS:
            raise BadInput(f"there is no annotator `{name}`; there are {', '.join(MEMBERS)}.")
    # The shipped models were trained with the project's own dictionary.
    hits = None if {"svm", "crf"}.isdisjoint(members) else load_dictionary("leeward")
    return Reader(tuple(_member(name, lexicon, models) for name in members), hits)


def _member(name: str, lexicon: str, models: Path | None) -> Rules | Dictionary | LinearAnnotator:
    if name == "rules":
        return Rules()
    if name == "dictionary":
        return load_dictionary(lexicon)
    from leeward.notes.annotators import learned

    return learned.load(name, models)


def members(models: Path | None = None) -> dict[str, Callable[[str], Sequence[Span]]]:
    """`rules`, `dictionary`, `svm`, `crf` and `ensemble`, each from a text to its spans. ConText follows every one, so
    that what is asserted can be compared."""
    readers = {name: reader_of((name,), models=models) for name in MEMBERS}
    return {
        name: reader.read
        for name, reader in (readers | {"ensemble": reader_of(MEMBERS, models=models)}).items()
    }
