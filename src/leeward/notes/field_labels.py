"""Labels of a note (`DOB: …`, `FAMILY HISTORY:`), which mark fields and sections.

A label is looked up in a table, from the colon backwards, so that a line may hold several labels and prose before
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from leeward.texts import read_parts

LONGEST = 44
"""Characters before a colon that are searched for a label."""

_STOPS = "\n\t|;:"


def labels_of(file: str) -> dict[str, str]:
    """Read labels and their meanings from a file of `notes/data/`: one part per meaning, comma-separated labels."""
    return {
        " ".join(label.split()): meaning
        for meaning, labels in read_parts("leeward.notes", file).items()
        for label in labels.split(",")
    }


@dataclass(frozen=True)
class Labels:
    """A table of labels, lower case -> meaning."""

    meanings: Mapping[str, str]
    lasts: frozenset[str] = field(init=False, repr=False)
    """The last words of all labels, a quick check, since most colons follow none of them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "lasts", frozenset(label.rpartition(" ")[2] for label in self.meanings))


class Label(NamedTuple):
    """A label at `start`; what it labels goes from `value` to `end`. `meaning` is the table's word for it."""

    start: int
    value: int
    end: int
    meaning: str
    known: bool = True


def find(text: str, low: str, table: Labels, *, alone: bool = False, capitals: str = "") -> list[Label]:
    """The labels of a table in a text, ascending.

    `low` is the text in lower case, character by character. What a label labels ends at the next label. With
    `alone`, a line that is nothing but a label counts too, and one that goes on after ` - `. With `capitals`, words in
    capitals before a colon that the table does not have are labels of this meaning, not `known`.
    """
    found: list[tuple[int, int, str]] = []
    unknown: set[int] = set()
    colon = text.find(":")
    while colon >= 0:
        hit = _before(text, low, colon, table)
        if hit is not None:
            found.append((hit[0], _skip(text, colon + 1), hit[1]))
        elif capitals and (start := _capitals_before(text, colon)) is not None:
            found.append((start, _skip(text, colon + 1), capitals))
            unknown.add(start)
        colon = text.find(":", colon + 1)
    if alone:
        found += _lines(text, low, table)
        found.sort()
    ends = [*(start for start, _, _ in found[1:]), len(text)][: len(found)]
    return [
        Label(start, value, max(value, end), meaning, start not in unknown)
        for (start, value, meaning), end in zip(found, ends, strict=True)
    ]


def line_end(text: str, start: int, end: int) -> int:
    """End of the field that begins at `start`: the line's end, a tab, a bar, or a gap of three blanks."""
    stop = end
    for sign in ("\n", "\t", "|", "   "):
        at = text.find(sign, start, stop)
        if at >= 0:
            stop = at
    return stop


def _before(text: str, low: str, colon: int, table: Labels) -> tuple[int, str] | None:
    """The longest label of the table that ends at `colon`."""
    stop = colon
    while stop > 0 and text[stop - 1] in " #.*":
        stop -= 1
    last = stop
    while last > 0 and low[last - 1] not in " ,\n\t|;:":
        last -= 1
    if low[last:stop] not in table.lasts:
        return None
    first = max(0, colon - LONGEST)
    for sign in _STOPS:
        first = max(first, text.rfind(sign, first, stop) + 1)
    start = first
    while start < stop:
        if low[start].isalpha() and (start == 0 or not low[start - 1].isalnum()):
            meaning = table.meanings.get(low[start:stop])
            if meaning is not None:
                return start, meaning
        blank, comma = text.find(" ", start, stop), text.find(",", start, stop)
        start = (blank if comma < 0 or 0 <= blank < comma else comma) + 1
        if not start:
            return None
    return None


def _capitals_before(text: str, colon: int) -> int | None:
    """Start of capitalized words that end at `colon`, after a line's, sentence's or item's end."""
    start = max(0, colon - LONGEST)
    for sign in "\n.,;:":
        start = max(start, text.rfind(sign, start, colon) + 1)
    words = text[start:colon]
    if len(words) < 4 or not words.isupper():
        return None
    return start + len(words) - len(words.lstrip())


def _skip(text: str, at: int) -> int:
    """Skip blanks, and a line's end if the value is below its label."""
    while at < len(text) and text[at] in " \t*":
        at += 1
    return at


def _lines(text: str, low: str, table: Labels) -> list[tuple[int, int, str]]:
    found = []
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        dash = low.find(" - ", start, min(end, start + LONGEST))
        stop = dash if dash >= 0 else end
        if 2 < stop - start <= LONGEST:
            meaning = table.meanings.get(low[start:stop].strip(" \t\r*#=-_."))
            if meaning is not None:
                found.append((start, dash + 3 if dash >= 0 else min(end + 1, len(text)), meaning))
        start = end + 1
    return found
