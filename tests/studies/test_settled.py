"""The partitioning that `fitted` is compared with (benchmarks/settled.py): fast equals plain, item chunks shrink."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from tests.methods.disassociation.shapes import data_sets, flat, rules_of
from tests.oracles import disassociation as oracle
from tests.oracles import settle as plain

from leeward.methods.disassociation.horpart import Partition, horizontal_partition
from leeward.methods.disassociation.rules import Workers

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True, scope="module")
def benchmarks_can_be_imported() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(ROOT / "benchmarks"))
        yield


def leaves_of(partition: Partition) -> list[list[int]]:
    bounds = partition.leaf_offsets
    return [partition.order[a:b].tolist() for a, b in itertools.pairwise(bounds)]


@given(data_sets(most=50))
def test_settled_equals_the_oracle(drawn: tuple[oracle.Records, int, oracle.Parameters]) -> None:
    from settled import BLOCK, ROUNDS, TRIES, settle

    rows, n_codes, p = drawn
    rules, workers = rules_of(p, n_codes), Workers(2)
    first = horizontal_partition(*flat(rows), rules, workers)
    found = leaves_of(settle(*flat(rows), first, rules, workers))
    cap = 2 * p.max_cluster
    assert found == plain.settle(rows, leaves_of(first), p.k, cap, p.sensitive, BLOCK, ROUNDS, TRIES)
    assert min(map(len, found)) >= p.k
    before = plain.item_occurrences(rows, leaves_of(first), p.k, p.sensitive)
    assert plain.item_occurrences(rows, found, p.k, p.sensitive) <= before
