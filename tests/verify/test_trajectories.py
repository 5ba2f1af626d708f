"""The verifier of trajectories, by breaking releases: one violation a test."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.forging import by_method, restate, write_parquet
from tests.methods.trajectories.frames import HIERARCHY, cohort, with_rare_codes

from leeward.methods.trajectories import Trajectories
from leeward.runs import protect as workflow
from leeward.verify import Source, verify


@pytest.fixture(scope="module")
def hierarchy(tmp_path_factory):
    path = tmp_path_factory.mktemp("hierarchy") / "codes.csv"
    path.write_text(HIERARCHY)
    return str(path)


@pytest.fixture
def out(tmp_path, hierarchy):
    source = cohort()
    method = Trajectories(k=4, hierarchy=hierarchy, clustering="alignment", payload=("dna",))
    result = workflow.protect(source, method, tmp_path / "out", seed=1, threads=1)
    return result.path, Source(source.events, source.patients)


def rewritten(path: Path, name: str, change) -> None:
    """Change a data file and make the manifest agree, so that only the content is wrong."""
    file = path / "share" / "data" / name
    if name.endswith(".csv"):
        file.write_text(change(file.read_text()))
    else:
        write_parquet(change(pl.read_parquet(file)), file)
    restate(path)


def failed(path, source=None):
    """The failed checks of the method's own."""
    return by_method(verify(path, source))


def test_untouched_release_passes(out):
    assert failed(*out) == set()


def test_a_unique_trajectory_is_caught(out):
    path, _ = out
    rewritten(
        path,
        "trajectories.parquet",
        lambda t: t.filter(pl.int_range(pl.len()) != 0).with_columns(
            position=pl.int_range(pl.len()).over("record")
        ),
    )
    assert "k_anonymous" in failed(path)


def test_a_generalized_code_made_exact_again_is_caught(out):
    path, _ = out
    table = pl.read_parquet(path / "share" / "data" / "trajectories.parquet")
    inner = table.with_row_index().filter(pl.col("code").str.len_chars() > 1)["index"][0]
    rewritten(
        path,
        "trajectories.parquet",
        lambda t: t.with_columns(
            code=pl.when(pl.int_range(pl.len()) == inner).then(pl.lit("a")).otherwise("code")
        ),
    )
    assert "k_anonymous" in failed(path)


def test_a_value_that_is_no_node_is_caught(out):
    path, _ = out
    rewritten(
        path, "trajectories.parquet", lambda t: t.with_columns(code=pl.col("code").replace("Any", "Nowhere"))
    )
    assert failed(path) == {"values_are_nodes"}


def test_falling_ages_are_caught(out):
    path, _ = out
    table = pl.read_parquet(path / "share" / "data" / "trajectories.parquet")
    kinds = table.group_by("record").agg(pl.concat_str("code", "age").str.join(";").alias("all"), pl.len())
    long = kinds.filter(pl.col("len") > 1).sort("all", "record")
    chosen = kinds.filter(pl.col("all") == long["all"][0])["record"].to_list()
    rewritten(
        path,
        "trajectories.parquet",
        lambda t: t.with_columns(
            age=pl.when(pl.col("record").is_in(chosen))
            .then(pl.when(pl.col("position") == 0).then(pl.lit("90")).otherwise(pl.lit("3")))
            .otherwise("age")
        ),
    )
    assert failed(path) == {"ages_in_order"}


def test_another_hierarchy_is_caught(out):
    path, _ = out
    rewritten(path, "code_hierarchy.csv", lambda text: text.replace('"S1","C1"', '"S1",""'))
    assert failed(path) == {"layout"}


def test_a_group_that_generalizes_nobody_is_caught(out):
    """All records of one group say something that none of their patients has: k holds, truth does not."""
    path, source = out
    table = pl.read_parquet(path / "share" / "data" / "trajectories.parquet")
    kinds = table.group_by("record").agg(pl.concat_str("code", "age").str.join(";").alias("all"))
    chosen = kinds.filter(pl.col("all") == kinds.sort("all")["all"][0])["record"].to_list()
    rewritten(
        path,
        "trajectories.parquet",
        lambda t: t.with_columns(
            age=pl.when(pl.col("record").is_in(chosen)).then(pl.lit("127")).otherwise("age")
        ),
    )
    assert failed(path) == set() and failed(path, source) == {"owners", "own_patients"}


def test_pairs_that_were_not_read_are_caught(out):
    path, source = out
    more = pl.concat([source.events, source.events.head(3)])
    assert "pairs_read" in failed(path, Source(more, source.patients))


def test_pairs_lost_by_the_writer_are_caught(out):
    path, source = out
    last = pl.col("position") == pl.col("position").max().over("record")
    rewritten(path, "trajectories.parquet", lambda t: t.filter(~last | (pl.col("position") == 0)))
    assert "pairs_shown" in {check.name for check in verify(path, source).failures}


