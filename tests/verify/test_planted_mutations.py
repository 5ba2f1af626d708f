"""Mutations of the bench (benchmarks/mutations.py), each by its name, and the check that refutes it."""

from __future__ import annotations

from pathlib import Path

import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.mutations.planted import refuting

PLANTED: dict[str, dict[str, str]] = {
    "disassociation": {
        'parameter partitioning: "fitted" -> "paper"': "parameters_of_spec",
        "parameter max_cluster: 36 -> 37": "parameters_of_spec",
        "version is another, in the README too": "parameters_of_spec",
    },
    "disassociation, algorithm known": {
        'parameter policy: null -> "hierarchy:1"': "parameters_of_spec",
        "parameter max_cluster: 100 -> 101": "parameters_of_spec",
    },
    "disassociation, demographics": {
        "two chunks zipped to one": "subrecords_of_members",
        "item chunks of two clusters exchanged": "codes_of_members",
        "an item code moved to another cluster": "codes_of_members",
        "chunks.parquet: the last row lost": "codes_of_members",
        "payload: two values exchanged between clusters": "subrecords_of_members",
        "payload: in the order of the source": "zipped_subrecords",
        "payload: in the order of a chunk's subrecords": "zipped_subrecords",
        "subrecords of a cluster in one shuffled order": "zipped_subrecords",
    },
    "constraints": {
        "records.parquet: codes: codes in another order": "labels_in_order",
        "codes.parquet: members: codes in another order": "labels_in_order",
        "parameter policy gone": "parameters_of_spec",
        'parameter privacy claimed: "listed"': "parameters",
    },
    "trajectories": {
        "two records exchange payload": "own_patients",
        "two records of a group exchange payload": "own_patients",
        "code_hierarchy.csv: rows reversed": "hierarchies_depth_first",
        "age_hierarchy.csv: a node under another parent": "spans_of_ages",
        "code_hierarchy.csv: a node renamed": "hierarchy_lists_common_codes",
        'parameter hierarchy: "icd9" -> "custom"': "hierarchy_named",
    },
    "visits": {"two records exchange payload": "payload_of_patients"},
    "linked": {
        "a visit more": "own_visits",
        'parameter views: ["patients+events"] -> ["patients+events+events"]': "parameters_of_spec",
    },
    "linked, days and demographics": {"a visit more": "own_rows"},
    "catalogue": {'parameter row: "note" -> "patient"': "parameters_of_spec"},
    "condensation": {
        "parameter strata gone": "parameters_of_spec",
        "parameter time gone": "parameters_of_spec",
        "one column shuffled over the whole table": "values_of_groups",
        "dose: exchanged between neighbouring groups": "values_of_groups",
        "all rows are the source's but for 1 in a column": "near_twins",
        "all rows are the source's but for 1 in two columns": "near_twins",
    },
}
"""Release -> mutation -> the check that refutes it beside source and custody."""

ALONE: dict[str, dict[str, str]] = {
    "disassociation, demographics": {
        "payload: sorted inside clusters": "payload_shuffled",
        "payload: columns in turn": "payload_counts",
        "codes of every list reversed": "codes_ascend",
    },
    "disassociation, algorithm known": {
        'parameter partitioning: "ranked" -> "fitted"': "parameters",
        "parameter safe: true -> false": "parameters",
        "parameter nested: true -> false": "parameters",
    },
    "trajectories": {"parameter listed_codes gone": "parameters"},
    "visits": {"parameter merge_visits claimed: true": "one_set_a_record"},
    "visits, generalized": {
        "code_hierarchy.csv: rows reversed": "code_hierarchy",
        "code_hierarchy.csv: a node twice": "code_hierarchy",
        "code_hierarchy.csv: a node more": "code_hierarchy",
    },
    "catalogue": {
        "every pair turned": "order",
        "values of a domain in another order": "order",
        "records is another": "layout",
    },
}
"""The same of the share alone."""


@pytest.mark.parametrize(
    ("release", "mutation", "check"),
    [(release, mutation, check) for release, found in PLANTED.items() for mutation, check in found.items()],
)
def test_the_check_refutes_the_mutation(release: str, mutation: str, check: str, tmp_path: Path) -> None:
    assert check in refuting(release, mutation, tmp_path / "out")


@pytest.mark.parametrize(
    ("release", "mutation", "check"),
    [(release, mutation, check) for release, found in ALONE.items() for mutation, check in found.items()],
)
def test_the_share_alone_shows_the_mutation(release: str, mutation: str, check: str, tmp_path: Path) -> None:
    assert check in refuting(release, mutation, tmp_path / "out", alone=True)
