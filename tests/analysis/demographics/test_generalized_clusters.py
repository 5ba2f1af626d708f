"""The baseline of studies: clusters of demographics with Apriori inside (tests/oracles/generalized_clusters.py)."""

from __future__ import annotations

from tests.oracles.generalized_clusters import apriori, clusters, expected

TREE = {"*": "", "25": "*", "40": "*", "250": "25", "251": "25", "401": "40", "402": "40"}
RECORDS = [frozenset(r.split()) for r in ("250 401", "250 401", "251 402", "251", "250")]


def test_rare_codes_and_pairs_are_raised_until_every_set_has_k_records() -> None:
    label = apriori(RECORDS, TREE, 3, 1)
    assert label == {"250": "25", "251": "25", "401": "40", "402": "40"}
    assert apriori(RECORDS, TREE, 3, 2) == label  # {25, 40} is in three records
    assert set(apriori(RECORDS, TREE, 4, 2).values()) == {"*"}
    assert set(apriori(RECORDS[:2], TREE, 3, 2).values()) == {""}


def test_counts_of_a_raised_code_are_shared_by_what_is_below() -> None:
    label = apriori(RECORDS, TREE, 3, 1)
    leaves = {"25": 2, "40": 2, "*": 4}
    assert expected(RECORDS, label, frozenset({"250"}), leaves) == 5 / 2
    assert expected(RECORDS, label, frozenset({"250", "401"}), leaves) == 3 / 4
    assert expected(RECORDS, label, frozenset({"999"}), leaves) == 0


def test_clusters_have_k_records_and_the_rest_joins_the_nearest() -> None:
    vectors = [("F",)] * 4 + [("M",)] * 3
    losses = {(a, b): float(a != b) for a in (("F",), ("M",)) for b in (("F",), ("M",))}
    assert clusters(vectors, losses, 2) == [[0, 1], [2, 3], [4, 5, 6]]
    assert clusters(vectors, losses, 3) == [[0, 1, 2, 6], [3, 4, 5]]
