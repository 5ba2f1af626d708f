"""From a cohort to linked tables: classes of demographics, days that move together, suppression by view
(docs/methods/linked.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.arrays import AnyArray, Int64s
from leeward.cohort.notices import ROWS_SHOWN
from leeward.contracts.linked import CONTRACT
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.whole_patient import record_labels, release_in_classes
from leeward.randomness import Randomness
from leeward.release.content import Anonymized, Guarantee, ReleaseTable

if TYPE_CHECKING:
    from leeward.analysis.demographics import Classes
    from leeward.analysis.demographics.search import Lost
    from leeward.cohort.cohort import Cohort
    from leeward.cohort.lenses.visits import Visits
    from leeward.methods.linked.parameters import Linked


TOKENS = {
    "patients+events": ("code",),
    "patients+visits": ("day",),
    "patients+visits+events": ("day", "code"),
}
"""View -> the columns of a joined row beside the class."""


def protect(
    parameters: Linked,
    cohort: Cohort,
    engine: object = None,
    *,
    randomness: Randomness | None = None,
    population: object = None,
) -> Anonymized:
    """Release patients, visits and events as tables that are k-anonymous in every view. Raises BadInput for a
    population, for demographics that cannot be released, and for `days` without dates; GuaranteeUnreachable for fewer
    than k patients."""
    if population is not None:
        raise BadInput("linked tables need no population; leave `population` out.")
    randomness = randomness or Randomness.of(None)
    lens = lens_of(cohort)
    if len(lens) < parameters.k:
        raise GuaranteeUnreachable(
            f"{cohort.name}: {len(lens)} patients with a code, fewer than k = {parameters.k}. Lower k or add patients."
        )
    visits, events = tables_of(lens, days_of(lens, cohort, parameters.days))
    codes = np.bincount(events["record"].to_numpy(), minlength=len(lens)).astype(np.int64)

    def run(classes: Classes | None, kept: Int64s) -> Anonymized:
        number = np.zeros(len(kept), np.int32) if classes is None else classes.of_record
        own_visits, own_events = _with_class(visits, events, kept, number)
        shown_visits, shown_events = suppress(own_visits, own_events, parameters.k, parameters.joins)
        places = randomness.stream("linked", "records").permutation(len(kept))
        order = kept[places]
        labels = record_labels(classes, places)
        patients = pa.table({"record": pa.array(range(len(order)), pa.int64()), **labels})
        place = pl.DataFrame({"record": np.arange(len(order)), "place": order.astype(np.int64)})
        words = CONTRACT.words(parameters.public())
        return Anonymized(
            method=parameters.name,
            parameters=parameters.public(),
            guarantee=Guarantee.of(CONTRACT, words, parameters.public()),
            records=len(order),
            tables=(
                ReleaseTable.of("patients.parquet", patients),
                *_number_tables(shown_visits, shown_events, order, lens, parameters.days, randomness),
            ),
            readme=words.readme,
            custody_tables=(ReleaseTable.of("records.parquet", place.to_arrow()),),
            custody={
                "visits": own_visits.height,
                "visits_suppressed": own_visits.height - shown_visits.height,
                "events": own_events.height,
                "events_suppressed": own_events.height - shown_events.height,
            },
            seeded=randomness.seeded,
        )

    lost = _count_losses(visits, events, parameters)
    return release_in_classes(parameters, cohort, lens.patients, codes, lost, run, randomness)


def lens_of(cohort: Cohort) -> Visits:
    """The visits of a cohort; all codes of a patient as one where it has neither visits nor dates."""
    return cohort.visits(merged=not {"visit", "date"} & set(cohort.require_events().columns))


def tables_of(lens: Visits, day: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`record`, `visit`, `day` of each visit; the same and `code` of each of its codes, all as numbers of the lens."""
    visits = pl.DataFrame(
        {"record": lens.patient_of_visit(), "visit": np.arange(lens.n_visits, dtype=np.int32), "day": day}
    )
    return visits, visits[lens.visit_of_value()].with_columns(code=pl.Series(lens.values))


