"""Counts of the values of sensitive columns by class: no value is frequent in any
(docs/methods/whole-patient.md#sensitive-columns)."""

from __future__ import annotations

import polars as pl

from leeward.contracts.classes import ells_of
from leeward.verify.checks import Check, of_count
from leeward.verify.classes import Classes
from leeward.verify.manifest import Share


def sensitive_values(share: Share, classes: Classes) -> list[Check]:
    """Each class has one count a value, which add up to its records, and no value is that of more than 1 in L."""
    ells = ells_of(share.manifest["parameters"])
    table = pl.read_parquet(share.data("sensitive.parquet"))
    known = pl.DataFrame({"class": classes.numbers, "all": classes.records})
    wanted = known.join(pl.DataFrame({"column": list(ells), "ell": list(ells.values())}), how="cross")
    sums = table.group_by("class", "column").agg(pl.col("records").sum())
    both = wanted.join(sums, on=["class", "column"], how="full", coalesce=True)
    unequal = both.filter(pl.col("all").ne_missing(pl.col("records"))).height
    unequal += table.height - table.select("class", "column", "value").unique().height
    unequal += table.filter(pl.col("records") < 1).height
    # By class, then by the column as the manifest names it, then by value: an order that says nothing else.
    places = {name: place for place, name in enumerate(ells)}
    keyed = table.with_columns(
        place=pl.col("column").replace_strict(places, default=-1, return_dtype=pl.Int64)
    )
    unequal += not keyed.equals(keyed.sort("class", "place", "value", nulls_last=True, maintain_order=True))
    limited = table.drop_nulls("value").join(wanted, on=["class", "column"])
    frequent = limited.filter(pl.col("records") * pl.col("ell") > pl.col("all")).height
    return [
        of_count(
            "sensitive_counts",
            int(unequal),
            f"The values of {len(ells)} sensitive columns are counted once a class, and make up its records.",
            "counts of sensitive values are missing, doubled, out of order, or not those of the class's records.",
        ),
        of_count(
            "sensitive_values_rare",
            frequent,
            "In every class a sensitive value is that of at most 1 in L records.",
            "sensitive values are those of more than 1 in L records of a class.",
        ),
    ]


def sensitive_source(
    share: Share,
    classes: Classes,
    patients: pl.Series,
    values: list[tuple[str, ...]] | None,
    people: pl.DataFrame | None,
) -> Check:
    """The values are those of the patients, as often as there, and in a class no more often than among the patients
    whose exact demographics fit it."""
    names = list(ells_of(share.manifest["parameters"]))
    if people is None or values is None or not set(names) <= set(people.columns):
        return Check("sensitive_source", False, "The source has not the sensitive columns of the release.")
    table = pl.read_parquet(share.data("sensitive.parquet"))
    own = patients.alias("patient").to_frame().join(
        people.select("patient", *names), on="patient", how="left", maintain_order="left"
    )  # fmt: skip
    distinct = {each: number for number, each in enumerate(dict.fromkeys(values))}
    own = own.with_columns(exact=pl.Series([distinct[each] for each in values], dtype=pl.Int64))
    fitting = [
        (int(number), exact)
        for each, exact in distinct.items()
        for number in classes.numbers[classes.fit(each)]
    ]
    fits = pl.DataFrame(fitting, schema={"class": pl.Int64, "exact": pl.Int64}, orient="row")
    wrong = 0
    for name in names:
        rows = own.select("exact", value=pl.col(name).cast(pl.String))
        shown = table.filter(pl.col("column") == name)
        totals = shown.group_by("value").agg(pl.col("records").sum())
        both = (
            rows.group_by("value").len().join(totals, on="value", how="full", coalesce=True, nulls_equal=True)
        )
        wrong += both.filter(pl.col("len").ne_missing(pl.col("records").cast(pl.UInt32))).height
        there = rows.join(fits, on="exact").group_by("class", "value").agg(pl.len().alias("there"))
        placed = shown.join(there, on=["class", "value"], how="left", nulls_equal=True)
        wrong += placed.filter(pl.col("records") > pl.col("there").fill_null(0)).height
    return of_count(
        "sensitive_source",
        wrong,
        "The sensitive values are the patients' own, in classes that their demographics fit.",
        "sensitive values are not the patients', or are of a class that too few patients with them fit.",
    )
