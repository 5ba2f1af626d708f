"""A trained linear model (SVM or CRF) at work: tables of weights, filled once a word, and the decoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit
from leeward.notes.annotators.learned.features import FIXED, SLOTS, Looked, all_features, look
from leeward.notes.annotators.learned.labels import spans_of
from leeward.notes.spans import Annotator, Span
from leeward.notes.vocabulary import PerWord


@njit
def add_weights(scores: NDArray[np.float64], table: NDArray[np.float32], rows: NDArray[np.int64]) -> None:
    """Add to each token's scores the rows of a table that belong to its features."""
    for i in range(len(rows)):
        for row in rows[i]:
            for label in range(scores.shape[1]):
                scores[i, label] += table[row, label]


@njit
def best_sequence(scores: NDArray[np.float64], transitions: NDArray[np.float64]) -> NDArray[np.int64]:
    """The best sequence of labels (Viterbi), of equals the first; `transitions[from, to]`."""
    n, labels = scores.shape
    best = np.zeros(n, np.int64)
    reached = scores.copy()
    for i in range(1, n):
        now = np.full(labels, -np.inf)
        for before in range(labels):  # all labels at once, which the compiler vectorizes
            for label in range(labels):
                now[label] = max(now[label], reached[i - 1, before] + transitions[before, label])
        reached[i] += now
    if n:
        best[n - 1] = np.argmax(reached[n - 1])
    for i in range(n - 1, 0, -1):
        best[i - 1] = np.argmax(reached[i - 1] + transitions[:, best[i]])
    return best


class LinearAnnotator:
    """An `Annotator` whose score of a label is a sum of weights.

    `weights_of` gives the weights of some features (a row a feature, a column a label), `transitions[from, to]` what a
    label gains from the one before it (CRF; None: each token by itself, SVM), `intercept` a score that each label has
    from the start. The hits of the `dictionary` are features; `annotate` alone needs it.
    """

    def __init__(
        self,
        name: str,
        labels: Sequence[str],
        weights_of: Callable[[Sequence[str]], NDArray[np.float64]],
        transitions: NDArray[np.float64] | None = None,
        dictionary: Annotator | None = None,
        intercept: NDArray[np.float64] | None = None,
    ) -> None:
        self.name = name
        self.labels = np.array(labels, object)
        self._weights_of = weights_of
        self._transitions = transitions
        self._dictionary = dictionary
        self._intercept = np.zeros(len(labels)) if intercept is None else intercept
        self._by_word = PerWord(self._of_word, np.float32, (len(SLOTS), len(labels)))
        self._fixed = weights_of(FIXED).astype(np.float32)

    def annotate(self, text: str) -> list[Span]:
        """The spans of a text; runs the dictionary for its features."""
        spans = self._dictionary.annotate(text) if self._dictionary is not None else ()
        return self.annotate_looked(text, look(text, spans))

    def annotate_looked(self, text: str, looked: Looked) -> list[Span]:
        """The spans of a text that `features.look` has looked at: several models share one look."""
        return spans_of(looked.tokens, self.labels_of(looked), self.name)

    def labels_of(self, looked: Looked) -> list[str]:
        """Each token's label."""
        scores = self.scores(looked)
        alone = self._transitions is None
        return list(self.labels[scores.argmax(axis=1) if alone else best_sequence(scores, self._transitions)])

    def scores(self, looked: Looked) -> NDArray[np.float64]:
        """Each token's score for each label, without transitions."""
        scores = np.tile(self._intercept, (len(looked.fixed), 1))
        add_weights(scores, self._by_word.of(looked.vocabulary).reshape(-1, len(self.labels)), looked.by_word)
        add_weights(scores, self._fixed, looked.fixed)
        return scores

    def _of_word(self, word: str) -> NDArray[np.float64]:
        """Weights of a word for each label, by its slot."""
        features, begins = all_features(word)
        weights: NDArray[np.float64] = np.add.reduceat(self._weights_of(features), begins, axis=0)
        return weights
