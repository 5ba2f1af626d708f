"""Recall and precision of an annotator on annotated notes.

Definitions. A gold span is *found* where a span of the same kind that the annotator set covers at least one of its
characters; recall is the share of gold spans that are found. A span that the annotator set is *right* where it covers
at least one character of a gold span of the same kind; precision is the share that is right. F is their harmonic mean.
Categories are looked at apart, each with the same rule: a phone number called a record number is found, as it is
removed all the same.

For identities every part counts, so the same is done for *tokens* (runs of letters or digits): recall is the share of
the tokens inside gold EID spans that the annotator's EID spans cover wholly. *Protected* are all gold EID spans and
gold dates, ZIP codes and places, where an EID or a date, ZIP code or place of any role counts as found: corpora that
do not tell roles apart (visit or birth date, hospital or city) are measured by it, in spans and in tokens.

A health term that is not the patient's own now (denied, doubted, of the family, long over) is *wrongly kept* where a
span that the annotator asserts covers a character of it. *Terms* are what reaches the table: the set of asserted
concepts of a note, without offsets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.notes.spans import PRIORITY, SAFE_HARBOR_QID, AnnotatedNote, Span

PROTECTED = "protected"
TOKEN = re.compile(r"[^\W_]+")


@dataclass
class Counts:
    """Counts: `found` of `gold` items, and `right` of `predicted` items."""

    gold: int = 0
    found: int = 0
    predicted: int = 0
    right: int = 0

    @property
    def recall(self) -> float:
        """Recall; NaN without gold items."""
        return self.found / self.gold if self.gold else float("nan")

    @property
    def precision(self) -> float:
        """Precision; NaN without predictions."""
        return self.right / self.predicted if self.predicted else float("nan")

    @property
    def f(self) -> float:
        """Harmonic mean of precision and recall; NaN where either is."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0 * both

    def as_json(self) -> dict[str, int | float | None]:
        """Counts and figures; undefined ones are None."""
        figures = {"precision": self.precision, "recall": self.recall, "f": self.f}
        rounded = {name: None if value != value else round(value, 4) for name, value in figures.items()}
        return {**vars(self), **rounded}


@dataclass
class Kept:
    """Number of health terms that are not the patient's own now, and of those that an annotator asserts anyway."""

    gold: int = 0
    kept: int = 0

    @property
    def share(self) -> float:
        """NaN where there was none."""
        return self.kept / self.gold if self.gold else float("nan")

    def as_json(self) -> dict[str, int | float | None]:
        return {"gold": self.gold, "kept": self.kept, "share": round(self.share, 4) if self.gold else None}


@dataclass
class Evaluation:
    """An annotator's figures on some notes.

    `spans` counts by kind (`EID`) and by kind and category (`EID:name`), gold by its own category and predictions by
    theirs, and also `protected` and, for recall only, `protected:` with the gold's category. `tokens` has `EID` and
    `protected`; `contexts` has why a term is not the patient's own now (`negated`, `family` …, as the corpus says) and
    `all`; `terms` counts the concepts that a note asserts.
    """

    name: str
    notes: int = 0
    spans: dict[str, Counts] = field(default_factory=dict)
    tokens: dict[str, Counts] = field(default_factory=dict)
    contexts: dict[str, Kept] = field(default_factory=dict)
    terms: Counts = field(default_factory=Counts)

    def as_json(self) -> dict[str, Any]:
        return {
            "annotator": self.name,
            "notes": self.notes,
            "spans": {name: counts.as_json() for name, counts in sorted(self.spans.items())},
            "tokens": {name: counts.as_json() for name, counts in self.tokens.items()},
            "wrongly_kept": {name: kept.as_json() for name, kept in sorted(self.contexts.items())},
            "terms": self.terms.as_json(),
        }


def evaluate(
    name: str, notes: Sequence[AnnotatedNote], annotate: Callable[[str], Sequence[Span]]
) -> Evaluation:
    evaluation = Evaluation(name)
    for note in notes:
        count(evaluation, note, annotate(note.text))
    return evaluation


def count(evaluation: Evaluation, note: AnnotatedNote, predicted: Sequence[Span]) -> None:
    evaluation.notes += 1
    for name in (*PRIORITY, PROTECTED):
        gold, answer = ([s for s in spans if _belongs(s, name)] for spans in (note.spans, predicted))
        _count_spans(evaluation, name, gold, answer, len(note.text))
        if name in ("EID", PROTECTED):
            _count_tokens(evaluation.tokens.setdefault(name, Counts()), gold, answer, note.text)
    _count_contexts(evaluation, note, predicted)
    _count_terms(evaluation.terms, note, predicted)


def _count_spans(
    evaluation: Evaluation, name: str, gold: Sequence[Span], answer: Sequence[Span], size: int
) -> None:
    found, true = _cover(size, answer), _cover(size, gold)
    for span in gold:
        for key in (name, f"{name}:{span.category}"):
            counts = evaluation.spans.setdefault(key, Counts())
            counts.gold += 1
            counts.found += bool(found[span.start : span.end].any())
    for span in answer:
        for key in (name, f"{name}:{span.category}") if name != PROTECTED else (name,):
            counts = evaluation.spans.setdefault(key, Counts())
            counts.predicted += 1
            counts.right += bool(true[span.start : span.end].any())


def _count_tokens(counts: Counts, gold: Sequence[Span], answer: Sequence[Span], text: str) -> None:
    true, found = _cover(len(text), gold), _cover(len(text), answer)
    for match in TOKEN.finditer(text):
        token = slice(*match.span())
        in_gold, touched = bool(true[token].any()), bool(found[token].any())
        counts.gold += in_gold
        counts.found += in_gold and bool(found[token].all())
        counts.predicted += touched
        counts.right += touched and in_gold


def _count_contexts(evaluation: Evaluation, note: AnnotatedNote, predicted: Sequence[Span]) -> None:
    kept = _cover(len(note.text), [span for span in predicted if span.kind == "HMI" and span.asserted])
    for span in note.spans:
        if span.kind == "HMI" and not span.asserted:
            for key in (span.source.partition(":")[2] or "not told apart", "all"):
                context = evaluation.contexts.setdefault(key, Kept())
                context.gold += 1
                context.kept += bool(kept[span.start : span.end].any())


def _count_terms(counts: Counts, note: AnnotatedNote, predicted: Sequence[Span]) -> None:
    gold, found = (
        {s.concept for s in spans if s.asserted and s.concept} for spans in (note.spans, predicted)
    )
    counts.gold += len(gold)
    counts.predicted += len(found)
    counts.found += len(gold & found)
    counts.right += len(gold & found)


def _belongs(span: Span, name: str) -> bool:
    """Whether a span is of a kind, or protected."""
    if name != PROTECTED:
        return span.kind == name
    return span.kind == "EID" or (span.kind == "QID" and span.category in SAFE_HARBOR_QID)


def _cover(size: int, spans: Sequence[Span]) -> NDArray[np.bool_]:
    covered = np.zeros(size, dtype=np.bool_)
    for span in spans:
        covered[span.start : span.end] = True
    return covered
