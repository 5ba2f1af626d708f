"""Releases with demographics, broken one way a test: classes, joints across them, hierarchies, payload, source."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.forging import by_method, restate, write_parquet
from tests.methods.disassociation.test_whole_patient import people

from leeward.cohort.cohort import Cohort
from leeward.methods.disassociation import Disassociation
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Source, verify
from leeward.verify.class_labels import Tree, bounds

K = 4


def source_of(cohort: Cohort) -> Source:
    return Source(cohort.require_events(), cohort.patients)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    cohort = people(260, seed=5)
    method = Disassociation(
        k=K,
        m=2,
        partitioning="paper",
        demographics=("age", "sex"),
        keep={"age": 20, "sex": "exact"},
        payload=("result",),
        sensitive_columns={"test": 3},
    )
    out = tmp_path_factory.mktemp("whole") / "out"
    return write(method.protect(cohort, randomness=Randomness.of(3)), out), source_of(cohort)


def copy_of(release: Path, target: Path) -> Path:
    shutil.copytree(release, target)
    return target


def change(out: Path, name: str, changed: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    file = out / "share" / "data" / name
    if name.endswith(".csv"):
        table = changed(pl.read_csv(file, infer_schema=False).fill_null(""))
        file.write_text(
            '"node","parent"\n' + "".join(f'"{node}","{parent}"\n' for node, parent in table.rows()),
            encoding="utf-8",
        )
    else:
        write_parquet(changed(pl.read_parquet(file)), file)
    restate(out)


def broken(
    made: tuple[Path, Source],
    tmp_path: Path,
    name: str,
    changed: Callable[[pl.DataFrame], pl.DataFrame],
    *,
    beside: bool = False,
) -> set[str]:
    out = copy_of(made[0], tmp_path / "broken")
    change(out, name, changed)
    return by_method(verify(out, made[1] if beside else None))


def test_a_release_as_it_was_made_passes(made: tuple[Path, Source], tmp_path: Path) -> None:
    assert by_method(verify(made[0])) == set() == by_method(verify(made[0], made[1]))
    assert broken(made, tmp_path, "hierarchies/age.csv", lambda table: table, beside=True) == set()
    assert verify(made[0], made[1])["class_source"].figures["placed"] == 260


def test_a_small_class_with_a_cluster_of_its_own(made: tuple[Path, Source], tmp_path: Path) -> None:
    out = copy_of(made[0], tmp_path / "broken")
    nodes = pl.read_parquet(out / "share/data/nodes.parquet")
    leaf = nodes.filter(pl.col("kind") == "cluster").row(0, named=True)
    change(
        out,
        "nodes.parquet",
        lambda t: t.with_columns(
            records=pl.when(pl.col("node") == leaf["node"]).then(K - 1).otherwise(pl.col("records"))
        ),
    )
    lost = leaf["records"] - (K - 1)
    change(
        out,
        "classes.parquet",
        lambda t: t.with_columns(
            records=pl.col("records") - pl.when(pl.col("class") == leaf["class"]).then(lost).otherwise(0)
        ),
    )
    assert {"cluster_sizes", "class_records"} <= by_method(verify(out))


def test_a_cluster_moved_to_another_class(made: tuple[Path, Source], tmp_path: Path) -> None:
    """The clusters of a class no longer have its records; with the sizes forged too, its patients do not fit."""
    out = copy_of(made[0], tmp_path / "broken")
    nodes = pl.read_parquet(out / "share/data/nodes.parquet")
    lone = nodes.filter(pl.col("parent").is_null() & (pl.col("kind") == "cluster"))
    sexes = dict(pl.read_parquet(out / "share/data/classes.parquet").select("class", "sex").rows())
    clusters = lone.filter(pl.col("class").is_in([c for c, sex in sexes.items() if sex == "F"]))
    several = clusters.filter(pl.len().over("class") > 1)
    one = several.row(0, named=True)
    other = next(c for c, sex in sexes.items() if sex == "M")
    change(
        out,
        "nodes.parquet",
        lambda t: t.with_columns(
            pl.when(pl.col("node") == one["node"]).then(other).otherwise(pl.col("class")).alias("class")
        ),
    )
    assert by_method(verify(out)) == {"node_classes"}
    step = (
        pl.when(pl.col("class") == other)
        .then(one["records"])
        .otherwise(pl.when(pl.col("class") == one["class"]).then(-one["records"]).otherwise(0))
    )
    change(out, "classes.parquet", lambda t: t.with_columns(records=pl.col("records") + step))
    assert "class_source" in by_method(verify(out, made[1]))


def test_a_joint_cluster_that_crosses_classes(made: tuple[Path, Source], tmp_path: Path) -> None:
    nodes = pl.read_parquet(made[0] / "share/data/nodes.parquet")
    joint = nodes.filter(pl.col("kind") == "joint").row(0, named=True)
    other = next(c for c in nodes["class"].unique().sort() if c != joint["class"])
    found = broken(
        made,
        tmp_path,
        "nodes.parquet",
        lambda t: t.with_columns(
            pl.when(pl.col("node") == joint["node"]).then(other).otherwise(pl.col("class")).alias("class")
        ),
    )
    assert found == {"node_classes"}


def test_a_node_of_an_unknown_class(made: tuple[Path, Source], tmp_path: Path) -> None:
    found = broken(made, tmp_path, "nodes.parquet", lambda t: t.with_columns(pl.col("class") + 100))
    assert found == {"node_classes"}


def test_a_label_that_the_hierarchy_lacks(made: tuple[Path, Source], tmp_path: Path) -> None:
    found = broken(made, tmp_path, "hierarchies/sex.csv", lambda t: t.filter(pl.col("node") != "F"))
    assert {"class_labels"} <= found


def test_a_class_twice(made: tuple[Path, Source], tmp_path: Path) -> None:
    def twice(table: pl.DataFrame) -> pl.DataFrame:
        first, second = table.row(0, named=True), table.row(1, named=True)
        return table.with_columns(
            pl.when(pl.col("class") == second["class"])
            .then(pl.lit(first[name]))
            .otherwise(pl.col(name))
            .alias(name)
            for name in ("age", "sex")
        )

    assert "classes_distinct" in broken(made, tmp_path, "classes.parquet", twice)


def exchange_sexes(out: Path, *files: str) -> None:
    """Women are published as men and men as women; classes are in the order of the new labels, in `files` too."""

    trees = [
        pl.read_csv(out / f"share/data/hierarchies/{name}.csv", infer_schema=False)["node"]
        for name in ("age", "sex")
    ]

    def exchange(table: pl.DataFrame) -> pl.DataFrame:
        table = table.with_columns(sex=pl.col("sex").replace({"F": "M", "M": "F"}))
        return table.sort(
            pl.col(name).cast(pl.Enum(nodes)) for name, nodes in zip(("age", "sex"), trees, strict=True)
        )

    of_class = exchange(pl.read_parquet(out / "share/data/classes.parquet"))["class"]
    number = pl.col("class").replace(of_class, pl.Series(range(len(of_class)), dtype=pl.Int64))
    for name in files:
        kept = ["node"] if name == "nodes.parquet" else ["class"]
        change(out, name, lambda t, by=kept: t.with_columns(number).sort(by, maintain_order=True))
    change(out, "classes.parquet", lambda t: exchange(t).with_columns(number))


def test_exchanged_labels_are_found_beside_the_source(made: tuple[Path, Source], tmp_path: Path) -> None:
    out = copy_of(made[0], tmp_path / "broken")
    exchange_sexes(out, "nodes.parquet", "sensitive.parquet")
    assert by_method(verify(out)) == set()
    assert {"class_source", "source_records_fit", "candidates_of_patients"} <= by_method(verify(out, made[1]))


def test_a_payload_value_lost_or_changed(made: tuple[Path, Source], tmp_path: Path) -> None:
    assert broken(made, tmp_path, "payload.parquet", lambda t: t.head(t.height - 1)) == {"payload_counts"}
    found = broken(
        made,
        tmp_path / "again",
        "payload.parquet",
        lambda t: t.with_columns(value=pl.lit("high")),
        beside=True,
    )
    assert found == {"payload_source", "subrecords_of_members", "codes_of_members"}


def raised(table: pl.DataFrame) -> pl.DataFrame:
    """All records of the first class but one have its first value."""
    first = pl.col("class") == table["class"][0]
    rows = table.filter(first)
    shown = rows.head(2).with_columns(records=pl.Series([rows["records"].sum() - 1, 1]))  # type: ignore[operator]
    return pl.concat([shown, table.filter(~first)])


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        (raised, {"sensitive_values_rare"}),
        (lambda t: t.head(t.height - 1), {"sensitive_counts"}),
        (lambda t: t.reverse(), {"sensitive_counts"}),
        (lambda t: t.with_columns(column=pl.lit("result")), {"sensitive_counts"}),
    ],
    ids=["frequent", "lost", "order", "another column"],
)
def test_counts_of_a_sensitive_column(
    changed: Callable[[pl.DataFrame], pl.DataFrame],
    found: set[str],
    made: tuple[Path, Source],
    tmp_path: Path,
) -> None:
    assert broken(made, tmp_path, "sensitive.parquet", changed) == found


def test_sensitive_values_of_other_patients(made: tuple[Path, Source], tmp_path: Path) -> None:
    """Exchanged values keep the counts of each class; only the source knows."""
    found = broken(
        made,
        tmp_path,
        "sensitive.parquet",
        lambda t: t.with_columns(value="x" + pl.col("value")),
        beside=True,
    )
    assert found == {"sensitive_source"}


def test_a_smaller_l_than_stated(made: tuple[Path, Source], tmp_path: Path) -> None:
    out = copy_of(made[0], tmp_path / "broken")
    file = out / "share" / "release.json"
    for ell, wanted in (
        ({"test": 60}, "sensitive_values_rare"),
        ({"test": 1}, "parameters"),
        ({}, "parameters"),
    ):
        manifest = json.loads(file.read_text())
        manifest["parameters"]["sensitive_columns"] = ell
        file.write_text(json.dumps(manifest, indent=2) + "\n")
        assert wanted in {check.name for check in verify(out).failures}


def test_a_parameter_that_names_another_column(made: tuple[Path, Source], tmp_path: Path) -> None:
    out = copy_of(made[0], tmp_path / "broken")
    file = out / "share" / "release.json"
    manifest = json.loads(file.read_text())
    manifest["parameters"]["keep"] = {"p001": 1}
    file.write_text(json.dumps(manifest, indent=2) + "\n")
    assert "class_parameters" in by_method(verify(out))


def test_source_without_the_columns_is_a_failed_check(made: tuple[Path, Source]) -> None:
    events = made[1].events
    assert {"class_source", "payload_source", "sensitive_source"} <= by_method(
        verify(made[0], Source(events))
    )


def test_what_a_label_says_of_a_value() -> None:
    assert bounds("[70-80)") == (70, 79) == bounds("70-79") == bounds("(69, 79]")
    assert bounds("73.9") == (73, 73) and bounds("Female") is None
    tree = Tree({"*": "", "70-79": "*", "441**": "*"})
    assert (
        tree.covers("70-79", "[70-80)") and not tree.covers("70-79", "80") and tree.covers("*", "(missing)")
    )
    assert (
        tree.covers("441**", "44113")
        and not tree.covers("441**", "4411")
        and not tree.covers("70-79", "(missing)")
    )