def days_of(lens: Visits, cohort: Cohort, step: int | None) -> pl.Series:
    """The day of each visit, counted from the patient's first and cut to steps; null where none are wanted. All dates
    of a patient move by the same number of days. Raises BadInput for visits without a date."""
    if step is None:
        return pl.Series([None] * lens.n_visits, dtype=pl.Int64)
    events = cohort.require_events()
    if "date" not in events.columns:
        raise BadInput(f"{cohort.name}: `days` needs dates, and none were read; name their column (`date`).")
    date = pl.col("date").cast(pl.Date)
    if "visit" in events.columns:  # the earliest of a visit; a row without a visit is one of its own
        earliest = date.min().over("patient", "visit")
        date = pl.when(pl.col("visit").is_null()).then(date).otherwise(earliest)
    rows = pl.DataFrame({"row": lens.rows, "record": lens.patient_of_visit()})
    dated = rows.join(events.select("row", date=date), on="row", how="left", maintain_order="left")
    without = dated.filter(pl.col("date").is_null())["row"]
    if len(without):
        listed = ", ".join(map(str, without.head(ROWS_SHOWN)))
        raise BadInput(
            f"{cohort.name}: `days` needs the date of every visit, and {len(without):,} visits have none (rows {listed}"
            "). Add their dates, or leave these rows out."
        )
    date = pl.col("date")
    days = (date - date.min().over("record")).dt.total_days()
    return dated.select(day=days // step * step)["day"]


def _with_class(
    visits: pl.DataFrame, events: pl.DataFrame, records: AnyArray, class_of: AnyArray
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows of some records, with the class of each: int32[records]."""
    classes = pl.DataFrame({"record": records.astype(np.int32), "class": class_of})
    return visits.join(classes, on="record"), events.join(classes, on="record")


def _count_losses(visits: pl.DataFrame, events: pl.DataFrame, parameters: Linked) -> Lost:
    """Events that are suppressed when each of some sets of records is a class."""

    def losses(parts: Sequence[AnyArray]) -> list[int]:
        number = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])
        own_visits, own_events = _with_class(visits, events, np.concatenate(parts), number)
        shown = suppress(own_visits, own_events, parameters.k, parameters.joins)[1]
        counts = [np.bincount(each["class"].to_numpy(), minlength=len(parts)) for each in (own_events, shown)]
        return [int(n) for n in counts[0] - counts[1]]

    return losses


def _number_tables(
    visits: pl.DataFrame,
    events: pl.DataFrame,
    order: AnyArray,
    lens: Visits,
    days: int | None,
    randomness: Randomness,
) -> tuple[ReleaseTable, ReleaseTable]:
    """`visits.parquet` and `events.parquet` with the patients' new numbers. A patient's visits are numbered by day,
    those of one day at random; rows ascend by these numbers and the code."""
    number = pl.DataFrame({"record": order.astype(np.int32), "new": np.arange(len(order), dtype=np.int64)})
    tie = pl.Series(randomness.stream("linked", "visits").permutation(lens.n_visits))
    numbered = (
        visits.with_columns(tie=tie.gather(visits["visit"]))
        .join(number, on="record")
        .sort("new", "day", "tie")
        .with_columns(at=pl.int_range(pl.len(), dtype=pl.Int64).over("new"))
    )
    codes = pl.Series(lens.codes, dtype=pl.String)
    rows = (
        events.join(numbered.select("record", "visit", "new", "at"), on=["record", "visit"])
        .sort("new", "at", "code")
        .select(record="new", visit="at", code="code")
    )
    rows = rows.with_columns(code=codes.gather(rows["code"]))
    shown = numbered.select(record="new", visit="at", **({} if days is None else {"day": pl.col("day")}))
    return (
        ReleaseTable.of("visits.parquet", shown.to_arrow()),
        ReleaseTable.of("events.parquet", rows.to_arrow()),
    )


def suppress(
    visits: pl.DataFrame, events: pl.DataFrame, k: int, joins: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What is released: every row of every view is then that of at least k patients of its class, or of none. `visits`:
    `class`, `record`, `visit`, `day`; `events`: the same and `code` (whole numbers, ascending as the codes). `joins`:
    the views with their parts (`Linked.joins`)."""
    while True:
        before = visits.height, events.height
        if "patients+visits" in joins:
            visits = visits.join(rare(visits, ("day",), k), on=["class", "day"], how="anti")
            events = events.join(visits, on=["class", "record", "visit"], how="semi")
        for view in ("patients+events", "patients+visits+events"):
            if view in joins:
                token = TOKENS[view]
                events = events.join(rare(events, token, k), on=["class", *token], how="anti")
        if "patients+events+events" in joins:
            events = events.join(of_rare_pairs(events, k), on=["class", "record", "code"], how="anti")
        if before == (visits.height, events.height):
            return visits, events


def rare(rows: pl.DataFrame, token: Sequence[str], k: int) -> pl.DataFrame:
    return (
        rows.select("class", "record", *token)
        .unique()
        .group_by("class", *token)
        .len()
        .filter(pl.col("len") < k)
        .drop("len")
    )


def of_rare_pairs(events: pl.DataFrame, k: int) -> pl.DataFrame:
    """`class`, `record`, `code`: of every two codes that fewer than k patients of a class have together, the one that
    fewer of its patients have (of equals the later one), for each patient who has both."""
    held = events.select("class", "record", "code").unique()
    held = held.join(held.group_by("class", "code").agg(support=pl.len()), on=["class", "code"])
    both = held.join(held, on=["class", "record"], suffix="_2").filter(pl.col("code") < pl.col("code_2"))
    few = both.group_by("class", "code", "code_2").len().filter(pl.col("len") < k)
    first = pl.col("support") < pl.col("support_2")
    return (
        both.join(few, on=["class", "code", "code_2"], how="semi")
        .select("class", "record", code=pl.when(first).then("code").otherwise("code_2"))
        .unique()
    )
