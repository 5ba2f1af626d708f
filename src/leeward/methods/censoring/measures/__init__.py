"""What a k-map of repeated codes protects and costs (Tamersoy 2011, chapter III).

Measures: `risk` (distinguishability before and after, Figure 2; classes inside the sample), `cul` (Tables 1 and 2),
`repeats`, `pairs` and `phenotypes` (what a study of repeats keeps), `attack` (an attacker who knows the rule).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.containment import Index, Multisets
from leeward.analysis.measuring import Measures, figures_of
from leeward.arrays import Bools, Float64s, Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeCounts
from leeward.errors import BadInput
from leeward.methods.censoring.classed import take
from leeward.methods.censoring.measures.attack import attack
from leeward.methods.censoring.measures.figures import Loss, OfRecords, Risk
from leeward.methods.censoring.measures.inside import Inside, match_classes, whole_patient
from leeward.release import Release

NEEDS_POPULATION = True
DEFAULTS = ("risk", "cul", "repeats", "pairs", "phenotypes", "attack", "demographics")
FIGURE_2 = (*range(1, 26), 30, 40, 50, 75, 100, 200, 500, 1_000, 10_000, 100_000, 1_000_000)
"""Values of distinguishability at which the cumulative distribution is given."""

PHENOTYPE_MENTIONS = 2
CUL_STEPS = 10


@dataclass(frozen=True)
class Both:
    """The released patients of the sample before and after, record by record, over the sample's codes; and the
    population's index.

    original, capped, released : Multisets, in the order of the sample. sample : their lens. inside : the classes of
    demographics, where there are.
    """

    original: Multisets
    capped: Multisets
    released: Multisets
    everyone: Index
    k: int
    sample: CodeCounts
    inside: Inside | None = None

    def counts(self, records: Multisets) -> Int64s:
        """The people of the population who contain each record, and fit its labels of demographics."""
        return self.everyone.counts(records) if self.inside is None else self.inside.counts(records)


def measure(
    release: Release, cohort: Cohort, wanted: Sequence[dict[str, Any]], population: Cohort | None = None
) -> dict[str, Any]:
    """The figures of a censored release.

    Raises
    ------
    BadInput
        No population, an unknown measure, or a release without its custody folder: only `custody/data/records.parquet`
        says which patient a record belongs to.
    """
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


def pair_records(release: Release, cohort: Cohort, population: Cohort) -> Both:
    """Bring released records and originals together."""
    sample = cohort.code_counts()
    if release.custody is None or not (release.custody / "data" / "records.parquet").is_file():
        raise BadInput("this release has no custody/data/records.parquet, which says whose record is whose.")
    places = pl.read_parquet(release.custody / "data" / "records.parquet")
    shown = release.table("records.parquet").collect().join(places, on="record").sort("place")
    if release.parameters.get("small") == "drop" and shown.height <= len(sample):
        sample = take(sample, shown["place"].to_numpy())
    if shown.height != len(sample):
        raise BadInput(
            f"{cohort.name}: {len(sample):,} patients, the release has {shown.height:,}; not its source."
        )
    original = Multisets(sample.offsets, sample.values, sample.counts)
    caps = start_caps(sample, release)
    everyone = population.code_counts()
    return Both(
        original,
        original.capped(caps),
        multisets_of(shown["codes"], sample),
        Index.of(everyone, sample.codes, sample.most()),
        release.guarantee["k"],
        sample,
        match_classes(release, shown, population, everyone, sample),
    )


def start_caps(sample: CodeCounts, release: Release) -> Int64s:
    """The cap of each code before any censoring, as the manifest states them."""
    given, rest = release.parameters.get("caps"), release.parameters.get("cap")
    if given is None:
        return sample.most() if rest is None else np.minimum(sample.most(), rest)
    return np.minimum(
        sample.most(), np.array([given.get(code, rest or 0) for code in sample.codes], np.int64)
    )


def multisets_of(lists: pl.Series, sample: CodeCounts) -> Multisets:
    """Lists of codes, sorted with repeats, as multisets over the sample's numbering."""
    arrow = lists.rechunk().to_arrow()
    owner = np.repeat(np.arange(len(lists)), lists.list.len().to_numpy())
    flat = pl.DataFrame({"record": owner, "code": pl.Series(pl.from_arrow(arrow.flatten()), dtype=pl.String)})
    counted = flat.group_by("record", "code").len().sort("record", "code")
    number = {code: place for place, code in enumerate(sample.codes)}
    values = (
        counted["code"].cast(pl.String).replace_strict(number, default=-1, return_dtype=pl.Int32).to_numpy()
    )
    if (values < 0).any():
        raise BadInput("the release holds codes that the sample does not have; it is not its source.")
    held = np.bincount(counted["record"].to_numpy(), minlength=len(lists))
    offsets = np.concatenate([[0], np.cumsum(held)]).astype(np.int64)
    return Multisets(offsets, values.astype(np.int32), counted["len"].to_numpy().astype(np.int32))


