"""Count estimates: the table of docs/methods/disassociation.md#worked-example, the plain version, and bounds that
hold the truth."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import estimates as plain
from tests.oracles.disassociation_checks import Leaf
from tests.oracles.published import POLICY, project, random_release, running_example, running_records, write

from leeward.errors import BadInput
from leeward.methods.disassociation.measures.estimates import (
    estimates,
    estimates_of_numbers,
    item_mean,
    matching,
)
from leeward.methods.disassociation.measures.published import part, read
from leeward.release import Release
from leeward.runs.estimate import estimate

TABLE = """296.00, 692.71 | 4 | 4 | 4 | 4
296.01, 692.71 | 3 | 3 | 3.2 | 4
296.01, 834.0 | 1 | 0 | 1.6 | 4
834.0, 944.01 | 3 | 3 | 3 | 3
401.0 | 2 | 1 | 1.5 | 5
295.04, 480.1 | 2 | 0 | 1.2 | 4
294.10, 295.04, 296.03 | 2 | 2 | 2 | 2
296.00, 294.10 | 0 | 0 | 0 | 0"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("running") / "out", running_example(), 3, 2)


@pytest.mark.parametrize("line", TABLE.splitlines())
def test_the_table_of_section_1_8(running: Path, line: str) -> None:
    codes, true, low, expected, high = line.split("|")
    wanted = frozenset(codes.strip().split(", "))
    found = estimate(running / "share", wanted, prior="uniform")
    assert (found.low, found.high) == (int(low), int(high))
    assert found.expected == pytest.approx(float(expected), abs=1e-12)
    assert sum(wanted <= record for record in running_records()) == int(true)
    exact = plain.estimate(running_example(), wanted, 3, "uniform")
    assert (found.low, found.expected, found.high) == pytest.approx(exact)


def test_a_release_of_several_row_groups_is_read_as_one_of_a_single_group(
    running: Path, tmp_path: Path
) -> None:
    """Their dictionaries differ, which Arrow does not read at once."""
    shutil.copytree(running, tmp_path / "cut")
    release, file = Release.open(tmp_path / "cut"), tmp_path / "cut/share/data/chunks.parquet"
    pq.write_table(pq.read_table(file), file, row_group_size=2)
    queries = [[code] for code in read(running).codes]
    whole, cut = estimates(read(running), queries), estimates(read(release), queries)
    assert pq.read_metadata(file).num_row_groups > 2
    assert (whole.low == cut.low).all() and (whole.high == cut.high).all()
    assert (whole.expected == cut.expected).all()


def test_the_smallest_upper_bound_of_section_1_8_is_k(running: Path) -> None:
    records = running_records()
    sets = {frozenset({a, b}) for record in records for a in record for b in record}
    found = estimates(read(running), [sorted(s) for s in sets])
    assert found.high.min() == 3


@pytest.mark.parametrize(("name", "mre"), [("u1", 0), ("u2", 0), ("u3", 0.25), ("u5", 0)])
def test_mre_of_section_1_8(running: Path, name: str, mre: float) -> None:
    codes = frozenset(POLICY[name].split())
    true = sum(bool(codes & record) for record in running_records())
    found = matching(read(running), [codes], "uniform")[0]
    assert (true - found) / true == pytest.approx(mre, abs=1e-12)


def test_priors() -> None:
    assert item_mean(5, 9, "uniform") == 2.5
    assert item_mean(5, 9, "one") == 1.0
    assert item_mean(5, 9, "cubic") == pytest.approx(
        (1 + 1 / 4 + 1 / 9 + 1 / 16) / (1 + 1 / 8 + 1 / 27 + 1 / 64)
    )
    assert item_mean(5, 2, "uniform") == 1.5
    with pytest.raises(BadInput, match="prior"):
        item_mean(5, 9, "square")


@given(
    seed=st.integers(0, 2**32),
    nested=st.booleans(),
    k=st.integers(2, 6),
    prior=st.sampled_from(["occupancy", "cubic", "graded", "uniform", "one"]),
    made=st.sampled_from(["occupancy", "fitted_occupancy", "classed_occupancy"]),
)
def test_estimates_equal_the_plain_version_and_hold_the_truth(
    tmp_path_factory: pytest.TempPathFactory, seed: int, nested: bool, k: int, prior: str, made: str
) -> None:
    """`made`: by another partitioning, fitted, or fitted in classes, of which the one is asked that is the forest."""
    generator = random.Random(seed)
    forest, records = random_release(generator, nested=nested)
    classed = made == "classed_occupancy"
    published = read(write(tmp_path_factory.mktemp("release") / "out", forest * (1 + classed), k, 2))
    published = replace(published, fitted=made != "occupancy")
    if classed:
        second = np.arange(len(published.parent)) * 2 >= len(published.parent)
        published = part(replace(published, of_class=second.astype(np.int64)), np.array([1]))
    codes = sorted(set().union(*records))
    queries = [[], *[generator.sample(codes, generator.randint(1, min(6, len(codes)))) for _ in range(30)]]
    found = estimates(published, queries, prior)
    own = {"graded": plain.grades, "occupancy": getattr(plain, made)}
    plain_prior = own[prior](forest) if prior in own else prior
    for i, query in enumerate(queries[classed:], classed):  # no code: all classes
        wanted = frozenset(query)
        low, expected, high = plain.estimate(forest, wanted, k, plain_prior)
        assert (found.low[i], found.high[i]) == (low, high)
        assert found.expected[i] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert low <= sum(wanted <= record for record in records) <= high
    matches = matching(published, queries, prior)
    assert matches == pytest.approx([plain.matching(forest, frozenset(q), k, plain_prior) for q in queries])


def test_an_unknown_code_is_an_error_not_a_count_of_nobody(running: Path) -> None:
    with pytest.raises(BadInput, match=r"no code `999\.99` in this release"):
        estimate(running, ["296.00", "999.99"])


def test_a_set_in_one_chunk_is_exact_beyond_64_subrecords(tmp_path: Path) -> None:
    generator = random.Random(5)
    records = [frozenset(c for c in "abc" if generator.random() < 0.5) for _ in range(300)]
    published = read(write(tmp_path / "out", [Leaf(300, [project(records, {"a", "b", "c"})], {"z"})], 3, 2))
    true = sum(frozenset("ac") <= record for record in records)
    found = estimates(published, ["ac", "az", "abc"])
    assert (found.low[0], found.expected[0], found.high[0]) == (true, true, true)
    assert found.high[1] == sum("a" in record for record in records)
    assert np.all(found.low <= found.high)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_an_item_chunk_code_has_as_many_records_of_a_cluster_as_is_said(running: Path, most: int) -> None:
    """480.1 stands in an item chunk of one cluster, of five records."""
    published = read(running)
    query = [np.array([published.number["480.1"]], np.int32)]
    all_alike = np.full(len(published.entry_node), most)
    assert estimates_of_numbers(published, query).high.tolist() == [5]
    assert estimates_of_numbers(published, query, "one", most=lambda _: all_alike).high.tolist() == [most]


def test_too_large_a_query_is_refused(running: Path) -> None:
    published = read(running)
    with pytest.raises(BadInput, match="up to 62"):
        estimates_of_numbers(published, [np.zeros(63, np.int32)])
