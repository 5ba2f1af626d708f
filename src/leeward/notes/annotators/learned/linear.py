"""A trained linear model (SVM or CRF) at work: tables of weights, filled once a word, and the decoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit
from leeward.notes.annotators.learned.features import (
    AROUND,
    CLASSES,
    HITS,
    PAIRS,
    SLOTS,
    Looked,
    again_feature,
    all_features,
    hit_feature,
    look,
    pair_feature,
)
from leeward.notes.annotators.learned.labels import spans_of
from leeward.notes.spans import Annotator, Span
from leeward.notes.vocabulary import PerWord


@njit
def sum_weights(
    intercept: NDArray[np.float64],
    ids: NDArray[np.int32],
    key: NDArray[np.int32],
    head: NDArray[np.int32],
    emissions: NDArray[np.float32],
    classes: NDArray[np.int16],
    pairs: NDArray[np.float32],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    around: NDArray[np.int64],
    hits: NDArray[np.uint8],
    hit_weights: NDArray[np.float32],
    again: NDArray[np.bool_],
    again_weights: NDArray[np.float32],
) -> NDArray[np.float64]:
    """Score each token for each label from its context words, neighbouring classes, hits and named words.

    `emissions[word, slot, label]` with the slots of `words.SLOTS`; word 0 is beyond the text.
    `pairs[template, class, class, label]` with the distances `first[template]` and `second[template]`;
    `hit_weights[place, hit, label]`, `again_weights[place, flag, label]` for the distances `around[place]`.
    Class 0 and hit 0 are beyond the text.
    """
    n, labels = len(ids), len(intercept)
    scores = np.empty((n, labels))
    for i in range(n):
        row = scores[i]
        # Sequential terms in one sum, which the compiler vectorizes over labels.
        second_before = emissions[ids[i - 2] if i > 1 else 0, 0]
        before = emissions[ids[i - 1] if i > 0 else 0, 1]
        itself = emissions[ids[i], 2]
        after = emissions[ids[i + 1] if i + 1 < n else 0, 3]
        second_after = emissions[ids[i + 2] if i + 2 < n else 0, 4]
        keyed = emissions[ids[key[i]] if key[i] >= 0 else 0, 5]
        headed = emissions[ids[head[i]] if head[i] >= 0 else 0, 6]
        for label in range(labels):
            row[label] = (
                intercept[label]
                + second_before[label]
                + before[label]
                + itself[label]
                + after[label]
                + second_after[label]
                + keyed[label]
                + headed[label]
            )
        for template in range(len(first)):
            j = i + first[template]
            k = i + second[template]
            both = pairs[template, classes[j] if 0 <= j < n else 0, classes[k] if 0 <= k < n else 0]
            for label in range(labels):
                row[label] += both[label]
        for distance in range(len(around)):
            j = i + around[distance]
            inside = 0 <= j < n
            hit = hit_weights[distance, hits[j] if inside else 0]
            named = again_weights[distance, 1 if inside and again[j] else 0]
            for label in range(labels):
                row[label] += hit[label] + named[label]
    return scores


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


_FIRST, _SECOND = (np.array(distances, dtype=np.int64) for distances in zip(*PAIRS, strict=True))
_AROUND = np.array(AROUND, dtype=np.int64)


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
        self.labels = tuple(labels)
        self._weights_of = weights_of
        self._transitions = transitions
        self._dictionary = dictionary
        self._intercept = np.zeros(len(self.labels)) if intercept is None else intercept
        self._emissions = PerWord(self._of_word, np.float32, (len(SLOTS), len(self.labels)))
        pairs = [
            [pair_feature(template, *two) for two in product(CLASSES, CLASSES)]
            for template in range(len(PAIRS))
        ]
        self._pairs = self._table(pairs).reshape(len(PAIRS), len(CLASSES), len(CLASSES), len(self.labels))
        self._hits = self._table([[hit_feature(distance, hit) for hit in HITS] for distance in AROUND])
        self._again = self._table(
            [[again_feature(distance, flag) for flag in (False, True)] for distance in AROUND]
        )

    def annotate(self, text: str) -> list[Span]:
        """The spans of a text; runs the dictionary for its features."""
        spans = self._dictionary.annotate(text) if self._dictionary is not None else ()
        return self.annotate_looked(text, look(text, spans))

    def annotate_looked(self, text: str, looked: Looked) -> list[Span]:
        """The spans of a text that `features.look` has looked at: several models share one look."""
        return spans_of(looked.tokens, self.labels_of(looked), self.name)

    def labels_of(self, looked: Looked) -> list[str]:
        scores = self.scores(looked)
        alone = self._transitions is None
        best = scores.argmax(axis=1) if alone else best_sequence(scores, self._transitions)
        return [self.labels[number] for number in best.tolist()]

    def scores(self, looked: Looked) -> NDArray[np.float64]:
        """Each token's score for each label, without transitions."""
        scores: NDArray[np.float64] = sum_weights(
            self._intercept,
            looked.words,
            looked.key,
            looked.head,
            self._emissions.of(looked.vocabulary),
            looked.classes,
            self._pairs,
            _FIRST,
            _SECOND,
            _AROUND,
            looked.hits,
            self._hits,
            looked.again,
            self._again,
        )
        return scores

    def _of_word(self, word: str) -> NDArray[np.float64]:
        """Weights of a word for each label, by its slot."""
        features, begins = all_features(word)
        said: NDArray[np.float64] = np.add.reduceat(self._weights_of(features), begins, axis=0)
        return said

    def _table(self, features: list[list[str]]) -> NDArray[np.float32]:
        flat = self._weights_of([name for names in features for name in names])
        return flat.reshape(len(features), len(features[0]), len(self.labels)).astype(np.float32)
