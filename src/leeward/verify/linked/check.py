"""The attacker of linked tables: joins them and counts, for every row of every view, the patients who share it.

With the source, and custody's list of whose number is whose, every row is looked up there
(docs/methods/linked.md#verifier).
"""

from __future__ import annotations

import numpy as np
import polars as pl

from leeward.verify.checks import Check, Source, failing, of_count
from leeward.verify.classes import (
    Placed,
    check_demographics,
    class_source,
    demographics_of,
    exact_values,
    find_patients,
    place_in_classes,
)
from leeward.verify.manifest import Share

PARTS = {
    "patients+events": ("patients+events",),
    "patients+visits": ("patients+visits",),
    "patients+visits+events": ("patients+events", "patients+visits", "patients+visits+events"),
    "patients+events+events": ("patients+events", "patients+events+events"),
}
"""A view -> what whoever knows a row of it knows too."""


def check(share: Share, source: Source | None = None) -> list[Check]:
    patients, visits, events = (
        pl.read_parquet(share.data(f"{name}.parquet")) for name in ("patients", "visits", "events")
    )
    checks, placed = [check_keys(share, patients, visits, events)], None
    if demographics_of(share):
        found, placed = place_in_classes(share, patients)
        checks += found
    checks.append(days_in_steps(share, visits))
    if failing(checks):
        return checks
    of_record = np.zeros(patients.height, np.int64) if placed is None else placed.of_record
    class_of = pl.DataFrame({"record": patients["record"], "class": of_record})
    checks += views_of_k(share, class_of, visits, events)
    if source is not None:
        checks += with_source(share, source, placed, class_of, visits, events)
    return checks


def check_keys(share: Share, patients: pl.DataFrame, visits: pl.DataFrame, events: pl.DataFrame) -> Check:
    """One number for each patient in all tables: visits are of patients, events of visits, each once, visits numbered
    from 0; rows ascend, so that their order says nothing else."""
    wrong = int((patients["record"] != pl.Series(range(patients.height))).sum())
    wrong += abs(patients.height - share.manifest["records"])
    wrong += visits.join(patients, on="record", how="anti").height
    wrong += events.join(visits, on=["record", "visit"], how="anti").height
    wrong += events.height - events.unique().height
    wrong += visits.filter(pl.col("visit") != pl.int_range(pl.len()).over("record")).height
    wrong += not events.equals(events.sort("record", "visit", "code"))
    return of_count(
        "joined_keys",
        int(wrong),
        f"{visits.height:,} visits and {events.height:,} events have the numbers of {patients.height:,} patients.",
        "rows belong to no patient or visit, are doubled, out of order, or wrongly numbered.",
    )


def days_in_steps(share: Share, visits: pl.DataFrame) -> Check:
    """Days are multiples of the step, from 0 on, and ascend with a patient's visits."""
    step = share.manifest["parameters"].get("days")
    wrong = 0
    if step is not None:
        wrong += visits.filter((pl.col("day") < 0) | (pl.col("day") % step != 0)).height
        wrong += visits.filter(pl.col("day") < pl.col("day").shift(1).over("record")).height
    return of_count(
        "days_in_steps",
        wrong,
        "Days count from 0 in the stated steps." if step else "No days are released.",
        "days are not multiples of the step, or visits are not numbered by day.",
    )


def views_of_k(
    share: Share, class_of: pl.DataFrame, visits: pl.DataFrame, events: pl.DataFrame
) -> list[Check]:
    """Every row of every view is that of at least k patients of its class."""
    k, views = share.guarantee("k"), share.manifest["parameters"]["views"]
    known = dict.fromkeys(part for view in views for part in PARTS[view])
    few = rows = 0
    smallest: int | None = None
    for view in known:
        joined = join_of(view, class_of, visits, events)
        counts = joined.unique().group_by(pl.exclude("record")).len()["len"].to_numpy()
        rows += len(counts)
        few += int((counts < k).sum())
        if len(counts):
            smallest = min(int(counts.min()), len(class_of) if smallest is None else smallest)
    return [
        of_count(
            "views_of_k",
            few,
            f"Each of {rows:,} distinct rows of {len(known)} joined views belongs to at least {k} patients of a class.",
            f"distinct rows of joined views belong to fewer than {k} patients of a class.",
            {"rows": rows, "smallest": smallest},
        )
    ]


