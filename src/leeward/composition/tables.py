"""Two releases with a row each for the same patients: groups that join by payload, and condensed tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.composition.bound import Bound, bound_of
from leeward.contracts.condensation import MATCHING_TIMES, distinct, models_of
from leeward.methods.trajectories.measures import pair_records, select_cohort
from leeward.release import Release

GROUPS: Final = (
    "knows what each release lets know of a patient, and so the patient's group in both; counts the pairs of their "
    "records that agree in the columns that both release unchanged"
)
DIFFERENCE: Final = (
    "knows who is in one table and not in the other, and everything of these patients but the times; takes the rows' "
    "strata and exact times in the one from those in the other"
)

Values = tuple[Any, ...]


@dataclass(frozen=True)
class Groups:
    """A release's groups of records that nobody can tell apart: of each patient, and the payload of its records.

    columns : the payload's, released unchanged
    """

    of_patient: Mapping[str, Hashable]
    payload: pl.DataFrame
    columns: tuple[str, ...]

    def values(self, columns: list[str]) -> dict[Hashable, Counter[Values]]:
        """How often each group has each value of some columns of the payload."""
        found: dict[Hashable, Counter[Values]] = defaultdict(Counter)
        for group, *values in self.payload.select("group", *columns).iter_rows():
            found[group][tuple(map(str, values))] += 1
        return found


def groups_of(release: Release, cohort: Cohort) -> Groups | None:
    """The groups of a release of trajectories or of k-anonymous rows; None where nothing says whose is whose."""
    return _trajectories(release, cohort) if release.method == "trajectories" else _rows(release, cohort)


def _trajectories(release: Release, cohort: Cohort) -> Groups | None:
    if release.custody_table("records") is None:
        return None
    both = pair_records(release, select_cohort(release, cohort))
    records = release.table("records.parquet").collect().sort("record")
    group = [*zip(both.kind.tolist(), *(records[name] for name in release.demographics), strict=True)]
    numbered = {each: number for number, each in enumerate(dict.fromkeys(group))}
    numbers = [numbered[each] for each in group]
    patients = both.lens.patients.gather(both.place).cast(pl.String)
    columns = tuple(release.parameters.get("payload") or ())
    return Groups(
        dict(zip(patients, numbers, strict=True)),
        records.with_columns(group=pl.Series(numbers, dtype=pl.Int64)),
        columns,
    )


def _rows(release: Release, cohort: Cohort) -> Groups | None:
    source, released = (release.custody_table(name) for name in ("source_rows", "released_rows"))
    patients = _identifiers(cohort)
    if source is None or released is None or patients is None:
        return None
    owner = patients.gather(source["row"] - 1)
    table = release.table("table.parquet").collect()
    known = set(release.parameters["quasi_identifiers"])
    return Groups(
        dict(zip(owner, source["group"], strict=True)),
        table.with_columns(group=released.sort("record")["group"]),
        tuple(name for name in table.columns if name not in known),
    )


def _identifiers(cohort: Cohort) -> pl.Series | None:
    if cohort.patients is None or "patient" not in cohort.patients.columns:
        return None
    return cohort.patients["patient"].cast(pl.String)


def attack_groups(one: Groups, two: Groups, k: int) -> list[Bound]:
    """The intersection of what both leave possible (Ganta and others 2008)."""
    columns = [name for name in one.columns if name in two.columns]
    values = [each.values(columns) for each in (one, two)]
    known: dict[tuple[Hashable, Hashable], tuple[int, bool]] = {}
    counts, certain = [], 0
    for patient in sorted(one.of_patient.keys() & two.of_patient.keys()):
        pair = one.of_patient[patient], two.of_patient[patient]
        if pair not in known:
            known[pair] = _intersect(values[0][pair[0]], values[1][pair[1]])
        counts.append(known[pair][0])
        certain += known[pair][1]
    return [bound_of(GROUPS, k, counts, certain=certain)] if counts else []


def _intersect(one: Counter[Values], two: Counter[Values]) -> tuple[int, bool]:
    """The most patients of both groups, and whether just one value is left where each left several."""
    both = one & two
    return both.total(), len(both) == 1 and len(one) > 1 and len(two) > 1


def times_of(release: Release) -> tuple[list[str], list[str]] | None:
    """The strata, and the times that are released as they were with them; None where none are."""
    parameters = release.parameters
    models = models_of(parameters)
    times = distinct(parameters.get("time"), [model.get("time") for _, model in models])
    strata = distinct(parameters.get("strata"), [model.get("event") for _, model in models])
    exact = parameters.get("algorithm") in (*MATCHING_TIMES, "auto") and not parameters.get("coarsen_time")
    return (strata, times) if exact and times else None


def attack_difference(earlier: Release, later: Release, before: Cohort, after: Cohort, k: int) -> list[Bound]:
    """Of patients in one table alone, the rows of their stratum that are in it alone: each shows the time of one of
    them. Nothing where times are not exact, or nothing says who is who."""
    roles = times_of(earlier)
    old, new = _identifiers(before), _identifiers(after)
    if roles is None or roles != times_of(later) or old is None or new is None:
        return []
    strata, times = roles
    tables = [
        release.table("table.parquet").select(pl.col([*strata, *times]).cast(pl.String)).collect()
        for release in (earlier, later)
    ]
    one, two = (Counter(table.rows()) for table in tables)
    fresh, gone = (int((~a.is_in(b.implode())).sum()) for a, b in ((new, old), (old, new)))
    found = [_few(two - one, len(strata), fresh, k)] if fresh else []
    return found + ([_few(one - two, len(strata), gone, k)] if gone else [])


def _few(rows: Counter[Values], strata: int, patients: int, k: int) -> Bound:
    """The rows that only one table has. Those of patients in both who are in it alone (a time that was withheld in the
    other) are candidates too."""
    of_stratum: Counter[Values] = Counter()
    for values, many in rows.items():
        of_stratum[values[:strata]] += many
    counts = [many for many in of_stratum.values() for _ in range(many)]
    certain = counts.count(1) if len(counts) == patients else 0
    return bound_of(DIFFERENCE, k, counts, certain=certain, exact=len(counts) == patients)
