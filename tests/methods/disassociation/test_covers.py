"""Which codes give away which, against a count from the released rows
(docs/methods/disassociation.md#cover-problem)."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from tests.methods.disassociation.test_measures import cohort_of
from tests.oracles.published import random_release, rows_of, running_example, running_records, write

from leeward.methods.disassociation.measures.placement import covers, placement
from leeward.methods.disassociation.measures.published import read


def test_the_running_example_names_its_codes(tmp_path: Path) -> None:
    published = read(write(tmp_path / "out", running_example(), 3, 2))
    found = placement(published, cohort_of(running_records()).code_sets(), {})["covers"]
    rows = [tuple(each.values()) for each in found["codes"]]
    assert rows == [
        ("296.01", "296.00", 1, 4, 4),
        ("296.02", "296.00", 1, 4, 4),
        ("695.10", "692.71", 1, 3, 3),
    ]
    assert found["everywhere"] == 3  # these codes are nowhere else: the files alone tell


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_pairs_are_those_of_the_released_rows(tmp_path: Path, seed: int, nested: bool) -> None:
    forest, _ = random_release(random.Random(seed), nested=nested)
    _, rows = rows_of(forest)
    chunks: dict[tuple[int, int], list[frozenset[str]]] = defaultdict(list)
    for row in rows:
        chunks[row["node"], row["chunk"]].append(frozenset(row["codes"]))
    item = {(row["node"], row["chunk"]) for row in rows if row["kind"] == "item"}
    listed = Counter(code for records in chunks.values() for code in frozenset().union(*records))
    clusters: Counter[tuple[str, str]] = Counter()
    patients: Counter[tuple[str, str]] = Counter()
    for place, records in chunks.items():
        codes = frozenset().union(*records) if place not in item else frozenset()
        for x in codes:
            holding = [record for record in records if x in record]
            for y in frozenset.intersection(*holding) - {x}:
                clusters[x, y] += 1
                patients[x, y] += len(holding)
    found = covers(read(write(tmp_path / "out", forest, 2, 2)), most=1_000)
    expected = sorted((-patients[pair], *pair, clusters[pair]) for pair in clusters)
    assert [(-e["patients"], e["code"], e["reveals"], e["clusters"]) for e in found["codes"]] == expected
    assert found["pairs"] == clusters.total()
    assert found["everywhere"] == sum(n == listed[x] for (x, _), n in clusters.items())
