"""Bounds of two disassociations are never below the truth, nor below what an integer program finds possible."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.disassociation.shapes import cohort_of
from tests.oracles.composition import most_candidates

from leeward.cohort.cohort import Cohort
from leeward.composition import Held, attacks, measure
from leeward.composition.disassociations import Cells, certain
from leeward.composition.generalized import Rows, RowsAndLeaves
from leeward.composition.known import Coding, Known, bits_of, sets_of
from leeward.composition.leaves import Leaves
from leeward.composition.pairs import most_alone
from leeward.methods.constraints import Constraints
from leeward.methods.disassociation import Disassociation
from leeward.randomness import Randomness
from leeward.release import Release, write

Records = list[tuple[str, ...]]

RECORDS = st.lists(
    st.sets(st.sampled_from("abcd"), min_size=1, max_size=4).map(lambda codes: tuple(sorted(codes))),
    min_size=8,
    max_size=14,
)
PARAMETERS = st.sampled_from(
    [
        {"k": 2},
        {"k": 3},
        {"k": 3, "attacker": "operation"},
        {"k": 2, "attacker": "rules"},
        {"k": 2, "partitioning": "paper", "nested": True},
        {"k": 2, "partitioning": "recut", "safe": True},
    ]
)


def held(cohort: Cohort, out: Path, method: Any) -> Held:
    write(method.protect(cohort, randomness=Randomness.of(7)), out)
    return Held(Release.open(out), cohort)


def disassociated(records: Records, out: Path, **parameters: Any) -> Held:
    return held(cohort_of(records), out, Disassociation(m=2, **parameters))


def cells_of(one: Held, two: Held, grown: bool = False) -> tuple[Cells, Coding, list[Known]]:
    coding = Coding.of(one.source, two.source)
    known = [Known.of(each.source, coding) for each in (one, two)]
    leaves = [Leaves(each.release, coding) for each in (one, two)]
    if not grown:
        leaves[0].tighten(leaves[1])
        leaves[1].tighten(leaves[0])
    return Cells(*leaves, grown=grown), coding, known


def most_of(leaves: Leaves, known: int) -> int:
    """The most records of one release that may have these codes."""
    return leaves.capped({node: leaves.most(node, known) for node in leaves.places(known)}, known)


def asked_of(known: Known, m: int = 3) -> set[int]:
    return {each for mask in known.of_patient.values() for each in sets_of(mask, m)}


def check_told(cells: Cells, asked: int, known: Known) -> None:
    holders = [mask for mask in known.of_patient.values() if not asked & ~mask]
    for told in (cells.find_told(asked), certain(cells.one, asked), certain(cells.two, asked)):
        assert all(not told & ~mask for mask in holders)


@settings(max_examples=15)
@given(records=RECORDS, one=PARAMETERS, two=PARAMETERS)
def test_bounds_are_between_what_is_possible_and_what_one_release_leaves(
    records: Records, one: dict[str, Any], two: dict[str, Any]
) -> None:
    with TemporaryDirectory() as name:
        pair = (
            disassociated(records, Path(name) / "1", **one),
            disassociated(records, Path(name) / "2", **two),
        )
        cells, coding, (known, _) = cells_of(*pair)
        code_of = {bit: code for code, bit in coding.bit.items()}
        for number, asked in enumerate(sorted(asked_of(known))):
            true, bound = known.support(asked), cells.candidates(asked, 99)
            assert true <= bound <= min(most_of(cells.one, asked), most_of(cells.two, asked))
            check_told(cells, asked, known)
            if number % 4 == 0:
                codes = frozenset(code_of[bit] for bit in bits_of(asked))
                shares = (each.release.share for each in pair)
                assert true <= most_candidates(*shares, codes, frozenset(coding.bit)) <= bound


@settings(max_examples=15)
@given(records=RECORDS, more=RECORDS, one=PARAMETERS, two=PARAMETERS)
def test_bounds_of_grown_data_are_never_below_the_truth(
    records: Records, more: Records, one: dict[str, Any], two: dict[str, Any]
) -> None:
    """The first patients get further codes, and as many patients as `more` has are new."""
    grown = [tuple(sorted({*old, *new[:1]})) for old, new in zip(records, more * 2, strict=False)]
    with TemporaryDirectory() as name:
        pair = (
            disassociated(records, Path(name) / "1", **one),
            disassociated([*grown, *more], Path(name) / "2", **two),
        )
        cells, coding, (before, after) = cells_of(*pair, grown=True)
        found = attacks(*pair)
        fresh = after.among(after.of_patient.keys() - before.of_patient.keys())
        most = most_alone(pair[1].release, pair[0].release, coding, asked_of(fresh), 0)
    assert [each.looked_at for each in found] == [len(records), len(more)]
    assert all(most[asked] >= fresh.support(asked) for asked in most)
    for asked in asked_of(before):
        assert cells.candidates(asked, 99) >= before.support(asked)
        check_told(
            cells, asked, after.among({name for name, mask in before.of_patient.items() if not asked & ~mask})
        )


@settings(max_examples=15)
@given(records=RECORDS, one=PARAMETERS)
def test_bounds_of_rows_beside_leaves_are_never_below_the_truth(
    records: Records, one: dict[str, Any]
) -> None:
    names = {"a": "250.00", "b": "250.01", "c": "401.0", "d": "427.31"}
    cohort = cohort_of([tuple(names[code] for code in codes) for codes in records], "icd9")
    with TemporaryDirectory() as name:
        rows = held(cohort, Path(name) / "1", Constraints(k=2, m=2, policy="hierarchy:1"))
        leaves = held(cohort, Path(name) / "2", Disassociation(m=2, **one))
        _, coding, (known, _) = cells_of(leaves, leaves)
        both = RowsAndLeaves(Rows(rows.release, coding), Leaves(leaves.release, coding))
        assert measure(rows, leaves) == measure(leaves, rows)
    for asked in asked_of(known):
        assert both.candidates(asked, 99) >= known.support(asked)


def planted(folder: Path, clusters: list[list[str]]) -> Release:
    """Clusters of records, each shown whole but for the code x, which is only listed."""
    rows, nodes = [], []
    for node, records in enumerate(clusters):
        nodes.append({"node": node, "parent": None, "kind": "cluster", "records": len(records)})
        shown = [sorted(set(record) - {"x"}) for record in records]
        rows += [(node, 0, "record", place, codes) for place, codes in enumerate(shown)]
        rows += [(node, 1, "item", None, ["x"])] if any("x" in record for record in records) else []
    (folder / "data").mkdir(parents=True)
    schema = {
        "node": pl.Int64,
        "chunk": pl.Int64,
        "kind": pl.String,
        "subrecord": pl.Int64,
        "codes": pl.List(pl.String),
    }
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(folder / "data/chunks.parquet")
    pl.DataFrame(nodes, schema_overrides={"parent": pl.Int64}).write_parquet(folder / "data/nodes.parquet")
    files = [{"path": f"data/{name}.parquet"} for name in ("nodes", "chunks")]
    return Release(folder, None, {"method": "disassociation", "files": files})


def test_clusters_that_differ_leave_one_candidate_to_a_code_that_each_lists_for_three(tmp_path: Path) -> None:
    """Each release lists x in a cluster of three. Only the record {a, c} can be in both clusters."""
    cohort = cohort_of([tuple(codes) for codes in ("acx", "ab", "a", "c", "bc", "b")])
    coding = Coding.of(cohort)
    one = Leaves(planted(tmp_path / "1", [["acx", "ab", "a"], ["c", "bc", "b"]]), coding)
    two = Leaves(planted(tmp_path / "2", [["acx", "c", "bc"], ["ab", "a", "b"]]), coding)
    x = coding.bit["x"]
    assert (most_of(one, x), most_of(two, x)) == (3, 3)
    assert Cells(one, two).candidates(x, 5) == 1
    assert (certain(one, x), certain(two, x)) == (coding.mask("a"), coding.mask("c"))
    assert Cells(one, two).find_told(x) == 0  # each tells by itself what it tells


def test_both_tell_a_code_that_neither_tells_alone(tmp_path: Path) -> None:
    """Who has d and x has a: in the first, a record of the second cluster may have both as well, but in the second no
    record that shows d and b is in the cluster that lists x."""
    coding = Coding.of(cohort_of([("a", "d", "x"), ("a",), ("b", "d"), ("b", "x")]))
    one = Leaves(planted(tmp_path / "1", [["adx", "a"], ["bd", "bx"]]), coding)
    two = Leaves(planted(tmp_path / "2", [["adx", "bx"], ["bd", "a"]]), coding)
    known = coding.mask("dx")
    assert (certain(one, known), certain(two, known)) == (0, 0)
    assert Cells(one, two).find_told(known) == coding.mask("a")
    assert Cells(one, two).candidates(known, 5) == 1


def test_a_joint_cluster_has_no_more_than_its_shared_chunk(tmp_path: Path) -> None:
    records = [("a", "x"), ("a",), ("a",), ("b", "x"), ("b",), ("b",)]
    release = planted(tmp_path / "1", [["a", "a", "a"], ["b", "b", "b"]])
    data = tmp_path / "1/data"
    nodes, chunks = (pl.read_parquet(data / f"{name}.parquet") for name in ("nodes", "chunks"))
    joint = pl.DataFrame({"node": 2, "parent": None, "kind": "joint", "records": 6}, schema=nodes.schema)
    pl.concat([nodes.with_columns(parent=pl.lit(2, pl.Int64)), joint]).write_parquet(data / "nodes.parquet")
    shared = [(2, 0, "shared", place, ["x"] if place < 2 else []) for place in range(6)]
    pl.concat([chunks, pl.DataFrame(shared, schema=chunks.schema, orient="row")]).write_parquet(
        data / "chunks.parquet"
    )
    coding = Coding.of(cohort_of(records))
    leaves = Leaves(release, coding)
    x = coding.bit["x"]
    assert [leaves.most(node, x) for node in (0, 1)] == [2, 2]
    assert most_of(leaves, x) == 2
    assert most_of(leaves, coding.mask("ax")) == 2


def test_the_same_release_twice_gives_nothing_more_than_one(tmp_path: Path) -> None:
    records = [
        tuple(codes) for codes in ("ab", "ac", "b", "abd", "cd", "a", "bc", "d", "ad", "bd", "ab", "c")
    ]
    pair = [disassociated(records, tmp_path / name, k=3) for name in ("1", "2")]
    found = measure(*pair)
    assert found is not None
    assert (found.fewest, found.below, found.certain, found.looked_at) == (3, 0, 0, len(records))
    assert not found.exact


@pytest.mark.parametrize(
    "parameters",
    [{"attacker": "algorithm"}, {"repeats": True}, {"sensitive": ("a",), "diversity": 2}],
    ids=str,
)
def test_where_codes_were_taken_out_of_some_records_nothing_is_measured(
    parameters: dict[str, Any], tmp_path: Path
) -> None:
    records = [
        tuple(codes) for codes in ("ab", "ac", "b", "abd", "cd", "a", "bc", "d", "ad", "bd", "ab", "c")
    ]
    pair = [
        disassociated(records, tmp_path / "1", k=2),
        disassociated(records, tmp_path / "2", k=2, **parameters),
    ]
    assert measure(*pair) is None


def test_other_codes_of_the_same_patients_are_not_measured(tmp_path: Path) -> None:
    """Neither the same nor grown: what one shows excludes nothing in the other."""
    records = [tuple(codes) for codes in ("ab", "ac", "b", "abd", "cd", "a", "bc", "d")]
    pair = [
        disassociated(each, tmp_path / name, k=2) for name, each in (("1", records), ("2", records[::-1]))
    ]
    assert measure(*pair) is None
