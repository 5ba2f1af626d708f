"""Classes of a cohort's demographics, and what a release and its custodian get of them
(docs/methods/whole-patient.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from leeward.methods.demographics import WithDemographics
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable

if TYPE_CHECKING:
    import polars as pl

    from leeward.analysis.demographics import Classes
    from leeward.analysis.demographics.search import Found, Lost
    from leeward.arrays import AnyArray, Int64s
    from leeward.cohort.cohort import Cohort


def find_classes(
    parameters: WithDemographics,
    cohort: Cohort,
    patients: pl.Series,
    occurrences: Int64s,
    lost: Lost,
    randomness: Randomness,
    searched: int | None = None,
) -> Found:
    """The classes of the patients of a lens, in its order, and what the search for them measured
    (docs/methods/whole-patient.md#search).

    occurrences : int64[patients], the codes of each
    lost : the code occurrences that the method loses in each of some classes
    searched : the most records that the search looks at, where its own number is too many for the method

    Raises
    ------
    BadInput
        A column that is missing or cannot be released so.
    GuaranteeUnreachable
        Fewer than k patients.
    """
    from leeward.analysis.demographics import columns_of
    from leeward.analysis.demographics.search import Setting, search_full, search_local

    keep = dict(parameters.keep or {})
    columns = columns_of(
        cohort.patients, patients, parameters.demographics, parameters.hierarchies or {}, keep, cohort.name
    )
    setting = Setting(columns, keep, parameters.k, parameters.small, randomness, occurrences, lost, searched)
    local = parameters.recoding == "local" and setting.free
    return search_local(setting) if local else search_full(setting)


def class_table(classes: Classes) -> pa.Table:
    """`classes.parquet`: one row a class with its labels and its number of records."""
    labels = list(zip(*classes.labels, strict=True))
    columns: dict[str, pa.Array] = {"class": pa.array(range(len(classes)), pa.int64())}
    for name, values in zip(classes.columns.names, labels, strict=True):
        columns[name] = pa.array(values, pa.string())
    return pa.table({**columns, "records": pa.array(classes.sizes.tolist(), pa.int64())})


def record_labels(classes: Classes, order: AnyArray) -> dict[str, pa.Array]:
    """For methods that publish records: the labels of the records `order`, one text column a demographic."""
    of_record = pa.array(classes.of_record[order])
    labels = zip(*classes.labels, strict=True)
    return {
        name: pa.array(values, pa.string()).take(of_record)
        for name, values in zip(classes.columns.names, labels, strict=True)
    }


def tables_of(classes: Classes) -> tuple[ReleaseTable, ...]:
    """`classes.parquet`, and for each column the hierarchy of its published labels."""
    found = [ReleaseTable.of("classes.parquet", class_table(classes))]
    for i, column in enumerate(classes.columns.columns):
        tree = column.tree
        shown = {int(node) for node in classes.vectors[:, i]}
        shown |= {above for node in tuple(shown) for above in tree.ancestors(node)}
        nodes = sorted(shown)
        pairs = pa.table(
            {
                "node": pa.array([tree.labels[node] for node in nodes], pa.string()),
                "parent": pa.array(
                    [tree.labels[int(tree.parent[node])] if node else "" for node in nodes], pa.string()
                ),
            }
        )
        found.append(ReleaseTable.of(f"hierarchies/{column.name}.csv", pairs))
    return tuple(found)


def custody_tables_of(classes: Classes) -> tuple[ReleaseTable, ...]:
    """The whole hierarchy of each column that a file brought, for verification beside the source."""
    found = []
    for column in classes.columns.columns:
        if column.kind == "file":
            nodes, parents = zip(*column.tree.to_pairs(), strict=True)
            pairs = pa.table({"node": pa.array(nodes, pa.string()), "parent": pa.array(parents, pa.string())})
            found.append(ReleaseTable.of(f"hierarchies/{column.name}.parquet", pairs))
    return tuple(found)


def facts_of(found: Found) -> dict[str, Any]:
    """The custodian's facts on the classes and the search for them."""
    classes = found.classes
    return {
        "classes": len(classes),
        "smallest_class": int(classes.sizes.min()),
        "patients_in_small_classes": classes.small,
        "patients_taken_into_small_classes": classes.taken,
        "patients_left_out": classes.left_out,
        "demographics_loss": classes.losses(),
        "missing_demographics": {c.name: c.missing for c in classes.columns.columns},
        "demographics_search": [
            {
                "candidate": point.name,
                "classes": point.classes,
                "loss": point.loss,
                "lost": point.lost,
                "objective": point.objective,
                "all_records": point.whole,
            }
            for point in found.frontier
        ],
    }


def notices_of(classes: Classes, small: str) -> tuple[str, ...]:
    """What a person should know: missing values, small classes."""
    found = [
        f"{c.missing:,} of {classes.columns.records:,} patients have no value of `{c.name}`: a category of their own, "
        "(missing)."
        for c in classes.columns.columns
        if c.missing
    ]
    if classes.small:
        done = {
            "merge": f"were joined with others ({classes.taken:,} of larger classes with them)",
            "suppress": "are released without their demographics",
            "drop": "are left out of the release",
        }[small]
        found.append(f"{classes.small:,} patients in classes of fewer than k {done}.")
    return tuple(found)
