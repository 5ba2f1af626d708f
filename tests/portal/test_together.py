"""What a release gives away together with earlier ones, on the pages of those who decide on it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tests.portal.made import Bench
from tests.runs.made_lines import cohort, visits

import leeward as lw
from leeward.portal.releases import visible
from leeward.runs.portal import _withdrawn

METHOD = lw.Visits(k=3, policy="none")
QUARTERS = visits(200, 2, 10, 7)


@pytest.fixture(name="line")
def two_versions(fresh: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A portal whose house has a register; the identifier of a second version in its folder of releases."""
    house = tmp_path / "house.yaml"
    house.write_text(f"register: {{url: {tmp_path}/register.db, key: {tmp_path}/register.secret}}\n")
    monkeypatch.setenv("LEEWARD_HOUSE", str(house))
    first, handover = cohort(QUARTERS[0]), {"recipient": "university", "line": "quarters"}
    lw.protect(first, METHOD, tmp_path / "1", seed=1, handover=handover)
    lw.refresh(
        tmp_path / "1", cohort(QUARTERS[1]), fresh.folder / "releases" / "second", published=first, seed=2
    )
    state: Any = fresh.gate.app
    state.state.portal = dataclasses.replace(fresh.portal, withdrawn=_withdrawn)
    return str(lw.releases.list()["id"][1])


def propose(bench: Bench) -> Any:
    form = {"folder": "second", "name": "Quarters", "ends": "2099-01-01", "reason": "Agreed."}
    return bench.post("carl", "/custody/releases", **form, recipients=[bench.ids["rita"]])


def confirm(bench: Bench) -> Any:
    from leeward.portal import proposals

    (row,) = (
        row
        for row in proposals.proposals_of(bench.portal.database, bench.viewer("anna"))[0]
        if row["state"] == "open"
    )
    return bench.post("anna", f"/decisions/{row['id']}", verdict="confirmed", reason="As agreed.")


def test_whoever_decides_sees_versions_and_the_rule_for_each_earlier_release(fresh: Bench, line: str) -> None:
    assert propose(fresh).status_code == 303
    earlier = lw.releases.list()["id"][0]
    common = lw.releases.overlap(line)["common"][0]
    page = fresh.client("anna").get("/decisions").text
    for said in ("Version 2 of the line quarters", "Rule version", earlier[:8], line, f">{common}<"):
        assert said in page, said
    page = fresh.client("audrey").get("/decisions").text
    assert "Quarters" in page and line not in page and "Rule version" not in page
    assert confirm(fresh).status_code == 303
    release = visible(fresh.portal.database, fresh.viewer("carl"))[0]["id"]
    page = fresh.client("carl").get(f"/custody/releases/{release}").text
    assert "Version 2 of the line quarters" in page and "Rule version" in page
    assert (
        "joins version 2 of the line" in fresh.client("carl").get(f"/custody/releases/{release}/report").text
    )


def test_a_recipient_sees_what_is_new_and_no_other_release(fresh: Bench, line: str) -> None:
    propose(fresh)
    confirm(fresh)
    page = fresh.client("rita").get("/releases").text
    assert "Version 2: " in page and "All rows of version 1 are in it" in page
    for other in (*lw.releases.list()["id"], "quarters", "university", "Rule"):
        assert other not in page


def test_a_release_that_counts_no_longer_is_not_published(fresh: Bench, line: str) -> None:
    propose(fresh)
    lw.releases.withdraw(line, "never sent")
    refused = confirm(fresh)
    assert refused.status_code == 422 and "withdrawn (never sent)" in refused.text
    assert visible(fresh.portal.database, fresh.viewer("carl")) == []
    assert propose(fresh).status_code == 422


def test_a_release_that_nobody_counts_is_said_to_be_one(fresh: Bench, release_folder: Path) -> None:
    import shutil

    shutil.copytree(release_folder, fresh.folder / "releases" / "second")
    assert propose(fresh).status_code == 303
    assert "No register counts this release" in fresh.client("anna").get("/decisions").text
    shutil.rmtree(fresh.folder / "releases" / "second")
    assert "cannot be read now" in fresh.client("anna").get("/decisions").text
