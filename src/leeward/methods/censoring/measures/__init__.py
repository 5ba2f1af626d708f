"""What a k-map of repeated codes protects and costs (Tamersoy 2011, chapter III).

Measures: `risk` (distinguishability before and after, Figure 2; classes inside the sample), `cul` (Tables 1 and 2),
`repeats`, `pairs` and `phenotypes` (what a study of repeats keeps), `attack` (an attacker who knows the rule).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from leeward.analysis.containment import Multisets
from leeward.analysis.demographics.joint import WholePatient, figures_of_records, records_in_release
from leeward.analysis.figures import Measures, figures_of
from leeward.arrays import Bools, Float64s, Int64s
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.methods.censoring.measures.attack import attack
from leeward.methods.censoring.measures.records import Both, Inside, pair_records
from leeward.release import Release

NEEDS_POPULATION = True
DEFAULTS = ("risk", "cul", "repeats", "pairs", "phenotypes", "attack", "demographics")
FIGURE_2 = (*range(1, 26), 30, 40, 50, 75, 100, 200, 500, 1_000, 10_000, 100_000, 1_000_000)
"""Values of distinguishability at which the cumulative distribution is given."""

PHENOTYPE_MENTIONS = 2
CUL_STEPS = 10


def measure(
    release: Release, cohort: Cohort, wanted: Sequence[dict[str, Any]], population: Cohort | None = None
) -> dict[str, Any]:
    """The figures of a censored release. Raises BadInput: no population, an unknown measure, or a release without its
    custody folder: only `custody/data/records.parquet` says which patient a record belongs to."""
    if population is None:
        raise BadInput("the risk of a k-map is measured in a population; give it with --population.")
    both = pair_records(release, cohort, population)
    measures: Measures = {
        "risk": partial(risk, both),
        "cul": partial(cul, both),
        "repeats": partial(repeats, both),
        "pairs": partial(pairs, both),
        "phenotypes": partial(phenotypes, both),
        "attack": partial(attack, release, cohort, population, both.released, inside=both.inside),
        "demographics": partial(whole_patient, release, cohort, both.inside, both.released),
    }
    return figures_of(release, measures, wanted)


def risk(both: Both) -> dict[str, Any]:
    """Distinguishability in the population and classes in the sample, before and after; `at_most`: the share of records
    with at most so much, at each value `at`."""
    at = [value for value in FIGURE_2 if value < both.everyone.n] + [both.everyone.n]
    return {
        "population": both.everyone.n,
        "at": at,
        "before": _of_records(both.counts(both.original), both.original, both.k, at),
        "after": _of_records(both.counts(both.released), both.released, both.k, at),
    }


def _of_records(dis: Int64s, records: Multisets, k: int, at: Sequence[int]) -> dict[str, Any]:
    """The usual risks: prosecutor (knows who is in the sample), journalist (does not), marketer (guesses for all)."""
    sizes = class_sizes(records)
    return {
        "unique": _share(dis == 1),
        "below_k": _share(dis < k),
        "smallest": int(dis.min()),
        "median": float(np.median(dis)),
        "smallest_class_in_sample": int(sizes.min()),
        "alone_in_sample": _share(sizes == 1),
        "prosecutor": {"highest": float(1 / sizes.min()), "mean": float(np.mean(1 / sizes))},
        "journalist": {"highest": float(1 / dis.min()), "above_1_in_k": _share(dis < k)},
        "marketer": float(np.mean(1 / dis)),
        "at_most": [_share(dis <= value) for value in at],
    }


def class_sizes(records: Multisets) -> Int64s:
    """How many records of the same list equal each one, itself counted."""
    distinct, number = records.distinct()
    return np.bincount(number, minlength=len(distinct))[number]


def cul(both: Both) -> dict[str, Any]:
    """Censoring utility loss, of the original and of the capped record (docs/methods/censoring.md#losses)."""
    original, capped, released = (each.sizes() for each in (both.original, both.capped, both.released))
    of_original, of_capped = losses(original, released), losses(capped, released)
    return {
        "cul": statistics(of_original),
        "cul_after_cap": statistics(of_capped),
        "mentions": int(original.sum()),
        "mentions_kept": int(released.sum()),
        "kept": _ratio(released.sum(), original.sum()),
        "kept_after_cap": _ratio(released.sum(), capped.sum()),
        "changed_records": _share(of_original > 0),
        "changed_records_after_cap": _share(of_capped > 0),
        "emptied_records": int(np.count_nonzero(released == 0)),
        "intervals": _intervals(of_original),
    }


def losses(before: Int64s, after: Int64s) -> Float64s:
    """CUL of each record; an empty original loses nothing."""
    return np.where(before > 0, (before - after) / np.maximum(before, 1), 0.0)


def statistics(values: Float64s) -> dict[str, float]:
    """Mean, standard deviation (divisor n), median, skewness m3 / m2^1.5 (0 where nothing varies)."""
    centred = values - values.mean()
    second = float(np.mean(centred**2))
    skewness = float(np.mean(centred**3) / second**1.5) if second > 1e-18 else 0.0
    return {
        "mean": float(values.mean()),
        "sd": float(np.sqrt(second)),
        "median": float(np.median(values)),
        "skewness": skewness,
    }


def repeats(both: Both) -> dict[str, Any]:
    """Mentions of a code beyond the first in a record."""
    before, after = (int((records.counts - 1).sum()) for records in (both.original, both.released))
    return {"before": before, "after": after, "kept": _ratio(after, before)}


def pairs(both: Both) -> dict[str, Any]:
    """Comorbidity pairs: two different codes in one record."""
    held = [np.diff(records.offsets) for records in (both.original, both.released)]
    before, after = (int((each * (each - 1) // 2).sum()) for each in held)
    return {"before": before, "after": after, "kept": _ratio(after, before)}


def phenotypes(both: Both) -> dict[str, Any]:
    """Cases by the usual rule of two mentions: (patient, code) with at least two, and patients with such a code."""
    before, after = (_cases(records) for records in (both.original, both.released))
    patients = [len(np.unique(each[:, 0])) for each in (before, after)]
    return {
        "mentions": PHENOTYPE_MENTIONS,
        "cases_before": len(before),
        "cases_after": len(after),
        "cases_kept": _ratio(len(after), len(before)),
        "patients_before": patients[0],
        "patients_after": patients[1],
        "patients_kept": _ratio(patients[1], patients[0]),
    }


def _cases(records: Multisets) -> Int64s:
    enough = records.counts >= PHENOTYPE_MENTIONS
    return np.stack([records.owners()[enough], records.values[enough].astype(np.int64)], axis=1)


def _intervals(values: Float64s) -> list[dict[str, float]]:
    """Records (`count`) whose loss is above `low` and at most `high`: none lost first, then tenths."""
    edges = np.linspace(0, 1, CUL_STEPS + 1)
    place = np.clip(np.ceil(values * CUL_STEPS - 1e-9).astype(np.int64) - 1, -1, CUL_STEPS - 1)
    held = np.bincount(place + 1, minlength=CUL_STEPS + 1)
    ends = [(0.0, 0.0), *itertools.pairwise(edges.tolist())]
    return [
        {"low": low, "high": high, "count": count}
        for (low, high), count in zip(ends, held.tolist(), strict=True)
    ]


def _share(which: Bools) -> float:
    return float(np.mean(which)) if len(which) else 0.0


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


def whole_patient(
    release: Release, cohort: Cohort, inside: Inside | None, released: Multisets
) -> WholePatient | None:
    """Errors of questions of demographics and codes; None without classes. `released`: in the order of the sample, over
    its codes."""
    if inside is None:
        return None
    sets = records_in_release(release, cohort, cohort.code_sets())
    owners = released.owners()[np.argsort(released.values, kind="stable")]
    bounds = np.searchsorted(np.sort(released.values), np.arange(len(sets.codes) + 1))
    holders = [(owners[low:high], np.ones(high - low)) for low, high in itertools.pairwise(bounds)]
    return figures_of_records(release, cohort, sets, inside.of_record, holders)
