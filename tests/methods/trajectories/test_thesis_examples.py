"""Every worked figure of the thesis's chapter IV (docs/methods/trajectories.md#worked-examples), against the oracle;
Fig. 7 and the example of page 22 against the kernel too."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.trajectories.frames import as_released
from tests.oracles.trajectories import (
    Tree,
    a_gs,
    average_relative_error,
    baseline,
    cheapest_matching,
    full_binary,
    iloss,
    losses,
    mdav,
    probability,
    workload,
)

from leeward.methods.trajectories import measures
from leeward.methods.trajectories.hierarchies import make_space
from leeward.methods.trajectories.kernels import alignment as kernels
from leeward.methods.trajectories.records import Pairs
from leeward.vocabulary import age as ages
from leeward.vocabulary.hierarchy import Hierarchy

HYPERTENSION = [("401", None), ("401.0", "401"), ("401.1", "401"), ("401.9", "401")]
ICD = Tree(HYPERTENSION)
AGE = full_binary(33, 40)
AGES = ages.binary(33, 40)
SPACE = make_space(Hierarchy.from_pairs(HYPERTENSION), AGES)
AS_PRINTED = (
    (("401.1", "33"), ("401.1", "34"), ("401.1", "35")),
    (("401.1", "38"), ("401.1", "40")),
    (("401.9", "38"), ("401.1", "40")),
    (("401.9", "33"), ("401.1", "33"), ("401.1", "34"), ("401.1", "35")),
    (("401.1", "39"), ("401.9", "40")),
    (("401.1", "40"), ("401.9", "40")),
)
FIGURE_3A = tuple(tuple(sorted(T, key=lambda p: (int(p[1]), p[0]))) for T in AS_PRINTED)


def rows(text):
    return [[F(x) for x in line.split()] for line in text.strip().splitlines()]


def named(clusters):
    return [({r + 1 for r in members}, rep) for members, rep in clusters]


def aligned_by_kernel(X, Y):
    """The pairs that the kernel makes of X and Y, and its tables G and M."""
    trees = SPACE.code.hierarchy, SPACE.age.hierarchy
    xc, xa, yc, ya = (
        tree.nodes_of([pair[place] for pair in T]).astype(np.int32)
        for T in (X, Y)
        for place, tree in enumerate(trees)
    )
    G, M = np.zeros((len(X), len(Y)), np.int64), np.zeros((len(X) + 1, len(Y) + 1), np.int64)
    record = Pairs(np.array([0, len(Y)]), yc, ya)
    kept = kernels.align(xc, xa, len(X), 0, record, SPACE.axes(), G, M)
    labels = [
        [tree.labels[node] for node in nodes[:kept]] for tree, nodes in zip(trees, (xc, xa), strict=True)
    ]
    return tuple(zip(*labels, strict=True)), G, M


def losses_by_kernel(X, Y, weight):
    """ILM and ALM of X and Y: 1 for each suppressed pair, and the losses of both sides of each match."""
    pairs, _, _ = aligned_by_kernel(X, Y)
    lost = [F(len(X) + len(Y)), F(len(X) + len(Y))]
    for pair in pairs:
        for place, (label, axis) in enumerate(zip(pair, (SPACE.code, SPACE.age), strict=True)):
            tree = axis.hierarchy
            lost[place] -= 2 * (1 - F(int(tree.deltas[tree.index[label]]), tree.n_leaves))
    return lost[0] * weight, lost[1] * weight


def test_example_4_loss_metric():
    """Example 4, and the leaf that Fig. 7 needs: 33 to [33-34] is .25 there, (2 - 0)/8 and not (2 - 1)/8."""
    assert AGE.loss("33-34", "33-36") == F(1, 4)
    assert AGE.loss("36", "35-36") == F(2, 8)
    assert ICD.loss("401.1", "401") == 1
    assert ICD.loss("401.1", "401.1") == 0


def test_claim_that_the_lca_of_36_and_37_is_the_whole_domain():
    assert AGE.lca("36", "37") == "33-40"


def test_figure_7_matrices():
    aligned = a_gs(AS_PRINTED[3], AS_PRINTED[0], ICD, AGE)
    i, a, r = aligned.matrices
    assert i == rows("0 .5 1 1.5\n .5 1 1.5 2\n 1 .5 1 1.5\n 1.5 1 .5 1\n 2 1.5 1 .5")
    assert a == rows("0 .5 1 1.5\n .5 0 .5 1\n 1 .5 .25 .75\n 1.5 1 .5 .75\n 2 1.5 1 .5")
    assert ["".join(row[1:]) for row in r[1:]] == ["↘←←", "↘↘←", "↑↘↘", "↑↑↘"]
    assert aligned.pairs == (("401.1", "33"), ("401.1", "34"), ("401.1", "35"))
    assert (aligned.ilm, aligned.alm) == (F(1, 2), F(1, 2))


def test_figure_7_matrices_of_the_kernel():
    """The kernel keeps savings, M, where the thesis keeps losses: i + a = h + j - 2 M. The entries of i and a are the
    losses of the kernel's own alignments of the first h pairs with the first j."""
    X, Y = AS_PRINTED[3], AS_PRINTED[0]
    i, a, r = a_gs(X, Y, ICD, AGE).matrices  # as printed: test_figure_7_matrices
    pairs, G, M = aligned_by_kernel(X, Y)
    assert pairs == (("401.1", "33"), ("401.1", "34"), ("401.1", "35"))
    for h in range(len(X) + 1):
        for j in range(len(Y) + 1):
            assert losses_by_kernel(X[:h], Y[:j], F(1, 2)) == (i[h][j], a[h][j])
            assert i[h][j] + a[h][j] == h + j - 2 * F(int(M[h, j]), SPACE.unit)
            if h and j:
                assert "↘←↑"[kernels.direction(h, j, G, M)] == r[h][j]


