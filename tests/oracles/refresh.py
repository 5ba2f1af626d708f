"""Counting in the versions of a release, plainly and from their shares alone: nothing here is the product's.

Visits: every version, and every difference of two, is a bag of (record, set); of each set the records that show it are
counted, among records that were there before and among new ones. Disassociation: of every set of codes, the records of
every cluster that may hold it, added up over the clusters of a version or of a difference.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import polars as pl

Row = tuple[int, int, frozenset[str]]


def visits_of(share: Path) -> set[Row]:
    rows = pl.read_parquet(share / "data" / "visits.parquet").rows()
    return {(record, visit, frozenset(codes)) for record, visit, codes in rows}


def records_of(share: Path) -> set[int]:
    return set(pl.read_parquet(share / "data" / "records.parquet")["record"])


def rows_that_changed(shares: Sequence[Path]) -> int:
    """Rows of a version that a later one does not have."""
    return sum(len(visits_of(a) - visits_of(b)) for a, b in combinations(shares, 2))


def fewest(rows: set[Row]) -> int | None:
    """The fewest records that show one and the same set; None where there is no row."""
    held: dict[frozenset[str], set[int]] = defaultdict(set)
    for record, _, codes in rows:
        held[codes].add(record)
    return min(map(len, held.values()), default=None)


def views_of_visits(shares: Sequence[Path]) -> Iterator[tuple[str, int | None]]:
    """Every version; every difference; and of this the records that were in each version before it, and those that were
    not: whoever has several versions can tell all of them apart."""
    for number, share in enumerate(shares, 1):
        yield f"version {number}", fewest(visits_of(share))
    for (i, a), (j, b) in combinations(list(enumerate(shares, 1)), 2):
        new = visits_of(b) - visits_of(a)
        yield f"difference {i}-{j}", fewest(new)
        for n, each in enumerate(shares[:i], 1):
            known, shown = records_of(each), {record for record, _, _ in visits_of(each)}
            yield f"difference {i}-{j}, in version {n}", fewest({row for row in new if row[0] in known})
            yield (
                f"difference {i}-{j}, not in version {n}",
                fewest({row for row in new if row[0] not in known}),
            )
            yield f"difference {i}-{j}, shown in version {n}", fewest({row for row in new if row[0] in shown})
            yield (
                f"difference {i}-{j}, not shown in version {n}",
                fewest({row for row in new if row[0] not in shown}),
            )


def candidates(nodes: pl.DataFrame, chunks: pl.DataFrame, m: int) -> Counter[tuple[str, ...]]:
    """The records that may hold each set of at most m codes: in each cluster the least, over its chunks and those
    of the joint clusters above it, of the subrecords that hold the set's codes there; codes of item chunks may be
    anybody's."""
    above = dict(nodes.select("node", "parent").rows())
    size = dict(nodes.select("node", "records").rows())
    parts: dict[int, list[tuple[frozenset[str], Counter[tuple[str, ...]]]]] = defaultdict(list)
    items: dict[int, frozenset[str]] = {}
    for (node, _, kind), rows in chunks.group_by("node", "chunk", "kind"):
        sets = [sorted(codes) for codes in rows["codes"]]
        domain = frozenset().union(*sets)
        if kind == "item":
            items[node] = domain
        else:
            held = Counter(each for codes in sets for n in range(1, m + 1) for each in combinations(codes, n))
            parts[node].append((domain, held))
    found: Counter[tuple[str, ...]] = Counter()
    for leaf in nodes.filter(kind="cluster")["node"]:
        chain, own = [leaf], []
        while above[chain[-1]] is not None:
            chain.append(above[chain[-1]])
        for node in chain:
            own += parts[node]
        every = items.get(leaf, frozenset()).union(*(domain for domain, _ in own))
        for n in range(1, m + 1):
            for codes in combinations(sorted(every), n):
                pieces = ((tuple(code for code in codes if code in domain), held) for domain, held in own)
                least = min([size[leaf], *(held[piece] for piece, held in pieces if piece)])
                if least:
                    found[codes] += least
    return found


def views_of_chunks(shares: Sequence[Path], m: int) -> Iterator[tuple[str, int]]:
    """Every version and every difference: rows of nodes and chunks that a version adds to an earlier one."""
    tables = [
        [pl.read_parquet(share / "data" / f"{name}.parquet") for name in ("nodes", "chunks")]
        for share in shares
    ]
    for number, (nodes, chunks) in enumerate(tables, 1):
        yield f"version {number}", min(candidates(nodes, chunks, m).values())
    for (i, a), (j, b) in combinations(list(enumerate(tables, 1)), 2):
        known = set(a[0]["node"])
        nodes, chunks = (table.filter(~pl.col("node").is_in(list(known))) for table in b)
        assert set(nodes["parent"].drop_nulls()) <= set(nodes["node"])
        yield f"difference {i}-{j}", min(candidates(nodes, chunks, m).values())


def below(views: Mapping[str, int | None], k: int) -> dict[str, int]:
    return {name: least for name, least in views.items() if least is not None and least < k}
