"""`--engine-config FILE`: one flag for every command that takes an engine."""

from __future__ import annotations

from pathlib import Path

import click
import polars as pl
import pytest
from tests.cli.conftest import Run
from tests.spark_fixture import connect_server  # noqa: F401  # a fixture

from leeward.cli.counts import index
from leeward.cli.methods import command_of, protect
from leeward.cli.notes import annotate
from leeward.methods import METHODS


@pytest.fixture
def settings(connect_server: str, tmp_path: Path) -> Path:  # noqa: F811
    file = tmp_path / "engine.yaml"
    secret = "config: {spark.sql.files.maxPartitionBytes: 1m, spark.hadoop.fs.s3a.secret.key: canary}"
    file.write_text(f'spark: {{remote: "{connect_server}/;user_id=canary", partitions: 2, {secret}}}\n')
    return file


def test_a_method_and_a_spec(leeward: Run, events: Path, settings: Path, tmp_path: Path) -> None:
    flags = (
        "--patient",
        "pid",
        "--code",
        "icd",
        "--policy",
        "hierarchy:1",
        "--k",
        "5",
        "--m",
        "2",
        "--seed",
        "1",
    )
    for name, more in (("local", ()), ("spark", ("--engine", "spark", "--engine-config", settings))):
        done = leeward("constrain", events, *flags, *more, "-o", tmp_path / name)
        assert done.status == 0, done.err
        assert "canary" not in done.err
    codes = [(tmp_path / name / "share/data/codes.parquet").read_bytes() for name in ("local", "spark")]
    assert codes[0] == codes[1]
    written = (tmp_path / "spark/custody/spec.yaml").read_text()
    assert "maxPartitionBytes" in written and "remote: sc://127.0.0.1:" in written
    assert "canary" not in written, "a key, a token"
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        f"source: {{path: {events}, columns: {{patient: pid, code: icd}}}}\n"
        "method: {name: constraints, k: 5, m: 2, policy: 'hierarchy:1'}\nseed: 1\nengine: local\n"
    )
    done = leeward("protect", spec, "--engine-config", settings, "-o", tmp_path / "again")
    assert done.status == 0, done.err
    assert (tmp_path / "again/custody/spec.yaml").read_text().count("sc://") == 1
    assert (tmp_path / "again/share/data/codes.parquet").read_bytes() == codes[0]


def test_an_index_and_notes(leeward: Run, settings: Path, tmp_path: Path) -> None:
    pl.DataFrame({"patient": [1, 1, 2, 3], "code": ["401.9", "250.00", "401.9", "401.9"]}).write_parquet(
        tmp_path / "events.parquet"
    )
    pl.DataFrame({"patient": [1, 2], "text": ["Seen for fever.", "No cough."]}).write_csv(
        tmp_path / "notes.csv"
    )
    index = ("index", tmp_path / "events.parquet", "--vocabulary", "icd9", "--epsilon-total", "1")
    notes = ("notes", "annotate", tmp_path / "notes.csv", "--members", "rules,dictionary", "--seed", "1")
    for name, more in (("local", ()), ("spark", ("--engine-config", settings))):
        for command in (index, notes):
            done = leeward(*command, *more, "-o", tmp_path / f"{command[0]}-{name}")
            assert done.status == 0, done.err
    for file in ("index-{}/bitmaps.bin", "index-{}/directory.arrow", "notes-{}/custody/table.parquet"):
        ours, theirs = (tmp_path / file.format(name) for name in ("local", "spark"))
        assert ours.read_bytes() == theirs.read_bytes()


def test_settings_of_another_engine(leeward: Run, events: Path, tmp_path: Path) -> None:
    file = tmp_path / "engine.yaml"
    file.write_text("engine: {spark: {master: 'local[2]'}}")
    done = leeward(
        "constrain", events, "--k", "5", "--engine", "local", "--engine-config", file, "-o", tmp_path / "x"
    )
    assert done.status == 2
    assert "--engine-config has settings of another engine than --engine local" in done.err


@pytest.mark.parametrize(
    "command", [protect, index, annotate, *map(command_of, METHODS)], ids=lambda each: each.name
)
def test_every_command_with_an_engine_has_it(command: click.Command) -> None:
    assert "--engine-config" in {flag for each in command.params for flag in each.opts}
