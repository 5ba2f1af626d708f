"""Training of both learned annotators: notes in, two model files and their provenance out."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from leeward.errors import BadInput
from leeward.notes.annotators.learned import CARD, FORMAT, crf, svm
from leeward.notes.annotators.learned.features import attributes, look
from leeward.notes.annotators.learned.labels import labels_of
from leeward.notes.spans import AnnotatedNote, Annotator
from leeward.paths import require_new
from leeward.randomness import Randomness
from leeward.version import __version__

FORGOTTEN = 0.2
"""Share of the dictionary's names and places hidden in training, so that models learn what unlisted ones look like
instead of repeating the dictionary. Health terms stay: models that guess them in unknown text call many ordinary words
a symptom, and terms outside the vocabulary do not reach the table anyway."""
SYNTHETIC_NOTES = 1_000
"""Number of notes used to train the shipped models."""


def train(
    notes: Iterable[AnnotatedNote],
    dictionary: Annotator,
    out: str | Path,
    seed: int | None,
    *,
    corpus: dict[str, Any],
    progress: Callable[[str], None] = lambda message: None,
) -> dict[str, Any]:
    """Train the support vector machine and the conditional random field, and write them into the new folder `out`.

    The hits of the `dictionary` are features; whoever uses the models must run the same. `corpus` describes the notes
    in the models' card (`model.json`), which is returned. The same notes, seed and versions give the same files.
    Raises BadInput where `out` exists or the notes hold no span.
    """
    out = Path(out)
    require_new(out, "folder")
    progress("looking at the notes")
    forgetting = Randomness.of(seed).stream("notes", "forgetting")
    sequences = []
    for note in notes:
        found = dictionary.annotate(note.text)
        hits = [hit for hit in found if hit.kind == "HMI" or forgetting.random() >= FORGOTTEN]
        looked = look(note.text, hits)
        sequences.append((attributes(looked), labels_of(looked.tokens, note.spans)))
    learned = sorted({label for _, labels in sequences for label in labels})
    if len(learned) < 2:
        raise BadInput("the corpus has no span with a category that the models learn; nothing to train on.")
    aside = out.with_name(f".{out.name}.writing")
    aside.mkdir(parents=True)
    try:
        progress("training the conditional random field")
        crf.train(sequences, aside / crf.FILE)
        progress("training the support vector machine")
        svm.train(sequences, aside / svm.FILE, Randomness.of(seed).stream("notes", "svm"))
        card = _card(corpus, seed, len(sequences), sum(len(labels) for _, labels in sequences), learned)
        card["sha256"] = {
            file: hashlib.sha256((aside / file).read_bytes()).hexdigest() for file in (crf.FILE, svm.FILE)
        }
        (aside / CARD).write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
        aside.rename(out)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return card


def _card(
    corpus: dict[str, Any], seed: int | None, notes: int, tokens: int, labels: list[str]
) -> dict[str, Any]:
    packages = ("python-crfsuite", "scikit-learn", "numpy", "faker")
    return {
        "leeward": __version__,
        "format": FORMAT,
        "corpus": corpus,
        "seed": seed,
        "notes": notes,
        "tokens": tokens,
        "labels": labels,
        "crf": asdict(crf.CrfSettings()),
        "svm": asdict(svm.SvmSettings()),
        "forgotten_hits": FORGOTTEN,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }
