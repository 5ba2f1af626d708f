"""Synthetic repeated codes: a population and a sample of it, in the shape of Tamersoy 2011, chapter III.

Published are: 301,423 patients with at least one of 250, 272, 401, 724 and on average 2.2, 1.3, 2.5, 0.9 mentions of
them; a sample of 2,676 with 3.5, 2.3, 4.4, 2.0, of whom about 9 % are unique in the population. The rest is ours, set
so that those figures come out:

- a patient has one code, others join by chance; all four together are rare, and then 724 has few mentions: Table 1 has
  the same loss at k = 5 and 10 and twice that at 25, as if one code's cap fell to 2 and then to 1;
- the mentions are overdispersed and split over the patient's codes at random;
- a few patients are long in care, with many mentions of three codes: no two of them alike;
- the sample is drawn with unequal chances, which grow with the mentions so that its means are met, in two strata, so
  that the share of unique patients is met.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from leeward.analysis.containment import Index, Multisets
from leeward.arrays import Bools, Float64s, Int16s, Int32s, Int64s
from leeward.errors import BadInput
from leeward.randomness import Randomness
from leeward.synthetic.codes import CHUNK_PATIENTS, MAX_CODES, code_catalogue, code_sink, code_weights

CODES = ("250", "272", "401", "724")
PATIENTS = 301_423
SAMPLE_PATIENTS = 2_676
POPULATION_MEANS = (2.2, 1.3, 2.5, 0.9)
SAMPLE_MEANS = (3.5, 2.3, 4.4, 2.0)
UNIQUE = 0.09

FIRST = (0.3475, 0.1697, 0.4177, 0.0651)
"""Chance of each code to be a patient's first."""
JOINS = 0.25
"""Chance of each other code to join."""
ALL_FOUR = 0.075
"""Share of those with all four who keep them."""
ONE_MORE = 0.25
"""Chance of each further mention of the last code in those with all four."""
SPLIT = (1.25, 0.75, 1.35, 0.6)
"""Dirichlet parameter of the split of mentions over a patient's codes."""
SHAPE = 1.5
"""Parameter of the negative binomial number of further mentions; its mean is proportional to the number of codes."""
FURTHER = 2.925
LONG_IN_CARE = 0.0018
LONG_MENTIONS = (46, 51)

MORE_DISTINCT = 4.0
"""Mean number of further codes of a patient, if `codes` is above four."""
MORE_MENTIONS = 0.6
"""Chance of one more mention of a further code (geometric)."""


