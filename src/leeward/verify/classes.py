"""Classes of demographics, checked from the files: sizes, labels, hierarchies; beside the source, whether the patients'
exact values fit the classes with the classes' sizes (docs/methods/whole-patient.md#verifier)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.verify.checks import Check, Source, merge_checks, of_count
from leeward.verify.class_labels import Tree, as_text, read_tree
from leeward.verify.manifest import Share

MOST_EDGES = 20_000_000
"""Pairs of distinct exact vectors and classes that are compared."""


@dataclass(frozen=True)
class Classes:
    """The released classes. `labels` has one label a column for each class; `trees` has each column's released
    hierarchy, None where its file is no hierarchy."""

    names: tuple[str, ...]
    numbers: NDArray[np.int64]
    records: NDArray[np.int64]
    labels: list[tuple[str, ...]]
    trees: tuple[Tree | None, ...]

    def fit(self, values: tuple[str, ...]) -> NDArray[np.bool_]:
        """bool[classes]: whether a patient with these exact values may be in each class."""
        fits = np.ones(len(self.labels), np.bool_)
        for i, (tree, value) in enumerate(zip(self.trees, values, strict=True)):
            if tree is not None:
                fits &= np.array([tree.covers(label[i], value) for label in self.labels], np.bool_)
        return fits


def demographics_of(share: Share) -> tuple[str, ...]:
    """The demographic columns that the parameters name; empty for a release without."""
    return tuple(str(name) for name in share.manifest["parameters"].get("demographics") or ())


def read_classes(share: Share) -> Classes:
    names = demographics_of(share)
    table = pl.read_parquet(share.data("classes.parquet"))
    custody = share.folder.parent / "custody" / "data" / "hierarchies"
    kinds = share.manifest["parameters"].get("hierarchies") or {}
    trees = tuple(
        read_tree(share.data(f"hierarchies/{name}.csv"), custody / f"{name}.parquet", kinds.get(name))
        for name in names
    )
    return Classes(
        names,
        table["class"].fill_null(-1).to_numpy().astype(np.int64),
        table["records"].fill_null(-1).to_numpy().astype(np.int64),
        list(table.select(names).cast(pl.String).iter_rows()),
        trees,
    )


def class_checks(classes: Classes, share: Share) -> list[Check]:
    """Every class has at least k records, labels of its hierarchies, and a vector of its own; hierarchies list nothing
    else; parameters name declared columns."""
    k, records, parameters = share.guarantee("k"), share.manifest["records"], share.manifest["parameters"]
    strange = [
        name
        for key in ("keep", "hierarchies")
        for name in parameters.get(key) or ()
        if name not in classes.names
    ]
    small = classes.records < k
    total = int(classes.records.sum())
    doubled = len(classes.numbers) - len(np.unique(classes.numbers))
    doubled += len(classes.labels) - len(set(classes.labels))
    unknown = sum(
        tree is None or label not in tree.parent
        for vector in classes.labels
        for label, tree in zip(vector, classes.trees, strict=True)
    )
    return [
        of_count(
            "class_parameters",
            len(strange),
            "`keep` and `hierarchies` name demographic columns.",
            "columns of `keep` or `hierarchies` are not demographic columns.",
        ),
        of_count(
            "class_sizes",
            int(small.sum()),
            f"Each of {len(small):,} classes has at least {k} records.",
            f"classes have fewer than {k} records.",
            {"classes": len(small), "smallest": int(classes.records.min()) if len(small) else None},
        ),
        Check(
            "class_records",
            total == records,
            f"The classes have {total:,} records, the manifest states {records:,}.",
            {"classes": total, "manifest": records},
        ),
        of_count(
            "classes_distinct",
            doubled,
            "No two classes have the same number or the same labels.",
            "classes have the number or the labels of another.",
        ),
        of_count(
            "class_labels",
            unknown,
            "Every label of a class is a node of its column's hierarchy.",
            "labels of classes are not nodes of their hierarchy.",
        ),
        *hierarchy_checks(classes, parameters.get("keep") or {}),
    ]


def hierarchy_checks(classes: Classes, keep: Mapping[str, int | str]) -> list[Check]:
    """Classes and rows of hierarchies stand in the order of labels, which are no finer than `keep` states, and the
    hierarchies list nothing else."""
    return [
        of_count(
            "classes_numbered",
            count_wrong_numbers(classes),
            "Classes are numbered 0, 1, … in the order of their labels, and so are their rows.",
            "classes are not numbered and placed in the order of their labels.",
        ),
        of_count(
            "hierarchies_in_order",
            sum(tree.disorder() for tree in classes.trees if tree is not None),
            "The hierarchies' rows are depth first, with siblings in the order of their labels.",
            "rows of hierarchies are not depth first, with siblings in the order of their labels.",
        ),
        of_count(
            "keep_as_stated",
            finer(classes, keep),
            "No published label is finer than `keep` states.",
            "published labels are finer than `keep` states.",
        ),
        of_count(
            "hierarchies",
            sum(map(faults_of, classes.trees, zip(*classes.labels, strict=True))) if classes.labels else 0,
            "The hierarchies list the published labels and what is above them, and nothing else.",
            "labels of hierarchies are not above a published label, do not lead to one root, or are not inside their "
            "parent.",
        ),
    ]


def count_wrong_numbers(classes: Classes) -> int:
    """Classes whose number is not their place in the order of labels, as the rows of the hierarchies have these."""
    places = [
        {} if tree is None else {label: i for i, label in enumerate(tree.parent)} for tree in classes.trees
    ]
    ranks = [
        tuple(place.get(label, -1) for place, label in zip(places, labels, strict=True))
        for labels in classes.labels
    ]
    wrong = (classes.numbers != np.arange(len(classes.numbers))).sum()
    return int(wrong) + sum(a > b for a, b in itertools.pairwise(ranks))


def finer(classes: Classes, keep: Mapping[str, int | str]) -> int:
    """Published labels that are finer than the level that `keep` states for their column."""
    return sum(
        tree.too_fine(label, keep[name])
        for i, (name, tree) in enumerate(zip(classes.names, classes.trees, strict=True))
        if tree is not None and name in keep
        for label in {labels[i] for labels in classes.labels}
    )


def faults_of(tree: Tree | None, labels: tuple[str, ...]) -> int:
    """Labels of a hierarchy that are not at or above a published one, roots too many, parents that do not hold them."""
    if tree is None:
        return 1
    wanted = set(labels)
    for label in labels:
        above = tree.above(label)
        if above is None:
            return 1
        wanted.update(above)
    strange = len(set(tree.parent) - wanted) + abs(len(tree.roots) - 1)
    for label, parent in tree.parent.items():
        strange += parent != "" and not tree.covers(parent, label)
    return strange


def exact_values(classes: Classes, source: Source, patients: pl.Series) -> list[tuple[str, ...]] | None:
    """The exact values of each of `patients`; None where the source has not the columns."""
    people = source.patients
    if people is None or not set(classes.names) <= set(people.columns):
        return None
    wanted = patients.alias("patient").to_frame()
    rows = wanted.join(
        people.select("patient", *classes.names), on="patient", how="left", maintain_order="left"
    )
    return list(zip(*(as_text(rows[name]).to_list() for name in classes.names), strict=True))


def find_patients(
    share: Share, classes: Classes, source: Source, patients: pl.Series
) -> tuple[pl.Series, list[tuple[str, ...]] | None]:
    """Those of `patients` who are released, and their exact values (None where the source has not the columns): with
    `small: drop`, those who fit a class."""
    values = exact_values(classes, source, patients)
    if values is None or share.manifest["parameters"].get("small") != "drop":
        return patients, values
    fits = {each: bool(classes.fit(each).any()) for each in set(values)}
    keep = [fits[each] for each in values]
    return patients.filter(pl.Series(keep, dtype=pl.Boolean)), [each for each in values if fits[each]]


@dataclass(frozen=True)
class Placed:
    """The classes of a release, and the place among them of each record's (-1: none), int64[records]."""

    classes: Classes
    of_record: NDArray[np.int64]


