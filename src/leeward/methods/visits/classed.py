"""Visits inside classes of demographics: a code of one class is another code than that of the next, so that whatever is
counted, merged and enforced is so inside every class by itself (docs/methods/whole-patient.md#methods)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leeward.arrays import AnyArray, Int32s, Int64s, offsets_of
from leeward.cohort.lenses.visits import Visits as Lens
from leeward.methods.visits.kernels.counting import GONE
from leeward.methods.visits.visit_lists import MARK, codes_apart


def in_classes(lens: Lens, class_of: AnyArray, groups: Int64s) -> tuple[Lens, Int64s]:
    """The lens with the codes of each class apart, and the groups of these codes.

    class_of : int[patients], from 0. groups : int64[codes of the lens], which may merge; they do so inside a class.
    """
    n = max(1, len(lens.codes))
    of_value = class_of[lens.patient_of_visit()[lens.visit_of_value()]]
    values, codes, used = codes_apart(of_value, lens.values, lens.codes)
    apart = (used // n) * (int(groups.max(initial=0)) + 1) + groups[used % n]
    return replace(lens, values=values, codes=codes), apart


def bare(label: str) -> str:
    """A code or label without its class."""
    number, mark, _ = label.partition(MARK)
    return label.replace(number + mark, "") if mark else label


def class_of(label: str) -> int:
    """The number of the class that a code or label belongs to."""
    return int(label.partition(MARK)[0])


def take(lens: Lens, patients: AnyArray) -> Lens:
    """The lens of some of the patients, in their order; one may come twice. All codes of the lens stay numbered."""
    visits = np.diff(lens.patient_offsets)[patients]
    starts = offsets_of(visits)
    chosen = np.repeat(lens.patient_offsets[patients] - starts[:-1], visits) + np.arange(starts[-1])
    sizes = np.diff(lens.offsets)[chosen]
    bounds = offsets_of(sizes)
    within = np.repeat(lens.offsets[chosen] - bounds[:-1], sizes) + np.arange(bounds[-1])
    return Lens(
        starts, bounds, lens.values[within], lens.codes, lens.patients.gather(patients), lens.rows[chosen]
    )


def occurrences_of(lens: Lens) -> Int64s:
    """int64[patients]: pairs of visit and code."""
    return np.diff(lens.offsets[lens.patient_offsets])


def losses(
    lens: Lens, groups: Int64s, run: Callable[[Lens, Int64s], Any]
) -> Callable[[Sequence[AnyArray]], list[int]]:
    """The pairs of visit and code that no label shows any more, in each of some sets of patients taken as classes.

    run : the method on a lens with its groups, to its `Outcome`.
    """

    def lost(parts: Sequence[AnyArray]) -> list[int]:
        sizes = np.array([len(part) for part in parts])
        chosen = take(lens, np.concatenate(parts))
        number: Int32s = np.repeat(np.arange(len(parts), dtype=np.int32), sizes)
        outcome = run(*in_classes(chosen, number, groups))
        of_pair = chosen.patient_of_visit()[chosen.visit_of_value()]
        gone = np.bincount(number[of_pair[outcome.kept_as() == GONE]], minlength=len(parts))
        return [int(count) for count in gone]

    return lost