def write_repeats(
    path: str | Path,
    patients: int = PATIENTS,
    codes: int = len(CODES),
    seed: int | None = None,
    *,
    sample: str | Path | None = None,
    sample_patients: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write `patient, code` rows (one per mention) of a population, and optionally of a sample of it.

    Files are `.parquet`, `.csv` or `.csv.gz`, written aside, then renamed; the sample keeps the patients' names (1 … n)
    and by default has the thesis's share of them. `codes` are distinct ones, the four of the thesis among them. The
    same seed gives the same rows; None draws anew. Returns the number of rows of the population.
    """
    chosen = _check_arguments(patients, codes, sample_patients)
    randomness = Randomness.of(seed)
    names = sorted({*CODES, *_further(codes)})
    kept: list[Int64s] = []
    rows = 0
    with code_sink(Path(path), names) as write:
        for number, first in enumerate(range(0, patients, CHUNK_PATIENTS)):
            size = min(CHUNK_PATIENTS, patients - first)
            counts = _counts(randomness.stream("repeats", number), size)
            kept.append(counts.astype(np.int16))
            patient, code = _mentions(randomness, number, counts, codes, names)
            write(patient + 1 + first, code)
            rows += len(patient)
            if progress:
                progress(first + size)
    if sample is not None:
        picked = draw_sample(np.concatenate(kept), chosen, randomness)
        with code_sink(Path(sample), names) as write:
            for number, kept_counts in enumerate(kept):
                inside = picked[picked // CHUNK_PATIENTS == number] + 1
                # the rows of a chunk are drawn again, which takes as long as the first time
                if not len(inside):
                    continue
                patient, code = _mentions(randomness, number, kept_counts.astype(np.int64), codes, names)
                patient = patient + 1 + number * CHUNK_PATIENTS
                mine = np.isin(patient, inside)
                if mine.any():
                    write(patient[mine], code[mine])
    return rows


def draw_sample(counts: Int16s, size: int, randomness: Randomness) -> Int64s:
    """Draw `size` patients (indices, ascending) that meet the sample's means and share of unique patients."""
    unique = _unique(counts)
    share = min(UNIQUE, 0.9 * float(unique.sum()) / size) if unique.any() else 0.0
    chances = _chances(counts.astype(np.float64), unique, share)
    # Systematic: patients lie in order of their counts and every size-th of the total chance is taken, so the sample's
    # means scatter far less than those of independent draws; nobody is taken twice.
    order = np.lexsort((*counts.T, unique))
    upto = np.cumsum(_at_most_one(chances[order] * size))
    start = float(randomness.stream("repeats", "sample").random())
    picked = np.searchsorted(upto, np.arange(size) * upto[-1] / size + start * upto[-1] / size)
    return np.sort(order[np.unique(np.minimum(picked, len(counts) - 1))])


def _check_arguments(patients: int, codes: int, sample_patients: int | None) -> int:
    if patients < 100:
        raise BadInput(f"`patients` must be at least 100; got {patients}.")
    if not len(CODES) <= codes <= MAX_CODES:
        raise BadInput(f"`codes` must be between {len(CODES)} and {MAX_CODES}; got {codes}.")
    chosen = (
        max(1, round(patients * SAMPLE_PATIENTS / PATIENTS)) if sample_patients is None else sample_patients
    )
    if not 1 <= chosen <= patients // 10:
        raise BadInput(f"`sample_patients` must be between 1 and a tenth of `patients`; got {chosen}.")
    return chosen


def _counts(draws: np.random.Generator, n: int) -> Int64s:
    """Draw mentions of the four codes for `n` patients, at least one each."""
    width = len(CODES)
    first = draws.choice(width, n, p=np.array(FIRST))
    has = draws.random((n, width)) < JOINS
    has[np.arange(n), first] = True
    long_in_care = draws.random(n) < LONG_IN_CARE
    without = (first + 1 + draws.integers(0, width - 1, n)) % width
    few = has.all(axis=1) & (draws.random(n) > ALL_FOUR)
    has[long_in_care] = True
    has[few | long_in_care, without[few | long_in_care]] = False
    total = draws.poisson(draws.gamma(SHAPE, 1 / SHAPE, n) * FURTHER * has.sum(axis=1))
    total[long_in_care] = draws.integers(*LONG_MENTIONS, int(long_in_care.sum()))
    weight = draws.gamma(np.where(has, SPLIT, 1.0))
    weight = np.where(has, np.maximum(weight, 1e-12), 0.0)
    counts = has + draws.multinomial(total, weight / weight.sum(axis=1, keepdims=True))
    whole = np.flatnonzero(has.all(axis=1))
    few_mentions = np.minimum(counts[whole, -1], draws.geometric(1 - ONE_MORE, len(whole)))
    counts[whole, 0] += counts[whole, -1] - few_mentions
    counts[whole, -1] = few_mentions
    return counts


def _further(codes: int) -> list[str]:
    return [code for code in code_catalogue(codes + len(CODES)) if code not in CODES][: codes - len(CODES)]


def _mentions(
    randomness: Randomness, number: int, counts: Int64s, codes: int, names: list[str]
) -> tuple[Int64s, Int32s]:
    """Rows of a chunk, one per mention: (patient in the chunk, code number), ascending by patient."""
    place = np.array([names.index(code) for code in CODES], np.int32)
    patient = np.repeat(np.repeat(np.arange(len(counts)), len(CODES)), counts.ravel())
    code = np.repeat(np.tile(place, len(counts)), counts.ravel())
    if codes > len(CODES):
        draws = randomness.stream("repeats", number, "further")
        further = np.array([names.index(each) for each in _further(codes)], np.int32)
        weight = code_weights(len(further))
        many = draws.poisson(MORE_DISTINCT, len(counts))
        owner = np.repeat(np.arange(len(counts)), many)
        which = further[draws.choice(len(further), len(owner), p=weight)]
        mentions = draws.geometric(1 - MORE_MENTIONS, len(owner))
        patient = np.concatenate([patient, np.repeat(owner, mentions)])
        code = np.concatenate([code, np.repeat(which, mentions)])
        order = np.argsort(patient, kind="stable")
        patient, code = patient[order], code[order]
    return patient, code


def _unique(counts: Int16s) -> Bools:
    """Whether no other patient has at least this patient's mentions of each of the four codes."""
    # Four counts of 16 bits pack into one number, which sorts far faster than rows do.
    packed = np.ascontiguousarray(counts).view(np.int64).ravel()
    keys, number, times = np.unique(packed, return_inverse=True, return_counts=True)
    different = keys.view(np.int16).reshape(-1, len(CODES))
    held = different > 0
    offsets = np.concatenate([[0], np.cumsum(held.sum(axis=1))]).astype(np.int64)
    values = np.broadcast_to(np.arange(len(CODES), dtype=np.int32), different.shape)[held]
    records = Multisets(offsets, values, different[held].astype(np.int32))
    index = Index(records, different.max(axis=0).astype(np.int64))
    alone = (times == 1) & (index.counts(records, limit=2) == 1)
    return np.asarray(alone[number.ravel()])


def _chances(counts: Float64s, unique: Bools, share: float) -> Float64s:
    """Chances (sum 1, `share` of it on the unique) proportional to a product of powers of 1 + mentions, with the powers
    for which the expected means are the sample's (Newton's method, damped)."""
    features, powers = np.log1p(counts), np.zeros(len(CODES))
    strata = [(unique, share), (~unique, 1 - share)] if share else [(np.ones(len(counts), np.bool_), 1.0)]
    chances = np.zeros(len(counts))
    for _ in range(60):
        slope = np.zeros((len(CODES), len(CODES)))
        for members, part in strata:
            raw = np.exp(features[members] @ powers)
            weight = raw / raw.sum()
            chances[members] = part * weight
            centre = weight @ counts[members]
            slope += part * ((counts[members] * weight[:, None]).T @ features[members])
            slope -= part * np.outer(centre, weight @ features[members])
        gap = np.array(SAMPLE_MEANS) - chances @ counts
        if np.abs(gap).max() < 1e-3:
            break
        powers = np.clip(powers + 0.5 * np.linalg.solve(slope, gap), -3, 3)
    return chances


def _at_most_one(expected: Float64s) -> Float64s:
    """Cap expected numbers of draws at 1, spreading the surplus over the others; the sum is kept."""
    total = expected.sum()
    for _ in range(50):
        certain = expected >= 1
        if not (expected > 1).any() or certain.all():
            break
        rest = total - certain.sum()
        expected = np.where(certain, 1.0, expected * rest / expected[~certain].sum())
    return np.minimum(expected, 1.0)
