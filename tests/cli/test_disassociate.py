"""Disassociation from the command line, end to end, and as the library's ten lines."""

from __future__ import annotations

import hashlib
import importlib
import json
from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Run

import leeward as lw

RECORDS = """296.00 296.01 296.02 834.0 944.01
296.00 296.01 296.02 692.71 695.10 944.01 401.0
296.00 296.02 692.71 695.10 834.0
296.00 296.01 692.71 401.0
296.00 296.01 296.02 692.71 695.10
296.03 295.04 404.00 480.1
294.10 296.03 834.0 944.01
294.10 295.04 296.03 480.1
294.10 295.04 404.00
294.10 295.04 296.03 834.0 944.01
"""
"""The running example (conventions, 1.8), one record a line."""

CONSTRAINTS = """294.10,295.04,296.00,296.01,296.02,296.03
692.71,695.10
401.0,404.00
480.1
834.0,944.01
"""


@pytest.fixture
def example(tmp_path: Path) -> tuple[object, ...]:
    """The running example's command, without `-o`."""
    (tmp_path / "records.txt").write_text(RECORDS)
    (tmp_path / "policy.csv").write_text(CONSTRAINTS)
    flags = (
        "--lines",
        "--attacker",
        "operation",
        "--k",
        3,
        "--m",
        2,
        "--partitioning",
        "paper",
        "--policy",
        f"file:{tmp_path}/policy.csv",
    )
    return ("disassociate", tmp_path / "records.txt", *flags)


def test_the_running_example_from_a_file_to_estimates(
    leeward: Run, example: tuple[object, ...], tmp_path: Path
) -> None:
    done = leeward(*example, "-o", tmp_path / "out", "--json")
    assert done.status == 0, done.err
    figures = done.json()
    assert figures["guarantee"]["k"] == 3
    assert figures["measures"]["source"]["patients"] == 10
    assert {path.name for path in (tmp_path / "out/share/data").iterdir()} == {
        "nodes.parquet",
        "nodes.csv",
        "chunks.parquet",
        "chunks.csv",
        "codes.parquet",
        "codes.csv",
    }
    shown = leeward(
        "estimate", tmp_path / "out/share", "296.01,692.71", "834.0,944.01", "--prior", "uniform", "--json"
    )
    assert shown.json()["estimates"] == [
        {"codes": ["296.01", "692.71"], "low": 3, "expected": pytest.approx(3.2), "high": 4},
        {"codes": ["834.0", "944.01"], "low": 3, "expected": pytest.approx(3.0), "high": 3},
    ]
    assert leeward("verify", tmp_path / "out", "--json").json()["with_source"] is True


def test_the_columns_of_the_contract(leeward: Run, example: tuple[object, ...], tmp_path: Path) -> None:
    leeward(*example, "-o", tmp_path / "out", "--reconstructions", 2)
    data = tmp_path / "out/share/data"
    assert pl.read_parquet_schema(data / "nodes.parquet") == {
        "node": pl.Int64,
        "parent": pl.Int64,
        "kind": pl.String,
        "records": pl.Int64,
    }
    assert pl.read_parquet_schema(data / "chunks.parquet") == {
        "node": pl.Int64,
        "chunk": pl.Int64,
        "kind": pl.String,
        "subrecord": pl.Int64,
        "codes": pl.List(pl.String),
    }
    for number in ("01", "02"):
        assert pl.read_parquet(data / f"reconstructions/{number}.parquet").columns == ["record", "codes"]


def test_same_seed_same_bytes_no_seed_other_bytes(
    leeward: Run, example: tuple[object, ...], tmp_path: Path
) -> None:
    def share_of(name: str, *flags: object) -> dict[str, str]:
        assert leeward(*example, "-o", tmp_path / name, *flags).status == 0
        files = sorted((tmp_path / name / "share").rglob("*.*"))
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    first = share_of("a", "--seed", 1)
    assert share_of("b", "--seed", 1, "--threads", 2) == first
    assert share_of("c") != share_of("d")


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (("--k", 1, "--m", 2), 2, "`--k` must be a whole number of at least 2; got 1"),
        (("--k", 3, "--m", 0), 2, "`--m` must be a whole number of at least 1; got 0"),
        (("--k", 10, "--m", 2), 3, "10 patients with a code, fewer than 11 "),
        (("--k", 3, "--m", 2, "--policy", "hierachy:1"), 2, "hierarchy"),
        (("--k", 3, "--m", 2, "--measure", "arre"), 2, "no measure `arre`"),
        (("--k", 3, "--m", 2, "--format", "xlsx"), 2, "must be `parquet` or `csv`; got `xlsx`"),
    ],
)
def test_bad_parameters_are_told_and_nothing_is_left(
    leeward: Run, tmp_path: Path, flags: tuple[object, ...], status: int, message: str
) -> None:
    (tmp_path / "records.txt").write_text(RECORDS)
    done = leeward("disassociate", tmp_path / "records.txt", "--lines", *flags, "-o", tmp_path / "out")
    assert done.status == status
    assert message in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["records.txt"]


