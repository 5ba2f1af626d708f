"""What linked tables keep and hide: codes of patients, counts of codes, rows of each view before and after
(docs/methods/linked.md#measures)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.demographics.classes import group_vectors
from leeward.analysis.demographics.joint import (
    WholePatient,
    exact_columns,
    records_in_release,
    whole_patient,
)
from leeward.analysis.demographics.released import Concerned, ReleasedClasses
from leeward.analysis.figures import figures_of
from leeward.arrays import AnyArray
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.methods.linked.method import TOKENS, days_of, lens_of, suppress, tables_of
from leeward.methods.linked.parameters import Linked
from leeward.release import Release

DEFAULTS = ("kept", "views", "demographics")


def measure(release: Release, cohort: Cohort, wanted: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of linked tables against their source. BadInput for an unknown measure or option."""
    measures = {each.__name__: partial(each, release, cohort) for each in (kept, views, demographics)}
    return figures_of(release, measures, wanted)


def kept(release: Release, cohort: Cohort) -> dict[str, Any]:
    """Pairs of a patient and a code, in the source and released; the average relative error of the number of patients
    with a code, over all codes; and codes of which no patient is left."""
    sets = cohort.code_sets()
    source = pl.DataFrame({"code": sets.codes, "source": sets.supports()})
    shown = (
        release.table("events.parquet").select("record", pl.col("code").cast(pl.String)).unique().collect()
    )
    both = source.join(shown.group_by("code").agg(released=pl.len()), on="code", how="left")
    both = both.with_columns(pl.col("released").fill_null(0).cast(pl.Int64))
    errors = both.select((pl.col("source") - pl.col("released")) / pl.col("source"))
    return {
        "pairs": len(sets.values),
        "released": shown.height,
        "error": float(errors.to_series().to_numpy().mean()),
        "codes": len(sets.codes),
        "codes_lost": both.filter(pl.col("released") == 0).height,
    }


def views(release: Release, cohort: Cohort) -> dict[str, Any]:
    """Risk and cost by view and part of a view, before and after.

    `rows`, `released`: joined rows of patients, in the source and in the release. `at_risk`, `alone`: patients with a
    row that fewer than k patients with the same exact demographics have, and that nobody else has. `after`: patients
    with a released row that fewer than k patients of the class have. `lost`: the share of events that would be
    suppressed for this view (and its parts) alone; of all views together; `lost_without`: without demographics.

    BadInput without the custodian's file of whose record is whose.
    """
    records = release.custody_table("records")
    if records is None:
        raise BadInput("this release has no custody/data/records.parquet, which says whose record is whose.")
    k, joins, lens = int(release.guarantee["k"]), views_of(release), lens_of(cohort)
    whole_visits, whole_events = tables_of(lens, days_of(lens, cohort, release.parameters.get("days")))
    places = records.join(class_of_record(release), on="record")
    classes = places.select(
        record=pl.col("place").cast(pl.Int32), **{"class": pl.col("class").cast(pl.Int32)}
    )
    visits, events = (each.join(classes, on="record") for each in (whole_visits, whole_events))
    exact = _exact(release, cohort, lens.patients).filter(pl.col("record").is_in(classes["record"].implode()))
    known = [each.join(exact, on="record") for each in (whole_visits, whole_events)]
    shown = shown_tables(release)
    found = []
    for view in joins:
        before, after = rows_of(view, *known), rows_of(view, *shown)
        parts = [part for part in joins if part == view or part in Linked.PARTS.get(view, ())]
        found.append(
            {
                "view": view,
                "rows": before.height,
                "released": after.height,
                "at_risk": before.filter(pl.col("holders") < k)["record"].n_unique(),
                "alone": before.filter(pl.col("holders") == 1)["record"].n_unique(),
                "after": after.filter(pl.col("holders") < k)["record"].n_unique(),
                "lost": _loss(visits, events, k, parts),
            }
        )
    lost = 1 - shown[1].height / max(1, events.height)
    figures = {"k": k, "patients": classes.height, "views": found, "lost": lost}
    if release.demographics:
        one = [each.with_columns(pl.lit(0, pl.Int32).alias("class")) for each in (visits, events)]
        figures["lost_without"] = _loss(one[0], one[1], k, joins)
    return figures


def views_of(release: Release) -> tuple[str, ...]:
    k, days = int(release.guarantee["k"]), release.parameters.get("days")
    return Linked(k=k, views=tuple(release.parameters["views"]), days=days).joins


