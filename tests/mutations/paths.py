"""What releases of visits and trajectories must be, plainly (see `definitions`)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.mutations.copies import manifest_of
from tests.mutations.definitions import Broken, Truth, numbered, rows_of

from leeward.vocabulary import built_in

# Visits


def visits_of(out: Path) -> dict[int, dict[int, tuple[str, ...]]]:
    """Record -> visit -> codes."""
    found: dict[int, dict[int, tuple[str, ...]]] = {}
    for record, visit, codes in rows_of(out, "visits.parquet").iter_rows():
        found.setdefault(record, {})[visit] = tuple(codes)
    return found


def visits_share(out: Path) -> Broken:
    manifest = manifest_of(out)
    k, parameters = manifest["guarantee"].get("k"), manifest["parameters"]
    records, table = rows_of(out, "records.parquet"), rows_of(out, "visits.parquet")
    shown = visits_of(out)
    broken: Broken = set()
    if not numbered(records["record"].to_list(), manifest["records"]) or set(shown) - set(records["record"]):
        broken.add("records")
    if sum(map(len, shown.values())) != table.height or any(
        not numbered(list(v), len(v)) for v in shown.values()
    ):
        broken.add("visits")
    if any(not c or list(c) != sorted(set(c)) for v in shown.values() for c in v.values()):
        broken.add("sets")
    holders: Counter[Any] = Counter()
    for mine in shown.values():
        if parameters.get("level") == "visit":
            holders.update(set(mine.values()))
        elif parameters.get("level") == "code":
            holders.update({code for codes in mine.values() for code in codes})
    if any(count < k for count in holders.values()):
        broken.add("guarantee")
    if parameters.get("merge_visits") and any(len(v) > 1 for v in shown.values()):
        broken.add("visits")
    return broken


def visits_truth(out: Path, truth: Truth) -> Broken:
    records, before = rows_of(out, "records.parquet"), rows_of(truth.out, "records.parquet")
    shown, was = visits_of(out), visits_of(truth.out)
    carried, had = ({row[0]: row[1:] for row in each.iter_rows()} for each in (records, before))
    if records.columns != before.columns:
        return {"payload"}

    def content(visits: dict[int, dict[int, tuple[str, ...]]], payload: dict[int, Any]) -> Counter[Any]:
        return Counter(
            (tuple(sorted(visits.get(record, {}).values())), values) for record, values in payload.items()
        )

    if set(shown) <= set(carried) and content(shown, carried) == content(was, had):
        return set()
    merged = bool(manifest_of(truth.out)["parameters"].get("merge_visits"))
    patient_of = dict(truth.custody("patients.parquet").select("record", "patient").iter_rows())
    label = {
        code: name
        for code, name in truth.custody("codes.parquet").select("code", "label").iter_rows()
        if name
    }
    payload, k = truth.payload(), manifest_of(truth.out)["guarantee"]["k"]
    if sorted(carried) != sorted(patient_of) or any(
        payload[patient_of[r]] != tuple(v) for r, v in carried.items()
    ):
        return {"content"}
    images: dict[int, list[set[str]]] = {}
    for record, patient in patient_of.items():
        visits: dict[Any, set[str]] = {}
        for visit, code, _ in truth.held[patient]:
            if code in label:
                visits.setdefault(visit, set()).add(label[code])
        images[record] = list(visits.values())
    for record, mine in shown.items():
        own = [set().union(*images[record])] if merged else images[record]
        if not matched([set(c) for c in mine.values()], own):
            return {"content"}
    if merged:
        unions = {record: set().union(*map(set, mine.values())) for record, mine in shown.items()}
        for record, mine in unions.items():
            for image in images[record]:
                part = image & mine
                if part and sum(part <= other for other in unions.values()) < k:
                    return {"guarantee"}
    return set()


def matched(parts: list[set[str]], wholes: list[set[str]]) -> bool:
    """Whether each part can be given a whole of its own that contains it."""
    if not parts:
        return True
    return any(
        parts[0] <= whole and matched(parts[1:], wholes[:i] + wholes[i + 1 :])
        for i, whole in enumerate(wholes)
    )


# Trajectories


def tree_of(out: Path, name: str) -> dict[str, str]:
    """Node -> parent."""
    import csv

    with (out / "share" / "data" / name).open(newline="", encoding="utf-8") as stream:
        return {row[0]: row[1] for row in list(csv.reader(stream))[1:]}


def leaves_below(tree: dict[str, str]) -> dict[str, set[str]]:
    """Node -> its leaves."""
    inner = set(tree.values())
    found: dict[str, set[str]] = {node: set() for node in tree}
    for leaf in set(tree) - inner:
        at, seen = leaf, set()
        while at and at in tree and at not in seen:
            seen.add(at)
            found[at].add(leaf)
            at = tree[at]
    return found


def whole_tree(out: Path, truth: Truth) -> dict[str, str]:
    """The published hierarchy; the vocabulary's over all codes of the source where it is a built-in one."""
    published = tree_of(out, "code_hierarchy.csv")
    vocabulary = built_in(next(iter(published)))
    if vocabulary is None:
        return published
    held = sorted({code for rows in truth.held.values() for _, code, _ in rows})
    return dict(vocabulary.hierarchy(held).to_pairs())


