"""Templates made ready: lines cut once into text and slots, kinds of notes with the banks they draw from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import gcd
from typing import Any

from leeward.synthetic.notes import held_out, sealed, training
from leeward.synthetic.notes.draft import Dice, Draft
from leeward.synthetic.notes.people import Split
from leeward.synthetic.notes.slots import SLOTS, Scene, Slot, health_slot, literal_slot

SLOT = re.compile(r"\{([^}]+)\}")

TERSE = (
    ("The patient ", "Pt "),
    ("the patient", "the pt"),
    ("Patient ", "Pt "),
    ("History of ", "H/o "),
    (" history of ", " h/o "),
    (" with ", " w/ "),
    ("complaining of", "c/o"),
    ("Follow up", "F/u"),
    ("without", "w/o"),
    ("evaluation", "eval"),
    ("Consistent with", "C/w"),
)
"""What a hurried hand writes."""


@dataclass(frozen=True)
class Text:
    """Words of a template, and the same in a hurried hand."""

    full: str
    terse: str


Line = tuple[Text | Slot, ...]


@dataclass(frozen=True)
class Section:
    """Lines to draw from; see `training.Step`."""

    lines: tuple[Line, ...]
    headings: tuple[str, ...]
    fewest: int
    most: int
    chance: float
    between: str


@dataclass(frozen=True)
class Kinds:
    """The kinds of notes of a split and their cumulated shares."""

    names: tuple[str, ...]
    sections: tuple[tuple[Section, ...], ...]
    shares: tuple[float, ...]


@cache
def kinds(split: Split) -> Kinds:
    """The templates of a split."""
    source: Any = {"training": training, "held-out": held_out, "sealed": sealed}[split]
    banks = {name: lines(text) for name, text in source.BANKS.items()}
    names = tuple(source.KINDS)
    total = sum(source.WEIGHTS.values())
    return Kinds(
        names,
        tuple(
            tuple(Section(banks[bank], headings, *rest) for bank, headings, *rest in source.KINDS[name])
            for name in names
        ),
        tuple(share / total for share in accumulate(source.WEIGHTS[name] for name in names)),
    )


def lines(bank: str) -> tuple[Line, ...]:
    """Cut a bank's lines; raises KeyError for a slot that does not exist."""
    return tuple(_cut(line) for line in bank.strip("\n").split("\n"))


def _cut(line: str) -> Line:
    pieces = SLOT.split(line)  # text, slot, text, slot, …, text
    made: list[Text | Slot] = []
    for place, piece in enumerate(pieces):
        if place % 2:
            made.append(health_slot(piece) or literal_slot(piece) or SLOTS[piece])
        elif piece:
            terse = piece
            for long, short in TERSE:
                terse = terse.replace(long, short)
            made.append(Text(piece, terse))
    return tuple(made)


HEADING_FORMS = ("{}: ", "{}:\n", "{}\n", "{}\n\n", "{}:  ", "{} - ")


def write(draft: Draft, sections: tuple[Section, ...], scene: Scene, dice: Dice) -> None:
    """Write a note of a kind: its sections in order, each with a heading where it has one."""
    form = dice.pick(HEADING_FORMS)
    gap = dice.pick(("\n\n", "\n\n", "\n"))
    capitals = dice.chance(0.15)
    started = False
    for section in sections:
        if not dice.chance(section.chance):
            continue
        count = min(dice.between(section.fewest, section.most), len(section.lines))
        if not count:
            continue
        if started:
            draft.put(gap)
        started = True
        if section.headings:
            heading = dice.pick(section.headings)
            draft.put(form.format(heading.upper() if capitals else heading))
        _write_lines(draft, section, count, scene, dice)


def _write_lines(draft: Draft, section: Section, count: int, scene: Scene, dice: Dice) -> None:
    # A stride through the lines, prime to their number, draws without repeating and without a shuffle.
    size = len(section.lines)
    start, stride = dice.below(size), _stride(size, dice)
    for i in range(count):
        if i:
            draft.put(section.between)
        for piece in section.lines[(start + i * stride) % size]:
            if isinstance(piece, Text):
                draft.put(piece.terse if draft.terse else piece.full)
            else:
                piece(draft, scene, dice)


def _stride(size: int, dice: Dice) -> int:
    if size < 3:
        return 1
    stride = dice.between(1, size - 1)
    while gcd(stride, size) != 1:
        stride = stride % (size - 1) + 1
    return stride
