"""Membership: who is in the table at all."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from leeward.cohort.lenses.table import Floats
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.condensation.measures.attacks import tree_of, two_distances
from leeward.methods.condensation.measures.both import SEED, Both, Singles, dummies
from leeward.randomness import Randomness

MOST_ROWS = 20_000
SAMPLE = 2_000


def membership(both: Both, most_rows: int = MOST_ROWS, sample: int = SAMPLE) -> dict[str, Any] | None:
    """One half of the source is condensed anew as the release was; the attacker compares distances to the result.

    The attacker knows whole rows (times too) and takes the better of two signs: the distance to the nearest row, and
    its ratio to the distance to the second nearest. `auc`: the probability that a patient who is in it looks nearer
    than one who is not; `caught`: the share of those in it who are named while 1 % of the others are. None where a half
    cannot be condensed, or not as an earlier version did. docs/methods/condensation.md has the section membership.
    """
    from leeward.engine import make
    from leeward.methods.condensation.method import condense, ready
    from leeward.methods.condensation.parameters import Condensation

    if both.release.method != "condensation" or sample < 1:
        return None
    if not set(both.release.parameters) <= {field.name for field in fields(Condensation)}:
        return None
    random = np.random.Generator(np.random.Philox(SEED))
    rows = random.permutation(len(both.table))[:most_rows]
    inside, outside = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    half = replace(both.table, frame=both.table.frame[np.sort(inside)])
    parameters = Condensation(**both.release.parameters)
    if parameters.needs_pilot:
        return None
    own = Randomness(SEED, True)
    try:
        prepared, kernel = ready(parameters, half, own)
        made = condense(prepared, kernel, make("local", threads=1), own, max(len(half), 1)).frame
    except (BadInput, GuaranteeUnreachable):
        return None
    _, before, after, _ = dummies(replace(both, made=made, _dummies={}))
    signs = [_signs(before[np.sort(each)[:sample]], after) for each in (inside, outside)]
    found = [_separation(signs[0][:, place], signs[1][:, place]) for place in range(2)]
    auc, caught = max(found)
    return {"asked": len(signs[0]) + len(signs[1]), "auc": auc, "caught": caught}


def _signs(asked: Singles, rows: Singles) -> Floats:
    """Distance to the nearest row, and its ratio to that to the second nearest: float64[asked, 2]."""
    near = two_distances(asked, tree_of(rows))
    return np.column_stack([near[:, 0], near[:, 0] / np.maximum(near[:, 1], 1e-9)])


def _separation(inside: Floats, outside: Floats) -> tuple[float, float]:
    """Area under the curve of small values, and the share of `inside` below the 1 % quantile of `outside`."""
    ordered = np.sort(outside)
    below = np.searchsorted(ordered, inside, "left")
    equal = np.searchsorted(ordered, inside, "right") - below
    auc = float((len(outside) - below - 0.5 * equal).mean() / len(outside))
    return auc, float((inside < np.quantile(outside, 0.01)).mean())