def test_one_record_too_many_for_its_owners_is_caught(out):
    """A record is given another group's trajectory: nothing but the count of owners tells."""
    path, source = out
    table = pl.read_parquet(path / "share" / "data" / "trajectories.parquet")
    longest = table.group_by("record").len().sort("len", "record")["record"][-1]
    everybody = table.filter(pl.col("record") == longest)
    broken = pl.concat([everybody.with_columns(record=pl.lit(r, pl.Int64)) for r in range(160)])
    rewritten(path, "trajectories.parquet", lambda t: broken)
    assert failed(path, source) == {"owners", "own_patients"}


def test_swapped_payload_is_caught(out):
    path, source = out
    rewritten(path, "records.parquet", lambda t: t.with_columns(dna=pl.lit("GC0A")))
    assert "source_payload" in failed(path, source)


def test_missing_record_is_caught(out):
    path, _ = out
    rewritten(path, "records.parquet", lambda t: t.head(159))
    assert "layout" in failed(path)


def test_rare_code_in_the_hierarchy_is_caught(tmp_path):
    workflow.protect(with_rare_codes(), Trajectories(k=3), tmp_path / "out", seed=1, threads=1)
    rewritten(tmp_path / "out", "code_hierarchy.csv", lambda text: text + '"250.01","250.0"\n')
    outcome = verify(tmp_path / "out", Source(with_rare_codes().require_events()))
    assert not outcome["hierarchy_lists_common_codes"].passed


def test_pairs_that_are_not_numbered_are_caught(out):
    path, _ = out
    rewritten(path, "trajectories.parquet", lambda t: t.with_columns(position=pl.col("position") + 1))
    assert "positions" in failed(path)


def stated(path, **parameters):
    """The same release with other parameters in its manifest: it claims more than it holds."""
    file = path / "share" / "release.json"
    manifest = json.loads(file.read_text())
    manifest["parameters"] |= parameters
    file.write_text(json.dumps(manifest))


def test_an_age_wider_than_stated_is_caught(out):
    path, _ = out
    stated(path, widest_age=1)
    assert "ages_not_wider" in failed(path)


def test_a_sensitive_value_that_is_too_frequent_is_caught(out):
    path, _ = out
    stated(path, diversity=4, sensitive_column="dna")
    assert "diverse_column" in failed(path)


def test_a_published_sensitive_code_is_caught(out):
    path, _ = out
    stated(path, diversity=2, sensitive=["a", "b"])
    assert "diverse_codes" in failed(path)


def test_a_patient_more_in_the_source_is_caught(out):
    path, source = out
    more = source.events.head(1).with_columns(patient=pl.lit(100_000, source.events.schema["patient"]))
    assert "source_patients" in failed(path, Source(pl.concat([source.events, more]), source.patients))


def test_a_code_of_the_source_outside_the_hierarchy_is_caught(out):
    path, source = out
    events = source.events.with_columns(pl.col("code").cast(pl.String).replace("a", "unknown"))
    events = events.with_columns(pl.col("code").cast(pl.Enum(sorted(events["code"].unique()))))
    assert "source_values" in failed(path, Source(events, source.patients))


@pytest.mark.parametrize("name", ["icd9", "icd10"])
def test_another_name_of_the_hierarchy_is_caught(out: tuple[Path, Source], name: str) -> None:
    path, source = out
    manifest = path / "share" / "release.json"
    stated = json.loads(manifest.read_text())
    assert stated["parameters"]["hierarchy"] == "custom"
    stated["parameters"] |= {"hierarchy": name, "listed_codes": "of at least k patients"}
    manifest.write_text(json.dumps(stated))
    assert "hierarchy_named" in failed(path)
    assert "hierarchy_named" in failed(path, source)


def test_another_hierarchy_than_the_named_file_is_caught(out: tuple[Path, Source], hierarchy: str) -> None:
    path, _ = out
    Path(hierarchy).write_text(HIERARCHY.replace("g,C2", "g,C1"))
    try:
        assert "hierarchy_as_named" in failed(path)
    finally:
        Path(hierarchy).write_text(HIERARCHY)
    assert failed(path) == set()


def test_a_named_hierarchy_holds_beside_the_vocabulary_of_the_codes(tmp_path: Path) -> None:
    """A release is verified before its spec is written: what the codes are read as is not what was asked for."""
    source = replace(with_rare_codes(), vocabulary="icd9")
    file = tmp_path / "codes.csv"
    codes = sorted(source.require_events()["code"].unique())
    file.write_text("node,parent\nmine,\n" + "".join(f"{code},mine\n" for code in codes))
    method = Trajectories(k=4, hierarchy=str(file))
    path = workflow.protect(source, method, tmp_path / "out", seed=1, threads=1).path
    assert failed(path, Source(source.events, source.patients, vocabulary="icd9")) == set()
