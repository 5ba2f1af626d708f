"""What linked tables, cohorts drawn from a master and catalogues must be, plainly (see `definitions`)."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

from tests.mutations.classed import Labels, names_of
from tests.mutations.copies import manifest_of
from tests.mutations.definitions import Broken, Truth, numbered, rows_of
from tests.mutations.paths import visits_of, visits_share

# Linked tables

Visits = dict[int, tuple[int | None, tuple[str, ...]]]
"""Visit -> day, codes."""


def linked_of(out: Path) -> dict[int, tuple[Labels, Visits]]:
    """Record -> labels, visits."""
    found: dict[int, tuple[Labels, Visits]] = {
        row[0]: (row[1:], {}) for row in rows_of(out, "patients.parquet").iter_rows()
    }
    for row in rows_of(out, "visits.parquet").iter_rows():
        found[row[0]][1][row[1]] = (row[2] if len(row) > 2 else None, ())
    for record, visit, code in rows_of(out, "events.parquet").iter_rows():
        day, codes = found[record][1][visit]
        found[record][1][visit] = (day, (*codes, code))
    return found


def known_of(view: str, visits: Visits) -> set[Any]:
    """The rows of a view of one patient."""
    codes = {code for _, mine in visits.values() for code in mine}
    if view == "patients+events":
        return codes
    if view == "patients+visits":
        return {day for day, _ in visits.values()}
    if view == "patients+visits+events":
        return {(code, day) for day, mine in visits.values() for code in mine}
    return set(combinations(sorted(codes), 2))


def linked_share(out: Path) -> Broken:
    manifest = manifest_of(out)
    patients, visits, events = (rows_of(out, f"{name}.parquet") for name in ("patients", "visits", "events"))
    broken: Broken = set()
    if not numbered(patients["record"].to_list(), manifest["records"]):
        return {"records"}
    if set(visits["record"]) - set(patients["record"]) or events.unique().height < events.height:
        return {"keys"}
    if set(events.select("record", "visit").rows()) - set(visits.select("record", "visit").rows()):
        return {"keys"}
    people, step = linked_of(out), manifest["parameters"].get("days")
    if sum(len(mine) for _, mine in people.values()) != visits.height:
        return {"keys"}
    for _, mine in people.values():
        days = [day for _, (day, _) in sorted(mine.items())]
        if not numbered(list(mine), len(mine)):
            broken.add("keys")
        if step is not None and days != sorted(
            day for day in days if day is not None and day >= 0 and day % step == 0
        ):
            broken.add("days")
    views = set(manifest["parameters"]["views"])
    if "patients+visits+events" in views:
        views.add("patients+visits")
    for view in views | ({"patients+events"} if views != {"patients+visits"} else set()):
        holders = Counter((labels, row) for labels, mine in people.values() for row in known_of(view, mine))
        if any(count < manifest["guarantee"]["k"] for count in holders.values()):
            broken.add("guarantee")
    return broken


def content_of(people: dict[int, tuple[Labels, Visits]]) -> Counter[Any]:
    return Counter((labels, tuple(sorted(mine.values(), key=repr))) for labels, mine in people.values())


def linked_truth(out: Path, truth: Truth) -> Broken:
    """Without days: each visit of a patient shows the codes that its class shows. With days: as it was made."""
    people, before = linked_of(out), linked_of(truth.out)
    if content_of(people) == content_of(before):
        return set()
    if manifest_of(truth.out)["parameters"].get("days") is not None or names_of(truth.out):
        return {"content"}
    patients = truth.patients()
    shown = {code for _, mine in people.values() for _, codes in mine.values() for code in codes}
    place = dict(truth.custody("records.parquet").select("record", "place").iter_rows())
    if sorted(place) != sorted(people):
        return {"content"}
    for record, (_, mine) in people.items():
        visits: dict[Any, set[str]] = {}
        for visit, code, _ in truth.held[patients[place[record]]]:
            visits.setdefault(visit, set()).add(code)
        wanted = sorted(sorted(codes & shown) for codes in visits.values())
        if sorted(sorted(codes) for _, codes in mine.values()) != wanted:
            return {"content"}
    return set()


# Cohorts drawn from a master


def cohort_share(out: Path) -> Broken:
    """The form alone: k is about the master."""
    return visits_share(out) - {"guarantee"}


def cohort_truth(out: Path, truth: Truth) -> Broken:
    """Every member shows what the master shows."""

    def content(folder: Path) -> Counter[Any]:
        shown, records = visits_of(folder), rows_of(folder, "records.parquet")
        return Counter(
            (tuple(sorted(shown.get(row[0], {}).values())), row[1:]) for row in records.iter_rows()
        )

    return set() if content(out) == content(truth.out) else {"content"}


# Catalogues


def catalogue_rows(out: Path) -> list[tuple[tuple[str, ...], float]]:
    return [(tuple(items), count) for items, count in rows_of(out, "itemsets.parquet").iter_rows()]


def catalogue_share(out: Path) -> Broken:
    """Whole counts at or above the threshold of their size, parts listed, one value of a column, order and numbers."""
    rows, manifest = catalogue_rows(out), manifest_of(out)
    parameters = manifest["parameters"]
    levels = {level["size"]: level for level in parameters["levels"]}
    values = {f"{name}={value}": name for name, each in parameters["domains"].items() for value in each}
    listed = {frozenset(items) for items, _ in rows}
    broken: Broken = set()
    if len(listed) < len(rows) or rows != sorted(rows, key=lambda row: (len(row[0]), -row[1], row[0])):
        broken.add("rows")
    for items, count in rows:
        named = [values[item] for item in items if item in values]
        parts = [frozenset(items) - {item} for item in items]
        if (
            len(set(items)) < len(items)
            or len(set(named)) < len(named)
            or len(named) == len(items)
            or len(items) not in levels
            or count != int(count)
            or count < levels[len(items)]["threshold"]
            or any(part not in listed for part in parts if any(item not in values for item in part))
        ):
            broken.add("rows")
    sizes = Counter(len(items) for items, _ in rows)
    for size, level in levels.items():
        if sizes[size] != level["listed"] or level["listed"] > level["candidates"]:
            broken.add("levels")
        if abs(level["scale"] * level["epsilon"] / parameters["contributions"] - 1) > 1e-9:
            broken.add("guarantee")
        if size > 1 and level["candidates"] != tried(listed, size, values):
            broken.add("levels")
    if sum(level["epsilon"] for level in levels.values()) > manifest["guarantee"]["epsilon"] * (1 + 1e-9):
        broken.add("guarantee")
    return broken


def tried(listed: set[frozenset[str]], size: int, values: dict[str, str]) -> int:
    """How many sets of a size have every part with a term listed, and no two values of a column."""
    items = sorted({item for whole in listed for item in whole} | set(values))
    count = 0
    for each in combinations(items, size):
        named = [values[item] for item in each if item in values]
        parts = [frozenset(each) - {item} for item in each]
        count += len(set(named)) == len(named) < size and all(
            part in listed for part in parts if any(item not in values for item in part)
        )
    return count


def catalogue_truth(out: Path, truth: Truth) -> Broken:
    """What the ledger answered."""
    return set() if catalogue_rows(out) == catalogue_rows(truth.out) else {"content"}
