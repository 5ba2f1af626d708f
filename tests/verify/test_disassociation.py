"""The verifier of disassociation, tested by breaking releases."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.forging import by_method, restate
from tests.oracles import disassociation_checks as plain
from tests.oracles.disassociation_checks import Joint, Leaf, Tree
from tests.oracles.estimates import estimate
from tests.oracles.published import random_release, rows_of, running_example, running_records, write

from leeward.errors import BadInput
from leeward.verify import Source, Verification, verify
from leeward.verify.disassociation.layout import StructureFault, read_chunks, read_nodes
from leeward.verify.storage import copy_of


def chunk(*rows: str) -> list[frozenset[str]]:
    """A chunk of subrecords written as words of one-letter codes; `-` is the empty one."""
    return [frozenset(row.replace("-", "")) for row in rows]


def failed(verification: Verification) -> set[str]:
    """The failed checks of the method's own."""
    return by_method(verification)


def source_of(records: list[frozenset[str]]) -> Source:
    rows = [(p, code) for p, record in enumerate(records) for code in sorted(record)]
    return Source(pl.DataFrame(rows, schema=["patient", "code"], orient="row"))


def good_leaf() -> Leaf:
    return Leaf(4, [chunk("ab", "ab", "ab", "a"), chunk("c", "c", "c", "-")], {"z"})


@pytest.fixture
def running(tmp_path: Path) -> Path:
    return write(tmp_path / "out", running_example(), 3, 2)


def test_the_running_example_passes(running: Path) -> None:
    verification = verify(running)
    assert verification.passed
    assert verification["candidates_of_pairs"].figures["smallest"] == 3
    assert verification["candidates_of_codes"].figures["codes"] == 13
    assert verification["tree"].figures == {"violations": 0, "clusters": 2, "joint_clusters": 1}
    assert verification.warnings == ()


def test_the_running_example_passes_against_its_source(running: Path) -> None:
    verification = verify(running / "share", source_of(running_records()))
    assert verification.passed
    assert verification.with_source
    assert verification["source_records_fit"].figures == {"violations": 0, "sampled": 10}


def test_a_rare_pair_inside_a_chunk(tmp_path: Path) -> None:
    leaf = Leaf(6, [chunk("ab", "ab", "a", "b", "a", "b")], {"z"})
    out = write(tmp_path / "out", [leaf], 3, 2)
    assert failed(verify(out)) == {"km_anonymous_chunks", "candidates_of_pairs"}
    assert "node 0" in verify(out)["km_anonymous_chunks"].detail


def test_a_rare_pair_that_is_common_elsewhere_still_fails_its_chunk(tmp_path: Path) -> None:
    rare = Leaf(6, [chunk("ab", "ab", "a", "b", "a", "b")], {"z"})
    common = Leaf(3, [chunk("ab", "ab", "ab")], {"z"})
    assert failed(verify(write(tmp_path / "out", [rare, common], 3, 2))) == {"km_anonymous_chunks"}


def test_a_rare_triple_fails_at_m_3_only(tmp_path: Path) -> None:
    leaf = Leaf(9, [chunk("abc", "abc", "ab", "ab", "bc", "bc", "ac", "ac", "-")], {"z"})
    assert verify(write(tmp_path / "two", [leaf], 3, 2)).passed
    assert failed(verify(write(tmp_path / "three", [leaf], 3, 3))) >= {
        "km_anonymous_chunks",
        "candidates_of_sampled_sets",
    }


def test_a_cluster_below_k(tmp_path: Path) -> None:
    out = write(tmp_path / "out", [good_leaf(), Leaf(2, [], {"y"})], 3, 2)
    assert failed(verify(out)) == {"cluster_sizes", "candidates_of_codes"}


def test_overlapping_domains_of_two_record_chunks(tmp_path: Path) -> None:
    leaf = Leaf(4, [chunk("ab", "ab", "ab", "a"), chunk("b", "b", "b", "-")], {"z"})
    assert "chunk_domains" in failed(verify(write(tmp_path / "out", [leaf], 3, 2)))


