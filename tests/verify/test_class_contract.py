"""What any release with demographics must hold: mutations of the bench that passed, and the checks that refute them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.forging import restate_custody
from tests.mutations.planted import refuting, sound

from leeward.verify import Share, verify
from leeward.verify.class_labels import Tree, read_tree
from leeward.verify.order import check_orders

KEEP = 'parameter keep: {"age": 20, "sex": "exact"} -> '
PLANTED = {
    "classes.parquet: class: one value is negative": "classes_numbered",
    "classes.parquet: class: every value is larger": "classes_numbered",
    "classes.parquet: class: two rows exchange it": "classes_numbered",
    "classes.parquet: rows sorted by records": "rows_in_order",
    "sex.csv: rows reversed": "hierarchies_in_order",
    "parameter small gone": "parameters",
    "parameter recoding gone": "parameters",
    KEEP + '{"age": "all", "sex": "exact"}': "keep_as_stated",
}
OF_SPEC = ("parameter keep gone", KEEP + '{"age": 10}', KEEP + '{"sex": "exact"}')
"""Which levels were asked for cannot be read from coarser labels; custody's spec tells."""


@pytest.mark.parametrize(("mutation", "check"), PLANTED.items())
def test_the_share_alone_refutes_the_mutation(mutation: str, check: str, tmp_path: Path) -> None:
    refuting("visits, demographics", mutation, tmp_path / "out")
    shutil.rmtree(tmp_path / "out/custody")
    assert check in {each.name for each in verify(tmp_path / "out").failures}


@pytest.mark.parametrize("mutation", OF_SPEC)
def test_the_spec_refutes_other_levels(mutation: str, tmp_path: Path) -> None:
    assert refuting("visits, demographics", mutation, tmp_path / "out") == {"parameters_of_spec"}


def test_what_the_spec_leaves_out_is_the_default(tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(sound("visits, demographics").out, out)
    spec, stated = out / "custody/spec.yaml", out / "share/release.json"
    text = spec.read_text(encoding="utf-8")
    spec.write_text(text.replace("  small: merge\n", "").replace("  recoding: full\n", ""), encoding="utf-8")
    restate_custody(out)
    assert spec.read_text(encoding="utf-8") != text and verify(out).passed
    manifest = json.loads(stated.read_text(encoding="utf-8"))
    manifest["parameters"]["recoding"] = "local"
    stated.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    assert [each.name for each in verify(out).failures] == ["parameters_of_spec"]


def test_an_order_by_a_label_is_seen_beside_a_column_of_pairs_of_the_same_name(tmp_path: Path) -> None:
    """Labels of records and the ages of pairs are both called `age`: sorted labels, dealt out in seven turns."""
    draws = np.random.Generator(np.random.Philox(key=1))
    labels = np.sort(draws.choice(["20-39", "40-59", "60-79"], 350, p=[0.25, 0.5, 0.25]))
    records = pl.DataFrame({"record": range(350), "age": np.concatenate([labels[i::7] for i in range(7)])})
    pairs = records.select("record", age=pl.Series(draws.permutation(350)))
    mixed = records.with_columns(age=pl.Series(draws.permutation(labels)))
    for number, (labelled, passed) in enumerate(((records, False), (mixed, True))):
        tables = {"records.parquet": labelled, "trajectories.parquet": pairs}
        data = tmp_path / str(number) / "data"
        data.mkdir(parents=True)
        for name, table in tables.items():
            table.write_parquet(data / name)
        (check,) = check_orders(Share(data.parent, {}), list(tables))
        assert check.passed == passed


AGES = {"*": "", "(missing)": "*", "0-39": "*", "0-19": "0-39", "5-9": "0-19", "10-14": "0-19", "40-79": "*"}
WARDS = {"all": "", "surgery": "all", "hand": "surgery", "medicine": "all", "(missing)": "all"}


def tree(rows: dict[str, str], kind: str | None = None, whole: dict[str, str] | None = None) -> Tree:
    return Tree(rows, whole, kind)


def test_rows_of_a_hierarchy_are_where_writers_put_them() -> None:
    ages = {label: AGES[label] for label in ("*", "0-39", "0-19", "5-9", "10-14", "40-79", "(missing)")}
    assert tree(ages).disorder() == 0 < tree(AGES).disorder()
    assert tree(dict(reversed(ages.items()))).disorder()
    levels = {label: ages[label] for label in ("*", "0-39", "40-79", "(missing)", "0-19", "5-9", "10-14")}
    assert tree(levels).disorder()  # level by level, not depth first
    as_text = {label: ages[label] for label in ("*", "0-39", "0-19", "10-14", "5-9", "40-79", "(missing)")}
    assert tree(as_text).disorder()  # 9 comes before 10
    assert tree({"*": "", "a": "b", "b": "a"}).disorder()


def test_rows_of_a_hierarchy_from_a_file_are_in_its_order() -> None:
    other = {label: WARDS[label] for label in ("all", "medicine", "surgery", "hand", "(missing)")}
    assert tree(WARDS, "file", WARDS).disorder() == 0 < tree(other, "file", WARDS).disorder()
    assert tree(other, "file").disorder() == 0  # which order the file has cannot be read from the share
    assert tree(dict(reversed(WARDS.items())), "file").disorder()


@pytest.mark.parametrize(
    ("label", "level", "too_fine"),
    [
        ("5-9", 5, False), ("5-9", 10, False), ("5-9", 20, True), ("0-19", 20, False), ("0-19", 40, True),
        ("0-39", 10, False), ("*", "all", False), ("0-39", "all", True), ("5-9", "exact", False),
        ("(missing)", 40, False), ("(missing)", "all", True),
    ],
)  # fmt: skip
def test_a_label_finer_than_the_level_stated(label: str, level: int | str, *, too_fine: bool) -> None:
    assert tree(AGES).too_fine(label, level) is too_fine


def test_finer_prefixes_steps_and_exact_values() -> None:
    codes = {"*": "", "4****": "*", "44***": "4****", "441**": "44***"}
    assert [tree(codes, "prefix").too_fine("441**", level) for level in (1, 2, 3, 4)] == [
        True,
        True,
        False,
        False,
    ]
    assert [tree(WARDS, "file").too_fine("hand", level) for level in (1, 2)] == [True, False]
    assert tree({"*": "", "F": "*"}, "exact").too_fine("F", 3) and not tree({"*": "", "F": "*"}).too_fine(
        "F", 3
    )


def test_a_hierarchy_whose_root_is_a_child_of_nothing_s_child_is_none(tmp_path: Path) -> None:
    """Its rows lead back to the root: whoever walks down them never arrives."""
    file = tmp_path / "sex.csv"
    file.write_text('"node","parent"\n"*",""\n"f","*"\n"","*"\n')
    assert read_tree(file) is None
