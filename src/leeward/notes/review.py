"""The review page: notes with their spans coloured, for the custodian's spot check.

It loads nothing and sends nothing. Its one script (allowed by its hash) filters, steps through notes and saves the
reviewer's record as `review-record.json`: name, time, the notes' numbers and remarks, and a digest of the texts, which
ties the record to this page.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from leeward.notes.spans import Span
from leeward.pages import template_of


@dataclass(frozen=True)
class Reviewed:
    """A note of the page: its number in the table, its table row, text and spans."""

    number: int
    row: Mapping[str, Any]
    text: str
    spans: Sequence[Span]


def page(notes: Sequence[Reviewed], total: int, names: Mapping[str, str], figures: Mapping[str, Any]) -> str:
    """Render the page as one HTML file that opens offline. `notes` are a sample of `total`; `names` gives the preferred
    name of a concept id, `figures` the counts of spans by kind and category, for the head of the page."""
    shown = [
        {
            "note": note,
            "pieces": pieces(note.text, note.spans),
            "told": describe_values(note.row),
            "terms": note.row["terms"],
        }
        for note in notes
    ]
    script = files("leeward.notes").joinpath("templates/review.js").read_text("utf-8")
    digest = hashlib.sha256(
        "\n".join(note.text for note in notes).encode("utf-8", "surrogatepass")
    ).hexdigest()
    return template_of("leeward.notes", "review.html.j2").render(
        notes=shown,
        total=total,
        names=names,
        figures=figures,
        script=script,
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        digest=digest,
    )


def pieces(text: str, spans: Sequence[Span]) -> list[tuple[str, Span | None]]:
    """Split the text at its spans, in order; the span is None between spans."""
    cut: list[tuple[str, Span | None]] = []
    past = 0
    for span in spans:
        if span.start > past:
            cut.append((text[past : span.start], None))
        cut.append((text[span.start : span.end], span))
        past = span.end
    if past < len(text):
        cut.append((text[past:], None))
    return cut


def describe_values(row: Mapping[str, Any]) -> list[tuple[str, str, str, bool]]:
    """Name, value, source and disagreement flag of each quasi-identifier in the table."""
    when = f"{row['visit_year']}-{row['visit_month']:02d}" if row["visit_month"] else ""
    values = [("visit", when)] + [(name, row[name]) for name in ("age", "sex", "race", "zip", "place")]
    return [
        (name, str(value), row[f"{name}_source"], name in row["disagrees"])
        for name, value in values
        if value not in (None, "")
    ]