def test_overlapping_domains_of_record_and_item_chunk(tmp_path: Path) -> None:
    leaf = Leaf(4, [chunk("ab", "ab", "ab", "a")], {"b"})
    assert failed(verify(write(tmp_path / "out", [leaf], 3, 2))) == {"chunk_domains"}


def test_overlapping_domains_of_item_and_shared_chunk(tmp_path: Path) -> None:
    joint = Joint(
        [Leaf(3, [chunk("a", "a", "a")], {"s"}), Leaf(3, [], {"y"})], [chunk("s", "s", "s", "-", "-", "-")]
    )
    assert failed(verify(write(tmp_path / "out", [joint], 3, 2))) == {"chunk_domains"}


@pytest.mark.parametrize(
    ("leaf", "passes"),
    [
        (Leaf(5, [chunk("a", "a", "a", "-", "-"), chunk("b", "b", "b", "-", "-")]), False),
        (Leaf(5, [chunk("a", "a", "a", "-", "-"), chunk("b", "b", "b", "b", "-")]), False),
        (Leaf(5, [chunk("a", "a", "a", "a", "-"), chunk("b", "b", "b", "b", "-")]), True),
        (Leaf(5, [chunk("a", "a", "a", "-", "-"), chunk("b", "b", "b", "-", "-")], {"z"}), True),
        (Leaf(3), False),
    ],
)
def test_an_empty_item_chunk_with_too_few_subrecords(tmp_path: Path, leaf: Leaf, passes: bool) -> None:
    """Section 1.4: k = 3, N = 5, two chunks, m = 2: eight are required."""
    verification = verify(write(tmp_path / "out", [leaf], 3, 2))
    assert verification.passed is passes
    assert passes or failed(verification) == {"empty_item_chunks"}


@pytest.mark.parametrize(
    ("m", "rows", "passes"), [(3, "aab", False), (3, "aaa", True), (2, "aab", False), (2, "aac", True)]
)
def test_three_chunks_of_lemma_2(tmp_path: Path, m: int, rows: str, passes: bool) -> None:
    """Section 1.4: k = 2, N = 5; m = 3 needs 9: (3,3,2) not, (3,3,3) yes; m = 2 needs 7: (2,2,2) not,
    (2,2,3) yes."""
    filled = (
        {"aab": (3, 3, 2), "aaa": (3, 3, 3)}[rows] if m == 3 else {"aab": (2, 2, 2), "aac": (2, 2, 3)}[rows]
    )
    leaf = Leaf(5, [chunk(*[c] * n, *["-"] * (5 - n)) for c, n in zip("xyz", filled, strict=True)])
    assert verify(write(tmp_path / "out", [leaf], 2, m)).passed is passes


def test_a_cluster_without_items_below_a_shared_chunk_is_judged_by_its_record_chunks(tmp_path: Path) -> None:
    joint = Joint(
        [Leaf(3, [], set()), Leaf(3, [chunk("a", "a", "a")], {"y"})], [chunk(*"sss", "-", "-", "-")]
    )
    assert failed(verify(write(tmp_path / "out", [joint], 3, 2))) == {"empty_item_chunks"}


def test_a_shared_chunk_against_property_1(tmp_path: Path) -> None:
    """The example of section 1.5: `a` in every slot of a cluster below, {b} once and {a, b} four times
    above."""
    left = Leaf(3, [chunk("ac", "ac", "ac")], {"y"})
    right = Leaf(5, [chunk("d", "d", "d", "-", "-")], {"z"})
    shared = chunk("b", "ab", "ab", "ab", "ab", "-", "-", "-")
    assert failed(verify(write(tmp_path / "out", [Joint([left, right], [shared])], 3, 2))) == {"property_1"}
    k_anonymous = chunk("b", "b", "b", "ab", "ab", "ab", "-", "-")
    verification = verify(write(tmp_path / "fine", [Joint([left, right], [k_anonymous])], 3, 2))
    assert verification.passed
    assert verification["property_1"].figures["shared_chunks_with_codes_below"] == 1


