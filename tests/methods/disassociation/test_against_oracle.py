"""Fast equals plain, on data that makes clusters, chunks, joins and the empty-item-chunk condition."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from tests.methods.disassociation.shapes import (
    data_sets,
    fast,
    leaf_shapes,
    oracle_leaf_shapes,
    oracle_tree_shapes,
    tree_shapes,
)
from tests.oracles import disassociation as oracle

Drawn = tuple[oracle.Records, int, oracle.Parameters]


def assert_equal(drawn: Drawn, threads: int = 1) -> None:
    rows, n_codes, p = drawn
    leaves, nodes = oracle.disassociate(rows, p)
    done = fast(rows, n_codes, p, threads)
    assert leaf_shapes(done) == oracle_leaf_shapes(leaves)
    assert tree_shapes(done) == oracle_tree_shapes(nodes)


@given(data_sets())
def test_kernels_equal_the_oracle(drawn: Drawn) -> None:
    assert_equal(drawn)


@given(data_sets(nested=True))
def test_the_nested_variant_equals_the_oracle(drawn: Drawn) -> None:
    assert_equal(drawn)


def test_a_larger_set_with_skewed_codes_equals_the_oracle_on_two_threads() -> None:
    draw = random.Random(3)
    weights = [1 / (i + 1) for i in range(30)]
    rows = [frozenset(draw.choices(range(30), weights, k=draw.randint(1, 7))) for _ in range(900)]
    p = oracle.Parameters(5, 2, 10, {c: c // 4 for c in range(24)})
    assert_equal((rows, 30, p), threads=2)


def test_the_empty_item_chunk_condition_with_several_chunks_fires() -> None:
    """k = 3: two chunks of three subrecords each over five records need eight
    (docs/methods/disassociation.md#empty-item-chunks)."""
    a, b = frozenset({0}), frozenset({1})
    rows = [a, a, a | b, b, b]
    p = oracle.Parameters(k=3, m=2, max_cluster=6)
    leaf = oracle.make_leaf(rows, list(range(5)), p)
    assert oracle.verpart(rows, p) == ([(0,), (1,)], set())
    assert (leaf.chunks, leaf.items) == ([(0,)], {1})
    done = fast(rows, 2, p)
    assert done.condition_fired == 1
    assert leaf_shapes(done)[0][1:] == (((0,),), (1,))


def test_nonempty_subrecords_that_an_empty_item_chunk_needs() -> None:
    def holds(n: int, sizes: tuple[int, ...], k: int, m: int) -> bool:
        rows = [frozenset(c for c, size in enumerate(sizes) if r < size) for r in range(n)]
        return oracle.lemma_2_holds(rows, [(c,) for c in range(len(sizes))], k, m)

    assert [holds(5, s, 3, 2) for s in ((3, 3), (3, 4), (4, 4))] == [False, False, True]
    assert [holds(5, s, 2, 3) for s in ((3, 3, 2), (3, 3, 3))] == [False, True]
    assert [holds(5, s, 2, 2) for s in ((2, 2, 2), (2, 2, 3))] == [False, True]


def printed(
    rows: oracle.Records, ids: list[int], ignore: frozenset[int], p: oracle.Parameters
) -> list[list[int]]:
    """HorPart as Fig. 8 has it, without a policy: the part without the code starts with an empty `ignore`."""
    s = oracle.supports(rows, ids, ignore)
    if len(ids) < p.max_cluster or not s:
        return [ids]
    a = min(s, key=lambda code: (-s[code], code))
    d1, d2 = [r for r in ids if a in rows[r]], [r for r in ids if a not in rows[r]]
    return printed(rows, d1, ignore | {a}, p) + (printed(rows, d2, frozenset(), p) if d2 else [])


def test_an_empty_ignore_splits_by_a_code_that_all_hold() -> None:
    """All hold 0; among those without 1 it would be the most frequent code again, with nobody on its other side."""
    p = oracle.Parameters(k=2, m=2, max_cluster=3)
    without = [frozenset({0, 2}), frozenset({0, 2}), frozenset({0, 3})]
    assert oracle.supports(without, [0, 1, 2], frozenset()) == {0: 3, 2: 2, 3: 1}
    assert oracle.supports(without, [0, 1, 2], frozenset({0})) == {2: 2, 3: 1}
    rows = [frozenset({0, 1})] * 4 + without
    assert printed(rows, [*range(7)], frozenset(), p) == oracle.horpart(
        rows, [*range(7)], frozenset(), None, p
    )


@given(data_sets())
def test_without_a_policy_an_empty_ignore_gives_the_same_clusters(drawn: Drawn) -> None:
    rows, _, p = drawn
    p = replace(p, constraint={})
    everybody = [*range(len(rows))]
    assert printed(rows, everybody, frozenset(), p) == oracle.horpart(rows, everybody, frozenset(), None, p)