def test_the_library_does_what_the_command_does(tmp_path: Path) -> None:
    (tmp_path / "records.txt").write_text(RECORDS)
    cohort = lw.read(tmp_path / "records.txt", lines=True)
    result = lw.protect(cohort, lw.Disassociation(k=3, m=2), tmp_path / "out")
    assert result.verification.passed
    assert lw.verify(result.path, cohort).with_source
    assert lw.measure(result.release, cohort, ["mre"])["mre"]["constraints"] == []
    assert lw.Release.open(tmp_path / "out").records == 10
    assert "10 records" in repr(result)
    assert "checks passed" in result._repr_html_()
    text = (tmp_path / "out/custody/spec.yaml").read_text()
    assert "k: 3" in text and "format: memory" in text


def test_the_verbs_stay_verbs_though_rooms_have_their_names() -> None:
    for room in ("methods.disassociation", "runs.measure", "verify.checks"):
        importlib.import_module(f"leeward.{room}")
    assert callable(lw.protect)
    assert callable(lw.verify)
    assert callable(lw.measure)
    assert sorted(set(lw.__all__)) == [name for name in dir(lw) if name in lw.__all__]
    with pytest.raises(AttributeError, match="no attribute 'protetc'"):
        _ = lw.protetc  # type: ignore[attr-defined]  # that it is not there is the point


def test_the_demo_is_a_release_like_any_other(leeward: Run, tmp_path: Path) -> None:
    done = leeward("demo", "-o", tmp_path / "out")
    assert done.status == 0, done.err
    assert f"Report:            {tmp_path / 'out/custody/report.html'}" in done.out
    manifest = json.loads((tmp_path / "out/share/release.json").read_text())
    assert manifest["records"] == 300
    assert "seeded" not in manifest
    shown = leeward("verify", tmp_path / "out")
    assert shown.status == 0
    assert "given in memory" in shown.err
    again = leeward("demo", "-o", tmp_path / "out")
    assert again.status == 2


def test_a_code_that_the_release_does_not_have_is_an_error_with_the_nearest(
    leeward: Run, example: tuple[object, ...], tmp_path: Path
) -> None:
    assert leeward(*example, "-o", tmp_path / "out").status == 0
    shown = leeward("estimate", tmp_path / "out/share", "296,834.0")
    assert shown.status == 2
    assert "no code `296` in this release; nearest: `296.00`" in shown.err
    assert leeward("estimate", tmp_path / "out/share", "296.009").err.count("`296.00` (") == 1
    assert "no code `diabetes`" in leeward("estimate", tmp_path / "out/share", "diabetes").err
    with pytest.raises(lw.BadInput, match=r"no code `401` in this release; nearest: `401\.0`"):
        lw.estimate(tmp_path / "out", ["401"])


PEOPLE = "pid,icd,age,sex,ward\n" + "".join(
    f"canary-{n:04d},{code},{30 + n % 40},{'FM'[n % 2]},{'north' if n % 3 else 'south'}\n"
    for n in range(80)
    for code in ("401.9", f"25{n % 5}.00")
)


def test_demographics_from_the_command_line(tmp_path: Path, leeward: Run) -> None:
    (tmp_path / "events.csv").write_text(PEOPLE)
    source = ("--patient", "pid", "--code", "icd")
    flags = (
        "--demographics",
        "age,sex",
        "--keep",
        "age:20,sex:exact",
        "--small",
        "suppress",
        "--payload",
        "ward",
    )
    out = tmp_path / "out"
    done = leeward("disassociate", tmp_path / "events.csv", *source, "--k", 4, "--m", 2, *flags, "-o", out)
    assert done.status == 0, done.err
    classes = pl.read_parquet(out / "share/data/classes.parquet")
    assert set(classes["age"]) == {"20-39", "40-59", "60-79"} and classes["records"].sum() == 80
    assert leeward("verify", out).status == 0
    beside = leeward("verify", out / "share", "--source", tmp_path / "events.csv", *source, "--all")
    assert (
        beside.status == 0 and "passed  class_source" in beside.out and "passed  payload_source" in beside.out
    )
    counted = leeward(
        "estimate", out / "share", "401.9", "--where", "age=20-39", "--where", "sex=F", "--json"
    ).json()
    assert counted["where"] == {"age": "20-39", "sex": "F"}
    assert counted["estimates"][0]["low"] == counted["estimates"][0]["high"] == 10
    assert leeward("estimate", out / "share", "401.9", "--where", "age").status == 2
    assert b"canary" not in b"".join(p.read_bytes() for p in (out / "share").rglob("*") if p.is_file())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--keep", "age"), "--keep: entry 1 is not written NAME:VALUE"),
        (("--keep", "age:10,age:20"), "--keep: a name occurs twice"),
        (("--demographics", "aeg"), "no column 'aeg'"),
        (("--demographics", "age", "--keep", "age:3"), "keep 1, 5, 10, 20 or 40 years"),
    ],
)
def test_demographics_that_the_command_refuses(
    flags: tuple[str, ...], message: str, tmp_path: Path, leeward: Run
) -> None:
    (tmp_path / "events.csv").write_text(PEOPLE)
    source = ("--patient", "pid", "--code", "icd")
    done = leeward(
        "disassociate", tmp_path / "events.csv", *source, "--k", 4, "--m", 2, *flags, "-o", tmp_path / "out"
    )
    assert done.status == 2 and message in done.err and not (tmp_path / "out").exists()
