"""The verifier of disassociation with the clusters' members: content chunk by chunk, and orders that tell."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from tests.forging import changed, restate, write_parquet
from tests.verify.made import patients_with_codes

from leeward.cohort.cohort import Cohort
from leeward.methods.disassociation import Disassociation
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Source, verify


@pytest.fixture(scope="module")
def disassociated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A plain release and one with l-diversity and no covers."""
    folder = tmp_path_factory.mktemp("orders")
    methods = {
        "plain": Disassociation(k=5, m=2),
        "diverse": Disassociation(k=5, m=2, sensitive=("272.1",), diversity=3, safe=True),
    }
    return {
        name: write(method.protect(many(), randomness=Randomness.of(3)), folder / name)
        for name, method in methods.items()
    }


def failed(out: Path) -> set[str]:
    return {check.name for check in verify(out, source()).failures}


def many() -> Cohort:
    """Enough clusters that an order can be told from chance."""
    return patients_with_codes(people=1200)


def source() -> Source:
    return Source(many().require_events())


CHUNKS = "share/data/chunks.parquet"


def by_content(table: pl.DataFrame) -> pl.DataFrame:
    ordered = table.with_columns(key=pl.col("codes").list.join(",")).sort(
        "node", "chunk", "key", maintain_order=True
    )
    numbered = ordered.with_columns(
        subrecord=pl.when(pl.col("kind") != "item").then(pl.int_range(pl.len()).over("node", "chunk"))
    )
    return numbered.drop("key")


def test_subrecords_numbered_by_their_codes_are_refuted(
    disassociated: dict[str, Path], tmp_path: Path
) -> None:
    assert failed(disassociated["plain"]) == set()
    assert failed(changed(disassociated["plain"], tmp_path / "out", CHUNKS, by_content)) >= {
        "subrecords_shuffled"
    }


def by_owner(out: Path) -> pl.DataFrame:
    """Every record chunk's subrecords in the order of their patients."""
    clusters = pl.read_parquet(out / "custody/data/clusters.parquet")
    events = many().require_events()
    held = {
        p: set(codes)
        for p, codes in events.group_by("patient").agg(pl.col("code").cast(pl.String)).iter_rows()
    }
    rows = []
    table = pl.read_parquet(out / CHUNKS)
    for (node, _, kind), part in table.group_by(["node", "chunk", "kind"], maintain_order=True):
        if kind != "record":
            rows += part.rows()
            continue
        domain = {code for codes in part["codes"] for code in codes}
        for number, patient in enumerate(clusters.filter(pl.col("node") == node)["patient"]):
            rows.append((*part.row(0)[:3], number, sorted(held[patient] & domain)))
    return pl.DataFrame(rows, schema=table.schema, orient="row")


def test_subrecords_numbered_by_their_owners_are_refuted(
    disassociated: dict[str, Path], tmp_path: Path
) -> None:
    zipped = by_owner(disassociated["plain"])
    out = changed(disassociated["plain"], tmp_path / "out", CHUNKS, lambda _: zipped)
    assert "zipped_subrecords" in failed(out)
    assert not failed(out) & {"subrecords_of_members", "codes_of_members"}


def test_rows_in_another_order_than_their_numbers_are_refuted(
    disassociated: dict[str, Path], tmp_path: Path
) -> None:
    out = changed(disassociated["plain"], tmp_path / "out", CHUNKS, lambda t: t.reverse())
    assert "rows_in_order" in failed(out)


def test_an_item_code_that_no_member_has_and_one_that_is_gone_are_refuted(
    disassociated: dict[str, Path], tmp_path: Path
) -> None:
    table = pl.read_parquet(disassociated["plain"] / CHUNKS)
    item = table.with_row_index().filter(pl.col("kind") == "item")
    place, codes = item["index"][0], item["codes"][0].to_list()
    everything = set(table["codes"].explode(empty_as_null=False).drop_nulls())
    stranger = next(
        iter(
            sorted(
                everything
                - set(table.filter(pl.col("node") == item["node"][0])["codes"].explode(empty_as_null=False))
            )
        )
    )
    for name, new in {"more": sorted([*codes, stranger]), "less": codes[1:] or [stranger]}.items():
        rows = table.to_dicts()
        rows[place]["codes"] = new
        after = pl.DataFrame(rows, schema=table.schema)
        out = changed(disassociated["plain"], tmp_path / name, CHUNKS, lambda _, a=after: a)
        assert "codes_of_members" in failed(out)