def shown_tables(release: Release) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The released visits and events, with the class of each record and the day of each visit, where there are days."""
    of_record = class_of_record(release)
    visits, events = (
        release.table(f"{name}.parquet").collect().join(of_record, on="record")
        for name in ("visits", "events")
    )
    if release.parameters.get("days") is not None:
        events = events.join(visits.select("record", "visit", "day"), on=["record", "visit"])
    return visits, events


def class_of_record(release: Release) -> pl.DataFrame:
    """`record`, `class`: each patient's class; 0 without demographics."""
    names = release.demographics
    patients = release.table("patients.parquet").collect()
    if names:
        classes = release.table("classes.parquet").collect().select("class", *names)
        patients = patients.join(classes, on=names)
    else:
        patients = patients.with_columns(pl.lit(0, pl.Int64).alias("class"))
    return patients.select("record", "class")


def classes_shown(release: Release) -> pl.DataFrame:
    """`record`, `class`, `code`: each patient's class and codes."""
    events = release.table("events.parquet").select("record", "code").unique().collect()
    return class_of_record(release).join(events, on="record").cast({"code": pl.String})


def holders_in(release: Release) -> list[dict[str, frozenset[int]]]:
    names = release.demographics
    classes = release.table("classes.parquet").collect().height if names else 1
    found: list[dict[str, frozenset[int]]] = [{} for _ in range(classes)]
    rows = classes_shown(release).group_by("class", "code").agg("record").iter_rows()
    for number, code, records in rows:
        found[number][code] = frozenset(records)
    return found


def rows_of(view: str, visits: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """`record`, `holders`: each joined row of each patient once, and how many patients of the class have it."""
    keys: tuple[str, ...] = TOKENS.get(view, ("code", "code_2"))
    if view == "patients+events+events":
        held = events.select("class", "record", "code").unique()
        rows = held.join(held, on=["class", "record"], suffix="_2").filter(pl.col("code") < pl.col("code_2"))
    else:
        rows = (visits if view == "patients+visits" else events).select("class", "record", *keys).unique()
    return rows.select("record", holders=pl.len().over("class", *keys))


def _loss(visits: pl.DataFrame, events: pl.DataFrame, k: int, joins: Sequence[str]) -> float:
    return 1 - suppress(visits, events, k, joins)[1].height / max(1, events.height)


def _exact(release: Release, cohort: Cohort, patients: pl.Series) -> pl.DataFrame:
    """`record`, `class`: the number of each patient's exact demographics; 0 for all without."""
    numbers = np.zeros(len(patients), np.int64)
    if release.demographics:
        _, numbers = group_vectors(exact_columns(release, cohort, patients).vectors({}))
    return pl.DataFrame({"record": np.arange(len(patients), dtype=np.int32), "class": numbers})


def demographics(release: Release, cohort: Cohort) -> WholePatient:
    sets = records_in_release(release, cohort, cohort.code_sets())
    of_class = holders_in(release)
    sizes = ReleasedClasses.read(release).records

    def name_codes(query: AnyArray) -> list[str]:
        return [sets.codes[code] for code in query]

    def estimating(concerned: Concerned, queries: list[AnyArray]) -> tuple[AnyArray, AnyArray, AnyArray]:
        low, expected = np.zeros((2, len(queries)))
        for i, query in enumerate(queries):
            shown = np.array([count_with(held, name_codes(query)) for held in of_class])
            expected[i] = float((concerned.share * shown).sum())
            low[i] = int(shown[concerned.share == 1].sum())
        return low, expected, np.full(len(queries), int(sizes[concerned.possible].sum()))

    def counting(concerned: Concerned, queries: list[AnyArray]) -> AnyArray:
        places = np.flatnonzero(concerned.possible)
        return np.array(
            [sum(_candidates(of_class[c], int(sizes[c]), name_codes(q)) for c in places) for q in queries]
        )

    m = 2 if "patients+events+events" in release.parameters["views"] else 1
    return whole_patient(release, cohort, sets, m, estimating, counting)


def count_with(held: Mapping[str, frozenset[int]], codes: Sequence[str]) -> int:
    return len(frozenset.intersection(*(held.get(code, frozenset()) for code in codes)))


def _candidates(held: Mapping[str, frozenset[int]], size: int, codes: Sequence[str]) -> int:
    """The records of a class that a patient with these codes may have (docs/methods/linked.md#guarantee): those that
    show them; where none does, those that show one; else all."""
    shown = [held.get(code, frozenset()) for code in codes]
    return len(frozenset.intersection(*shown)) or len(frozenset.union(*shown)) or size
