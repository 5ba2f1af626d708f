"""Pipeline of a note as an engine's kernel: members, ensemble, context, table row, text without identities."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from leeward.errors import BadInput
from leeward.notes import table as quasi
from leeward.notes import table as table
from leeward.notes.annotators.dictionary import Dictionary
from leeward.notes.annotators.ensemble import resolve
from leeward.notes.annotators.plausible import plausible
from leeward.notes.annotators.rules import Rules
from leeward.notes.annotators.rules.dates import lower
from leeward.notes.context import assertion as context
from leeward.notes.identities import replacing as identities
from leeward.notes.identities.keys import Keys
from leeward.notes.lexicon.loaders import load as load_lexicon
from leeward.notes.spans import Annotator, Span
from leeward.notes.vocabulary import read

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
    """Processing of each note; small and picklable, so that it can be sent to workers.

    Attributes
    ----------
    members
        Names out of `MEMBERS`.
    lexicon
        `leeward`, or a file or folder that `lexicon.load` reads.
    text
        What becomes of the identities in the text; None: no text is given.
    secret
        What the keys are made of.
    """

    members: tuple[str, ...]
    lexicon: str = "leeward"
    text: identities.Mode | None = None
    secret: bytes = field(default=b"", repr=False)
    keeps_spans: bool = False
    """Whether rows include the spans (JSON, see `spans_of`), for the review page."""
    run: str = ""
    """Unique identifier of the run, from which tokens of encrypted words are derived."""

    def __call__(self, group: pa.Table) -> pa.Table:
        """The kernel: a block of notes (`INPUT`, other columns do not matter) to rows (`OUTPUT`)."""
        reader, keys = reader_of(self.members, self.lexicon), Keys.of(self.secret)
        rows = [self._row(reader, keys, note) for note in group.to_pylist()]
        return pa.Table.from_pylist(rows, schema=OUTPUT)

    def _row(self, reader: Reader, keys: Keys, note: Mapping[str, Any]) -> dict[str, Any]:
        text, patient = note["text"], note["patient"]
        low = lower(text)
        spans = reader.read(text, low)
        told, disagrees = quasi.of_note(text, low, spans, note)
        row = table.row_of(note["row"], keys.patient(patient), told, disagrees, spans)
        row["found"] = [f"{span.kind}/{span.category}" for span in spans]
        row["spans"] = json.dumps(spans) if self.keeps_spans else None
        if self.text is None:
            return {**row, "text": None, "starts": [], "ends": [], "kinds": [], "categories": []}
        of_run = f"{self.run}\x1f{note['row']}"
        year = row["visit_year"] or 2001
        new, done = identities.replace(text, spans, self.text, keys, patient, of_run, year)
        return {
            **row,
            "text": new,
            "starts": [each.start for each in done],
            "ends": [each.end for each in done],
            "kinds": [each.kind for each in done],
            "categories": [each.category for each in done],
        }


def spans_of(written: str) -> list[Span]:
    """The spans of a row that has them."""
    return [Span(*each) for each in json.loads(written)]


@dataclass(frozen=True)
class Reader:
    """The ensemble with its context. Learned members share one look at a text and the dictionary's hits."""

    members: tuple[Annotator, ...]
    hits: Annotator | None = None
    """Whose hits the learned members take as features; None where there are none."""
    terms: frozenset[str] = frozenset()
    """Lexicon words that are no names: names found by learned members that consist of these alone are dropped."""

    def read(self, text: str, low: str | None = None) -> list[Span]:
        """The spans of a note, ascending, without overlaps; health terms that are denied, doubted, past or somebody
        else's are not asserted."""
        low = lower(text) if low is None else low
        return context.judge(text, low, resolve(self.answers(text, low)))

    def answers(self, text: str, low: str) -> list[Sequence[Span]]:
        """Spans of each member, in the members' order."""
        seen = read(text)
        looked, hit_spans = None, None
        answers: list[Sequence[Span]] = []
        for member in self.members:
            look_at = getattr(member, "annotate_looked", None)
            if isinstance(member, Rules):
                spans: Sequence[Span] = member.annotate_seen(text, low, seen)
            elif look_at is None:
                spans = member.annotate(text)
                hit_spans = spans if member is self.hits else hit_spans
            else:
                if looked is None:
                    from leeward.notes.annotators.learned import look

                    if hit_spans is None and self.hits is not None:
                        hit_spans = self.hits.annotate(text)
                    looked = look(text, hit_spans or (), seen)
                spans = plausible(text, low, look_at(text, looked), self.terms)
            answers.append(spans)
        return answers


def available_members() -> tuple[str, ...]:
    """Available members: learned ones only if their models exist."""
    from leeward.notes.annotators.learned import model_folder

    there = (
        {file.name.split(".")[0] for file in model_folder().iterdir()} if model_folder().is_dir() else set()
    )
    return tuple(name for name in MEMBERS if name in ("rules", "dictionary") or name in there)


@cache
def reader_of(members: tuple[str, ...], lexicon: str = "leeward") -> Reader:
    """The reader with the named members; built once in a process.

    Raises
    ------
    BadInput
        An unknown member, a lexicon that cannot be read, or a model that is not there.
    """
    for name in members:
        if name not in MEMBERS:
            raise BadInput(f"there is no annotator `{name}`; there are {', '.join(MEMBERS)}.")
    # The shipped models were trained with the project's own dictionary.
    hits = None if {"svm", "crf"}.isdisjoint(members) else _dictionary("leeward")
    built = tuple(_member(name, lexicon) for name in members)
    return Reader(built, hits, hits.plain_words if hits else frozenset())


def _member(name: str, lexicon: str) -> Annotator:
    if name == "rules":
        return Rules()
    if name == "dictionary":
        return _dictionary(lexicon)
    from leeward.notes.annotators.learned import load

    return load(name, dictionary=_dictionary("leeward"))


@cache
def _dictionary(lexicon: str) -> Dictionary:
    return Dictionary(load_lexicon(lexicon))


def members(models: Path | None = None) -> dict[str, Callable[[str], Sequence[Span]]]:
    """`rules`, `dictionary`, `svm`, `crf` and `ensemble`, each from a text to its spans.

    Every one is followed by ConText, so that what is asserted can be compared. `models` is a folder that
    `leeward notes train` wrote; the shipped models by default.
    """
    from leeward.notes.annotators import learned

    dictionary: Any = learned.load_dictionary()
    one: dict[str, Annotator] = {
        "rules": Rules(),
        "dictionary": dictionary,
        **{name: learned.load(name, models) for name in learned.NAMES},
    }
    readers = {name: Reader((member,), dictionary, dictionary.plain_words) for name, member in one.items()}
    readers["ensemble"] = Reader(tuple(one.values()), dictionary, dictionary.plain_words)
    return {name: reader.read for name, reader in readers.items()}
