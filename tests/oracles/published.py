"""Published disassociations for tests: random ones with the records they came from, the running example, a
writer."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from tests.forging import write_parquet
from tests.oracles.disassociation_checks import Chunk, Joint, Leaf, Tree, domain

from leeward.contracts.disassociation import CONTRACT
from leeward.contracts.readme import readme_of
from leeward.methods.disassociation import Disassociation
from leeward.release.content import Anonymized, Guarantee, ReleaseTable, manifest_of
from leeward.release.manifest import FileEntry, to_json_text
from leeward.release.tables import sha256_of

RECORDS = """296.00 296.01 296.02 834.0 944.01
296.00 296.01 296.02 692.71 695.10 944.01 401.0
296.00 296.02 692.71 695.10 834.0
296.00 296.01 692.71 401.0
296.00 296.01 296.02 692.71 695.10
296.03 295.04 404.00 480.1
294.10 296.03 834.0 944.01
294.10 295.04 296.03 480.1
294.10 295.04 404.00
294.10 295.04 296.03 834.0 944.01"""
POLICY = {
    "u1": "294.10 295.04 296.00 296.01 296.02 296.03",
    "u2": "692.71 695.10",
    "u3": "401.0 404.00",
    "u4": "480.1",
    "u5": "834.0 944.01",
}


def running_records() -> list[frozenset[str]]:
    return [frozenset(line.split()) for line in RECORDS.splitlines()]


def project(records: list[frozenset[str]], codes: str | set[str]) -> Chunk:
    wanted = frozenset(codes.split() if isinstance(codes, str) else codes)
    return [record & wanted for record in records]


def running_example() -> list[Tree]:
    """The release of docs/methods/disassociation.md#worked-example (k = 3, m = 2)."""
    records = running_records()
    p1, p2 = records[:5], records[5:]
    left = Leaf(5, [project(p1, "296.00 296.01 296.02"), project(p1, "692.71 695.10")], {"401.0"})
    right = Leaf(5, [project(p2, "294.10 295.04 296.03")], {"404.00", "480.1"})
    return [Joint([left, right], [project(records, "834.0 944.01")])]


def random_release(
    generator: random.Random, *, nested: bool = False, alphabet: str = "abcdefg"
) -> tuple[list[Tree], list[frozenset[str]]]:
    """A published form of random records, and the records: right in all but privacy."""
    trees: list[tuple[Tree, list[tuple[Leaf, list[frozenset[str]]]]]] = []
    everyone: list[frozenset[str]] = []
    for _ in range(generator.randint(1, 5)):
        size = generator.randint(2, 9)
        density = generator.choice([0.2, 0.4, 0.7])
        records = [
            frozenset(c for c in alphabet if generator.random() < density) or frozenset(alphabet[0])
            for _ in range(size)
        ]
        everyone += records
        place = {c: generator.randint(0, 3) for c in domain(records)}
        chunks = [project(records, {c for c in place if place[c] == i}) for i in range(2)]
        leaf = Leaf(size, [c for c in chunks if domain(c)], {c for c in place if place[c] >= 2})
        trees.append((leaf, [(leaf, records)]))
    while len(trees) > 1 and generator.random() < 0.7:
        (a, below_a), (b, below_b) = trees.pop(generator.randrange(len(trees))), trees.pop()
        leaves = below_a + below_b
        taken = set() if nested else codes_of_chunks(a) | codes_of_chunks(b)
        free = sorted({c for leaf, _ in leaves for c in leaf.items} - taken)
        chosen = {c for c in free if generator.random() < 0.6}
        parts = [{c for c in chosen if generator.random() < 0.5}]
        parts.append(chosen - parts[0])
        joint = Joint([a, b])
        for part in parts:
            if part:
                joint.shared.append(
                    [row for leaf, rows in leaves for row in project(rows, part & leaf.items)]
                )
        for leaf, _ in leaves:
            leaf.items -= chosen
        trees.append((joint, leaves))
    for tree, _ in trees:
        shuffle(tree, generator)
    return [tree for tree, _ in trees], everyone


def codes_of_chunks(tree: Tree) -> set[str]:
    if isinstance(tree, Leaf):
        return set().union(*map(domain, tree.chunks))
    return set().union(*map(domain, tree.shared), *map(codes_of_chunks, tree.children))


