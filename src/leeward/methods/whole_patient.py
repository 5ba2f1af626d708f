"""A release of codes and demographics, whatever the method: classes of the cohort's demographics, the method inside
them, and what recipient and custodian get of the classes (docs/methods/whole-patient.md).

A method gives two functions: how many codes it loses in some classes, and its run in the classes that were found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from leeward.methods.demographics import WithRecoding
from leeward.randomness import Randomness
from leeward.release.content import Anonymized, ReleaseTable

if TYPE_CHECKING:
    import polars as pl

    from leeward.analysis.demographics import Classes
    from leeward.analysis.demographics.search import Found, Lost
    from leeward.arrays import AnyArray, Int64s
    from leeward.cohort.cohort import Cohort

    Run = Callable[[Classes | None, Int64s], Anonymized]
    """The method on the released records of its lens (their places, ascending), of which the classes are; None: all
    records, without demographics."""


def release_in_classes(
    parameters: WithRecoding,
    cohort: Cohort,
    patients: pl.Series,
    occurrences: Int64s,
    lost: Lost,
    run: Run,
    randomness: Randomness,
    searched: int | None = None,
    join: Callable[[Classes], Classes] | None = None,
    classes_last: bool = False,
) -> Anonymized:
    """The method's release, inside classes of demographics where the parameters name columns (see `find_classes`).
    `join`: joins some of the classes that were found, for diversity. `classes_last`: the method's contract lists the
    files of the classes after its own."""
    if not parameters.demographics:
        return run(None, np.arange(len(patients)))
    found = find_classes(parameters, cohort, patients, occurrences, lost, randomness, searched)
    joined = {}
    if join is not None:
        larger = join(found.classes)
        joined["classes_joined_for_diversity"] = len(found.classes) - len(larger)
        found = replace(found, classes=larger)
    made = run(found.classes.without_left_out(), found.classes.released)
    made = replace(made, custody={**made.custody, **joined})
    return add_classes(made, found, notices_of(found.classes, parameters.small), classes_last=classes_last)


def find_classes(
    parameters: WithRecoding,
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
    setting = Setting(
        columns, keep, parameters.fewest, parameters.small, randomness, occurrences, lost, searched
    )
    local = parameters.recoding == "local" and setting.free
    return search_local(setting) if local else search_full(setting)


def add_classes(
    made: Anonymized, found: Found, notices: tuple[str, ...], *, classes_last: bool = False
) -> Anonymized:
    """A release with the tables of its classes, the custodian's hierarchies and facts, and notices."""
    tables = _tables_of(found.classes)
    return replace(
        made,
        tables=(*made.tables, *tables) if classes_last else (*tables, *made.tables),
        custody_tables=(*made.custody_tables, *_custody_tables_of(found.classes)),
        custody={**made.custody, **_facts_of(found)},
        notices=(*made.notices, *notices),
    )


def record_labels(classes: Classes | None, order: AnyArray) -> dict[str, pa.Array]:
    """For methods that publish records: the labels of the records `order`, one text column a demographic; -1 has none,
    and without classes there is no column."""
    if classes is None:
        return {}
    return labels_of_records(classes.columns.names, classes.labels, classes.of_record[order])


def records_table(
    order: AnyArray, classes: Classes | None, payload: pl.DataFrame | None, **own: pa.Array
) -> ReleaseTable:
    """`records.parquet`: new numbers, the method's `own` columns, labels of demographics, payload; `order` : the place
    of each record among those of `classes` and `payload`."""
    columns = {
        "record": pa.array(np.arange(len(order), dtype=np.int64)),
        **own,
        **record_labels(classes, order),
    }
    if payload is not None:
        arrow = payload[order].to_arrow()
        columns |= {name: arrow[name] for name in payload.columns}
    return ReleaseTable.of("records.parquet", pa.table(columns))


def labels_of_records(
    names: Sequence[str], labels: Sequence[tuple[str, ...]], class_of: AnyArray
) -> dict[str, pa.Array]:
    """The label of each column for each record; class_of : int[records], places among `labels`."""
    place = pa.array(class_of, mask=class_of < 0)
    columns = zip(names, zip(*labels, strict=True), strict=True)
    return {name: pa.array(values, pa.string()).take(place) for name, values in columns}


def _tables_of(classes: Classes) -> list[ReleaseTable]:
    """`classes.parquet`, one row per class with its labels and its number of records; and for each column the hierarchy
    of its published labels."""
    number = pa.array(range(len(classes)), pa.int64())
    columns = labels_of_records(classes.columns.names, classes.labels, np.arange(len(classes)))
    table = pa.table({"class": number, **columns, "records": pa.array(classes.sizes.tolist(), pa.int64())})
    found = [ReleaseTable.of("classes.parquet", table)]
    for i, column in enumerate(classes.columns.columns):
        tree = column.tree
        shown = {int(node) for node in classes.vectors[:, i]}
        shown |= {above for node in tuple(shown) for above in tree.ancestors(node)}
        pairs = [
            (tree.labels[node], tree.labels[int(tree.parent[node])] if node else "") for node in sorted(shown)
        ]
        found.append(hierarchy_table(f"hierarchies/{column.name}.csv", pairs))
    return found


def _custody_tables_of(classes: Classes) -> list[ReleaseTable]:
    """The whole hierarchy of each column that a file brought, for verification beside the source."""
    return [
        hierarchy_table(f"hierarchies/{column.name}.parquet", column.tree.to_pairs())
        for column in classes.columns.columns
        if column.kind == "file"
    ]


def hierarchy_table(path: str, pairs: Sequence[tuple[str, str]]) -> ReleaseTable:
    nodes, parents = zip(*pairs, strict=True)
    table = pa.table({"node": pa.array(nodes, pa.string()), "parent": pa.array(parents, pa.string())})
    return ReleaseTable.of(path, table)


def _facts_of(found: Found) -> dict[str, Any]:
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
