"""Generate synthetic notes, one by one or into a file."""

from __future__ import annotations

import datetime
from bisect import bisect
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from leeward.errors import BadInput
from leeward.notes.corpora.formats import row_of
from leeward.notes.lexicon import Lexicon
from leeward.notes.lexicon.loaders import load as load_lexicon
from leeward.notes.spans import AnnotatedNote
from leeward.paths import require_new
from leeward.randomness import Randomness
from leeward.synthetic.notes import templates
from leeward.synthetic.notes.draft import Dice, Draft
from leeward.synthetic.notes.people import Patient, Split, case, patient, pool
from leeward.synthetic.notes.slots import Scene
from leeward.synthetic.notes.terms import Terms

CHUNK = 2_000
"""Notes written at a time."""
SCHEMA = pa.schema(
    [("note", pa.string()), ("patient", pa.string()), ("date", pa.date32()), ("text", pa.string())]
)
CARELESS, TERSE = 0.25, 0.3
"""Shares of notes with typing errors, and in hurried style."""
SLIPS = 0.04
"""Share of text pieces and health terms with a typing error, in a careless note."""


@dataclass(frozen=True)
class NotePlan:
    """Numbers of notes and patients, split and seed. `notes` are those of all patients together (None: one to three a
    patient); `split` says which templates and identities are used; the same seed gives the same notes, None draws
    anew. `seasons`: how strongly conditions follow their seasons (`terms.SEASONS`), 0 not at all, 1 as published."""

    patients: int
    notes: int | None = None
    split: Split = "training"
    seed: int | None = None
    seasons: float = 0.0

    def __post_init__(self) -> None:
        if self.patients < 1:
            raise BadInput(f"`patients` must be at least 1; got {self.patients}.")
        if self.notes is not None and self.notes < 1:
            raise BadInput(f"`notes` must be at least 1; got {self.notes}.")
        if self.split not in get_args(Split):
            raise BadInput(f"`split` must be one of {', '.join(get_args(Split))}.")
        if not 0 <= self.seasons <= 5:
            raise BadInput(f"`seasons` must lie between 0 and 5; got {self.seasons}.")


@dataclass(frozen=True)
class SyntheticNote:
    """A note with its row of the notes frame; the annotation has the note's name."""

    patient: str
    date: datetime.date
    annotated: AnnotatedNote


def synthetic_notes(plan: NotePlan, lexicon: Lexicon | None = None) -> Iterator[SyntheticNote]:
    """Generate the notes of a plan, in order. Each depends only on the seed, its patient and its number."""
    terms = Terms.of(lexicon or load_lexicon("leeward"), plan.seasons)
    randomness = Randomness.of(plan.seed)
    people = pool(plan.split)
    number = 0
    for index in range(plan.patients):
        dice = Dice(randomness.stream("notes", plan.split, index))
        who = patient(people, dice, f"P{index + 1:07}")
        drawn = dice.between(1, 3)
        for _ in range(drawn if plan.notes is None else _share(plan.notes, plan.patients, index)):
            number += 1
            yield _note(plan.split, f"N{number:08}", who, terms, dice)


def _share(notes: int, patients: int, index: int) -> int:
    return notes // patients + (index < notes % patients)


def _note(split: Split, name: str, who: Patient, terms: Terms, dice: Dice) -> SyntheticNote:
    kinds = templates.kinds(split)
    kind = bisect(kinds.shares, dice.number())
    encounter = case(pool(split), dice, who)
    draft = Draft(dice, SLIPS if dice.chance(CARELESS) else 0.0, dice.chance(TERSE))
    templates.write(draft, kinds.sections[kind], Scene(encounter, pool(split), terms), dice)
    return SyntheticNote(who.code, encounter.visit, draft.note(name, kinds.names[kind]))


def write_notes(
    out: str | Path,
    plan: NotePlan,
    *,
    spans: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
    lexicon: Lexicon | None = None,
) -> int:
    """Write the notes of a plan as Parquet (`note`, `patient`, `date`, `text`); returns their number.

    `spans` names a JSONL file for the gold spans (see `corpora.jsonl`). Both are written to temporary files,
    then renamed; a failure leaves nothing behind. Raises BadInput when a file already exists.
    """
    paths = [Path(out), *([Path(spans)] if spans is not None else [])]
    for path in paths:
        require_new(path, option=None)
        if not path.parent.is_dir():
            raise BadInput(f"{path}: the folder {path.parent} does not exist.")
    aside = [path.with_name(f".{path.name}.writing") for path in paths]
    try:
        number = _write(aside, plan, progress, lexicon)
        for temporary, path in zip(aside, paths, strict=True):
            temporary.rename(path)
    finally:
        for temporary in aside:
            temporary.unlink(missing_ok=True)
    return number


def _write(
    paths: list[Path], plan: NotePlan, progress: Callable[[int], None] | None, lexicon: Lexicon | None
) -> int:
    written = 0
    with ExitStack() as stack:
        sink = stack.enter_context(pq.ParquetWriter(paths[0], SCHEMA, compression="zstd"))
        gold = stack.enter_context(paths[1].open("w", encoding="utf-8")) if len(paths) > 1 else None
        chunk: list[SyntheticNote] = []
        for note in synthetic_notes(plan, lexicon):
            chunk.append(note)
            if len(chunk) == CHUNK:
                written += _flush(chunk, sink, gold)
                if progress is not None:
                    progress(written)
        written += _flush(chunk, sink, gold)
    return written


def _flush(chunk: list[SyntheticNote], sink: pq.ParquetWriter, gold: IO[str] | None) -> int:
    count = len(chunk)
    if count:
        columns = (
            [note.annotated.name for note in chunk],
            [note.patient for note in chunk],
            [note.date for note in chunk],
            [note.annotated.text for note in chunk],
        )
        arrays = [pa.array(column, type=field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        sink.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA))
    if gold is not None:
        gold.writelines(row_of(note.annotated) for note in chunk)
    chunk.clear()
    return count
