"""What numbers of subrecords say: the sums against the definition in the words of its module."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leeward.verify.disassociation.numbering import Sums, sums_of


def plain_zipped(
    member: np.ndarray, shown: np.ndarray, carried: np.ndarray, payload: int
) -> tuple[float, float]:
    """Over pairs of chunks, `payload` of them payload: the sum of C(i, i) above its mean, and its variance, of the
    whole table C."""
    excess = variance = 0.0
    count, n = member.shape
    for a in range(count):
        for b in range(a + 1, count):
            if int(carried[a]) + int(carried[b]) != payload:
                continue
            table = np.array(
                [
                    [((member[a] == shown[a, i]) & (member[b] == shown[b, j])).sum() for j in range(n)]
                    for i in range(n)
                ],
                float,
            )
            excess += np.trace(table) - table.sum() / n
            centred = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
            variance += (centred**2).sum() / (n - 1)
    return excess, variance


def plain_owners(member: np.ndarray, shown: np.ndarray, place: np.ndarray) -> tuple[float, float]:
    """Over chunks: the covariance of a subrecord's number with the mean place of the members who have its codes, and
    its variance, both scaled by the spread of the numbers."""
    excess = variance = 0.0
    count, n = member.shape
    for c in range(count):
        mean = np.array(
            [place[member[c] == word].mean() if (member[c] == word).any() else 0.0 for word in shown[c]]
        )
        mean -= mean.mean()
        moved = np.arange(n) - (n - 1) / 2
        scale = (moved**2).sum() / (n - 1)
        excess += (mean * moved).sum() / scale
        variance += (mean**2).sum() / scale
    return excess, variance


def sums_at(member: np.ndarray, shown: np.ndarray, owner: np.ndarray, carried: np.ndarray) -> Sums:
    """The sums of one node, a row a chunk."""
    count, n = member.shape
    return sums_of(member.ravel(), shown.ravel(), np.zeros(count, np.int64), owner, np.array([n]), carried)


@given(st.data(), st.integers(2, 12), st.integers(1, 4), st.integers(1, 5), st.randoms(use_true_random=False))
def test_sums_are_those_of_the_definition(
    data: st.DataObject, n: int, count: int, words: int, random: Random
) -> None:
    drawn = st.lists(st.integers(0, words), min_size=n, max_size=n)
    member = np.array([data.draw(drawn) for _ in range(count)], np.uint64)
    shown = np.array([data.draw(drawn) for _ in range(count)], np.uint64) + np.uint64(0)
    owner = np.array(random.sample(range(100), n), np.int64)
    carried = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    sums = sums_at(member, shown, owner, carried)
    ranks = np.argsort(np.argsort(owner)).astype(float)
    expected = [each for payload in range(3) for each in plain_zipped(member, shown, carried, payload)]
    for payload in range(2):
        mine = carried == payload
        expected += plain_owners(member[mine], shown[mine], ranks)
        expected += plain_owners(member[mine], shown[mine], np.arange(n, dtype=float))
    np.testing.assert_allclose(sums, np.reshape(expected, (-1, 2)), rtol=1e-9, atol=1e-9)


def test_subrecords_in_the_order_of_their_owners_are_seen() -> None:
    member = np.array([[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]], np.uint64)
    sums = sums_at(member, member, np.arange(6), np.zeros(2, np.bool_))
    assert sums[0, 0] / np.sqrt(sums[0, 1]) > 2
    assert sums[3, 0] / np.sqrt(sums[3, 1]) > 2


def test_sums_of_several_nodes_are_those_of_each_added() -> None:
    draws = np.random.Generator(np.random.Philox(key=3))
    sizes, chunks = np.array([5, 3, 7]), (2, 1, 3)
    nodes = [
        (draws.integers(0, 3, (count, n)).astype(np.uint64), draws.permutation(n))
        for n, count in zip(sizes, chunks, strict=True)
    ]
    shown = [draws.permuted(member, axis=1) for member, _ in nodes]
    carried = [np.arange(count) == 1 for count in chunks]
    together = sums_of(
        np.concatenate([member.ravel() for member, _ in nodes]),
        np.concatenate([each.ravel() for each in shown]),
        np.repeat(np.arange(3), chunks),
        np.concatenate([owner for _, owner in nodes]),
        sizes,
        np.concatenate(carried),
    )
    one_by_one = [
        sums_at(member, each, owner, payload)
        for (member, owner), each, payload in zip(nodes, shown, carried, strict=True)
    ]
    np.testing.assert_allclose(together, sum(one_by_one))
