"""Generalization inside classes of demographics, each with separate labels (docs/methods/whole-patient.md#methods), and
the losses by generalization and suppression, for the custodian."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.analysis.demographics import Classes
from leeward.analysis.demographics.search import Lost
from leeward.analysis.policies import NONE
from leeward.analysis.policies import Constraints as UtilityConstraints
from leeward.arrays import AnyArray, Int64s, offsets_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.constraints.mapping import CODES, Mapping, records_table
from leeward.methods.whole_patient import record_labels
from leeward.release.content import ReleaseTable

if TYPE_CHECKING:
    from leeward.analysis.policies import Constraints as UtilityConstraints

SHARES = ("occurrences_generalized_share", "occurrences_suppressed_share")
CLASSED_CODES = pa.schema([("class", pa.int64()), *CODES])


@dataclass(frozen=True)
class Task:
    """Code sets to generalize, with the utility constraints and the listed privacy constraints over their codes."""

    sets: CodeSets
    utility: UtilityConstraints
    listed: list[tuple[int, ...]] | None

    def take(self, records: AnyArray) -> Task:
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
"""Maps a task to the mapping of its codes, figures of the search, and notices."""


@dataclass(frozen=True)
class Part:
    records: Int64s
    task: Task
    mapping: Mapping


def generalize(task: Task, classes: Classes, finding: Finding) -> tuple[list[Part], dict[str, Any]]:
    """Generalize each class separately; sums the counts of the searches, averages their shares over code occurrences.
    The mapping of each class covers all codes of the data, so that it does not reveal in which class a suppressed
    code occurs."""
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
    """Function that counts the suppressed or generalized code occurrences in each of some classes."""

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
    """`class_of_patient.parquet`: the class of each patient, for the custodian's measures."""
    owner = np.repeat(np.arange(len(parts)), [len(part.records) for part in parts])
    patients = pl.concat([part.task.sets.patients for part in parts]).to_arrow()
    if pa.types.is_string_view(patients.type):
        patients = patients.cast(pa.large_string())
    return ReleaseTable.of("class_of_patient.parquet", pa.table({"patient": patients, "class": owner}))


def losses_in_classes(parts: Sequence[Part], cap: float | None) -> dict[str, Any]:
    """Losses by generalization and suppression over all classes, for the custodian; a code is counted in every class
    that has it."""
    found = [losses(part.mapping, part.task.sets, part.task.utility, cap) for part in parts]
    utility = [each.pop("utility") for each in found]
    figures = {name: np.array([each[name] for each in found]) for name in found[0]}
    records = np.array([len(part.records) for part in parts])
    weights = {"utility_loss": records} | dict.fromkeys(SHARES, figures["occurrences"])
    return {
        **{name: int(of.sum()) for name, of in figures.items()},
        **{name: float(np.average(figures[name], weights=of)) for name, of in weights.items()},
        "largest_label": int(figures["largest_label"].max()),
        "utility": _satisfaction_in_classes(utility),
    }


def _satisfaction_in_classes(utility: Sequence[dict[str, Any]]) -> dict[str, Any]:
    over = sorted({name for each in utility for name in each["over_cap_names"]})
    return {
        **utility[0],
        "over_cap": len(over),
        "over_cap_names": over,
        "labels_crossing": sum(each["labels_crossing"] for each in utility),
        "satisfied": all(each["satisfied"] for each in utility),
    }


def notices_in_classes(parts: Sequence[Part], cap: float | None) -> list[str]:
    """Notices for the custodian: each distinct sentence once, with its number of classes."""
    found = (notices(part.mapping, part.task.sets, part.task.utility, cap) for part in parts)
    said = Counter(chain.from_iterable(found))
    return [f"In {number:,} of {len(parts):,} classes: {sentence}" for sentence, number in said.items()]


def losses(
    mapping: Mapping, sets: CodeSets, utility: UtilityConstraints, cap: float | None
) -> dict[str, Any]:
    supports = sets.supports()
    number = mapping.label_numbers(sets.codes)
    gone = number < 0
    sizes = np.array([len(group) for group in mapping.members] or [1])
    merged = ~gone & (sizes[number] > 1)
    occurrences = int(supports.sum())
    return {
        "codes": len(sets.codes),
        "labels": len(mapping.labels),
        "codes_intact": int((~gone & ~merged).sum()),
        "codes_generalized": int(merged.sum()),
        "codes_suppressed": int(gone.sum()),
        "occurrences": occurrences,
        "occurrences_generalized_share": float(supports[merged].sum() / occurrences),
        "occurrences_suppressed_share": float(supports[gone].sum() / occurrences),
        "records_emptied": int(
            (np.add.reduceat(~gone[sets.values], sets.offsets[:-1], dtype=np.int64) == 0).sum()
        ),
        "largest_label": int(sizes.max()),
        "utility_loss": utility_loss(mapping, sets),
        "utility": satisfaction(mapping, sets, utility, cap),
    }


def utility_loss(mapping: Mapping, sets: CodeSets) -> float:
    """UL of the release: Σ over labels (2^|g| - 1)/(2^M - 1) · σ/|D|, suppressed codes σ/|D|
    (docs/methods/constraints.md#loss)."""
    _, values = mapping.apply(sets)
    supports = np.bincount(values, minlength=len(mapping.labels))
    whole = 2 ** len(sets.codes) - 1
    present = set(sets.codes)
    total = sum(
        (
            Fraction(2 ** len(present.intersection(group)) - 1, whole) * int(support)
            for group, support in zip(mapping.members, supports, strict=True)
        ),
        Fraction(0),
    )
    gone = int(sets.supports()[mapping.label_numbers(sets.codes) < 0].sum())
    return float((total + gone) / len(sets))


def satisfaction(
    mapping: Mapping, sets: CodeSets, utility: UtilityConstraints, cap: float | None
) -> dict[str, Any]:
    """Whether the utility constraints hold: no label crosses them, at most `cap` of a constraint's codes suppressed."""
    number = mapping.label_numbers(sets.codes)
    crossing = 0  # labels of several codes that are not all in one constraint
    for label in range(len(mapping.labels)) if utility.names else ():
        of = utility.of_code[number == label]
        crossing += int(len(of) > 1 and (of[0] == NONE or (of != of[0]).any()))
    over: list[str] = []
    for name, members in zip(utility.names, utility.members(), strict=True):
        share = float((number[members] < 0).mean()) if len(members) else 0.0
        if cap is not None and share > cap:
            over.append(name)
    return {
        "constraints": len(utility.names),
        "cap": cap,
        "over_cap": len(over),
        "over_cap_names": over,
        "labels_crossing": crossing,
        "satisfied": crossing == 0 and not over,
    }


def notices(mapping: Mapping, sets: CodeSets, utility: UtilityConstraints, cap: float | None) -> list[str]:
    """Notices for the custodian: no label or one label left, or a utility constraint violated."""
    found = []
    if not mapping.labels:
        found.append(
            "Every code was suppressed: the release says how many records there are, and nothing else."
        )
    elif len(mapping.labels) == 1:
        found.append(
            "One label is left: the release distinguishes records with it from records without it, and nothing else."
        )
    over = satisfaction(mapping, sets, utility, cap)["over_cap"]
    if over:
        found.append(
            f"Utility constraint violated: {over:,} of them lost more of their codes than the cap allows."
        )
    return found
