"""The conditional random field: trained and stored by CRFsuite (python-crfsuite), applied from tables.

We ship CRFsuite's model file. CRFsuite's tagger takes every feature as a string; `LinearAnnotator` computes the same
scores from tables, about ten times faster, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leeward.errors import BadInput, require_extra
from leeward.notes.annotators.learned.linear import LinearAnnotator
from leeward.notes.spans import Annotator

FILE = "crf.crfsuite"


@dataclass(frozen=True)
class CrfSettings:
    """L-BFGS with an L1 penalty `c1` (Andrew & Gao 2007, as CRFsuite has it), which leaves few features, and an L2
    penalty `c2`; features seen fewer than `fewest` times are left out."""

    c1: float = 0.4
    c2: float = 0.01
    iterations: int = 50
    fewest: int = 3


def train(
    sequences: Iterable[tuple[list[list[str]], list[str]]], path: Path, settings: CrfSettings | None = None
) -> None:
    """Train on notes given as their tokens' attributes and labels, and write the model to `path`."""
    require_extra("`notes train`", "notes", "pycrfsuite")
    import pycrfsuite

    settings = settings or CrfSettings()
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params(
        {
            "c1": settings.c1,
            "c2": settings.c2,
            "max_iterations": settings.iterations,
            "feature.minfreq": settings.fewest,
        }
    )
    for attributes, labels in sequences:
        if labels:
            trainer.append(pycrfsuite.ItemSequence(attributes), labels)
    trainer.train(str(path))


def load(folder: Path, dictionary: Annotator | None = None) -> LinearAnnotator:
    """Load a trained model as an annotator; BadInput when the file is missing or no CRFsuite model."""
    require_extra("The annotator `crf`", "notes", "pycrfsuite")
    import pycrfsuite

    path = folder / FILE
    if path.read_bytes()[:4] != b"lCRF":
        raise BadInput(f"{path}: is no CRFsuite model.")
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    try:
        info = tagger.info()
        labels = tagger.labels()
    finally:
        tagger.close()
    number = {label: place for place, label in enumerate(labels)}
    transitions = np.zeros((len(labels), len(labels)))
    for (before, after), weight in info.transitions.items():
        transitions[number[before], number[after]] = weight
    rows: dict[str, int] = {}
    for feature, _ in info.state_features:
        rows.setdefault(feature, len(rows) + 1)
    table = np.zeros((len(rows) + 1, len(labels)))
    for (feature, label), weight in info.state_features.items():
        table[rows[feature], number[label]] = weight

    def weights_of(features: Sequence[str]) -> NDArray[np.float64]:
        return table[[rows.get(feature, 0) for feature in features]]

    return LinearAnnotator("crf", labels, weights_of, transitions, dictionary)