def place_in_classes(share: Share, records: pl.DataFrame) -> tuple[list[Check], Placed]:
    """The checks of the classes, and every record in its class."""
    classes = read_classes(share)
    placed, of_record = place_records(records, classes)
    return [*class_checks(classes, share), placed], Placed(classes, of_record)


def place_records(records: pl.DataFrame, classes: Classes) -> tuple[Check, NDArray[np.int64]]:
    """The class of each record (its place among the classes; -1: none), from the labels in the table of records; and
    whether each has one, and every class the number of records that it states."""
    place = {labels: i for i, labels in enumerate(classes.labels)}
    labels = records.select(pl.col(classes.names).cast(pl.String)).rows()
    of_record = np.array([place.get(each, -1) for each in labels], np.int64)
    held = np.bincount(of_record[of_record >= 0], minlength=len(classes.labels))
    unequal = int((held != classes.records).sum())
    check = of_count(
        "record_classes",
        int((of_record < 0).sum()) + unequal,
        f"Each of {len(of_record):,} records has the labels of a class, and each class has as many as it states.",
        "records have the labels of no class, or classes have a different number of records than they state.",
    )
    return check, of_record


def check_demographics(
    classes: Classes, of_record: NDArray[np.int64], values: list[tuple[str, ...]] | None
) -> Check:
    """Whether the class of each record fits the exact values of the patient whom custody names, in the same order."""
    if values is None:
        return Check(
            "record_demographics", False, "The source does not have the demographic columns of the release."
        )
    fits = {each: classes.fit(each) for each in set(values)}
    wrong = sum(c < 0 or not fits[each][c] for each, c in zip(values, of_record.tolist(), strict=True))
    return of_count(
        "record_demographics",
        wrong,
        "The labels of every record fit the exact demographics of its own patient.",
        "records have labels that do not fit their own patient's demographics.",
    )


