"""Releases with demographics: what their classes must be, plainly, and every class as a release of its own."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl
from tests.forging import write_parquet
from tests.mutations.copies import manifest_of, read
from tests.mutations.definitions import Broken, Truth, rows_of

Labels = tuple[str, ...]

OF_RECORDS = ("records.parquet", "patients.parquet")
"""Files with a record's labels, the first that is there."""


def names_of(out: Path) -> list[str]:
    return list(manifest_of(out)["parameters"].get("demographics") or ())


def labels_of(out: Path, names: list[str]) -> dict[int, Labels]:
    """Class -> labels."""
    return {row[0]: row[1:] for row in rows_of(out, "classes.parquet").select("class", *names).iter_rows()}


def record_labels(out: Path, names: list[str]) -> pl.DataFrame:
    """`record`, labels."""
    file = next(name for name in OF_RECORDS if (out / "share/data" / name).is_file())
    return rows_of(out, file).select("record", *names)


def tree(out: Path, name: str) -> list[tuple[str, str]]:
    with (out / "share/data/hierarchies" / f"{name}.csv").open(newline="", encoding="utf-8") as stream:
        return [(row[0], row[1]) for row in list(csv.reader(stream))[1:]]


def inside(inner: str, outer: str) -> bool:
    """Whether one label is part of another: intervals of ages, single values, the root."""
    if outer == "*" or inner == outer:
        return True
    if inner == "*" or "-" not in outer:
        return False
    low, high = outer.split("-")
    first, _, last = inner.partition("-")
    return int(low) <= int(first) and int(last or first) <= int(high)


def classes_share(out: Path, truth: Truth) -> Broken:
    """Numbered, distinct, of k records that have their labels; hierarchies hold what is published and what is above."""
    names = names_of(truth.out)
    table, manifest, before = (
        rows_of(out, "classes.parquet"),
        manifest_of(out),
        rows_of(truth.out, "classes.parquet"),
    )
    if table.columns != before.columns or dict(table.schema) != dict(before.schema):
        return {"classes"}
    labels, stood = labels_of(out, names), labels_of(truth.out, names)
    if set(labels.values()) == set(stood.values()) and list(labels.items()) != list(stood.items()):
        return {"order"}  # classes are numbered, and stand, by their labels
    small = truth.case.population is None and (table["records"] < manifest["guarantee"]["k"]).any()
    if (
        small
        or table.height == 0
        or sorted(labels) != list(range(table.height))
        or len(set(labels.values())) < table.height
        or table["records"].sum() != manifest["records"]
    ):
        return {"classes"}
    for i, name in enumerate(names):
        pairs = tree(out, name)
        above, published = dict(pairs), {each[i] for each in labels.values()}
        wanted: set[str] = set()
        for label in published:
            at, seen = label, set[str]()
            while at in above and at not in seen:
                seen.add(at)
                at = above[at]
            wanted |= seen
            if at != "" or label not in above:
                return {"hierarchy"}
        if len(above) < len(pairs) or set(above) != wanted or sum(not p for _, p in pairs) != 1:
            return {"hierarchy"}
        if any(parent and not inside(node, parent) for node, parent in pairs):
            return {"hierarchy"}
    sizes = dict(table.select("class", "records").iter_rows())
    if (out / "share/data/nodes.parquet").is_file():
        nodes = rows_of(out, "nodes.parquet")
        of = dict(nodes.select("node", "class").iter_rows())
        leaves = nodes.filter(pl.col("kind") == "cluster").group_by("class").agg(pl.col("records").sum())
        pairs = nodes.drop_nulls("parent").select("class", "parent").iter_rows()
        crossing = any(of.get(parent) != number for number, parent in pairs)
        return {"classes"} if crossing or dict(leaves.iter_rows()) != sizes else set()
    held = Counter(row[1:] for row in record_labels(out, names).iter_rows())
    return set() if held == Counter({labels[n]: size for n, size in sizes.items()}) else {"classes"}


def parts(out: Path, folder: Path) -> dict[Labels, Path]:
    """Labels -> a release of the records of that class alone, numbered anew, with what custody says of them."""
    names = names_of(out)
    shutil.rmtree(folder, ignore_errors=True)
    labelled = record_labels(out, names)
    found: dict[Labels, Path] = {}
    for number, labels in labels_of(out, names).items():
        mine = labelled.filter(pl.all_horizontal(pl.col(n) == v for n, v in zip(names, labels, strict=True)))
        new = mine.select("record").with_columns(new=pl.int_range(pl.len(), dtype=pl.Int64))
        target = found[labels] = folder / str(number)
        for room in ("share", "custody"):
            data = out / room / "data"
            (target / room / "data").mkdir(parents=True)
            for file in data.iterdir():
                if file.suffix == ".csv":
                    shutil.copy(file, target / room / "data")
                elif file.suffix == ".parquet" and file.name != "classes.parquet":
                    table = part_of(read(file), number, new)
                    table = table.drop(names) if room == "share" and file.name in OF_RECORDS else table
                    write_parquet(table, target / room / "data" / file.name)
        manifest = manifest_of(out)
        manifest["records"] = new.height
        (target / "share/release.json").write_text(json.dumps(manifest), encoding="utf-8")
    return found


def part_of(table: pl.DataFrame, number: int, new: pl.DataFrame) -> pl.DataFrame:
    if "class" in table.columns:
        table = table.filter(pl.col("class") == number).drop("class")
    if "record" in table.columns:
        joined = table.join(new, on="record", how="inner", maintain_order="left")
        table = joined.with_columns(record=pl.col("new")).drop("new")
    return table


def truth_of(truth: Truth, labels: Labels, part: Path) -> Truth:
    """What is true of a class: its patients, the people of the population who could be of it."""
    case, names = truth.case, names_of(truth.out)
    if case.population is not None:
        people = case.population.patients
        assert people is not None
        fits = [
            all(inside(str(v), label) for v, label in zip(row[1:], labels, strict=True))
            for row in people.select("patient", *names).iter_rows()
        ]
        of_class = people.filter(pl.Series(fits))
        events = case.population.require_events().join(of_class, on="patient", how="semi")
        case = replace(case, population=replace(case.population, events=events, patients=of_class))
    found = Truth(case, part)
    members = truth.out / "custody/data/class_of_patient.parquet"
    if members.is_file():
        number = next(n for n, each in labels_of(truth.out, names).items() if each == labels)
        mine = set(read(members).filter(pl.col("class") == number)["patient"])
        found.held = {patient: rows for patient, rows in found.held.items() if patient in mine}
    return found
