"""The support vector machine: scikit-learn's LinearSVC over hashed features, one against the rest.

Features are hashed into a fixed number of columns (Weinberger et al. 2009, without signs), small weights dropped, the
rest stored as half floats in an .npz file without pickled objects.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from leeward.errors import BadInput, require_extra
from leeward.notes.annotators.learned.labels import OUTSIDE
from leeward.notes.annotators.learned.linear import LinearAnnotator
from leeward.notes.spans import Annotator

FILE = "svm.npz"
COLUMNS = 1 << 16


@dataclass(frozen=True)
class SvmSettings:
    """`cost` is LinearSVC's C; of tokens outside any span this share is trained on; of the weights so many are kept,
    the largest; an explicit identifier that is missed costs `eid_weight` times as much as another error."""

    cost: float = 0.05
    outside_share: float = 0.9
    kept: int = 220_000
    eid_weight: float = 2.0


def column(feature: str, columns: int = COLUMNS) -> int:
    """Hash a feature to its column; `columns` is a power of two."""
    return crc32(feature.encode("utf-8", "surrogatepass")) & (columns - 1)


def train(
    sequences: Iterable[tuple[list[list[str]], list[str]]],
    path: Path,
    generator: np.random.Generator,
    settings: SvmSettings | None = None,
) -> None:
    """Train on notes given as their tokens' attributes and labels, and write the model to `path`."""
    require_extra("`notes train`", "models", "scipy", "sklearn")
    from scipy.sparse import csr_matrix
    from sklearn.svm import LinearSVC

    settings = settings or SvmSettings()
    column_of = cache(column)
    indices: list[int] = []
    bounds = [0]
    targets: list[str] = []
    for attributes, labels in sequences:
        drawn = generator.random(len(labels))
        for row, label, number in zip(attributes, labels, drawn, strict=True):
            if label != OUTSIDE or number < settings.outside_share:
                indices += map(column_of, row)
                bounds.append(len(indices))
                targets.append(label)
    cells = (np.ones(len(indices)), np.array(indices, dtype=np.int32), np.array(bounds))
    matrix = csr_matrix(cells, shape=(len(targets), COLUMNS))
    matrix.sum_duplicates()
    names = sorted(set(targets))
    machine = LinearSVC(
        C=settings.cost,
        class_weight={name: settings.eid_weight if name.startswith("EID") else 1.0 for name in names},
        random_state=int(generator.integers(2**31)),
        max_iter=60,
        tol=0.05,
    )
    machine.fit(matrix, targets)
    weights = machine.coef_.T + 0.0
    if len(names) == 2:  # LinearSVC has a single row for two classes
        weights = np.hstack([-weights, weights])
        intercept = np.array([-machine.intercept_[0], machine.intercept_[0]])
    else:
        intercept = machine.intercept_
    _write(path, list(machine.classes_), weights, intercept, settings.kept)


def _write(
    path: Path, labels: list[str], weights: NDArray[np.float64], intercept: NDArray[np.float64], kept: int
) -> None:
    flat = weights.ravel()
    if np.count_nonzero(flat) > kept:
        least = np.partition(np.abs(flat), len(flat) - kept)[len(flat) - kept]
        flat = np.where(np.abs(flat) >= least, flat, 0.0)
    places = np.flatnonzero(flat)
    # Distances between kept weights are small numbers, which compress well.
    steps = np.diff(places, prepend=0).astype(np.uint32)
    with path.open("wb") as file:
        np.savez_compressed(
            file,
            labels=np.array(labels),
            columns=np.array([COLUMNS]),
            steps=steps,
            weights=flat[places].astype(np.float16),
            intercept=intercept.astype(np.float32),
        )


def load(folder: Path, dictionary: Annotator | None = None) -> LinearAnnotator:
    """Load a trained model as an annotator; BadInput when the file is missing or not ours."""
    path = folder / FILE
    try:
        with np.load(path, allow_pickle=False) as stored:
            labels = [str(label) for label in stored["labels"]]
            columns = int(stored["columns"][0])
            weights = np.zeros(columns * len(labels))
            weights[np.cumsum(stored["steps"].astype(np.int64))] = stored["weights"]
            intercept = stored["intercept"].astype(np.float64)
    except (ValueError, KeyError, IndexError, EOFError, OSError, zipfile.BadZipFile):
        raise BadInput(f"{path}: is no model of `leeward notes train`.") from None
    table = weights.reshape(columns, len(labels))

    def weights_of(features: Sequence[str]) -> NDArray[np.float64]:
        return table[[column(feature, columns) for feature in features]]

    return LinearAnnotator("svm", labels, weights_of, None, dictionary, intercept)
