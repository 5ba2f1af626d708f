"""Templates: lines parsed into text and slots, and kinds of notes with their banks of lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import gcd

from leeward.synthetic.notes.draft import Dice, Draft
from leeward.synthetic.notes.people import Split
from leeward.synthetic.notes.slots import SLOTS, Scene, Slot, health_slot, literal_slot
from leeward.texts import list_words, read_parts

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
"""Abbreviations of the hurried style."""


@dataclass(frozen=True)
class Text:
    """Words of a template, normal and in hurried style."""

    full: str
    terse: str


Line = tuple[Text | Slot, ...]


@dataclass(frozen=True)
class Section:
    """Lines and headings to draw from, the chance that the section occurs, and the separator of lines."""

    lines: tuple[Line, ...]
    headings: tuple[str, ...]
    fewest: int
    most: int
    chance: float
    between: str


@dataclass(frozen=True)
class Kinds:
    """Kinds of notes of a split: their sections in order, and cumulated shares."""

    names: tuple[str, ...]
    sections: tuple[tuple[Section, ...], ...]
    shares: tuple[float, ...]


def read_banks(split: Split) -> dict[str, tuple[str, ...]]:
    """Read the lines of each bank of a split from `data/`: `[name]`, then its lines, up to the next name.

    `{slot}` is filled by `slots.py`. A health slot's prefix gives its context: `-` negated, `?` uncertain, `~` family,
    `<` historical. Training also has ordinary text: models trained only on templates full of names and terms find both
    in any capitalized word. The sealed split, other kinds of documents again, is never looked at: neither models nor
    rules are changed after their errors there.
    """
    files = {"training": ("ordinary", "training"), "held-out": ("held_out",), "sealed": ("sealed",)}[split]
    parts = [read_parts("leeward.synthetic.notes", f"{file}.txt") for file in files]
    return {name: tuple(text.split("\n")) for banks in parts for name, text in banks.items()}


@cache
def kinds(split: Split) -> Kinds:
    """Read the templates of a split from `data/kinds.txt`: a kind with its weight, then its sections (bank, fewest and
    most lines, chance, separator, headings)."""
    banks = {name: tuple(map(_cut, lines)) for name, lines in read_banks(split).items()}
    found: dict[str, list[Section]] = {}
    weights = []
    text = read_parts("leeward.synthetic.notes", "kinds.txt")[split.replace("-", "_")]
    for line in text.split("\n"):
        if "|" not in line:
            name, _, weight = line.partition(": ")
            weights.append(int(weight))
            found[name] = []
            continue
        bank, counts, chance, between, listed = (part.strip() for part in line.split("|"))
        fewest, most = map(int, counts.split())
        headings = list_words(listed, ",") if listed else ()
        sign = {"line": "\n", "blank": " "}[between]
        found[name].append(Section(banks[bank], headings, fewest, most, float(chance), sign))
    shares = tuple(share / sum(weights) for share in accumulate(weights))
    return Kinds(tuple(found), tuple(map(tuple, found.values())), shares)


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
    """Write a note of a kind: its sections in order, with headings where defined."""
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
    # A stride coprime to the number of lines draws without repetition or shuffle.
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