def test_a_sensitive_code_in_a_record_chunk_and_a_cover_are_refuted_from_the_share_alone(
    disassociated: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(disassociated["plain"], out)
    file = out / "share/release.json"
    manifest = json.loads(file.read_text())
    shown = (
        pl.read_parquet(out / CHUNKS)
        .filter(pl.col("kind") == "record")["codes"]
        .explode(empty_as_null=False)
        .drop_nulls()
    )
    manifest["parameters"].update(sensitive=[shown[0]], diversity=3, safe=True)
    file.write_text(json.dumps(manifest))
    restate(out)
    found = {check.name for check in verify(out / "share").failures}
    assert {"sensitive_in_item_chunks", "no_covers"} <= found


def test_more_holders_than_diversity_allows_are_refuted(
    disassociated: dict[str, Path], tmp_path: Path
) -> None:
    assert failed(disassociated["diverse"]) == set()
    out = tmp_path / "out"
    shutil.copytree(disassociated["diverse"], out)
    file = out / "share/release.json"
    manifest = json.loads(file.read_text())
    manifest["parameters"].update(diversity=1000)
    file.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    restate(out)
    assert failed(out) == {"diverse_clusters"}


CLUSTERS = "custody/data/clusters.parquet"
NODES = "share/data/nodes.parquet"


def test_a_patient_said_to_be_of_another_cluster_is_refuted(
    disassociated: dict[str, Path], tmp_path: Path
) -> None:
    def moved(table: pl.DataFrame) -> pl.DataFrame:
        first = table["node"][0]
        return table.with_columns(
            node=pl.when(pl.col("node") == first).then(table["node"][-1]).otherwise("node")
        )

    assert "members" in failed(changed(disassociated["plain"], tmp_path / "out", CLUSTERS, moved))


def test_subrecords_of_two_clusters_exchanged_are_refuted(
    disassociated: dict[str, Path], tmp_path: Path
) -> None:
    def one_more(table: pl.DataFrame) -> pl.DataFrame:
        rows = table.to_dicts()
        part = [row for row in rows if row["kind"] == "record" and row["codes"]]
        other = next(
            row for row in part if row["node"] != part[0]["node"] and row["codes"] != part[0]["codes"]
        )
        part[0]["codes"], other["codes"] = other["codes"], part[0]["codes"]
        return pl.DataFrame(rows, schema=table.schema)

    found = failed(changed(disassociated["plain"], tmp_path / "out", CHUNKS, one_more))
    assert "subrecords_of_members" in found


def renumbered(out: Path, target: Path, order: list[int]) -> Path:
    """A copy whose nodes are numbered by their place in `order`, in share and custody."""
    shutil.copytree(out, target)
    new = {old: number for number, old in enumerate(order)}
    for path, sort in ((NODES, ["node"]), (CHUNKS, ["node", "chunk", "subrecord"]), (CLUSTERS, ["patient"])):
        table = pl.read_parquet(target / path)
        table = table.with_columns(pl.col("node").replace_strict(new))
        if "parent" in table.columns:
            table = table.with_columns(pl.col("parent").replace_strict(new, default=None))
        write_parquet(table.sort(sort, nulls_last=False), target / path)
    restate(target)
    return target


def test_clusters_numbered_by_their_patients_are_refuted(
    disassociated: dict[str, Path], tmp_path: Path
) -> None:
    out = disassociated["plain"]
    first = pl.read_parquet(out / CLUSTERS).group_by("node").agg(pl.col("patient").min()).sort("patient")
    joints = pl.read_parquet(out / NODES).filter(pl.col("kind") == "joint")["node"].to_list()
    order = first["node"].to_list()
    for place, joint in enumerate(joints):  # between them, so that kinds tell nothing
        order.insert((place * 7919) % len(order), joint)
    assert failed(renumbered(out, tmp_path / "out", order)) == {"order_of_nodes"}


def test_clusters_numbered_by_their_size_are_refuted(disassociated: dict[str, Path], tmp_path: Path) -> None:
    out = disassociated["plain"]
    order = pl.read_parquet(out / NODES).sort("records", maintain_order=True)["node"].to_list()
    assert failed(renumbered(out, tmp_path / "out", order)) >= {"order_of_node_numbers"}
