"""The annotators and their ensemble by name, as evaluation and studies compare them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from leeward.notes import learned
from leeward.notes.context import judged
from leeward.notes.ensemble import resolve
from leeward.notes.rules import Rules
from leeward.notes.rules.dates import lowered
from leeward.notes.spans import Span


def members(models: Path | None = None) -> dict[str, Callable[[str], Sequence[Span]]]:
    """`rules`, `dictionary`, `svm`, `crf` and `ensemble`, each from a text to its spans.

    Every one is followed by ConText, so that what is asserted can be compared. `models` is a folder that
    `leeward notes train` wrote; the shipped models by default.
    """
    rules, dictionary = Rules(), learned.own_dictionary()
    svm, crf = (learned.load(name, models) for name in learned.NAMES)

    def all_of(text: str) -> list[Span]:
        hits = dictionary.annotate(text)
        looked = learned.look(text, hits)
        answers = [
            rules.annotate(text),
            hits,
            svm.annotate_looked(text, looked),
            crf.annotate_looked(text, looked),
        ]
        return resolve(len(text), answers)

    found: dict[str, Callable[[str], Sequence[Span]]] = {
        "rules": rules.annotate,
        "dictionary": dictionary.annotate,
        "svm": svm.annotate,
        "crf": crf.annotate,
        "ensemble": all_of,
    }
    return {name: _judged(annotate) for name, annotate in found.items()}


def _judged(annotate: Callable[[str], Sequence[Span]]) -> Callable[[str], Sequence[Span]]:
    def with_context(text: str) -> Sequence[Span]:
        return judged(text, lowered(text), annotate(text))

    return with_context
