"""A large release checked in parts: what refutes the whole refutes it in parts, and no part, row or patient is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.forging import changed
from tests.verify.made import patients_with_codes

from leeward.errors import BadInput
from leeward.methods.disassociation import Disassociation
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Check, Source, Verification, verify
from leeward.verify.checks import merge_checks
from leeward.verify.disassociation import in_parts
from leeward.verify.disassociation.layout import Nodes
from leeward.verify.manifest import open_share
from leeward.verify.order import order_check

NODES, CHUNKS, CLUSTERS = (
    "share/data/nodes.parquet",
    "share/data/chunks.parquet",
    "custody/data/clusters.parquet",
)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Disassociation(k=5, m=2).protect(cohort(), randomness=Randomness.of(3))
    return write(made, tmp_path_factory.mktemp("parts") / "OUT")


@pytest.fixture(autouse=True)
def in_several_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_parts, "MOST_AT_ONCE", 100)
    monkeypatch.setattr(in_parts, "RECORDS_A_PART", 150)
    monkeypatch.setattr(in_parts, "BATCH_ROWS", 200)  # a part comes from several batches


def cohort():  # type: ignore[no-untyped-def]
    return patients_with_codes(people=600)


def source() -> Source:
    return Source(cohort().require_events())


def whole(out: Path, beside: Source | None) -> Verification:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_parts, "MOST_AT_ONCE", 10**9)
        return verify(out, beside)


def failed(found: Verification) -> set[str]:
    return {check.name for check in found.failures}


def test_the_parts_have_every_check_of_the_whole(release: Path) -> None:
    for beside in (source(), None):
        found, before = verify(release, beside), whole(release, beside)
        assert failed(found) == failed(before) == set()
        further = {"parts_of_source"} if beside is not None else set()
        assert {c.name for c in found.checks} == {c.name for c in before.checks} | further
        assert found["cluster_sizes"].figures["parts"] >= 3
        for name in ("cluster_sizes", "km_anonymous_chunks"):
            smallest = [key for key in before[name].figures if key.startswith("smallest")]
            assert all(found[name].figures[key] == before[name].figures[key] for key in smallest)


def row(index: int) -> pl.Expr:
    return pl.int_range(pl.len()) == index


PLANTED: dict[str, tuple[str, Callable[[pl.DataFrame], pl.DataFrame], set[str]]] = {
    "a subrecord is lost": (CHUNKS, lambda t: t.filter(~row(40)), {"subrecord_counts"}),
    "a row of no node": (
        CHUNKS,
        lambda t: t.with_columns(node=pl.when(row(t.height - 1)).then(10**6).otherwise("node")),
        {"chunk_places"},
    ),
    "a code of one subrecord is another": (
        CHUNKS,
        lambda t: t.with_columns(codes=pl.when(row(first_filled(t))).then(pl.lit(["999.9"])).otherwise("codes")),
        {"km_anonymous_chunks", "nothing_invented"},
    ),
    "a cluster has fewer records than k": (
        NODES,
        lambda t: t.with_columns(records=pl.when(pl.col("node") == alone(t)).then(4).otherwise("records")),
        {"cluster_sizes"},
    ),
    "two nodes are their own parents": (
        NODES,
        lambda t: t.with_columns(
            parent=pl.when(pl.col("node") == 1).then(2).when(pl.col("node") == 2).then(1).otherwise("parent")
        ),
        {"tree"},
    ),
    "a parent is in no part": (
        NODES,
        lambda t: t.with_columns(parent=pl.when(row(5)).then(10**6).otherwise("parent")),
        {"tree"},
    ),
    "a patient is in no cluster": (CLUSTERS, lambda t: t.filter(~row(7)), {"parts_of_source"}),
    "a patient is in two clusters": (
        CLUSTERS,
        lambda t: pl.concat([t, t.slice(7, 1).with_columns(node=pl.lit(t["node"][200], pl.Int64))]),
        {"parts_of_source", "members"},
    ),
    "two patients of unlike clusters are exchanged": (
        CLUSTERS,
        lambda t: t.with_columns(patient=t["patient"].sort(descending=True)),
        {"subrecords_of_members"},
    ),
}  # fmt: skip


def alone(nodes: pl.DataFrame) -> int:
    """The first cluster that is in no joint cluster and is none."""
    parents = nodes["parent"].drop_nulls().implode()
    return int(nodes.filter(pl.col("parent").is_null() & ~pl.col("node").is_in(parents))["node"][0])


def first_filled(table: pl.DataFrame) -> int:
    return int(
        table.select(pl.col("codes").list.len().eq(1) & (pl.col("kind") == "record")).to_series().arg_max()
        or 0
    )


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_found_in_parts_too(release: Path, tmp_path: Path, name: str) -> None:
    path, change, checks = PLANTED[name]
    out = changed(release, tmp_path / "out", path, change)
    assert failed(verify(out, source())) & checks


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.slice(1),
        lambda t: pl.concat([t, t.head(1).with_columns(patient=pl.lit("nobody"))]),
        lambda t: t.with_columns(pl.col("patient").rank("dense").cast(pl.Int64)),
    ],
)
def test_another_source_is_found(release: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    other = Source(change(cohort().require_events()))
    assert failed(verify(release, other))


def test_a_source_on_the_disk_is_compared_as_one_in_memory(release: Path, tmp_path: Path) -> None:
    events = cohort().require_events().select("patient", "code")
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for file, part in zip(files, (0, 1), strict=True):
        events.filter(pl.col("patient").hash(1) % 2 == part).write_parquet(file)
    stored = Source(events.clear(), stored=files)
    assert failed(verify(release, stored)) == set()
    assert "members" in failed(verify(release, replace(stored, stored=files[:1])))
    (release.parent / "alone").mkdir(exist_ok=True)
    share = release.parent / "alone" / "share"
    if not share.is_dir():
        share.symlink_to(release / "share")
    with pytest.raises(BadInput, match="cannot be checked in parts"):
        verify(release.parent / "alone", stored)


@pytest.mark.parametrize("stored", [False, True])
def test_files_are_read_as_often_whatever_the_number_of_parts(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    events = cohort().require_events().select("patient", "code")
    events.write_parquet(tmp_path / "events.parquet")
    beside = Source(events.clear(), stored=[tmp_path / "events.parquet"]) if stored else source()
    kept = {(release / name).resolve() for name in (NODES, CHUNKS, CLUSTERS)} | {tmp_path / "events.parquet"}
    read: list[Path] = []

    def count(original: Callable[..., object], file: object, *more: object, **options: object) -> object:
        given = file if isinstance(file, list) else [file]
        read.extend(each for each in map(Path, given) if each.resolve() in kept)
        return original(file, *more, **options)

    for module, name in ((pl, "read_parquet"), (pl, "scan_parquet"), (pq, "ParquetFile"), (pq, "read_table")):
        monkeypatch.setattr(module, name, partial(count, getattr(module, name)))
    often = []
    for records in (300, 30):
        read.clear()
        monkeypatch.setattr(in_parts, "RECORDS_A_PART", records)
        checks = in_parts.check_parts(open_share(release), beside, lambda share, source: [])
        assert checks and all(check.passed for check in checks)
        often.append(sorted(read))
    assert often[0] == often[1]


def test_no_more_files_are_open_than_a_process_may_have(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_parts, "RECORDS_A_PART", 5)
    monkeypatch.setattr(in_parts, "MOST_PARTS", 4)
    found = verify(release, source())
    assert found.passed and found["cluster_sizes"].figures["parts"] <= 5


def test_an_order_that_no_part_alone_tells_is_told_by_all_of_them() -> None:
    def check(z: float) -> Check:
        return Check("order_of_nodes", True, "fine", {"deviations": {"trend": z}, "limit": 6.0})

    assert merge_checks([check(z) for z in (1.0, -1.0, 2.0)], 3, "parts").passed
    told = merge_checks([check(3.0)] * 9, 9, "parts")
    assert not told.passed and told.figures["deviations"] == {"trend": 9.0}
    assert not merge_checks(
        [check(0.0)] * 2, 3, "parts"
    ).passed  # a part without this check is no part that passes


def test_parts_are_whole_trees() -> None:
    draw = np.random.default_rng(1)
    n = 300
    parent = np.array(
        [-1 if draw.random() < 0.3 or i == 0 else draw.integers(0, i) for i in range(n)], np.int32
    )
    leaf = np.bincount(parent[parent >= 0], minlength=n) == 0
    nodes = Nodes(np.arange(n), parent, leaf, draw.integers(5, 60, n), np.zeros(n, np.int64))
    part_of = in_parts.parts_of(nodes)
    assert (part_of[parent >= 0] == part_of[parent[parent >= 0]]).all()
    assert set(part_of.tolist()) == set(range(int(part_of.max()) + 1)) and part_of.max() > 5


def test_the_choice_of_trees_says_nothing_of_the_order_of_nodes() -> None:
    trees, leaves = 3_000, 4
    number = np.random.default_rng(2).permutation(trees * (leaves + 1))
    above = np.repeat(number[:trees], leaves)
    parent = np.full(len(number), -1, np.int32)
    parent[number[trees:]] = above
    leaf = parent >= 0
    nodes = Nodes(
        np.arange(len(number)), parent, leaf, np.where(leaf, 5, 20), np.zeros(len(number), np.int64)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_parts, "RECORDS_A_PART", 9_000)
        part_of = in_parts.parts_of(nodes)
    assert part_of.max() == 6
    for part in range(6):
        inside = part_of == part
        found = order_check("order", {"kind": pl.Series(leaf[inside])}, "nodes")
        assert found.passed, found.detail
