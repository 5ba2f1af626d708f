"""A spec with `refresh` releases the next version of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from tests.runs.made_lines import visits

import leeward as lw
from leeward.errors import BadInput

QUARTERS = visits(200, 3, 10, 7)
SPEC: dict[str, Any] = {
    "source": {"path": "1.csv", "columns": {"patient": "patient", "code": "code", "visit": "visit"}},
    "method": {"name": "visits", "k": 3, "policy": "none"},
    "release": {"recipient": "uni", "line": "quarters"},
    "seed": 1,
}


@pytest.fixture(autouse=True)
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number, rows in enumerate(QUARTERS, 1):
        rows.write_csv(f"{number}.csv")
    lw.run(write("first.yaml"), "1", register="register.db")


def write(name: str, **changes: object) -> Path:
    Path(name).write_text(yaml.safe_dump({**SPEC, **changes}))
    return Path(name)


def following(number: int, **refresh: object) -> dict[str, object]:
    source = {**SPEC["source"], "path": f"{number}.csv"}
    return {"source": source, "refresh": {"master": f"{number - 1}", **refresh}}


def test_a_spec_makes_the_version_that_the_command_makes() -> None:
    Path("gone.txt").write_text(f"{QUARTERS[1]['patient'][0]}\n")
    spec = write("second.yaml", **following(2, wait=1, withdrawn="gone.txt"))
    made = lw.run(spec, "2", register="register.db")
    columns = SPEC["source"]["columns"]
    gone = QUARTERS[1]["patient"].head(1).to_list()
    new = lw.read("2.csv", columns=columns)
    called = lw.refresh("1", new, "called", wait=1, withdrawn=gone, seed=1)
    for path in ("data/visits.parquet", "data/records.parquet"):
        one, two = (pl.read_parquet(each.path / "share" / path) for each in (made, called))
        assert one.equals(two)
    assert made.measures["refresh"] == called.measures["refresh"]
    assert made.measures["refresh"]["withdrawn"] == 1
    assert lw.releases.list(register="register.db")["version"].to_list() == [1, 2]


def test_custody_keeps_the_spec_that_makes_the_version_again() -> None:
    lw.run(write("second.yaml", **following(2)), "2", register="register.db")
    again = lw.run("2/custody/spec.yaml", "again", register="register.db", reason="again")
    versions = [lw.verify(each).passed for each in ("2", "again")]
    assert versions == [True, True]
    assert again.release.manifest["versions"] == lw.Release.open("2").manifest["versions"]
    assert lw.run("1/custody/spec.yaml", "once", register="register.db", reason="again").release.records


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"method": {**SPEC["method"], "k": 4}}, "`method.k`"),
        ({"method": {"name": "disassociation", "k": 3, "m": 2}}, "`method.name`"),
        ({"release": {"recipient": "company"}}, "`release`"),
        ({"engine": "spark"}, "engine"),
        ({"refresh": {"master": "1", "withdrawn": "nobody.txt"}}, "nobody.txt"),
        ({"refresh": {"master": "nowhere"}}, "nowhere"),
        ({"refresh": {}}, "master"),
    ],
)
def test_what_is_not_of_the_line_is_named(changes: dict[str, object], named: str) -> None:
    with pytest.raises(BadInput, match=named):
        lw.run(write("second.yaml", **{**following(2), **changes}), "2", register="register.db")
    assert not Path("2").exists()