def join_of(view: str, class_of: pl.DataFrame, visits: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """`record`, `class` and what a view shows of a patient, one row a joined row."""
    if view == "patients+visits":
        return class_of.join(visits.select("record", "day"), on="record")
    codes = class_of.join(events, on="record")
    if view == "patients+visits+events":
        return codes.join(visits, on=["record", "visit"]).drop("visit")
    codes = codes.drop("visit")
    if view == "patients+events":
        return codes
    codes = codes.unique()
    return codes.join(codes.drop("class"), on="record", suffix="_2").filter(pl.col("code") < pl.col("code_2"))


def with_source(
    share: Share,
    source: Source,
    placed: Placed | None,
    class_of: pl.DataFrame,
    visits: pl.DataFrame,
    events: pl.DataFrame,
) -> list[Check]:
    """The patients' demographics, and every event and day where custody tells whose a number is."""
    own = source.events.drop_nulls(["patient", "code"])
    patients = own["patient"].unique().sort()
    custody = share.kept("records.parquet")
    place = None if custody is None else pl.read_parquet(custody).sort("record")["place"].to_numpy()
    if place is not None and not np.isin(place, np.arange(len(patients))).all():
        return [Check("every_patient", False, "The source lacks patients whom custody names.")]
    checks = []
    if placed is not None:
        values = exact_values(placed.classes, source, patients)
        _, released = find_patients(share, placed.classes, source, patients)
        checks.append(class_source(placed.classes, released, all_released=True))
        if place is not None and values is not None:
            theirs = [values[i] for i in place]
            checks.append(check_demographics(placed.classes, placed.of_record, theirs))
    else:
        detail = f"The source has {len(patients):,} patients, the release {share.manifest['records']:,}."
        checks.append(Check("every_patient", len(patients) == share.manifest["records"], detail))
    if place is None:
        return checks
    return checks + check_rows(share, source, own, class_of, patients.gather(place), visits, events)


def check_rows(
    share: Share,
    source: Source,
    own: pl.DataFrame,
    class_of: pl.DataFrame,
    owners: pl.Series,
    visits: pl.DataFrame,
    events: pl.DataFrame,
) -> list[Check]:
    """Every event and day against those of the patient whom custody names (`owners`: of each record)."""
    owner = pl.DataFrame({"record": np.arange(len(owners)), "patient": owners, "class": class_of["class"]})
    known = source_days(own, share.manifest["parameters"].get("days"))
    days = visits if "day" in visits.columns else visits.with_columns(day=pl.lit(None, pl.Int64))
    dated = days.join(owner, on="record")
    shown = events.join(dated, on=["record", "visit"])
    checks = [check_own_rows(known, dated, shown), check_lost_rows(share, owner, known, dated, shown)]
    unseen = share.manifest["parameters"]["views"] == ["patients+events"] and "visit" in source.events.columns
    if (
        unseen
        and not source.events.select(
            pl.any_horizontal(pl.col("patient", "visit", "code").is_null()).any()
        ).item()
    ):
        checks.append(check_own_visits(owner, source.events, visits, events))
    return checks


def source_days(own: pl.DataFrame, step: int | None) -> pl.DataFrame:
    """`patient`, `code`, `day` of the source: null where no days are released."""
    known = own.with_columns(pl.col("code").cast(pl.String), day=pl.lit(None, pl.Int64))
    if step is not None:
        known = known.with_columns(pl.col("date").cast(pl.Date))
        if "visit" in known.columns:  # a visit has its earliest date
            inside = known.filter(pl.col("visit").is_not_null())
            first = inside.group_by("patient", "visit").agg(first=pl.col("date").min())
            known = known.join(first, on=["patient", "visit"], how="left")
            known = known.with_columns(date=pl.coalesce("first", "date"))
        start = known.group_by("patient").agg(start=pl.col("date").min())
        since = (pl.col("date") - pl.col("start")).dt.total_days()
        known = known.join(start, on="patient").with_columns(day=since // step * step)
    kept = [name for name in ("patient", "visit", "code", "day") if name in known.columns]
    return known.select(kept).unique()


def check_own_rows(known: pl.DataFrame, dated: pl.DataFrame, shown: pl.DataFrame) -> Check:
    """Every released event is its patient's own, on its own day: all dates of a patient moved by the same number. No
    day has more visits of a patient than the source names. dated, shown: visits and events with their patients."""
    days = dated.select("patient", "day")
    strange = more_visits(days, known) if "visit" in known.columns and not known["visit"].has_nulls() else 0
    strange += days.join(known, on=["patient", "day"], how="anti", nulls_equal=True).height
    strange += shown.join(known, on=["patient", "code", "day"], how="anti", nulls_equal=True).height
    return of_count(
        "own_rows",
        strange,
        "Every event and every day is the patient's own.",
        "events or days are not those of the patient whose number they have.",
    )


def more_visits(days: pl.DataFrame, known: pl.DataFrame) -> int:
    """Days of a patient with more released visits than there are in the source."""
    held = known.select("patient", "day", "visit").unique().group_by("patient", "day").agg(held=pl.len())
    both = days.group_by("patient", "day").len().join(held, on=["patient", "day"], nulls_equal=True)
    return both.filter(pl.col("len") > pl.col("held")).height


def check_own_visits(
    owner: pl.DataFrame, own: pl.DataFrame, visits: pl.DataFrame, events: pl.DataFrame
) -> Check:
    """Where no view has visits, each visit of a patient has its own codes but those that nobody of the class shows."""
    known = own.select("patient", "visit", pl.col("code").cast(pl.String)).unique().join(owner, on="patient")
    shown = events.join(owner, on="record").select("class", "code").unique()
    wanted = known.join(shown, on=["class", "code"], how="semi")
    wrong = (
        known.select("record", "visit")
        .unique()["record"]
        .value_counts(name="held")
        .join(visits["record"].value_counts(name="released"), on="record", how="full")
        .filter(pl.col("held").ne_missing(pl.col("released")))
        .height
    )
    theirs, mine = visit_sets(wanted), visit_sets(events)
    differing = theirs.join(mine, on="record", how="full", suffix=" released").filter(
        pl.col("sets").ne_missing(pl.col("sets released"))
    )
    return of_count(
        "own_visits",
        wrong + differing.height,
        "The visits of every patient are the source's, each with its own codes.",
        "patients have visits that differ from the source, or codes in the wrong visit.",
    )


def visit_sets(events: pl.DataFrame) -> pl.DataFrame:
    """`record`, `sets`: the code sets of each record's visits, as one text."""
    codes = events.group_by("record", "visit").agg(pl.col("code").sort().str.join("\x1f"))
    return codes.group_by("record").agg(pl.col("code").sort().str.join("\x1e").alias("sets"))


def check_lost_rows(
    share: Share, owner: pl.DataFrame, known: pl.DataFrame, dated: pl.DataFrame, shown: pl.DataFrame
) -> Check:
    """What a patient lacks was suppressed: nobody of the class shows it, alone, with its day or with another of the
    patient's codes, as the views say."""
    views = {part for view in share.manifest["parameters"]["views"] for part in PARTS[view]}
    own = known.join(owner, on="patient")
    token = ["class", "code", *(["day"] if "patients+visits+events" in views else [])]
    missing = own.join(shown, on=["record", "code", "day"], how="anti", nulls_equal=True)
    missing = missing.join(shown, on=token, how="semi", nulls_equal=True)
    if "patients+visits" in views:  # of a day that nobody shows all is suppressed
        missing = missing.join(dated, on=["class", "day"], how="semi")
    if "patients+events+events" in views:
        codes = own.select("record", "class", "code").unique()
        pairs = codes.join(codes.drop("class"), on="record", suffix="_2").filter(
            pl.col("code") != pl.col("code_2")
        )
        held = shown.select("record", "class", "code").unique()
        together = held.join(held.drop("class"), on="record", suffix="_2")
        rare = pairs.join(together, on=["class", "code", "code_2"], how="anti")
        missing = missing.join(rare, on=["record", "code"], how="anti")
    gone = own.select("record", "class", "day").join(
        dated, on=["record", "day"], how="anti", nulls_equal=True
    )
    if "patients+visits" in views:
        gone = gone.join(dated, on=["class", "day"], how="semi")
    return of_count(
        "lost_rows",
        missing.height + gone.height,
        "If the release lacks an event or visit of a patient, nobody in the class shows it.",
        "events or visits of the source are missing, though others of the class show the same.",
    )