def test_example_of_page_22_unweighted():
    X = (("401.1", "34"), ("401.1", "35"), ("401.1", "37"))
    Y = (("401.1", "34"), ("401.1", "36"))
    aligned = a_gs(X, Y, ICD, AGE, 1, 1)
    assert (aligned.ilm, aligned.alm) == (1, F(3, 2))
    assert aligned.pairs == (("401.1", "34"), ("401.1", "35-36"))
    assert aligned_by_kernel(X, Y)[0] == aligned.pairs
    assert losses_by_kernel(X, Y, 1) == (1, F(3, 2))


def test_distances_of_figure_3a():
    def d(T, i, j):
        return a_gs(T[i - 1], T[j - 1], ICD, AGE).cost

    assert [d(FIGURE_3A, 1, j) for j in range(1, 7)] == [0, 3, 4, 1, 4, 4]
    assert d(FIGURE_3A, 2, 3) == 1
    assert d(FIGURE_3A, 5, 6) == F(1, 4)
    assert d(AS_PRINTED, 4, 5) == 5
    assert d(FIGURE_3A, 4, 5) == 4


@pytest.mark.parametrize("records", [FIGURE_3A, AS_PRINTED], ids=["sorted", "as printed"])
def test_figure_3c_mdav_at_k_2(records):
    clusters = mdav(records, 2, ICD, AGE)
    assert named(clusters) == [
        ({5, 6}, (("401.1", "39-40"), ("401.9", "40"))),
        ({3, 2}, (("401", "38"), ("401.1", "40"))),
        ({4, 1}, (("401.1", "33"), ("401.1", "34"), ("401.1", "35"))),
    ]
    assert losses(records, clusters, ICD, AGE) == (F(5, 24), F(1, 12))


def test_definition_1_counts_in_the_release():
    """Figure 3c is the thesis's 2-anonymous example: each of its trajectories is twice in it, and two are not in D."""
    published = [rep for members, rep in mdav(FIGURE_3A, 2, ICD, AGE) for _ in members]
    assert {published.count(rep) for rep in published} == {2}
    assert [FIGURE_3A.count(rep) for rep in dict.fromkeys(published)] == [0, 0, 1]


def test_figure_3a_mdav_at_k_3():
    clusters = mdav(FIGURE_3A, 3, ICD, AGE)
    assert named(clusters) == [
        ({5, 6, 2}, (("401.1", "37-40"), ("401", "40"))),
        ({3, 1, 4}, (("401", "33-40"), ("401.1", "33-40"))),
    ]
    assert losses(FIGURE_3A, clusters, ICD, AGE) == (F(41, 72), F(5, 8))


