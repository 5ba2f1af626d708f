"""The verifier of a release that grows is tested by breaking versions: each fault is caught, by the right check."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.forging import restate, write_parquet
from tests.runs.made_lines import line, visits

import leeward as lw
from leeward.errors import BadInput
from leeward.verify.manifest import open_share
from leeward.verify.versions import digest_of

K = 3
Change = Callable[[pl.DataFrame], pl.DataFrame]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two visits of a patient in each batch."""
    first = visits(200, 3, 6, 5, again=0.5)
    second = [each.with_columns(visit=pl.col("visit") + 100_000) for each in visits(200, 3, 6, 5, again=0.5)]
    shuffled = [each.with_columns(pl.col("code").sample(fraction=1, shuffle=True, seed=1)) for each in second]
    batches = [
        pl.concat(each).unique(["visit", "code"]).sort("visit") for each in zip(first, shuffled, strict=True)
    ]
    return line(tmp_path_factory.mktemp("kept"), lw.Visits(k=K, policy="none"), batches)


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return line(
        tmp_path_factory.mktemp("apart"), lw.Disassociation(k=K, m=2), visits(200, 3, 8, 5, again=0.5)
    )


def planted(release: Path, target: Path, name: str, change: Change, stated: bool = True) -> Path:
    """A copy of a share with one table changed, and manifest and digests that fit it."""
    shutil.copytree(release / "share", target / "share")
    file = target / "share" / "data" / f"{name}.parquet"
    write_parquet(change(pl.read_parquet(file)), file)
    if stated:
        share = open_share(target)
        for batch, version in enumerate(share.manifest["versions"]):
            version["sha256"] = digest_of(share, batch)
        write_manifest(target, share.manifest)
    restate(target)
    return target


