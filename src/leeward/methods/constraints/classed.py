"""Generalization inside classes of demographics: each class has labels of its own
(docs/methods/whole-patient.md#methods)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from leeward.analysis.demographics import Classes
from leeward.analysis.demographics.search import Lost
from leeward.analysis.policies import Constraints as UtilityConstraints
from leeward.arrays import AnyArray, Int64s, offsets_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.constraints.mapping import CODES, Mapping, records_table
from leeward.methods.whole_patient import record_labels
from leeward.release.content import ReleaseTable

CLASSED_CODES = pa.schema([("class", pa.int64()), *CODES])


@dataclass(frozen=True)
class Task:
    """What is generalized: code sets, and over their codes utility constraints and listed privacy constraints."""

    sets: CodeSets
    utility: UtilityConstraints
    listed: list[tuple[int, ...]] | None

    def take(self, records: AnyArray) -> Task:
        """The same for some of the records, with the codes that they have."""
        part = self.sets.take(records)
        used, values = np.unique(part.values, return_inverse=True)
        sets = CodeSets(
            part.offsets,
            values.reshape(-1).astype(np.int32),
            tuple(part.codes[code] for code in used),
            part.patients,
        )
        listed = self.listed
        if listed is not None:
            place = {int(code): number for number, code in enumerate(used)}
            images = {tuple(place[code] for code in each if code in place): None for each in listed}
            listed = [image for image in images if image]
        return Task(sets, UtilityConstraints(self.utility.names, self.utility.of_code[used]), listed)


Finding = Callable[[Task], tuple[Mapping, dict[str, Any], list[str]]]
"""The labels of the codes of a task, what the search did, in numbers, and notices."""


@dataclass(frozen=True)
class Part:
    """A class: its records in the data that are released, what was generalized, and its labels."""

    records: Int64s
    task: Task
    mapping: Mapping


def generalize(task: Task, classes: Classes, finding: Finding) -> tuple[list[Part], dict[str, Any]]:
    """Every class by itself; counts of what the searches did are added up, shares averaged over the code occurrences. A
    class says of every code of the data that it is in a label or suppressed, so that nothing tells in which class a
    suppressed code occurs."""
    parts, facts = [], dict[str, Any]()
    for records in classes.members:
        part = task.take(records)
        mapping, found, _ = finding(part)
        share = len(part.sets.values) / len(task.sets.values)
        for name, value in found.items():
            facts[name] = facts.get(name, 0) + (value * share if isinstance(value, float) else value)
        parts.append(Part(records, part, mapping.over(task.sets.codes)))
    return parts, facts


def count_losses(task: Task, finding: Finding) -> Lost:
    """The code occurrences that are suppressed or generalized in each of some classes."""

    def losses(parts: Sequence[AnyArray]) -> list[int]:
        found = []
        for records in parts:
            part = task.take(records)
            mapping, _, _ = finding(part)
            alone = {group[0] for group in mapping.members if len(group) == 1}
            gone = np.array([code not in alone for code in part.sets.codes], np.bool_)
            found.append(int(part.sets.supports()[gone].sum()))
        return found

    return losses


def tables_of(parts: Sequence[Part], classes: Classes, order: Int64s) -> tuple[ReleaseTable, ...]:
    """`records.parquet` in the shuffled `order` with the labels of the classes, and `codes.parquet` by class."""
    names: list[str] = []
    records, lengths, values = [], [], []
    for part in parts:
        offsets, own = part.mapping.apply(part.task.sets)
        records.append(part.records)
        lengths.append(np.diff(offsets))
        values.append(own + np.int32(len(names)))
        names += part.mapping.labels
    # The classes' records one after the other; `place` says where a record of the data is among them.
    place = np.empty(len(order), np.int64)
    place[np.concatenate(records)] = np.arange(len(order))
    codes = pa.concat_tables(
        pa.table([pa.array(np.full(rows.num_rows, number)), *rows.columns], schema=CLASSED_CODES)
        for number, part in enumerate(parts)
        for rows in [part.mapping.codes_rows()]
    )
    return (
        records_table(
            tuple(names),
            offsets_of(np.concatenate(lengths)),
            np.concatenate(values),
            place[order],
            record_labels(classes, order),
        ),
        ReleaseTable.of("codes.parquet", codes),
    )


def custody_table_of(parts: Sequence[Part]) -> ReleaseTable:
    """For the custodian's measures: the class of each patient."""
    owner = np.repeat(np.arange(len(parts)), [len(part.records) for part in parts])
    patients = pa.concat_arrays([_plain(part.task.sets) for part in parts])
    return ReleaseTable.of("class_of_patient.parquet", pa.table({"patient": patients, "class": owner}))


def _plain(sets: CodeSets) -> pa.Array:
    found = sets.patients.to_arrow()
    return found.cast(pa.large_string()) if pa.types.is_string_view(found.type) else found
