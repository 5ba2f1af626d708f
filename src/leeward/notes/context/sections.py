"""Sections of a note, by their headings: family history, allergies, plans.

MTSamples, discharge letters and visit notes name the same sections in many ways; what is no known heading does not
end a section of the patient's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from leeward.notes import field_labels as labels

HEADINGS = labels.labels_of("headings.txt")
"""Heading, lower case, to whose health the section is about: `family` is somebody else's, `allergies` lists what is
not taken, `plan` what is yet to come; `own` and `past` are the patient's."""

TABLE = labels.Labels(HEADINGS)


_BLANK = re.compile(r"(?<=\S)[^\S\n]*\n[^\S\n]*\n")


@dataclass(frozen=True)
class Section:
    """Characters `start` to `end` (exclusive) of a note tell of `topic`; the heading is not among them."""

    start: int
    end: int
    topic: str


def find(text: str, low: str) -> list[Section]:
    """The sections of a text, ascending; before the first heading nothing is said to be anybody's."""
    found = labels.find(text, low, TABLE, alone=True)
    return [Section(label.value, _end(text, label), label.meaning) for label in found]


def _end(text: str, label: labels.Label) -> int:
    """Where a section ends: family history and allergies with their paragraph, since what follows may be under a
    heading that the table does not know."""
    if label.meaning not in ("family", "allergies"):
        return label.end
    blank = _BLANK.search(text, label.value, label.end)
    return blank.end() if blank else label.end


def topic_at(sections: Sequence[Section], starts: Sequence[int], place: int) -> str:
    """The topic of the section around a place; `own` outside of all. `starts` are the sections' starts."""
    from bisect import bisect_right

    i = bisect_right(starts, place) - 1
    return sections[i].topic if i >= 0 and place < sections[i].end else "own"