def shuffle(tree: Tree, generator: random.Random) -> None:
    for chunk in tree.chunks if isinstance(tree, Leaf) else tree.shared:
        generator.shuffle(chunk)
    if isinstance(tree, Joint):
        for child in tree.children:
            shuffle(child, generator)


def rows_of(forest: list[Tree]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of `nodes` and of `chunks`, nodes numbered in the order of a walk from the roots."""
    nodes: list[dict[str, Any]] = []
    chunks: list[dict[str, Any]] = []

    def add(tree: Tree, parent: int | None) -> None:
        number = len(nodes)
        leaf = isinstance(tree, Leaf)
        nodes.append(
            {"node": number, "parent": parent, "kind": "cluster" if leaf else "joint", "records": tree.size}
        )
        for i, chunk in enumerate(tree.chunks if isinstance(tree, Leaf) else tree.shared):
            kind = "record" if leaf else "shared"
            chunks.extend(
                {"node": number, "chunk": i, "kind": kind, "subrecord": j, "codes": sorted(row)}
                for j, row in enumerate(chunk)
            )
        if isinstance(tree, Leaf):
            if tree.items:
                row = {"kind": "item", "subrecord": None, "codes": sorted(tree.items)}
                chunks.append({"node": number, "chunk": len(tree.chunks), **row})
        else:
            for child in tree.children:
                add(child, number)

    for tree in forest:
        add(tree, None)
    return nodes, chunks


def write(
    folder: Path,
    forest: list[Tree],
    k: int,
    m: int,
    *,
    nodes: Any = None,
    chunks: Any = None,
    **manifest: Any,
) -> Path:
    """Write a release's share; `nodes` and `chunks` replace the rows of the forest (planted violations)."""
    own_nodes, own_chunks = rows_of(forest)
    data = folder / "share" / "data"
    data.mkdir(parents=True)
    schema = {"node": pl.Int64, "parent": pl.Int64, "kind": pl.String, "records": pl.Int64}
    of_chunks = {
        "node": pl.Int64,
        "chunk": pl.Int64,
        "kind": pl.String,
        "subrecord": pl.Int64,
        "codes": pl.List(pl.String),
    }
    write_parquet(pl.DataFrame(own_nodes if nodes is None else nodes, schema=schema), data / "nodes.parquet")
    write_parquet(
        pl.DataFrame(own_chunks if chunks is None else chunks, schema=of_chunks), data / "chunks.parquet"
    )
    listed = code_list(own_chunks if chunks is None else chunks)
    write_parquet(listed, data / "codes.parquet")
    method = Disassociation(k=k, m=m, attacker="operation", **_given(manifest.pop("parameters", {})))
    words = CONTRACT.words(method.public())
    made = Anonymized(
        method=manifest.pop("method", method.name),
        parameters=method.public(),
        guarantee=Guarantee.of(CONTRACT, words, method.public()),
        records=manifest.pop("records", sum(tree.size for tree in forest)),
        tables=(ReleaseTable.of("codes.parquet", listed.to_arrow()),),
        readme=words.readme,
        seeded=manifest.pop("seeded", False),
    )
    assert not manifest
    entries = [
        FileEntry(f"data/{name}", pl.read_parquet(data / name).height, sha256_of(data / name))
        for name in ("nodes.parquet", "chunks.parquet", "codes.parquet")
    ]
    content = manifest_of(made, entries)
    (folder / "share" / "release.json").write_text(to_json_text(content), encoding="utf-8")
    readme = readme_of(content, made.readme, CONTRACT)
    (folder / "share" / "README.md").write_text(readme, encoding="utf-8")
    return folder


def code_list(chunks: list[dict[str, Any]]) -> pl.DataFrame:
    """The codes of the chunks, without names; of `a#2`, a second mention, the code too."""
    shown = {code for row in chunks for code in row["codes"] or () if code is not None}
    codes = sorted(shown | {re.sub(r"#\d+$", "", code) for code in shown})
    rows = {
        "code": codes,
        "name": [""] * len(codes),
        "vocabulary": [""] * len(codes),
        "suppressed": [False] * len(codes),
    }
    schema = {"code": pl.String, "name": pl.String, "vocabulary": pl.String, "suppressed": pl.Boolean}
    return pl.DataFrame(rows, schema=schema)


def _given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters besides k and m."""
    return {key: value for key, value in parameters.items() if key not in ("k", "m")}
