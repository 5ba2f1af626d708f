"""Sections of a note, by their headings: family history, allergies, plans.

MTSamples, discharge letters and visit notes name the same sections in many ways; an unknown heading does not end a
section of the patient's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from leeward.notes import field_labels as labels
from leeward.notes.spans import Span, Status

HEADINGS = labels.labels_of("headings.txt")
"""Heading, lower case, to whose health the section is about: `family` is somebody else's, `allergies` lists what is
not taken, `plan` what is yet to come, `childhood` is over; `own` and `past` are the patient's."""

TABLE = labels.Labels(HEADINGS)
OWN = "own"


_BLANK = re.compile(r"(?<=\S)[^\S\n]*\n[^\S\n]*\n")
_LASTING = frozenset({"drug", "test", "procedure"})


@dataclass(frozen=True)
class Section:
    """Characters `start` to `end` (exclusive) of a note are about `topic`; its heading is from `heading` to `start`."""

    heading: int
    start: int
    end: int
    topic: str
    known: bool = True


def find(text: str, low: str, terms: Sequence[Span] = ()) -> list[Section]:
    """The sections of a text, ascending; before the first heading nothing is said to be anybody's. A label in capitals
    that the table does not know begins a section of the patient's own, unless it is one of the health `terms` (`CANCER:
    mother` within a family history)."""
    found = labels.find(text, low, TABLE, alone=True, capitals=OWN)
    named = {term.start for term in terms if term.category in ("symptom", "disease")}
    kept = [label for label in found if label.known or label.start not in named]
    ends = [*(label.start for label in kept[1:]), len(text)]
    return [
        Section(each.start, each.value, _end(text, each, max(each.value, end)), each.meaning, each.known)
        for each, end in zip(kept, ends, strict=False)
    ]


def _end(text: str, label: labels.Label, end: int) -> int:
    """Where a section ends. Family history and allergies end with their paragraph, since what follows may be under a
    heading that the table does not know."""
    if label.meaning not in ("family", "allergies"):
        return end
    blank = _BLANK.search(text, label.value, end)
    return blank.end() if blank else end


def says(sections: Sequence[Section], i: int, term: Span) -> set[Status]:
    """Statuses of a term implied by section `i` (the last that begins before it; -1: none) and the next heading."""
    next_ = sections[i + 1] if i + 1 < len(sections) else None
    in_heading = next_ is not None and next_.known and next_.heading <= term.start < next_.start
    # A known heading asserts nothing, unless a disease or complaint is the heading itself ("Pain: 7/10").
    if in_heading and next_ and (next_.topic == "allergies" or term.category in _LASTING):
        return {"heading"}
    if i < 0 or term.start >= sections[i].end:
        return set()
    topic = sections[i].topic
    if topic == "family":
        return {"family"}
    if topic == "childhood" and term.category not in _LASTING:
        return {"past"}
    return {"negated"} if topic == "allergies" and term.category == "drug" else set()
