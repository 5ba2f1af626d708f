"""What a release must be, written plainly from docs/methods and the README, to judge mutations by: no verifier is used.

`share_breaks` looks at the share alone, `truth_breaks` at the share beside what is true of it: the source, and who and
what became of whom, taken from the custody of the release before it was changed. Both return the names of what is
broken; a share that nothing is broken of says true things that the guarantee covers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import polars as pl
from tests.mutations.copies import manifest_of, read
from tests.oracles.disassociation_checks import (
    Joint,
    Leaf,
    Tree,
    domain,
    has_overlap,
    is_km_anonymous,
    violates_lemma_2,
    violates_property_1,
)
from tests.verify.made import Case

Codes = tuple[str, ...]


@dataclass
class Truth:
    """What is true of a release: its source, its custody as it was, its rows as they were."""

    case: Case
    out: Path
    held: dict[Any, list[tuple[Any, str, float]]] = field(default_factory=dict)
    """Patient -> (visit, code, age) of the source, in its order."""

    def __post_init__(self) -> None:
        if self.case.cohort.events is not None:
            rows = self.case.cohort.events.select("patient", "visit", pl.col("code").cast(pl.String), "age")
            for patient, visit, code, age in rows.iter_rows():
                self.held.setdefault(patient, []).append((visit, code, age))

    def custody(self, name: str) -> pl.DataFrame:
        return read(self.out / "custody" / "data" / name)

    def payload(self) -> dict[Any, Codes]:
        """Patient -> payload."""
        names = manifest_of(self.out)["parameters"].get("payload") or []
        assert self.case.cohort.patients is not None
        return {row[0]: row[1:] for row in self.case.cohort.patients.select("patient", *names).iter_rows()}

    def patients(self) -> list[Any]:
        """The patients, ascending: a `place` of custody counts them."""
        return sorted(self.held)


Broken = set[str]


def rows_of(out: Path, name: str) -> pl.DataFrame:
    return read(out / "share" / "data" / name)


def numbered(values: Sequence[int], n: int) -> bool:
    return sorted(values) == list(range(n))


# Disassociation


def forest_of(out: Path) -> tuple[list[Tree], dict[int, Tree], Broken]:
    """The published clusters as nested objects, by node number, and what is wrong with their form."""
    broken: Broken = set()
    nodes, chunks = rows_of(out, "nodes.parquet"), rows_of(out, "chunks.parquet")
    made: dict[int, Tree] = {}
    for node, kind in nodes.select("node", "kind").iter_rows():
        made[node] = Leaf(0) if kind == "cluster" else Joint([])
    if len(made) != nodes.height or not set(nodes["kind"]) <= {"cluster", "joint"}:
        broken.add("nodes")
    if not numbered(sorted(made), len(made)):
        broken.add("nodes")
    roots = []
    for node, parent, records in nodes.select("node", "parent", "records").iter_rows():
        if isinstance(tree := made[node], Leaf):
            tree.size = records
        if parent is None:
            roots.append(tree)
        elif isinstance(above := made.get(parent), Joint):
            above.children.append(tree)
        else:
            broken.add("nodes")
    parts: dict[tuple[int, int], list[tuple[str, int | None, Codes]]] = {}
    for node, chunk, kind, number, codes in chunks.iter_rows():
        parts.setdefault((node, chunk), []).append((kind, number, tuple(codes)))
    places: dict[int, list[int]] = {}
    for (node, chunk), rows in sorted(parts.items()):
        places.setdefault(node, []).append(chunk)
        home, kinds = made.get(node), {kind for kind, _, _ in rows}
        if any(len(set(codes)) != len(codes) for _, _, codes in rows) or len(kinds) != 1 or home is None:
            broken.add("chunks")
            continue
        (kind,) = kinds
        sets = [frozenset(codes) for _, _, codes in rows]
        if (
            kind == "item"
            and isinstance(home, Leaf)
            and len(rows) == 1
            and not home.items
            and sets[0]
            and rows[0][1] is None
        ):
            home.items = set(sets[0])
            continue
        own = (
            home.chunks
            if isinstance(home, Leaf) and kind == "record"
            else home.shared
            if isinstance(home, Joint) and kind == "shared"
            else None
        )
        if (
            own is None
            or None in {n for _, n, _ in rows}
            or not numbered([n for _, n, _ in rows if n is not None], len(rows))
        ):
            broken.add("chunks")
            continue
        own.append(sets)
    if any(sorted(found) != list(range(len(found))) for found in places.values()):
        broken.add("chunks")
    return roots, made, broken


def disassociation_share(out: Path) -> Broken:
    manifest = manifest_of(out)
    k, m, parameters = manifest["guarantee"].get("k"), manifest["guarantee"].get("m"), manifest["parameters"]
    stated_k, rules = k, parameters["attacker"] == "rules"
    k += parameters["attacker"] in ("counts", "rules")  # codes are counted from k + 1 on
    roots, made, broken = forest_of(out)
    singles = parameters.get("attacker") in ("algorithm", "rules")
    stated = dict(rows_of(out, "nodes.parquet").select("node", "records").iter_rows())
    for node, tree in made.items():
        if tree.size != stated[node] or (isinstance(tree, Joint) and len(tree.children) < 2):
            broken.add("sizes")
        for chunk in tree.chunks if isinstance(tree, Leaf) else tree.shared:
            if singles and len(domain(chunk)) > 1:
                broken.add("guarantee")
            if len(chunk) > tree.size or (not all(chunk) if singles else len(chunk) < tree.size):
                broken.add("sizes")
            if not is_km_anonymous(chunk, k, m):
                broken.add("guarantee")
        if isinstance(tree, Leaf) and (tree.size < k or (not singles and violates_lemma_2(tree, k, m))):
            broken.add("guarantee")
        if isinstance(tree, Leaf) and rules and violates_lemma_2(tree, stated_k, m, spare=1):
            broken.add("guarantee")
    if sum(tree.size for tree in roots) != manifest["records"]:
        broken.add("sizes")
    try:
        if has_overlap(roots, apart=not rules) or violates_property_1(roots, k):
            broken.add("guarantee")
    except (AttributeError, RecursionError):
        broken.add("nodes")
    sensitive = set(parameters.get("sensitive") or ())
    for tree in made.values():
        for chunk in tree.chunks if isinstance(tree, Leaf) else tree.shared:
            shown = domain(chunk)
            if shown & sensitive:
                broken.add("sensitive")
            if parameters.get("safe") and any(
                all(y in row for row in chunk if x in row) for x in shown for y in shown if x != y
            ):
                broken.add("safe")
    return broken


def canonical(tree: Tree) -> Any:
    """A cluster without its numbers."""
    parts = tree.chunks if isinstance(tree, Leaf) else tree.shared
    filled = sorted((sorted(map(sorted, chunk)) for chunk in parts if domain(chunk)), key=repr)
    if isinstance(tree, Leaf):
        return ("cluster", tree.size, filled, sorted(tree.items))
    return ("joint", filled, sorted((canonical(child) for child in tree.children), key=repr))


def disassociation_truth(out: Path, truth: Truth) -> Broken:
    roots, made, _ = forest_of(out)
    before, _, _ = forest_of(truth.out)
    if sorted(map(canonical, roots), key=repr) == sorted(map(canonical, before), key=repr):
        return set()
    if not (truth.out / "custody/data/clusters.parquet").is_file():
        return single_counts(list(made.values()), truth)  # custody does not say who is in which cluster
    clusters = dict(truth.custody("clusters.parquet").iter_rows())
    gone = set()
    if (truth.out / "custody/data/suppressed.parquet").is_file():
        gone = set(truth.custody("suppressed.parquet").iter_rows())
    above: dict[int, list[Tree]] = {}
    numbers = {id(tree): node for node, tree in made.items()}

    def walk(tree: Tree, chain: list[Tree]) -> None:
        above[numbers[id(tree)]] = [tree, *chain]
        for child in tree.children if isinstance(tree, Joint) else ():
            walk(child, [tree, *chain])

    for tree in roots:
        walk(tree, [])
    found: dict[int, list[list[str]]] = {}
    for patient, rows in truth.held.items():
        codes = {code for _, code, _ in rows if (patient, code) not in gone}
        node = clusters[patient]
        if node not in above or not isinstance(made[node], Leaf):
            return {"content"}
        for tree in above[node]:
            for chunk in tree.chunks if isinstance(tree, Leaf) else tree.shared:
                mine = codes & domain(chunk)
                found.setdefault(id(chunk), []).append(sorted(mine))
                codes -= mine
            if isinstance(tree, Leaf):
                found.setdefault(id(tree.items), []).append(sorted(codes & tree.items))
                codes -= tree.items
        if codes:
            return {"content"}
    for tree in made.values():
        for chunk in tree.chunks if isinstance(tree, Leaf) else tree.shared:
            if sorted(found.get(id(chunk), [])) != sorted(map(sorted, chunk)):
                return {"content"}
        if isinstance(tree, Leaf) and tree.items != {
            code for mine in found.get(id(tree.items), []) for code in mine
        }:
            return {"content"}
    return set()


def single_counts(trees: list[Tree], truth: Truth) -> Broken:
    """No code is counted more often than the source has it; fewer are what suppression could have left."""
    chunks = [chunk for tree in trees for chunk in (tree.chunks if isinstance(tree, Leaf) else tree.shared)]
    shown = Counter(code for chunk in chunks for row in chunk for code in row)
    true = Counter(code for rows in truth.held.values() for code in {code for _, code, _ in rows})
    return {"content"} if shown - true else set()


# Constraints


def constraints_share(out: Path) -> Broken:
    manifest = manifest_of(out)
    k, m = manifest["guarantee"].get("k"), manifest["guarantee"].get("m")
    records, codes = rows_of(out, "records.parquet"), rows_of(out, "codes.parquet")
    broken: Broken = set()
    lists = [tuple(each) for each in records["codes"]]
    if not numbered(records["record"].to_list(), manifest["records"]) or any(
        len(set(e)) != len(e) for e in lists
    ):
        broken.add("records")
    members: list[str] = []
    labels = set()
    for label, mine, suppressed in codes.iter_rows():
        spelt = label if suppressed else mine[0] if len(mine) == 1 else "(" + ",".join(sorted(mine)) + ")"
        if bool(mine) == suppressed or spelt != label:
            broken.add("labels")
        members += [label] if suppressed else mine
        labels |= set() if suppressed else {label}
    if len(set(members)) != len(members) or any(set(each) - labels for each in lists):
        broken.add("labels")
    listed = [(suppressed, label) for label, _, suppressed in codes.iter_rows()]
    if listed != sorted(listed):
        broken.add("order")
    counts = Counter(
        s for each in lists for size in range(1, m + 1) for s in combinations(sorted(set(each)), size)
    )
    if any(count < k for count in counts.values()):
        broken.add("guarantee")
    return broken


def constraints_truth(out: Path, truth: Truth) -> Broken:
    codes = rows_of(out, "codes.parquet")
    label = {
        code: name for name, members, gone in codes.iter_rows() for code in ([name] if gone else members)
    }
    shown = {name for name, _, gone in codes.iter_rows() if not gone}
    held = {code for rows in truth.held.values() for _, code, _ in rows}
    if set(label) != held:
        return {"content"}
    image = Counter(
        tuple(sorted({label[code] for _, code, _ in rows} & shown)) for rows in truth.held.values()
    )
    broken = (
        set()
        if image == Counter(tuple(sorted(e)) for e in rows_of(out, "records.parquet")["codes"])
        else {"content"}
    )
    policy = dict(truth.custody("policy.parquet").select("code", "constraint").iter_rows())
    for members in codes["members"]:
        if len(members) > 1 and len({policy.get(code) for code in members}) != 1:
            broken.add("policy")
    return broken


# Censoring


def mentions(rows: Iterable[tuple[Any, str, float]]) -> Counter[str]:
    """How many visits recorded each code."""
    return Counter(code for _, code in {(visit, code) for visit, code, _ in rows})


def censoring_share(out: Path, truth: Truth) -> Broken:
    """With the population, of which the guarantee speaks."""
    manifest = manifest_of(out)
    parameters, k = manifest["parameters"], manifest["guarantee"].get("k")
    records = rows_of(out, "records.parquet")
    broken: Broken = set()
    lists = [list(each) for each in records["codes"]]
    if not numbered(records["record"].to_list(), manifest["records"]) or any(e != sorted(e) for e in lists):
        broken.add("records")
    assert truth.case.population is not None and truth.case.population.events is not None
    people: dict[Any, list[tuple[Any, str, float]]] = {}
    columns = truth.case.population.events.select("patient", "visit", pl.col("code").cast(pl.String), "age")
    for patient, *row in columns.iter_rows():
        people.setdefault(patient, []).append(tuple(row))  # type: ignore[arg-type]
    everyone = [mentions(rows) for rows in people.values()]
    for each in {tuple(e) for e in lists}:
        part = Counter(each)
        if sum(all(person[code] >= n for code, n in part.items()) for person in everyone) < k:
            broken.add("guarantee")
        if any(
            n > (parameters.get("caps") or {}).get(code, parameters.get("cap", n)) for code, n in part.items()
        ):
            broken.add("caps")
    return broken


def censoring_truth(out: Path, truth: Truth) -> Broken:
    records = rows_of(out, "records.parquet")
    names = [name for name in records.columns if name not in ("record", "codes")]
    parameters = manifest_of(truth.out)["parameters"]
    if names != (parameters.get("payload") or []):
        return {"payload"}
    before = rows_of(truth.out, "records.parquet")
    if Counter((tuple(c), *p) for _, c, *p in records.iter_rows()) == Counter(
        (tuple(c), *p) for _, c, *p in before.iter_rows()
    ):
        return set()
    patients, payload = truth.patients(), truth.payload()
    place = dict(truth.custody("records.parquet").select("record", "place").iter_rows())
    caps = dict(truth.custody("caps.parquet").select("code", "final_cap").iter_rows())
    if sorted(place) != sorted(records["record"].to_list()):
        return {"content"}
    for record, codes, *carried in records.iter_rows():
        patient = patients[place[record]]
        held, shown = mentions(truth.held[patient]), Counter(codes)
        if tuple(carried) != payload[patient] or any(held[code] < n for code, n in shown.items()):
            return {"content"}
        if parameters["scope"] in ("global", "raise") and shown != Counter(
            {c: min(n, caps[c]) for c, n in held.items() if min(n, caps[c])}
        ):
            return {"content"}
    return set()


# k-anonymity and condensation


def table_share(out: Path) -> Broken:
    manifest = manifest_of(out)
    table = rows_of(out, "table.parquet")
    broken = set() if table.height == manifest["records"] else {"rows"}
    names = manifest["parameters"].get("quasi_identifiers")
    if names and (
        not set(names) <= set(table.columns)
        or table.group_by(names).len()["len"].min() < manifest["guarantee"]["k"]
    ):
        broken.add("guarantee")
    return broken


def grouped(
    table: pl.DataFrame, groups: pl.DataFrame, number: str, first: int
) -> dict[int, list[tuple[Any, ...]]]:
    """Group -> its rows."""
    found: dict[int, list[tuple[Any, ...]]] = {}
    rows = table.rows()
    for place, group in groups.select(number, "group").iter_rows():
        if place - first < len(rows):
            found.setdefault(group, []).append(rows[place - first])
    return found


def ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row])


def k_anonymity_truth(out: Path, truth: Truth) -> Broken:
    table, before = rows_of(out, "table.parquet"), rows_of(truth.out, "table.parquet")
    if table.columns != before.columns or dict(table.schema) != dict(before.schema):
        return {"columns"}
    return set() if ordered(table.rows()) == ordered(before.rows()) else {"content"}


def twins(table: pl.DataFrame, original: pl.DataFrame) -> float:
    """The share of rows that a source row equals in all columns but one."""
    names = original.columns
    found = pl.zeros(table.height, dtype=pl.Int64, eager=True)
    for left_out in names:
        rest = [name for name in names if name != left_out]
        known = set(original.select(rest).rows())
        found += pl.Series([int(row in known) for row in table.select(rest).rows()])
    return (found > 0).sum() / table.height


def condensation_truth(out: Path, truth: Truth) -> Broken:
    """Levels, times and missing values of a group are its own; a number is near its own of that rank."""
    table, before = rows_of(out, "table.parquet"), rows_of(truth.out, "table.parquet")
    original = truth.case.cohort.patients
    assert original is not None
    if (
        table.columns != before.columns
        or dict(table.schema) != dict(before.schema)
        or table.height != before.height
    ):
        return {"columns"}
    if ordered(table.rows()) == ordered(before.rows()):
        return set()
    released = grouped(table, truth.custody("released_rows.parquet"), "record", 0)
    own = grouped(original.select(table.columns), truth.custody("source_rows.parquet"), "row", 1)
    stated = manifest_of(truth.out)["parameters"]
    times, coarse = set(stated.get("time") or ()), stated.get("coarsen_time")
    was = grouped(before, truth.custody("released_rows.parquet"), "record", 0)
    whole = set(original.rows())
    if twins(table, original) > 0.5:
        return {"near copies"}
    if sum(row in whole for row in table.rows()) > 1 + sum(row in whole for row in before.rows()):
        return {"verbatim"}
    for place, (name, kind) in enumerate(table.schema.items()):
        known = original[name].drop_nulls().unique().sort().to_list()
        step = min((b - a for a, b in pairwise(known)), default=0) if kind.is_numeric() else 0
        for group in own:
            mine, theirs = ([row[place] for row in rows[group]] for rows in (own, released))
            if mine.count(None) != theirs.count(None):
                return {"content"}
            a, b = (sorted(v for v in each if v is not None) for each in (mine, theirs))
            if name in times and coarse:  # medians of neighbours, as they were made
                a = sorted(row[place] for row in was[group])
            if not kind.is_numeric() or name in times or name == "event":
                if a != b:
                    return {"content"}
                continue
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                gap = max((abs(x - a[j]) for j in (i - 1, i + 1) if 0 <= j < len(a)), default=0)
                if abs(y - x) > gap / 2 + step / 2 + 1e-9:
                    return {"content"}
    return set()