def risk(both: Both) -> Risk:
    """Distinguishability in the population and classes in the sample, before and after."""
    before, after = both.counts(both.original), both.counts(both.released)
    at = [value for value in FIGURE_2 if value < both.everyone.n] + [both.everyone.n]
    return Risk(
        both.everyone.n,
        tuple(at),
        _of_records(before, both.original, both.k, at),
        _of_records(after, both.released, both.k, at),
    )


def _of_records(dis: Int64s, records: Multisets, k: int, at: Sequence[int]) -> OfRecords:
    """The usual risks: prosecutor (knows who is in the sample), journalist (does not), marketer (guesses for all)."""
    sizes = class_sizes(records)
    return OfRecords(
        unique=_share(dis == 1),
        below_k=_share(dis < k),
        smallest=int(dis.min()),
        median=float(np.median(dis)),
        smallest_class_in_sample=int(sizes.min()),
        alone_in_sample=_share(sizes == 1),
        prosecutor={"highest": float(1 / sizes.min()), "mean": float(np.mean(1 / sizes))},
        journalist={"highest": float(1 / dis.min()), "above_1_in_k": _share(dis < k)},
        marketer=float(np.mean(1 / dis)),
        at_most=tuple(_share(dis <= value) for value in at),
    )


def class_sizes(records: Multisets) -> Int64s:
    """How many records of the same list equal each one, itself counted."""
    distinct, number = records.distinct()
    return np.bincount(number, minlength=len(distinct))[number]


def cul(both: Both) -> Loss:
    """Censoring utility loss, of the original and of the capped record (docs/methods/censoring.md#losses)."""
    of_original = losses(both.original.sizes(), both.released.sizes())
    of_capped = losses(both.capped.sizes(), both.released.sizes())
    released = both.released.sizes()
    return Loss(
        cul=statistics(of_original),
        cul_after_cap=statistics(of_capped),
        mentions=int(both.original.sizes().sum()),
        mentions_kept=int(released.sum()),
        kept=_ratio(released.sum(), both.original.sizes().sum()),
        kept_after_cap=_ratio(released.sum(), both.capped.sizes().sum()),
        changed_records=_share(of_original > 0),
        changed_records_after_cap=_share(of_capped > 0),
        emptied_records=int(np.count_nonzero(released == 0)),
        intervals=_intervals(of_original),
    )


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


def _intervals(values: Float64s) -> tuple[dict[str, float], ...]:
    """Records by CUL: none lost first, then tenths."""
    edges = np.linspace(0, 1, CUL_STEPS + 1)
    place = np.clip(np.ceil(values * CUL_STEPS - 1e-9).astype(np.int64) - 1, -1, CUL_STEPS - 1)
    held = np.bincount(place + 1, minlength=CUL_STEPS + 1)
    ends = [(0.0, 0.0), *pairwise(edges.tolist())]
    return tuple(
        {"low": low, "high": high, "count": count}
        for (low, high), count in zip(ends, held.tolist(), strict=True)
    )


def _share(which: Bools) -> float:
    return float(np.mean(which)) if len(which) else 0.0


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None
