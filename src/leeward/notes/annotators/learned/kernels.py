"""Loops of the learned annotators: context of tokens, scores of labels, best sequences of labels. Arrays in and out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

KEY_REACH = 12
"""Tokens after a colon that still belong to its key."""
HEAD_WORDS = 6
"""Most tokens of a line that can be a heading."""


@njit(cache=True, nogil=True)
def context(
    ids: NDArray[np.int32],
    classes: NDArray[np.int16],
    capital: NDArray[np.bool_],
    upper: NDArray[np.bool_],
    word_count: int,
    colon: int,
    line: int,
    point: int,
    title: int,
    role: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """For each token: the index of the word before the last colon on its line (−1: none), the index of the last word
    of the section's heading, and whether its word follows a title or a role somewhere in the note.

    `capital` marks words that begin with a capital letter, `upper` tokens without small letters.
    """
    n = len(ids)
    key = np.full(n, -1, np.int32)
    head = np.full(n, -1, np.int32)
    named = np.zeros(word_count, np.bool_)
    line_start = 0
    current_key = -1
    current_head = -1
    colon_at = -KEY_REACH - 1
    for i in range(n):
        if classes[i] == line:
            length = i - line_start
            if 0 < length <= HEAD_WORDS and current_key < line_start:
                shouted = True
                for j in range(line_start, i):
                    shouted = shouted and upper[j]
                if shouted:
                    current_head = i - 1
            line_start = i + 1
            current_key = -1
            colon_at = -KEY_REACH - 1
        elif classes[i] == colon and i > line_start:
            current_key = i - 1
            colon_at = i
            if i - line_start <= HEAD_WORDS:
                current_head = i - 1
        elif current_key >= 0 and i - colon_at <= KEY_REACH:
            key[i] = current_key
        head[i] = current_head
        if i > 0 and capital[i]:
            before = i - 1
            if classes[before] == point and before > 0:
                before -= 1
            if classes[before] == title or (
                current_key >= 0 and classes[current_key] == role and i - colon_at <= 3
            ):
                named[ids[i]] = True
    again = np.zeros(n, np.bool_)
    for i in range(n):
        again[i] = named[ids[i]]
    return key, head, again


@njit(cache=True, nogil=True)
def add_words(
    scores: NDArray[np.float64],
    ids: NDArray[np.int32],
    key: NDArray[np.int32],
    head: NDArray[np.int32],
    emissions: NDArray[np.float32],
) -> None:
    """Add what the words around each token say. `emissions[word, slot, label]`; word 0 is beyond the text."""
    n, labels = scores.shape
    window = emissions.shape[1] - 2
    reach = window // 2
    for i in range(n):
        for slot in range(window):
            j = i + slot - reach
            word = ids[j] if 0 <= j < n else 0
            for label in range(labels):
                scores[i, label] += emissions[word, slot, label]
        word = ids[key[i]] if key[i] >= 0 else 0
        for label in range(labels):
            scores[i, label] += emissions[word, window, label]
        word = ids[head[i]] if head[i] >= 0 else 0
        for label in range(labels):
            scores[i, label] += emissions[word, window + 1, label]


@njit(cache=True, nogil=True)
def add_context(
    scores: NDArray[np.float64],
    classes: NDArray[np.int16],
    pairs: NDArray[np.float32],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    around: NDArray[np.int64],
    hits: NDArray[np.uint8],
    hit_weights: NDArray[np.float32],
    again: NDArray[np.bool_],
    again_weights: NDArray[np.float32],
) -> None:
    """Add what neighbouring classes, dictionary hits and named words say.

    `pairs[template, class, class, label]` with the distances `first[template]` and `second[template]`;
    `hit_weights[place, hit, label]`, `again_weights[place, flag, label]` for the distances `around[place]`.
    Class 0 and hit 0 are beyond the text.
    """
    n, labels = scores.shape
    for i in range(n):
        for template in range(len(first)):
            j = i + first[template]
            k = i + second[template]
            one = classes[j] if 0 <= j < n else 0
            two = classes[k] if 0 <= k < n else 0
            for label in range(labels):
                scores[i, label] += pairs[template, one, two, label]
        for distance in range(len(around)):
            j = i + around[distance]
            inside = 0 <= j < n
            hit = hits[j] if inside else 0
            flag = 1 if inside and again[j] else 0
            for label in range(labels):
                scores[i, label] += hit_weights[distance, hit, label] + again_weights[distance, flag, label]


@njit(cache=True, nogil=True)
def best_labels(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The best label of each token by itself; the first of equals."""
    n, labels = scores.shape
    best = np.zeros(n, np.int64)
    for i in range(n):
        for label in range(1, labels):
            if scores[i, label] > scores[i, best[i]]:
                best[i] = label
    return best


@njit(cache=True, nogil=True)
def best_sequence(scores: NDArray[np.float64], transitions: NDArray[np.float64]) -> NDArray[np.int64]:
    """The best sequence of labels (Viterbi); `transitions[from, to]`."""
    n, labels = scores.shape
    best = np.zeros(n, np.int64)
    if n == 0:
        return best
    back = np.zeros((n, labels), np.int16)
    before = scores[0].copy()
    now = np.empty(labels)
    for i in range(1, n):
        for label in range(labels):
            top = before[0] + transitions[0, label]
            come = 0
            for other in range(1, labels):
                value = before[other] + transitions[other, label]
                if value > top:
                    top = value
                    come = other
            back[i, label] = come
            now[label] = top + scores[i, label]
        before, now = now, before
    for label in range(1, labels):
        if before[label] > before[best[n - 1]]:
            best[n - 1] = label
    for i in range(n - 1, 0, -1):
        best[i - 1] = back[i, best[i]]
    return best
