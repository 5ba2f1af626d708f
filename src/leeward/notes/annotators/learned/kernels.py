"""Loops of the learned annotators: context of tokens, scores and best sequences. Arrays in and out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit

KEY_REACH = 12
"""Tokens after a colon that still belong to its key."""
HEAD_WORDS = 6
"""Most tokens of a line that can be a heading."""


CAPITAL, UPPER = 1, 2
"""Flags of a word: it begins with a capital and goes on; has no small letters."""


@njit
def context(
    ids: NDArray[np.int32],
    classes: NDArray[np.int16],
    flags: NDArray[np.uint8],
    colon: int,
    line: int,
    point: int,
    title: int,
    role: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """For each token: the index of the word before the last colon on its line (−1: none), the index of the last word
    of the section's heading, and whether its word follows a title or a role somewhere in the note."""
    n = len(ids)
    word_count = 0
    for i in range(n):
        word_count = max(word_count, ids[i] + 1)
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
                    shouted = shouted and flags[j] & UPPER != 0
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
        if i > 0 and flags[i] & CAPITAL:
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


@njit
def scores(
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
    """Each token's score for each label: what the words around it say, neighbouring classes, hits and named words.

    `emissions[word, slot, label]` with the slots of `words.SLOTS`; word 0 is beyond the text.
    `pairs[template, class, class, label]` with the distances `first[template]` and `second[template]`;
    `hit_weights[place, hit, label]`, `again_weights[place, flag, label]` for the distances `around[place]`.
    Class 0 and hit 0 are beyond the text.
    """
    n, labels = len(ids), len(intercept)
    scores = np.empty((n, labels))
    for i in range(n):
        row = scores[i]
        # One after the other in one sum, which the compiler takes for several labels at once.
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
    """The best sequence of labels (Viterbi); `transitions[from, to]`."""
    n, labels = scores.shape
    best = np.zeros(n, np.int64)
    if n == 0:
        return best
    reached = np.empty((n, labels))
    reached[0] = scores[0]
    for i in range(1, n):
        before, now = reached[i - 1], reached[i]
        for label in range(labels):
            now[label] = before[0] + transitions[0, label]
        for other in range(1, labels):  # all labels at once: the compiler takes several in one step
            so_far, gain = before[other], transitions[other]
            for label in range(labels):
                now[label] = max(now[label], so_far + gain[label])
        for label in range(labels):
            now[label] += scores[i, label]
    for label in range(1, labels):
        if reached[n - 1, label] > reached[n - 1, best[n - 1]]:
            best[n - 1] = label
    for i in range(n - 1, 0, -1):  # where the best came from: the first of equals
        label = best[i]
        before = reached[i - 1]
        come = 0
        for other in range(1, labels):
            if before[other] + transitions[other, label] > before[come] + transitions[come, label]:
                come = other
        best[i - 1] = come
    return best