def test_baseline_on_figure_3a():
    two = mdav(FIGURE_3A, 2, ICD, AGE, align=baseline)
    assert [members for members, _ in named(two)] == [{5, 6}, {3, 2}, {4, 1}]
    assert two[2][1] == (("401.1", "33"), ("401", "33-34"), ("401.1", "33-36"))
    assert losses(FIGURE_3A, two, ICD, AGE, align=baseline) == (F(11, 36), F(5, 32))
    three = mdav(FIGURE_3A, 3, ICD, AGE, align=baseline)
    assert [members for members, _ in named(three)] == [{5, 6, 2}, {3, 1, 4}]
    assert losses(FIGURE_3A, three, ICD, AGE, align=baseline) == (F(3, 4), F(5, 8))


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_baseline_publishes_as_many_pairs_as_the_shortest_member(k):
    """Algorithm 2, steps 3 to 9, whatever k. Of Figure 3a some value is below its root for k up to 3; above, all are
    the root, which Definition 3 calls suppressed."""
    clusters = mdav(FIGURE_3A, k, ICD, AGE, align=baseline)
    for members, rep in clusters:
        assert len(rep) == min(len(FIGURE_3A[r]) for r in members) > 0
    values = {value for _, rep in clusters for pair in rep for value in pair}
    assert k > 3 or values - {ICD.root, AGE.root}
    lost = losses(FIGURE_3A, clusters, ICD, AGE, align=baseline)
    assert k > 3 or min(lost) < 1


def test_running_value_undercounts_the_true_loss():
    records = [(("401.1", v),) for v in ("33", "34", "37")]
    rep, running = records[0], 0
    for T in records[1:]:
        step = a_gs(rep, T, ICD, AGE, 1, 1, start=(0, running))
        rep, running = step.pairs, step.alm
    assert running == F(9, 4)
    assert 3 * losses(records, [([0, 1, 2], rep)], ICD, AGE)[1] == 3


def test_query_on_figure_3c():
    clusters = mdav(FIGURE_3A, 2, ICD, AGE)
    published = [rep for members, rep in clusters for _ in members]
    assert sum(probability((("401.1", "39"),), T, ICD, AGE) for T in published) == 1
    assert len(workload(FIGURE_3A, 1)) == 24
    assert average_relative_error(FIGURE_3A, published, ICD, AGE, 1) == (F(7, 18), 24)


def published_at_k_2():
    """Figure 3c, a published trajectory for each record of Figure 3a."""
    of_record = {r: rep for members, rep in mdav(FIGURE_3A, 2, ICD, AGE) for r in members}
    return [of_record[r] for r in range(len(FIGURE_3A))]


def test_range_query_on_figure_3c():
    """Footnote 8 of the thesis, with the ages from 36 to 39."""
    published = published_at_k_2()
    asked = (("401.1", "36"),)
    assert sum(probability(asked, T, ICD, AGE, 4) for T in published) == F(5, 3)
    assert workload(FIGURE_3A, 1, 4)[asked] == 2
    expected, queries = average_relative_error(FIGURE_3A, published, ICD, AGE, 1, 4)
    both = as_released(FIGURE_3A, published, SPACE.code.hierarchy, AGES)
    found = measures.avgre(both, 1 / 6, years=4)
    assert (found["queries"], found["avgre"]) == (queries, pytest.approx(float(expected)))


def test_iloss_of_figure_3c():
    published = published_at_k_2()
    assert iloss(FIGURE_3A, published, ICD, 0) == F(5, 36)
    assert iloss(FIGURE_3A, published, AGE, 1) == F(11, 192)
    both = as_released(FIGURE_3A, published, SPACE.code.hierarchy, AGES)
    expected = {"code": 5 / 36, "age": 11 / 192, "both": 113 / 1152}
    assert measures.loss(both)["iloss"] == pytest.approx(expected)


PAIRS = st.tuples(st.sampled_from([*ICD.leaves, "401"]), st.sampled_from(list(AGE.parent)))
SHORT = st.lists(PAIRS, max_size=4).map(tuple)


@settings(max_examples=150, deadline=None)
@given(X=SHORT, Y=SHORT, w=st.sampled_from([F(0), F(1, 10), F(1, 2), F(3, 4), F(1)]))
def test_alignment_costs_what_exhaustive_search_finds(X, Y, w):
    assert a_gs(X, Y, ICD, AGE, w, 1 - w).cost == cheapest_matching(X, Y, ICD, AGE, w, 1 - w)


@settings(max_examples=100, deadline=None)
@given(
    X=SHORT,
    Y=st.lists(st.tuples(st.sampled_from(ICD.leaves), st.sampled_from(AGE.leaves)), max_size=4).map(tuple),
    times=st.integers(1, 6),
)
def test_the_alignment_is_the_same_whatever_the_weight_of_the_cluster(X, Y, times):
    one, many = a_gs(X, Y, ICD, AGE), a_gs(X, Y, ICD, AGE, times=times)
    assert one.pairs == many.pairs
