"""One person stops what was opened, and two start it again (H5)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.portal.made import Bench

from leeward.errors import BadInput
from leeward.portal import proposals, releases, stopping
from leeward.portal.question import request_of
from leeward.portal.stopping import Stopped
from leeward.portal.store.rows import Unknown


def ask(bench: Bench, **more: Any) -> Any:
    body = bench.question(epsilon="0.1", **more)
    project, index = body.pop("project"), body.pop("index")
    return bench.portal.asking.pay(bench.viewer("rita"), project, index, [request_of(body)])


@pytest.mark.parametrize("kind", ["index", "project"])
def test_a_stopped_index_or_project_gives_no_answer_until_two_start_it(fresh: Bench, kind: str) -> None:
    indexes, database = fresh.portal.indexes, fresh.portal.database
    what = fresh.index if kind == "index" else fresh.project["one"]
    ask(fresh)
    spent = fresh.spent()
    stopping.stop(database, fresh.viewer("anna"), kind, what, "a mistake")
    for terms in ("fever", "cough"):  # a stored answer and a new one
        with pytest.raises(Stopped, match=f"this {kind} is stopped"):
            ask(fresh, terms=terms)
    assert fresh.spent() == spent
    with pytest.raises(BadInput, match="stopped already"):
        stopping.stop(database, fresh.viewer("carl"), kind, what, "again")
    proposed = proposals.propose_start(database, fresh.viewer("carl"), kind, what, "mended")
    assert re.search(
        f"the {kind} .*, which was stopped .*: a mistake", fresh.client("anna").get("/decisions").text
    )
    with pytest.raises(proposals.SamePerson):
        proposals.decide(indexes, fresh.viewer("carl"), proposed, "confirmed", "yes")
    with pytest.raises(Stopped):
        ask(fresh)
    proposals.decide(indexes, fresh.viewer("anna"), proposed, "confirmed", "yes")
    ask(fresh)
    with pytest.raises(BadInput, match="is not stopped"):
        proposals.propose_start(database, fresh.viewer("carl"), kind, what, "mended")


def test_a_stopped_release_is_handed_to_nobody(bench: Bench) -> None:
    database = bench.portal.database
    assert b"".join(releases.read_file(database, bench.viewer("rita"), bench.release, "README.md"))
    stopping.stop(database, bench.viewer("carl"), "release", bench.release, "the wrong cohort")
    for who, refused in (("rita", Unknown), ("carl", Stopped), ("anna", Stopped)):
        with pytest.raises(refused):
            releases.read_file(database, bench.viewer(who), bench.release, "README.md")
    assert releases.visible(database, bench.viewer("rita")) == []
    assert len(releases.visible(database, bench.viewer("carl"))) == 1
    again = proposals.propose_start(database, bench.viewer("carl"), "release", bench.release, "it was right")
    proposals.decide(bench.portal.indexes, bench.viewer("anna"), again, "confirmed", "yes")
    assert b"".join(releases.read_file(database, bench.viewer("rita"), bench.release, "README.md"))
    stopping.end_access(database, bench.viewer("anna"), bench.release, bench.ids["rita"], "left the house")
    with pytest.raises(Unknown):
        releases.read_file(database, bench.viewer("rita"), bench.release, "README.md")
    with pytest.raises(BadInput, match="no access"):
        stopping.end_access(database, bench.viewer("anna"), bench.release, bench.ids["rita"], "again")


def test_an_allotment_is_lowered_at_once_and_never_raised(fresh: Bench) -> None:
    indexes, carl, one = fresh.portal.indexes, fresh.viewer("carl"), fresh.project["one"]
    ask(fresh)
    with pytest.raises(BadInput, match="not less"):
        stopping.lower_allotment(indexes, carl, one, fresh.index, "4", "less")
    with pytest.raises(BadInput, match="less than what was spent"):
        stopping.lower_allotment(indexes, carl, one, fresh.index, "0.05", "less")
    stopping.lower_allotment(indexes, carl, one, fresh.index, "0.1", "less")
    with pytest.raises(Exception, match="Nothing was charged"):
        ask(fresh, terms="cough")


def test_a_proposal_is_withdrawn_by_its_proposer_only(fresh: Bench) -> None:
    indexes = fresh.portal.indexes
    proposed = proposals.propose_allotment(
        indexes, fresh.viewer("carl"), fresh.project["one"], fresh.index, "5", "2099-01-01", False, "more"
    )
    with pytest.raises(BadInput, match="no open proposal"):
        proposals.decide(indexes, fresh.viewer("clara"), proposed, "withdrawn", "not mine")
    proposals.decide(indexes, fresh.viewer("carl"), proposed, "withdrawn", "a mistake")
    with pytest.raises(proposals.Decided):
        proposals.decide(indexes, fresh.viewer("anna"), proposed, "confirmed", "yes")


def test_only_what_is_there_can_be_stopped(fresh: Bench) -> None:
    with pytest.raises(Unknown):
        stopping.stop(fresh.portal.database, fresh.viewer("carl"), "index", "nothing", "x")
    with pytest.raises(BadInput, match="one can stop"):
        stopping.stop(fresh.portal.database, fresh.viewer("carl"), "person", fresh.ids["rita"], "x")


def test_whoever_gets_a_release_does_not_start_it_again(release_folder: Path, fresh: Bench) -> None:
    import shutil

    database, indexes = fresh.portal.database, fresh.portal.indexes
    shutil.copytree(release_folder, fresh.folder / "releases" / "cohort")
    people = [fresh.ids["clara"], fresh.ids["rita"]]
    made = proposals.propose_release(
        indexes, fresh.viewer("carl"), "cohort", "Cohort", people, "2099-01-01", "x"
    )
    proposals.decide(indexes, fresh.viewer("anna"), made, "confirmed", "yes")
    release = releases.visible(database, fresh.viewer("carl"))[0]["id"]
    stopping.stop(database, fresh.viewer("anna"), "release", release, "the wrong cohort")
    again = proposals.propose_start(database, fresh.viewer("carl"), "release", release, "it was right")
    with pytest.raises(proposals.SamePerson, match="about you"):
        proposals.decide(indexes, fresh.viewer("clara"), again, "confirmed", "yes")
    proposals.decide(indexes, fresh.viewer("anna"), again, "confirmed", "yes")