def test_property_1_against_a_lower_shared_chunk(tmp_path: Path) -> None:
    leaves: list[Tree] = [Leaf(3, [chunk(*"ccc")], {x}) for x in "xyz"]
    inner = Joint(leaves[:2], [chunk(*"aaa", "-", "-", "-")])
    outer = Joint([inner, leaves[2]], [chunk("b", *["ab"] * 4, *"----")])
    assert failed(verify(write(tmp_path / "out", [outer], 3, 2))) == {"property_1"}


def test_a_chunk_of_more_than_64_subrecords(tmp_path: Path) -> None:
    good = Leaf(200, [chunk(*["ab"] * 100, *["a"] * 97, *["c"] * 3)], {"z"})
    assert verify(write(tmp_path / "good", [good], 3, 2)).passed
    bad = Leaf(200, [chunk(*["ab"] * 100, *["ac"] * 2, *["a"] * 95, *["c"] * 3)], {"z"})
    assert "km_anonymous_chunks" in failed(verify(write(tmp_path / "bad", [bad], 3, 2)))


def altered(tmp_path: Path, change: Any) -> set[str]:
    nodes, chunks = rows_of(running_example())
    change(nodes, chunks)
    return failed(verify(write(tmp_path / "out", running_example(), 3, 2, nodes=nodes, chunks=chunks)))


def a_long_list(chunks: list[dict[str, Any]], kind: str) -> list[str]:
    """The codes of a row with several of them."""
    return next(row["codes"] for row in chunks if row["kind"] == kind and len(row["codes"]) > 1)