def class_source(classes: Classes, values: list[tuple[str, ...]] | None, *, all_released: bool) -> Check:
    """Whether every record can be given to a patient whose exact values fit its class: the largest flow from the
    patients' distinct values to the classes, which may take as many as they have records."""
    if values is None:
        return Check(
            "class_source", False, "The source does not have the demographic columns of the release."
        )
    distinct = Counter(values)
    if len(distinct) * len(classes.labels) > MOST_EDGES:
        raise MemoryError("too many distinct values to match with the classes")
    fits = [np.flatnonzero(classes.fit(each)) for each in distinct]
    wanted = int(classes.records.sum())
    placed = largest_flow(np.fromiter(distinct.values(), np.int64), fits, classes.records)
    lost = len(values) - wanted if all_released else max(0, wanted - len(values))
    return of_count(
        "class_source",
        abs(wanted - placed) + abs(lost),
        f"The exact values of {len(values):,} patients fit the classes with their sizes.",
        "records cannot be assigned to patients whose values fit their class, or patients are missing.",
        {"patients": len(values), "records": wanted, "placed": placed},
    )


def largest_flow(
    counts: NDArray[np.int64], fits: Sequence[NDArray[np.int64]], room: NDArray[np.int64]
) -> int:
    """How many can be placed: `counts[i]` alike, each in one of the places `fits[i]`, of which each has its `room`."""
    from leeward.verify.kernels import push_flow

    kinds, n = len(counts), len(room)
    # nodes: what is placed, the places, then a source and a sink
    start = np.concatenate(
        [np.repeat(np.arange(kinds), [len(f) for f in fits]), np.full(kinds, kinds + n), kinds + np.arange(n)]
    )
    end = np.concatenate(
        [kinds + np.concatenate([np.empty(0, np.int64), *fits]), np.arange(kinds), np.full(n, kinds + n + 1)]
    )
    capacity = np.concatenate([np.repeat(counts, [len(f) for f in fits]), counts, room])
    tails = np.concatenate([start, end]).astype(np.int32)
    order = np.argsort(tails, kind="stable").astype(np.int32)
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=np.int32)
    first = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=kinds + n + 2))])
    heads = np.concatenate([end, start]).astype(np.int32)[order]
    back = place[(order + len(start)) % len(order)] if len(order) else order
    left = np.concatenate([capacity, np.zeros_like(capacity)])[order]
    return int(push_flow(first, heads, back, left, kinds + n, kinds + n + 1))


def together(parts: list[list[Check]]) -> list[Check]:
    """The checks of all classes as one each: failed where one failed, counts added up, smallest kept."""
    return [merge_checks(checks, len(parts), "classes") for checks in zip(*parts, strict=True)]


BETWEEN = "\x1f"
"""Between a class and a code of it."""


def code_of_class(number: int, code: str) -> str:
    """A code or label with its class before it."""
    return f"{number:06d}{BETWEEN}{code}"


def of_class(column: str) -> pl.Expr:
    """As `code_of_class`, of a column beside the column `class`."""
    number = pl.col("class").cast(pl.String).str.zfill(6)
    return pl.concat_str(number, pl.lit(BETWEEN), pl.col(column).cast(pl.String)).alias(column)


def select_patients(share: Share, classes: Classes, source: Source) -> Source:
    """The source without the patients whom `small: drop` leaves out: those who fit no class."""
    patients = source.events["patient"].unique().sort()
    kept, _ = find_patients(share, classes, source, patients)
    if len(kept) == len(patients):
        return source
    return replace(source, events=source.events.filter(pl.col("patient").is_in(kept.implode())))


def demographics_of_patients(
    classes: Classes, of_record: NDArray[np.int64], source: Source, owners: pl.Series | None
) -> list[Check]:
    """Whether exact values fit the classes with their sizes, and each record's labels those of its patient. `owners`:
    the patient of each record, in the order of `of_record`, as custody names them; None without custody."""
    values = exact_values(classes, source, source.events["patient"].unique().sort())
    checks = [class_source(classes, values, all_released=True)]
    if owners is None:
        return checks
    return [*checks, check_demographics(classes, of_record, exact_values(classes, source, owners))]


SAMPLED_PATIENTS = 300
"""Source patients whose candidates are counted."""

SETS_A_PATIENT, LARGEST_SET = 12, 3
"""Code sets of one patient that are looked up, and the codes of the largest."""


def draw_known_sets(
    codes: Sequence[str], sizes: range, generator: np.random.Generator
) -> list[tuple[str, ...]]:
    """Sets of some sizes of a patient's codes: all of them, or some where they are many."""
    known = [size for size in sizes if size <= min(len(codes), LARGEST_SET)]
    every = [each for size in known for each in itertools.combinations(codes, size)]
    if len(every) <= SETS_A_PATIENT:
        return every
    return [every[i] for i in np.sort(generator.permutation(len(every))[:SETS_A_PATIENT])]