def write_manifest(release: Path, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    (release / "share" / "release.json").write_text(text, encoding="utf-8")


def failed(release: Path, earlier: Path | None = None) -> set[str]:
    return {check.name for check in lw.verify(release, earlier=earlier).failures}


def bounds(release: Path, path: str = "data/visits.parquet") -> list[int]:
    versions = json.loads((release / "share/release.json").read_text())["versions"]
    return [sum(each["rows"][path] for each in versions[:n]) for n in range(len(versions) + 1)]


def test_sound_versions_pass(kept: list[Path], apart: list[Path]) -> None:
    for versions in (kept, apart):
        assert (
            failed(versions[2], versions[0]) == failed(versions[2] / "share", versions[1] / "share") == set()
        )
        assert failed(versions[1]) == set()


def test_a_changed_row_is_not_that_of_the_digest(kept: list[Path], tmp_path: Path) -> None:
    twice = planted(
        kept[2], tmp_path, "visits", lambda t: pl.concat([t[:1].with_columns(t["codes"][-1:]), t[1:]]), False
    )
    assert "batches_stated" in failed(twice)


def test_a_row_of_an_earlier_version_that_changed(kept: list[Path], tmp_path: Path) -> None:
    """To a set that the most records of its class show, so that each version by itself keeps k."""

    def change(table: pl.DataFrame) -> pl.DataFrame:
        first = table[: bounds(kept[2])[1]]
        common = first.group_by("codes").len().sort("len", descending=True)["codes"][0].to_list()
        place = next(
            n for n, codes in enumerate(first["codes"].to_list()) if codes != common and spare(first, codes)
        )
        codes = table["codes"].to_list()
        codes[place] = common
        return table.with_columns(codes=pl.Series(codes, dtype=pl.List(pl.String)))

    release = planted(kept[2], tmp_path, "visits", change)
    assert failed(release) == set()
    assert failed(release, kept[0]) == failed(release, kept[1]) == {"rows_stay"}


def in_order(table: pl.DataFrame, at: list[int]) -> pl.DataFrame:
    """The rows of each batch in the order of their numbers."""
    return pl.concat([table[low:high].sort("record", "visit") for low, high in pairwise(at)])


def spare(table: pl.DataFrame, codes: list[str]) -> bool:
    """Whether more than k records show a set."""
    return table.filter(pl.col("codes") == pl.lit(codes, pl.List(pl.String)))["record"].n_unique() > K


def test_a_set_that_fewer_than_k_returning_records_show(kept: list[Path], tmp_path: Path) -> None:
    """New records show it too, so that it has k holders in its batch."""
    low, high = bounds(kept[2])[1:3]
    entered = json.loads((kept[2] / "share/release.json").read_text())["versions"][0]["records"]

    def change(table: pl.DataFrame) -> pl.DataFrame:
        batch = table[low:high].with_row_index("n", low)
        new, again = batch.filter(pl.col("record") >= entered), batch.filter(pl.col("record") < entered)
        theirs = set(map(tuple, again["codes"].to_list()))
        known = [codes for codes in new["codes"].to_list() if tuple(codes) not in theirs]
        place, codes = again["n"][0], table["codes"].to_list()
        codes[place] = known[0] if known else codes[place] + ["999"]
        return table.with_columns(codes=pl.Series(codes, dtype=pl.List(pl.String)))

    assert "visit_sets_of_returning" in failed(planted(kept[2], tmp_path, "visits", change))


def test_a_visit_before_its_record_entered(kept: list[Path], tmp_path: Path) -> None:
    at = bounds(kept[2])

    def change(table: pl.DataFrame) -> pl.DataFrame:
        last, later = table["record"].max(), set(table["record"][at[1] :])
        place = next(n for n in reversed(range(at[1])) if table["record"][n] not in later)
        moved = pl.int_range(pl.len()) == place
        visit = table.filter(record=last).height
        table = table.with_columns(
            record=pl.when(moved).then(last).otherwise("record"),
            visit=pl.when(moved).then(visit).otherwise("visit"),
        )
        return in_order(table, at)

    assert "records_entered" in failed(planted(kept[2], tmp_path, "visits", change))


def test_numbers_of_visits_that_do_not_go_on(kept: list[Path], tmp_path: Path) -> None:
    """Two visits of a record in two batches change their numbers."""
    low = bounds(kept[2])[1]

    def change(table: pl.DataFrame) -> pl.DataFrame:
        later = next(
            n
            for n in range(low, table.height)
            if table["visit"][n] > 0 and table["record"][n] in set(table["record"][:low])
        )
        former = table["record"].to_list().index(table["record"][later])
        numbers = table["visit"].to_list()
        numbers[former], numbers[later] = numbers[later], numbers[former]
        return in_order(table.with_columns(visit=pl.Series(numbers)), bounds(kept[2]))

    assert "visits_numbered_on" in failed(planted(kept[2], tmp_path, "visits", change))


def test_visits_of_a_batch_that_are_sorted_inside_records(kept: list[Path], tmp_path: Path) -> None:
    def change(table: pl.DataFrame) -> pl.DataFrame:
        at = bounds(kept[2])
        parts = []
        for low, high in pairwise(at):
            part = table[low:high]
            codes = part.sort("record", pl.col("codes").list.first())["codes"]
            parts.append(part.sort("record", "visit").with_columns(codes))
        return pl.concat(parts)

    assert "order_in_batches" in failed(planted(kept[2], tmp_path, "visits", change))


def test_a_node_below_one_of_another_batch(apart: list[Path], tmp_path: Path) -> None:
    low = bounds(apart[2], "data/nodes.parquet")[1]

    def change(table: pl.DataFrame) -> pl.DataFrame:
        above = table.filter(kind="joint")["node"][0] if "joint" in table["kind"][:low] else 0
        parent = pl.when(pl.col("node") == low).then(pl.lit(above)).otherwise("parent")
        return table.with_columns(parent=parent)

    assert failed(planted(apart[2], tmp_path, "nodes", change))


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda m: m["versions"][1].update(batch=3), "manifest_types"),
        (lambda m: m["versions"][1].update(records=-1), "manifest_types"),
        (lambda m: m["versions"].clear(), "manifest_types"),
        (lambda m: m.pop("returning"), "manifest_types"),
        (lambda m: m.update(returning="linked"), "manifest_types"),
        (lambda m: m["versions"].pop(), "words"),
        (lambda m: m["versions"][0].update(records=m["versions"][0]["records"] - 1), "batches_stated"),
        (lambda m: m["versions"][0]["rows"].pop("data/records.parquet"), "batches_stated"),
        (lambda m: m["versions"][0].update(sha256="0" * 64), "batches_stated"),
        (lambda m: m.update(returning="apart"), "words"),
        (lambda m: m["guarantee"].update(unit="patient in each batch"), "words"),
    ],
)
def test_what_the_manifest_says_of_batches(
    kept: list[Path], change: Callable[[dict[str, Any]], object], check: str, tmp_path: Path
) -> None:
    shutil.copytree(kept[2] / "share", tmp_path / "share")
    manifest = json.loads((tmp_path / "share/release.json").read_text())
    change(manifest)
    write_manifest(tmp_path, manifest)
    assert check in failed(tmp_path)


def test_another_release_is_no_earlier_version(kept: list[Path], apart: list[Path], tmp_path: Path) -> None:
    assert failed(kept[2], apart[0]) == {"same_line"}
    assert "rows_stay" in failed(kept[1], kept[2])
    other = line(tmp_path, lw.Visits(k=K, policy="none"), visits(100, 2, 6, 8))
    assert "rows_stay" in failed(kept[2], other[1])


def test_a_source_is_compared_batch_by_batch(kept: list[Path]) -> None:
    with pytest.raises(BadInput, match="several batches"):
        lw.verify(kept[1], lw.read(visits(20, 1, 5, 1)[0], columns={"patient": "patient", "code": "code"}))


def test_a_changed_file_of_an_earlier_batch_in_custody(kept: list[Path], tmp_path: Path) -> None:
    shutil.copytree(kept[2], tmp_path / "copy")
    file = tmp_path / "copy/custody/batches/1/measures.json"
    file.write_text(file.read_text() + " ")
    assert "custody_files" in failed(tmp_path / "copy")
