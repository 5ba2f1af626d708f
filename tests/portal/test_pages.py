"""What people and programs do with the portal, and that the command line agrees."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.portal.made import Bench

import leeward as lw
from leeward.queries.ledger import budgets, opening


def test_a_question_is_priced_rehearsed_and_paid_once(bench: Bench) -> None:
    ask = f"/projects/{bench.project['one']}/ask"
    before = bench.spent()
    page = bench.post("rita", ask, terms="pyrexia & cough", within="20", where_when="2025-01..2025-06").text
    assert "Fever" in page and "± 20" in page
    page = bench.post("rita", ask, terms="fever & cough", within="20", do="rehearse", by="when").text
    assert "made-up patients" in page and "<svg" in page
    page = bench.post("rita", ask, terms="fever & cough", within="20", do="review").text
    assert "Ask and pay ε 0.15" in page
    assert bench.spent() == before  # nothing was charged until now
    pay = f"/projects/{bench.project['one']}/answers"
    first = bench.post("rita", pay, index=bench.index, terms="fever & cough", epsilon="0.5")
    again = bench.post("lea", pay, index=bench.index, terms="cough & pyrexia", epsilon="0.5")
    assert first.status_code == again.status_code == 303
    assert first.headers["location"] == again.headers["location"]
    assert bench.spent() == before + 500_000
    answer = bench.client("lea").get(first.headers["location"]).text
    assert "To quote" in answer and "95 % interval" in answer and "leeward query clinic" in answer


def test_notes_are_counted_and_hidden_by_the_form(bench: Bench) -> None:
    path = f"/projects/{bench.project['one']}"
    form = {"index": bench.index, "terms": "fever", "epsilon": "0.31", "count": "note", "unit": "note"}
    review = bench.post("rita", f"{path}/ask", **form, do="review")
    assert "with any one note as without" in review.text
    again = bench.post("rita", f"{path}/ask", **form, do="price", where_age="0..50")  # "Change the question"
    for name, value in (("count", "note"), ("unit", "note")):
        chosen = rf'<select id="{name}".*?<option value="{value}" selected>'
        assert re.search(chosen, again.text, re.S)
    assert 'name="where_age" value="0..50"' in again.text
    paid = bench.post("rita", f"{path}/answers", **form)
    answer = bench.client("rita").get(f"{paid.headers['location']}/answer.json").json()
    assert (answer["counted"], answer["unit"]) == ("note", "note")


def test_the_answer_is_repeated_by_the_command_line_and_the_reverse(bench: Bench) -> None:
    token = bench.token("rita")
    given = bench.ask(
        token, "cli-1", bench.question("headache", "0.25", conditions={"when": "2025-02..2025-09"})
    ).json()
    folder = bench.folder / "indexes" / "clinic"
    same = lw.query(
        folder,
        "headache",
        epsilon="0.25",
        when="2025-02..2025-09",
        user=bench.ids["rita"],
        project=bench.project["one"],
    )
    assert same.to_json()["answer"] == given["answer"] and same.cost == 0
    on_the_command_line = lw.query(
        folder, "rash", epsilon="0.2", user="carl at a shell", project=bench.project["one"]
    )
    there = bench.ask(token, "cli-2", bench.question("rash", "0.2"))
    assert there.status_code == 200  # stored: it was paid on the command line
    assert there.json()["answer"] == on_the_command_line.to_json()["answer"]
    assert lw.audit(folder).passed


def test_a_batch_is_all_or_nothing(bench: Bench) -> None:
    pay = f"/projects/{bench.project['one']}/batch/pay"
    before = bench.spent()
    lines = "fever --when 2025-01\ncough --by when\n'fever & cough' --epsilon 500"
    refused = bench.post("rita", pay, index=bench.index, lines=lines, epsilon="0.01")
    assert refused.status_code == 402 and bench.spent() == before
    done = bench.post("rita", pay, index=bench.index, lines=lines.replace("500", "0.3"), epsilon="0.2")
    assert done.status_code == 200 and bench.spent() == before + 700_000


def test_what_was_asked_and_what_may_be_asked_is_shown(bench: Bench) -> None:
    pay = f"/projects/{bench.project['one']}/batch/pay"
    done = bench.post("rita", pay, index=bench.index, lines="rash\ncough --by when", epsilon="0.125").text
    assert "12 bins" in done and "0.125" in done
    listed = bench.client("rita").get(f"/projects/{bench.project['one']}/answers").text
    assert "Rita" in listed and "0.125" in listed and "in all" in listed
    indexes = bench.client("carl").get("/custody/indexes").text
    assert "<td>Project one</td><td>project</td>" in indexes and "<dd>clinic</dd>" in indexes
    assert "noisy counts below 5 are hidden" in indexes and "pure accounting" in indexes
    assert bench.client("carl").get("/custody/releases").status_code == 200
    assert bench.client("anna").get("/decisions").status_code == 200
    assert bench.client("audrey").get("/admin").status_code == 200


def test_every_answer_of_a_histogram_stands_in_table_csv_and_json(bench: Bench) -> None:
    body = bench.question("cough", "1", by="when")
    found = bench.ask(bench.token("rita"), "hist", body).json()
    assert len(found["answer"]) == 12
    client = bench.client("rita")
    table = client.get(f"/answers/{found['id']}/table.csv").text.splitlines()
    assert len(table) == 13 and table[0] == "question,when,value,low,high"
    assert client.get(f"/answers/{found['id']}/answer.json").json()["answer"] == found["answer"]
    assert "<svg" in client.get(f"/answers/{found['id']}").text


def test_an_answer_below_the_floor_is_hidden_everywhere(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leeward.queries.privacy.mechanism.draw", lambda noise, size: [1] * size)
    found = bench.ask(bench.token("rita"), "hidden", bench.question("sore throat", "0.4")).json()
    assert found["answer"] is None
    page = bench.client("rita").get(f"/answers/{found['id']}").text
    assert "below 5 (noisy)" in page and "Fewer than 5" in page


def test_noise_larger_than_what_it_measures_needs_a_second_word(bench: Bench) -> None:
    token = bench.token("rita")
    refused = bench.ask(token, "noise-1", bench.question("fever", "0.001"))
    assert refused.status_code == 422 and "off by up to" in refused.json()["detail"]
    assert "--" not in refused.json()["detail"]
    assert bench.ask(token, "noise-2", bench.question("fever", "0.001", large_noise=True)).status_code == 201


def test_a_recipient_downloads_what_verifies_and_it_is_in_the_journal(bench: Bench) -> None:
    client = bench.client("rita")
    page = client.get("/releases").text
    assert "Cohort" in page and "release.json" in page
    got = client.get(f"/releases/{bench.release}/files/release.json")
    assert got.status_code == 200
    assert got.content == (bench.folder / "releases" / "cohort" / "share" / "release.json").read_bytes()
    assert "release.json" in bench.client("carl").get(f"/custody/releases/{bench.release}").text
    assert bench.client("rob").get(f"/releases/{bench.release}/files/release.json").status_code == 404
    lines = bench.client("audrey").get("/audit/log.ndjson", params={"index": "portal"}).text.splitlines()
    assert any(json.loads(line)["event"] == "downloaded" for line in lines)
    page = bench.client("audrey").get("/audit", params={"event": "downloaded"}).text
    assert "Rita" in page and "Cohort" in page  # people read names, programs identifiers
    assert bench.ids["rita"] not in page


def test_a_release_that_was_changed_is_not_handed_out(
    fresh: Bench, release_folder: Path, tmp_path: Path
) -> None:
    import shutil

    from leeward.portal import proposals
    from leeward.portal.releases import visible

    place = fresh.folder / "releases" / "cohort"
    shutil.copytree(release_folder, place)
    form = {
        "folder": "cohort",
        "name": "Cohort",
        "recipients": fresh.ids["rita"],
        "ends": "2099-01-01",
        "reason": "r",
    }
    assert fresh.post("carl", "/custody/releases", **form).status_code == 303
    waiting = next(
        p
        for p in proposals.proposals_of(fresh.portal.database, fresh.viewer("anna"))[0]
        if p["state"] == "open"
    )
    readme = place / "share" / "README.md"
    good = readme.read_text()
    readme.write_text(good + "changed")
    refused = fresh.post("anna", f"/decisions/{waiting['id']}", verdict="confirmed", reason="r")
    assert refused.status_code == 409
    assert visible(fresh.portal.database, fresh.viewer("carl")) == []
    readme.write_text(good)
    assert (
        fresh.post("anna", f"/decisions/{waiting['id']}", verdict="confirmed", reason="r").status_code == 303
    )
    (row,) = visible(fresh.portal.database, fresh.viewer("rita"))
    readme.write_text(good + "changed")
    assert fresh.client("rita").get(f"/releases/{row['id']}/files/README.md").status_code == 409
    manifest = place / "share" / "release.json"
    manifest.write_text(manifest.read_text().replace('"records": 30', '"records": 31'))
    page = fresh.post("carl", f"/custody/releases/{row['id']}/verify").text
    assert "Nothing of it is handed out" in page
    assert fresh.client("rita").get(f"/releases/{row['id']}/files/data/nodes.parquet").status_code == 409


def test_what_is_confirmed_is_what_was_proposed(fresh: Bench, release_folder: Path) -> None:
    """An index, or a release, that another one took the place of meanwhile; both are sound in themselves."""
    import shutil

    from tests.portal.made import make_index, make_release

    from leeward.portal import proposals
    from leeward.portal.releases import visible

    index, release = fresh.folder / "indexes" / "second", fresh.folder / "releases" / "cohort"
    make_index(index, patients=30, shift=5)
    shutil.copytree(release_folder, release)
    indexes, carl = fresh.portal.indexes, fresh.viewer("carl")
    made = [
        proposals.propose_index(indexes, carl, "second", "Second", "", "r"),
        proposals.propose_release(indexes, carl, "cohort", "Cohort", [fresh.ids["rita"]], "2099-01-01", "r"),
    ]
    others = (fresh.folder / "another index", fresh.folder / "another release")
    make_index(others[0], patients=31, shift=5)
    make_release(others[1], patients=31)
    for place, other in zip((index, release), others, strict=True):
        place.rename(other.with_name(f"{other.name}, before"))
        other.rename(place)
    for each, what in zip(made, ("another one", "changed after it was proposed"), strict=True):
        with pytest.raises(lw.BadInput, match=what):
            proposals.decide(indexes, fresh.viewer("anna"), each, "confirmed", "r")
    assert [row["name"] for row in indexes.rows()] == ["Clinic"]
    assert visible(fresh.portal.database, carl) == []
    waiting = proposals.proposals_of(fresh.portal.database, fresh.viewer("anna"))[0]
    assert {each["id"] for each in waiting if each["state"] == "open"} == set(made), "nothing was decided"


def test_an_idempotency_key_is_a_persons_own(bench: Bench) -> None:
    body = {login: bench.question(terms, "0.11") for login, terms in (("rita", "fever"), ("lea", "rash"))}
    replies = {login: bench.ask(bench.token(login), "the-same", body[login]) for login in body}
    assert {reply.status_code for reply in replies.values()} == {201}
    assert replies["rita"].json()["id"] != replies["lea"].json()["id"]
    again = bench.ask(bench.token("lea"), "the-same", body["lea"])
    assert again.json()["id"] == replies["lea"].json()["id"]


def test_a_closed_account_keeps_no_session_and_no_token(fresh: Bench) -> None:
    """Also when it is opened again."""
    token = fresh.token("rita")
    headers = {"authorization": f"Bearer {token}"}
    assert fresh.client().get("/api/v1/me", headers=headers).status_code == 200
    from leeward.portal import proposals

    rita = fresh.ids["rita"]
    for again in (False, True):
        if again:
            made = proposals.propose_account(fresh.portal.database, fresh.viewer("ida"), rita, [], "back")
            proposals.decide(fresh.portal.indexes, fresh.viewer("anna"), made, "confirmed", "yes")
        else:
            assert fresh.post("ida", f"/admin/accounts/{rita}/close").status_code == 303
        assert fresh.client("rita").get("/api/v1/me").status_code == 401
        assert fresh.client().get("/api/v1/me", headers=headers).status_code == 401


def test_a_link_ends(fresh: Bench, release_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    shutil.copytree(release_folder, fresh.folder / "releases" / "cohort")
    form = {
        "folder": "cohort",
        "name": "Cohort",
        "recipients": fresh.ids["rita"],
        "ends": "2099-01-01",
        "reason": "r",
    }
    fresh.post("carl", "/custody/releases", **form)
    from leeward.portal import proposals, releases

    (waiting, *_) = proposals.proposals_of(fresh.portal.database, fresh.viewer("anna"))[0]
    fresh.post("anna", f"/decisions/{waiting['id']}", verdict="confirmed", reason="r")
    assert len(releases.visible(fresh.portal.database, fresh.viewer("rita"))) == 1
    monkeypatch.setattr(releases, "now", lambda: "2099-01-02T00:00:00.000+00:00")
    assert releases.visible(fresh.portal.database, fresh.viewer("rita")) == []


def test_an_allotment_ends(fresh: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leeward.portal.asking.now", lambda: "2099-01-02T00:00:00.000+00:00")
    reply = fresh.ask(fresh.token("rita"), "late", fresh.question())
    assert reply.status_code == 402 and "ended" in reply.json()["detail"]
    assert fresh.spent() == 0


def test_a_portal_opens_only_ledgers_that_give_nothing_by_default(fresh: Bench, tmp_path: Path) -> None:
    from tests.portal.made import TERMS, notes

    from leeward.queries.index.build import index_table
    from leeward.queries.ledger.budgets import DataSet
    from leeward.queries.privacy.accounting import Budget

    folder = tmp_path / "open"
    built = index_table(notes(10, 3), folder, terms=TERMS, max_rows_per_patient=1)
    folder.chmod(0o700)
    ledger = opening.make_ledger(folder, folder)
    budgets.register(
        ledger, DataSet(id=built.index.meta.id, budget=Budget(epsilon=1), default_allotment="all")
    )
    with pytest.raises(lw.BadInput, match="default_allotment"):
        fresh.portal.indexes.open(folder, None)
    folder.chmod(0o755)
    with pytest.raises(lw.BadInput, match="others can read"):
        fresh.portal.indexes.open(folder, None)


def test_a_number_in_an_address(bench: Bench) -> None:
    client = bench.client("audrey")
    entries = client.get("/api/v1/log", params={"index": "portal"}).json()
    last = entries[-1]["number"]
    later = client.get("/api/v1/log", params={"index": "portal", "after": str(last - 1)}).json()
    assert later == entries[-1:] and last > 1
    for wrong in ("x", "1.5", "portal:", "9" * 400):
        assert client.get("/api/v1/log", params={"after": wrong}).status_code == 422


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"most": "many"}, "most"),
        ({"unit": "visit"}, "unit"),
        ({"conditions": {"age": 3}}, "conditions.age"),
        ({"within": "secret"}, "within"),
        ({"price": 0}, "price"),
        ({"terms": "f" * 30_000}, "terms"),
    ],
)
def test_a_wrong_field_is_named_and_its_value_is_not_repeated(
    bench: Bench, more: dict[str, Any], name: str
) -> None:
    headers = {"authorization": f"Bearer {bench.token('rita')}"}
    body = bench.question("fever") | more
    reply = bench.client().post("/api/v1/questions:price", json=body, headers=headers)
    assert reply.status_code == 422 and f"`{name}`" in reply.json()["detail"]
    assert not {"many", "visit", "secret", "f" * 30_000} & set(reply.json()["detail"].split())