def span(label: str) -> tuple[int, int]:
    first, _, last = label.partition("-")
    return int(first), int(last or first)


def trajectories_of(out: Path) -> dict[int, list[tuple[int, str, str]]]:
    found: dict[int, list[tuple[int, str, str]]] = {}
    for record, position, code, age in rows_of(out, "trajectories.parquet").iter_rows():
        found.setdefault(record, []).append((position, code, age))
    return found


def trajectories_share(out: Path) -> Broken:
    manifest = manifest_of(out)
    k, parameters = manifest["guarantee"].get("k"), manifest["parameters"]
    records, pairs = rows_of(out, "records.parquet"), trajectories_of(out)
    codes, ages = tree_of(out, "code_hierarchy.csv"), tree_of(out, "age_hierarchy.csv")
    broken: Broken = set()
    if not numbered(records["record"].to_list(), manifest["records"]) or set(pairs) - set(records["record"]):
        broken.add("records")
    for rows in pairs.values():
        if not numbered([position for position, _, _ in rows], len(rows)):
            broken.add("positions")
        reached = 0
        for _, code, age in sorted(rows):
            if code not in codes or age not in ages:
                broken.add("hierarchies")
                continue
            reached = max(reached, span(age)[0])
            if reached > span(age)[1]:
                broken.add("order of ages")
            if (
                parameters.get("widest_age")
                and age in set(ages.values())
                and span(age)[1] - span(age)[0] + 1 > parameters["widest_age"]
            ):
                broken.add("widest age")
    kinds = Counter(tuple((c, a) for _, c, a in sorted(pairs.get(r, []))) for r in records["record"])
    if any(count < k for count in kinds.values()):
        broken.add("guarantee")
    return broken


def trajectories_truth(out: Path, truth: Truth) -> Broken:
    for name in ("code_hierarchy.csv", "age_hierarchy.csv"):
        if tree_of(out, name) != tree_of(truth.out, name):
            return {"hierarchy"}
    records, before = rows_of(out, "records.parquet"), rows_of(truth.out, "records.parquet")
    if records.columns != before.columns:
        return {"payload"}

    def content(folder: Path, table: Any) -> Counter[Any]:
        pairs = trajectories_of(folder)
        return Counter(
            (tuple((c, a) for _, c, a in sorted(pairs.get(row[0], []))), row[1:]) for row in table.iter_rows()
        )

    if content(out, records) == content(truth.out, before):
        return set()
    patients, payload = truth.patients(), truth.payload()
    place = dict(truth.custody("records.parquet").select("record", "place").iter_rows())
    pairs = trajectories_of(out)
    codes = leaves_below(whole_tree(out, truth))
    if sorted(place) != sorted(records["record"].to_list()) or set(pairs) - set(place):
        return {"content"}
    for row in records.iter_rows():
        patient = patients[place[row[0]]]
        if tuple(row[1:]) != payload[patient]:
            return {"content"}
        held = sorted((int(age), code) for _, code, age in truth.held[patient])
        wanted = [(c, span(a)) for _, c, a in sorted(pairs.get(row[0], []))]
        if not stands_for(wanted, held, codes):
            return {"content"}
    return set()


def stands_for(wanted: list[Any], held: list[tuple[int, str]], below: dict[str, set[str]]) -> bool:
    """Whether the published pairs generalize distinct own pairs, in order of age (equal ages in any order)."""
    if not wanted:
        return True
    code, (low, high) = wanted[0]
    for i, (age, own) in enumerate(held):
        if low <= age <= high and own in below.get(code, ()):
            rest = [each for j, each in enumerate(held) if j != i and each[0] >= age]
            if stands_for(wanted[1:], rest, below):
                return True
    return False