PLANTED: dict[str, tuple[Any, set[str]]] = {
    "a missing subrecord": (
        lambda n, c: c.remove(next(r for r in c if not r["codes"])),
        {"subrecord_counts"},
    ),
    "a surplus empty subrecord": (lambda n, c: c.append({**c[0], "codes": []}), {"subrecord_counts"}),
    "an empty item chunk": (
        lambda n, c: next(r for r in c if r["kind"] == "item").update(codes=[]),
        {"codes_ascend"},
    ),
    "a second item chunk": (
        lambda n, c: c.append({"node": 1, "chunk": 9, "kind": "item", "subrecord": None, "codes": ["999"]}),
        {"subrecord_counts"},
    ),
    "a duplicated code": (lambda n, c: c[0]["codes"].append(c[0]["codes"][-1]), {"codes_ascend"}),
    "a subrecord in another order": (lambda n, c: a_long_list(c, "record").reverse(), {"codes_ascend"}),
    "a shared subrecord in another order": (
        lambda n, c: a_long_list(c, "shared").reverse(),
        {"codes_ascend"},
    ),
    "an item chunk in another order": (lambda n, c: a_long_list(c, "item").reverse(), {"codes_ascend"}),
    "a doubled subrecord number": (lambda n, c: c[0].update(subrecord=1), {"subrecord_numbers"}),
    "a subrecord number out of range": (lambda n, c: c[0].update(subrecord=77), {"subrecord_numbers"}),
    "an item chunk with a subrecord number": (
        lambda n, c: next(r for r in c if r["kind"] == "item").update(subrecord=0),
        {"subrecord_numbers"},
    ),
    "an unknown parent": (lambda n, c: n[1].update(parent=99), {"tree"}),
    "a cluster as parent": (lambda n, c: n[2].update(parent=1), {"tree"}),
    "a cycle": (lambda n, c: n[0].update(parent=0), {"tree"}),
    "a parent too few": (lambda n, c: n[2].update(parent=None), {"tree"}),
    "another size of the joint cluster": (
        lambda n, c: n[0].update(records=11),
        {"joint_sizes", "subrecord_counts"},
    ),
    "a shared chunk of a cluster": (
        lambda n, c: next(r for r in c if r["kind"] == "record").update(kind="shared"),
        {"chunk_places"},
    ),
    "a chunk of no node": (lambda n, c: c[0].update(node=42), {"chunk_places"}),
    "an unknown kind of chunk": (lambda n, c: c[0].update(kind="other"), {"layout"}),
    "an unknown kind of node": (lambda n, c: n[0].update(kind="group"), {"layout"}),
    "a doubled node": (lambda n, c: n[1].update(node=2), {"layout"}),
    "a null code": (lambda n, c: c[0]["codes"].append(None), {"layout"}),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_of_form(tmp_path: Path, name: str) -> None:
    change, expected = PLANTED[name]
    assert altered(tmp_path, change) == expected


def test_scattered_rows_are_read_like_ordered_ones(tmp_path: Path) -> None:
    nodes, chunks = rows_of(running_example())
    random.Random(3).shuffle(chunks)
    random.Random(4).shuffle(nodes)
    verification = verify(write(tmp_path / "out", running_example(), 3, 2, nodes=nodes, chunks=chunks))
    assert [check.name for check in verification.failures] == ["rows_in_order"]
    assert verification["candidates_of_pairs"].figures["smallest"] == 3


def test_wrong_count_of_records(tmp_path: Path) -> None:
    assert failed(verify(write(tmp_path / "out", running_example(), 3, 2, records=11))) == {"record_count"}


def test_tampered_file(running: Path) -> None:
    file = running / "share" / "data" / "nodes.parquet"
    pl.read_parquet(file).write_parquet(file, compression="uncompressed")
    assert {check.name for check in verify(running).failures} >= {"file_hashes", "only_rows"}


def test_wrong_rows_in_the_manifest(running: Path) -> None:
    manifest = running / "share" / "release.json"
    manifest.write_text(manifest.read_text().replace('"rows": 3', '"rows": 4'))
    assert {check.name for check in verify(running).failures} == {"file_rows", "words"}


def test_missing_file(running: Path) -> None:
    (running / "share" / "data" / "chunks.parquet").unlink()
    assert failed(verify(running)) == {"files_present"}


@pytest.mark.parametrize("name", ["data/original.csv", "notes.txt", "data/deep/er.parquet"])
def test_unknown_extra_file(running: Path, name: str) -> None:
    file = running / "share" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("x")
    assert "no_other_files" in {check.name for check in verify(running).failures}


def test_extra_column(tmp_path: Path, running: Path) -> None:
    file = running / "share" / "data" / "nodes.parquet"
    pl.read_parquet(file).with_columns(patient=pl.lit(7)).write_parquet(file)
    assert failed(verify(running)) == {"layout"}


def test_a_seeded_release_is_warned_of(tmp_path: Path) -> None:
    verification = verify(write(tmp_path / "out", running_example(), 3, 2, seeded=True))
    assert verification.passed
    assert len(verification.warnings) == 1


def test_no_release_and_unknown_method(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no release\.json"):
        verify(tmp_path)
    with pytest.raises(BadInput, match="no verifier"):
        verify(write(tmp_path / "out", running_example(), 3, 2, method="wishing"))


def against(tmp_path: Path, records: list[frozenset[str]]) -> set[str]:
    return failed(verify(write(tmp_path / "out", running_example(), 3, 2), source_of(records)))


def test_a_lost_code_is_seen_against_the_source(tmp_path: Path) -> None:
    records = running_records()
    assert against(tmp_path, [records[0] | {"250.00"}, *records[1:]]) == {"source_codes"}


def test_an_invented_code_is_seen_against_the_source(tmp_path: Path) -> None:
    assert against(tmp_path, [record - {"695.10"} | {"834.0"} for record in running_records()]) == {
        "nothing_invented"
    }


def test_a_lost_record_is_seen_against_the_source(tmp_path: Path) -> None:
    assert "source_records" in against(tmp_path, running_records()[1:])


def test_a_changed_record_is_seen_against_the_source(tmp_path: Path) -> None:
    records = running_records()
    records[0], records[1] = records[0] | {"695.10"}, records[1] - {"695.10"}
    assert against(tmp_path, records) == {"source_records_fit"}


def test_changed_counts_are_seen_against_the_source(tmp_path: Path) -> None:
    records = running_records()
    assert "source_counts" in against(tmp_path, [records[0] | {"692.71"}, *records[1:]])


def test_messages_hold_no_codes(tmp_path: Path) -> None:
    bad = [
        Leaf(2, [chunk("QX", "Q")]),
        Leaf(5, [chunk("QX", "Q", "X", "X", "Q"), chunk("X", "-", "-", "-", "-")]),
    ]
    verification = verify(write(tmp_path / "out", bad, 3, 2), source_of([frozenset("QY")]))
    assert len(verification.failures) > 4
    text = str(verification.to_json())
    assert not any(code in text for code in ("Q", "X", "Y"))


@given(seed=st.integers(0, 2**32), nested=st.booleans(), k=st.integers(2, 4), m=st.integers(1, 4))
def test_every_check_equals_its_plain_version(
    tmp_path_factory: pytest.TempPathFactory, seed: int, nested: bool, k: int, m: int
) -> None:
    forest, records = random_release(random.Random(seed), nested=nested)
    out = write(tmp_path_factory.mktemp("release") / "out", forest, k, m)
    verification = verify(out, source_of(records))
    every = [node for tree in forest for node in plain.subtree(tree)]
    leaves = [node for node in every if isinstance(node, Leaf)]
    chunks = [c for node in every for c in (node.chunks if isinstance(node, Leaf) else node.shared)]
    supports = [s for s in (plain.smallest_support(c, m) for c in chunks) if s is not None]
    bad = sum(not plain.is_km_anonymous(c, k, m) for c in chunks)
    assert verification["km_anonymous_chunks"].figures == {
        "violations": bad,
        "smallest_support": min(supports, default=None),
    }
    assert verification["cluster_sizes"].figures["violations"] == sum(leaf.size < k for leaf in leaves)
    assert verification["empty_item_chunks"].figures["violations"] == sum(
        plain.violates_lemma_2(x, k, m) for x in leaves
    )
    assert verification["chunk_domains"].passed is not plain.has_overlap(forest)
    assert verification["property_1"].passed is not plain.violates_property_1(forest, k)
    assert all(verification[name].passed for name in verified_by_form())
    if not nested:
        codes = sorted(set().union(*records))
        pairs = [frozenset({a, b}) for a in codes for b in codes if a < b]
        highs = [h for h in (estimate(forest, p, k, "one")[2] for p in pairs) if h > 0]
        if m >= 2:
            figures = verification["candidates_of_pairs"].figures
            assert figures["pairs"] == len(highs)
            assert figures["smallest"] == min(highs, default=None)
            assert figures["violations"] == sum(h < k for h in highs)


def verified_by_form() -> list[str]:
    return [
        "tree", "chunk_places", "joint_sizes", "record_count", "subrecord_counts", "subrecord_numbers",
        "codes_ascend", "source_codes", "nothing_invented", "source_records", "source_counts",
        "source_records_fit",
    ]  # fmt: skip


def test_the_pair_table_in_several_passes_gives_the_same(
    running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leeward.verify.disassociation import candidates

    whole = verify(running)["candidates_of_pairs"].figures
    monkeypatch.setattr(candidates, "TABLE_CELLS", 40)
    assert verify(running)["candidates_of_pairs"].figures == whole


def test_a_sum_of_many_small_clusters_is_counted_over_the_release(tmp_path: Path) -> None:
    leaves: list[Tree] = [Leaf(3, [chunk("ab", "ab", "ab")], {"z"}) for _ in range(50)]
    figures = verify(write(tmp_path / "out", leaves, 3, 2))["candidates_of_pairs"].figures
    assert figures == {"violations": 0, "pairs": 3, "smallest": 150}
    assert isinstance(figures["smallest"], int)
    assert not isinstance(figures["smallest"], np.integer)


def test_repeats_in_the_source_and_text_identifiers_change_nothing(running: Path) -> None:
    events = source_of(running_records()).events
    twice = pl.concat([events, events]).with_columns(patient="p" + pl.col("patient").cast(pl.String))
    assert verify(running, Source(twice)).passed
    enum = events.with_columns(pl.col("code").cast(pl.Enum([*events["code"].unique().sort(), "unused"])))
    assert verify(running, Source(enum)).passed


def test_renamed_repeats_are_compared_under_their_new_names(tmp_path: Path) -> None:
    leaf = Leaf(3, [chunk(*["-"] * 3)], {"z#1"})
    leaf.chunks = [[frozenset({"a#1", "a#2"})] * 3]
    out = write(tmp_path / "out", [leaf], 3, 2, parameters={"k": 3, "m": 2, "repeats": True})
    rows = [(p, c) for p in range(3) for c in ("a", "a")] + [(0, "z")]
    assert verify(out, Source(pl.DataFrame(rows, schema=["patient", "code"], orient="row"))).passed
    assert "source_codes" in failed(
        verify(
            out, Source(pl.DataFrame([*rows, (1, "z"), (1, "z")], schema=["patient", "code"], orient="row"))
        )
    )


def listed(out: Path, name: str, rows: int) -> None:
    """Add a file to the manifest, with its true hash."""
    manifest = json.loads((out / "share" / "release.json").read_text())
    digest = hashlib.sha256((out / "share" / name).read_bytes()).hexdigest()
    manifest["files"].append({"path": name, "rows": rows, "sha256": digest})
    (out / "share" / "release.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("tampered", [False, True])
def test_a_csv_copy_must_say_what_its_parquet_file_says(running: Path, tampered: bool) -> None:
    data = running / "share" / "data"
    text = copy_of(data / "chunks.parquet").decode()
    (data / "chunks.csv").write_text(text.replace('"item"', '"record"', 1) if tampered else text)
    listed(running, "data/chunks.csv", text.count("\n") - 1)
    assert ("csv_copies" in {check.name for check in verify(running).failures}) == tampered


@pytest.mark.parametrize(
    ("change", "passes"),
    [
        (lambda rows: rows, True),
        (lambda rows: rows[1:], False),
        (lambda rows: [[], *rows[1:]], False),
        (lambda rows: [["999.9"], *rows[1:]], False),
        (lambda rows: [rows[0] * 2, *rows[1:]], False),
        (lambda rows: [rows[0][::-1], *rows[1:]], False),
        (lambda rows: [[c for c in rows[0] if c != "296.00"], *rows[1:]], False),
    ],
)
def test_reconstructions_are_checked(running: Path, change: Any, passes: bool) -> None:
    folder = running / "share" / "data" / "reconstructions"
    folder.mkdir()
    rows = change([sorted(record) for record in running_records()])
    frame = pl.DataFrame(
        {"record": range(len(rows)), "codes": rows}, schema_overrides={"codes": pl.List(pl.String)}
    )
    frame.write_parquet(folder / "01.parquet")
    listed(running, "data/reconstructions/01.parquet", len(rows))
    assert failed(verify(running)) == (set() if passes else {"reconstruction_01"})


def test_suppressed_occurrences_of_sensitive_codes_are_allowed_for_diversity_only(tmp_path: Path) -> None:
    records = running_records()
    records[1] = records[1] | {"042"}
    assert against(tmp_path, records) == {"source_codes"}
    parameters = {"k": 3, "m": 2, "sensitive": ["042"], "diversity": 3}
    out = write(tmp_path / "diverse", running_example(), 3, 2, parameters=parameters)
    assert verify(out, source_of(records)).passed


@pytest.mark.parametrize("foreign", [False, True])
def test_rows_in_groups_that_no_batch_divides(running: Path, foreign: bool) -> None:
    """A failed check, of a file of another version of Arrow too, whose bytes cannot be written again."""
    file = running / "share/data/chunks.parquet"
    table = pq.read_table(file)
    with pq.ParquetWriter(file, table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table, row_group_size=3)
    if foreign:
        own = f"version {pa.__version__}".encode()
        other = own[:-1] + (b"0" if own[-1:] != b"0" else b"1")
        file.write_bytes(file.read_bytes().replace(own, other))
    restate(running)
    verification = verify(running, source_of(running_records()))
    assert "only_rows" in {check.name for check in verification.failures}
    with pytest.raises(StructureFault, match="groups of rows"):
        read_chunks(file, read_nodes(running / "share/data/nodes.parquet"))
