"""A refresh enters itself: with all patients of the line, and as a later version only of what it was made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.runs.made_lines import cohort, visits

import leeward as lw
from leeward.errors import BadInput, GuaranteeUnreachable

METHOD = lw.Visits(k=3, policy="none")
QUARTERS = visits(200, 3, 10, 7)
FIRST = cohort(QUARTERS[0])


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def protect(out: str, source: lw.Cohort = FIRST, **more: Any) -> lw.Result:
    return lw.protect(source, METHOD, out, register="register.db", seed=1, **more)


def refresh(master: str, rows: pl.DataFrame, out: str, **more: Any) -> lw.Result:
    given = {"register": "register.db", "published": FIRST, "seed": 2, **more}
    return lw.refresh(master, cohort(rows), out, **given)


def facts(folder: str) -> dict[str, Any]:
    entry = json.loads(Path(folder, "custody/register.json").read_text())
    return lw.releases.show(entry["facts"]["id"], register="register.db")


def rules(folder: str) -> list[str]:
    return [each["rule"] for each in facts(folder)["compared"]]


def test_versions_are_entered_with_all_patients_of_the_line() -> None:
    protect("1", handover={"recipient": "uni", "line": "quarters"})
    refresh("1", QUARTERS[1], "2")
    result = refresh("2", QUARTERS[2], "3")
    one, two, three = map(facts, "123")
    assert [each["follows"] for each in (one, two, three)] == [None, one["id"], two["id"]]
    assert [each["version"] for each in (one, two, three)] == [1, 2, 3]
    assert {(each["recipient"], each["line"], each["status"]) for each in (one, two, three)} == {
        ("uni", "quarters", "released")
    }
    assert three["patients"] == pl.concat(QUARTERS)["patient"].n_unique()
    assert rules("2") == ["version"] and rules("3") == ["version", "version"]
    assert two["id"] in result.report.read_text()  # the table of earlier releases
    assert not [each for each in result.measures["notices"] if each["kind"] == "register"]
    assert lw.releases.overlap(one["id"], register="register.db")["rule"].to_list() == ["version", "version"]


def test_two_refreshes_of_one_version_are_no_versions_of_each_other() -> None:
    protect("1", handover={"line": "quarters"})
    refresh("1", QUARTERS[1], "2")
    with pytest.raises(BadInput, match="no proof covers"):
        refresh("1", QUARTERS[2], "other")
    fewer = QUARTERS[1].filter(pl.col("patient") != (set(QUARTERS[1]["patient"]) - known()).pop())
    with pytest.raises(GuaranteeUnreachable, match="Fewer than k"):
        refresh("1", fewer, "other", reason="agreed")
    assert not Path("other").exists()
    refresh("1", QUARTERS[2], "other", reason="agreed")
    assert rules("other") == ["version", "other"]
    refresh("other", QUARTERS[1], "next", reason="agreed")
    assert rules("next") == ["version", "other", "version"]


def known() -> set[str]:
    return set(QUARTERS[0]["patient"])


def test_a_name_makes_no_versions() -> None:
    """Two releases from scratch under one name, or under none, and a version of one of them."""
    protect("1", handover={"line": "quarters"})
    lw.refresh("1", cohort(QUARTERS[1]), "2", published=FIRST, seed=2)  # nobody counted it
    both = cohort(pl.concat(QUARTERS[:2]))
    for line in ({"line": "quarters"}, {}):
        with pytest.raises(BadInput, match="--reason"):
            protect("again", both, handover=line)
    result = refresh("2", QUARTERS[2], "3", reason="agreed")
    assert rules("3") == ["other"]
    (notice,) = (each for each in result.measures["notices"] if each["kind"] == "register")
    assert "does not have the version before" in notice["message"]
