"""Passwords that only their owners know, second factors, and decisions that one person cannot take alone."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pyotp
import pytest
import sqlalchemy as sa
from tests.portal.made import Bench
from tests.portal.made import sign_in as renew_session

from leeward.errors import BadInput
from leeward.portal import accounts, passwords, people, proposals, sessions, stopping
from leeward.portal.permissions import Viewer
from leeward.portal.proposals import SamePerson
from leeward.portal.store import reading, tables, writing

GOOD = "a long enough password"


def viewer(bench: Bench, person: str) -> Viewer:
    with reading(bench.portal.database) as connection:
        found = people.viewer_of(connection, person)
    assert found is not None
    return found


def made_by(bench: Bench, maker: str, login: str) -> str:
    return accounts.make_account(bench.portal.database, login, login, bench.ids[maker])[0]


def give_roles(bench: Bench, proposer: str, person: str, roles: list[str], decider: str) -> None:
    database = bench.portal.database
    made = proposals.propose_account(database, bench.viewer(proposer), person, roles, "works here")
    proposals.decide(bench.portal.indexes, bench.viewer(decider), made, "confirmed", "I know them")


def test_a_link_sets_a_password_once(fresh: Bench) -> None:
    database = fresh.portal.database
    person, secret = accounts.make_account(database, "tom", "Tom")
    assert passwords.sign_in(database, "tom", "", "1.2.3.4") is None
    with pytest.raises(BadInput, match="12 to 256"):
        accounts.set_up(database, secret, "short")
    assert accounts.set_up(database, secret, GOOD) == person
    row = passwords.sign_in(database, "tom", GOOD, "1.2.3.4")
    assert row is not None and row["id"] == person
    for used in (secret, "another"):
        with pytest.raises(BadInput, match="was used, is older than three days, or a role was given since"):
            accounts.set_up(database, used, GOOD)


def test_a_link_ends(fresh: Bench) -> None:
    database = fresh.portal.database
    person, old = accounts.make_account(database, "tom", "Tom")
    with writing(database) as connection:
        new = accounts.new_link(connection, person, "ida")
    with pytest.raises(BadInput):  # only the latest works
        accounts.set_up(database, old, GOOD)
    with writing(database) as connection:
        connection.execute(tables.links.update().values(ends="2000-01-01T00:00:00.000+00:00"))
    with pytest.raises(BadInput):
        accounts.set_up(database, new, GOOD)


def test_no_secret_of_a_link_is_kept(fresh: Bench) -> None:
    _, secret = accounts.make_account(fresh.portal.database, "tom", "Tom")
    with reading(fresh.portal.database) as connection:
        kept = [
            str(tuple(row))
            for table in tables.metadata.sorted_tables
            for row in connection.execute(sa.select(table))
        ]
    assert not any(secret in row for row in kept)


def test_people_change_their_own_password(fresh: Bench) -> None:
    database = fresh.portal.database
    person, secret = accounts.make_account(database, "tom", "Tom")
    accounts.set_up(database, secret, GOOD)
    tom = viewer(fresh, person)
    with pytest.raises(BadInput, match="present password is wrong"):
        accounts.change_password(database, tom, "not the old password", GOOD * 2, "1.2.3.4")
    accounts.change_password(database, tom, GOOD, GOOD * 2, "1.2.3.4")
    assert passwords.sign_in(database, "tom", GOOD, "1.2.3.4") is None
    assert passwords.sign_in(database, "tom", GOOD * 2, "1.2.3.4") is not None
    with pytest.raises(BadInput, match="at your institution"):
        accounts.change_password(database, fresh.viewer("rita"), GOOD, GOOD * 2, "1.2.3.4")


def test_a_code_works_once_and_only_for_its_owner(fresh: Bench) -> None:
    database, rita = fresh.portal.database, fresh.viewer("rita")
    codes = pyotp.TOTP(accounts.begin_second_factor(database, rita))
    with reading(database) as connection:
        assert not accounts.has_second_factor(connection, rita.person)
    with pytest.raises(BadInput, match="does not fit"):
        accounts.confirm_second_factor(database, rita, "000000" if codes.now() != "000000" else "000001")
    code = codes.now()
    accounts.confirm_second_factor(database, rita, code)
    assert not accounts.check_code(database, rita.person, code, "1.2.3.4")
    later = codes.at(int(time.time()) + accounts.STEP)
    assert not accounts.check_code(database, fresh.ids["lea"], later, "1.2.3.4")
    assert accounts.check_code(database, rita.person, later, "1.2.3.4")
    assert not accounts.check_code(database, rita.person, later, "1.2.3.4")
    with pytest.raises(BadInput, match="already"):
        accounts.begin_second_factor(database, rita)


def test_one_administrator_is_not_two_persons(fresh: Bench) -> None:
    """H1: an administrator made a custodian and an approver, and decided as both."""
    custodian, approver = made_by(fresh, "ida", "ghost"), made_by(fresh, "ida", "double")
    with pytest.raises(SamePerson):
        give_roles(fresh, "ida", custodian, ["custodian"], "ida")
    database, indexes = fresh.portal.database, fresh.portal.indexes
    with writing(database) as connection:  # as a portal from before had them
        people.set_house_roles(connection, custodian, ["custodian", "admin"], "ida")
        people.set_house_roles(connection, approver, ["approver"], "ida")
    proposed = proposals.propose_reset(database, viewer(fresh, custodian), fresh.ids["rita"], "lost")
    with pytest.raises(SamePerson, match="one administrator made both"):
        proposals.decide(indexes, viewer(fresh, approver), proposed, "confirmed", "yes")
    give_roles(fresh, "ida", approver, ["approver"], "anna")
    proposals.decide(indexes, viewer(fresh, approver), proposed, "confirmed", "yes")


def test_an_administrator_s_own_accounts_do_not_decide_for_him(fresh: Bench) -> None:
    approver = made_by(fresh, "ida", "double")
    give_roles(fresh, "ida", approver, ["approver"], "anna")
    proposed = proposals.propose_account(
        fresh.portal.database, fresh.viewer("ida"), fresh.ids["rob"], ["custodian"], "works here"
    )
    with pytest.raises(SamePerson, match="one administrator made both"):
        proposals.decide(fresh.portal.indexes, viewer(fresh, approver), proposed, "confirmed", "yes")


def test_nobody_decides_on_what_they_profit_from(fresh: Bench) -> None:
    """M4: an approver was invited to the project, and then confirmed its allotment."""
    database, indexes = fresh.portal.database, fresh.portal.indexes
    people.change_member(database, fresh.viewer("lea"), fresh.project["one"], fresh.ids["anna"], "researcher")
    proposed = proposals.propose_allotment(
        indexes, fresh.viewer("carl"), fresh.project["one"], fresh.index, "5", "2099-01-01", False, "more"
    )
    with pytest.raises(SamePerson, match="member of a project that profits"):
        proposals.decide(indexes, fresh.viewer("anna"), proposed, "confirmed", "yes")
    about = proposals.propose_account(database, fresh.viewer("ida"), fresh.ids["anna"], ["auditor"], "x")
    with pytest.raises(SamePerson, match="about you"):
        proposals.decide(indexes, fresh.viewer("anna"), about, "confirmed", "yes")


def test_a_custodian_does_not_invite_himself(fresh: Bench) -> None:
    with pytest.raises(BadInput, match="cannot invite yourself"):
        people.change_member(
            fresh.portal.database, fresh.viewer("carl"), fresh.project["one"], fresh.ids["carl"], "researcher"
        )


def test_a_reset_gives_its_link_to_the_second_person(fresh: Bench) -> None:
    database = fresh.portal.database
    person, secret = accounts.make_account(database, "tom", "Tom")
    accounts.set_up(database, secret, GOOD)
    codes = pyotp.TOTP(accounts.begin_second_factor(database, viewer(fresh, person)))
    accounts.confirm_second_factor(database, viewer(fresh, person), codes.now())
    proposed = proposals.propose_reset(database, fresh.viewer("ida"), person, "lost the phone")
    link = proposals.decide(fresh.portal.indexes, fresh.viewer("anna"), proposed, "confirmed", "called back")
    assert link is not None
    accounts.set_up(database, link, GOOD * 2)
    with reading(database) as connection:
        assert not accounts.has_second_factor(connection, person)


def sign_in(bench: Bench, login: str, password: str) -> Any:
    client = bench.client()
    return client, client.post("/sign-in", data={"login": login, "password": password})


def test_from_the_link_to_a_second_factor_in_pages(fresh: Bench) -> None:
    made = fresh.client("ida").post(
        "/admin/accounts", data={"csrf": fresh.csrf["ida"], "login": "tom", "name": "Tom Tester"}
    )
    link = re.search(r"/set-up\?link=([\w-]+)", made.text)
    assert link is not None and "Tom Tester" in made.text
    anybody = fresh.client()
    for _ in range(2):  # a mail program looks at a link before its reader does
        assert "Tom Tester" in anybody.get("/set-up", params={"link": link[1]}).text
    assert anybody.post("/set-up", data={"link": link[1], "password": GOOD}).status_code == 303
    assert anybody.get("/set-up", params={"link": link[1]}).status_code == 404
    client, reply = sign_in(fresh, "tom", GOOD)
    assert reply.status_code == 303
    csrf = {"csrf": re.search(r'name="csrf" value="([^"]+)"', client.get("/account").text)[1]}  # type: ignore[index]
    begun = client.post("/account/second-factor", data={**csrf, "password": GOOD})
    secret = re.search(r"<code>([A-Z2-7]{32})</code>", begun.text)
    assert secret is not None
    codes = pyotp.TOTP(secret[1])
    assert (
        client.post("/account/second-factor/confirm", data={**csrf, "code": codes.now()}).status_code == 303
    )
    second, reply = sign_in(fresh, "tom", GOOD)
    assert reply.status_code == 200 and "One-time code" in reply.text
    assert second.get("/account").status_code in {303, 401}  # the password alone opens nothing
    later = codes.at(int(time.time()) + accounts.STEP)
    wrong = "000000" if later != "000000" else "000001"
    assert second.post("/sign-in/code", data={"code": wrong}).status_code == 403
    assert second.post("/sign-in/code", data={"code": later}).status_code == 303
    assert second.get("/account").status_code == 200
    assert second.post("/sign-in/code", data={"code": later}).status_code == 403  # that step is over


def test_codes_cannot_be_guessed(fresh: Bench) -> None:
    _, link = accounts.make_account(fresh.portal.database, "tom", "Tom")
    tom = viewer(fresh, accounts.set_up(fresh.portal.database, link, GOOD))
    codes = pyotp.TOTP(accounts.begin_second_factor(fresh.portal.database, tom))
    accounts.confirm_second_factor(fresh.portal.database, tom, codes.now())
    right = {codes.at(int(time.time()) + step * accounts.STEP) for step in range(-2, 8)}
    guesses = [code for code in (f"{each:06d}" for each in range(40)) if code not in right]
    client, _ = sign_in(fresh, "tom", GOOD)
    replies = [client.post("/sign-in/code", data={"code": code}).status_code for code in guesses[:8]]
    assert replies[:5] == [403] * 5 and set(replies[5:]) == {429}


def test_an_administrator_changes_roles_by_proposal_only(fresh: Bench) -> None:
    rob = fresh.ids["rob"]
    fresh.post("ida", f"/admin/accounts/{rob}/roles", roles="custodian", reason="works here")
    assert viewer(fresh, rob).house == frozenset()
    (waiting,) = proposals.proposals_of(fresh.portal.database, fresh.viewer("ida"))[0]
    assert (
        fresh.post("ida", f"/admin/decisions/{waiting['id']}", verdict="confirmed", reason="x").status_code
        == 403
    )
    assert (
        fresh.post("anna", f"/admin/decisions/{waiting['id']}", verdict="confirmed", reason="x").status_code
        == 303
    )
    assert viewer(fresh, rob).house == {"custodian"}


def test_an_administrator_decides_on_nothing_but_accounts(fresh: Bench) -> None:
    proposed = proposals.propose_allotment(
        fresh.portal.indexes,
        fresh.viewer("carl"),
        fresh.project["one"],
        fresh.index,
        "5",
        "2099-01-01",
        False,
        "x",
    )
    for path in (f"/admin/decisions/{proposed}", f"/decisions/{proposed}"):
        assert fresh.post("ida", path, verdict="confirmed", reason="x").status_code in {403, 404}


def test_a_closed_account_is_opened_by_two(fresh: Bench) -> None:
    rob = fresh.ids["rob"]
    assert fresh.post("ida", f"/admin/accounts/{rob}/close").status_code == 303
    assert fresh.client("rob").get("/account").status_code in {303, 401}
    give_roles(fresh, "ida", rob, [], "anna")
    assert viewer(fresh, rob).memberships


def test_a_link_for_somebody_with_a_role_takes_two(fresh: Bench) -> None:
    reply = fresh.post("ida", f"/admin/accounts/{fresh.ids['carl']}/link", reason="lost")
    assert reply.status_code == 303 and "set-up?link" not in reply.text
    reply = fresh.post("ida", f"/admin/accounts/{fresh.ids['nobody']}/link", reason="lost")
    assert reply.status_code == 200 and "set-up?link" in reply.text


def test_the_command_line_makes_the_first_people_and_helps_when_a_password_is_lost(tmp_path: Path) -> None:
    from leeward.runs.portal import make_local_account, reset_password

    folder = tmp_path / "portal"
    folder.mkdir(mode=0o700)
    with pytest.raises(BadInput, match="local_accounts = true"):
        make_local_account(folder, "ida", ["admin"])
    (folder / "portal.toml").write_text("local_accounts = true\n")
    (folder / "portal.toml").chmod(0o600)
    first = make_local_account(folder, "ida", ["admin"])
    again = reset_password(folder, "ida")
    assert first.startswith("http://127.0.0.1:8000/set-up?link=") and again != first
    with pytest.raises(BadInput, match="no open local account"):
        reset_password(folder, "nobody")


def test_an_administrator_sees_proposals_about_accounts_only(fresh: Bench) -> None:
    proposals.propose_account(fresh.portal.database, fresh.viewer("ida"), fresh.ids["rob"], ["auditor"], "x")
    seen = proposals.proposals_of(fresh.portal.database, fresh.viewer("ida"))[0]
    assert {row["kind"] for row in seen} == {"account"}


def test_a_code_s_session_is_no_sign_in_at_the_provider_and_the_other_way(fresh: Bench) -> None:
    """What a session keeps of one way to sign in does not serve the other."""
    portal, pending = fresh.portal, []
    with writing(portal.database) as connection:
        for kept in ({"person": fresh.ids["carl"]}, {"state": "s", "verifier": "v", "nonce": "n"}):
            secret = sessions.begin(connection, portal.settings, None, login=kept)
            client = fresh.client()
            client.cookies.set(portal.settings.cookie, secret)
            pending.append(client)
    for client in pending:
        assert client.get("/account").status_code in {303, 401}
        assert client.post("/sign-in/code", data={"code": "000000"}).status_code == 403
        assert client.get("/sign-in/callback?state=s&code=c").status_code in {403, 404}


def test_programs_of_the_house_have_tokens_with_one_right(fresh: Bench) -> None:
    """M7: monitoring and audit needed a person's browser session."""
    form = {"name": "prometheus", "days": "30"}
    tokens = {}
    for scope in ("metrics", "log"):
        made = fresh.post("audrey", "/account/tokens", scope=scope, **form)
        tokens[scope] = re.search(r"leeward_[\w-]+", made.text)[0]  # type: ignore[index]
    refused = {("rita", "log"), ("ida", "log"), ("carl", "metrics"), ("lea", "log"), ("audrey", "ask")}
    assert all(
        fresh.post(who, "/account/tokens", scope=scope, **form).status_code == 422 for who, scope in refused
    )

    def status(scope: str, path: str) -> int:
        headers = {"authorization": f"Bearer {tokens[scope]}"}
        return int(fresh.client().get(path, headers=headers).status_code)

    opened = {"metrics": "/metrics", "log": "/api/v1/log"}
    for scope, path in opened.items():
        assert status(scope, path) == 200
        others = {
            *opened.values(),
            "/api/v1/me",
            "/api/v1/projects",
            "/api/v1/proposals",
            "/api/v1/releases",
        } - {path}
        assert {other: status(scope, other) for other in others} == dict.fromkeys(others, 403)
        assert status(scope, "/admin") in {303, 401}  # pages take no token
    with writing(fresh.portal.database) as connection:
        people.set_house_roles(connection, fresh.ids["audrey"], [], "test")
    assert {scope: status(scope, path) for scope, path in opened.items()} == {"metrics": 403, "log": 403}


def test_health_is_asked_by_head(fresh: Bench) -> None:
    assert {fresh.client().head(f"/health/{each}").status_code for each in ("live", "ready")} == {200}


def test_a_link_that_was_kept_back_gets_no_role_that_was_given_since(fresh: Bench) -> None:
    """Whoever made a link could wait until its owner is confirmed as an approver, and use it then."""
    database, indexes = fresh.portal.database, fresh.portal.indexes
    person, secret = accounts.make_account(database, "tom", "Tom", fresh.ids["ida"])
    give_roles(fresh, "ida", person, ["approver"], "anna")
    with pytest.raises(BadInput, match="a role was given since"):
        accounts.set_up(database, secret, GOOD)
    other, secret = accounts.make_account(database, "uma", "Uma", fresh.ids["ida"])
    people.change_member(database, fresh.viewer("lea"), fresh.project["one"], other, "researcher")
    with pytest.raises(BadInput, match="a role was given since"):
        accounts.set_up(database, secret, GOOD)
    proposed = proposals.propose_reset(database, fresh.viewer("ida"), person, "never had the link")
    link = proposals.decide(indexes, fresh.viewer("anna"), proposed, "confirmed", "called back")
    assert link is not None and accounts.set_up(database, link, GOOD) == person


def test_a_second_factor_is_not_removed_by_guessing(fresh: Bench) -> None:
    """A session that was left open is not enough."""
    database, rita = fresh.portal.database, fresh.viewer("rita")
    codes = pyotp.TOTP(accounts.begin_second_factor(database, rita))
    accounts.confirm_second_factor(database, rita, codes.now())
    renew_session(fresh, "rita")
    right = {codes.at(int(time.time()) + step * accounts.STEP) for step in range(-2, 8)}
    guesses = [code for code in (f"{each:06d}" for each in range(40)) if code not in right]
    replies = [
        fresh.post("rita", "/account/second-factor/remove", code=code).status_code for code in guesses[:8]
    ]
    assert replies[:5] == [422] * 5 and set(replies[5:]) == {429}


def test_programs_see_every_kind_of_proposal_and_confirm_none_on_accounts(fresh: Bench) -> None:
    database, rob = fresh.portal.database, fresh.ids["rob"]
    stopping.stop(database, fresh.viewer("carl"), "index", fresh.index, "a mistake")
    made = {
        "start": proposals.propose_start(database, fresh.viewer("carl"), "index", fresh.index, "mended"),
        "account": proposals.propose_account(database, fresh.viewer("ida"), rob, ["auditor"], "works here"),
        "reset": proposals.propose_reset(database, fresh.viewer("ida"), rob, "lost"),
    }
    gone = proposals.propose_reset(database, fresh.viewer("ida"), rob, "found again")
    proposals.decide(fresh.portal.indexes, fresh.viewer("ida"), gone, "withdrawn", "not needed")
    listed = {each["id"]: each for each in fresh.client("anna").get("/api/v1/proposals").json()}
    assert {kind: listed[each]["kind"] for kind, each in made.items()} == {kind: kind for kind in made}
    assert {each["kind"] for each in listed.values()} == set(proposals.KINDS) - {"release"}
    assert listed[gone]["state"] == "withdrawn" and listed[made["account"]]["body"]["roles"] == ["auditor"]
    headers = {"origin": fresh.portal.settings.origin, "x-csrf-token": fresh.csrf["anna"]}

    def confirm(kind: str) -> int:
        path = f"/api/v1/proposals/{made[kind]}:confirm"
        return int(fresh.client("anna").post(path, json={"reason": "yes"}, headers=headers).status_code)

    assert {kind: confirm(kind) for kind in made} == {"start": 200, "account": 404, "reset": 404}
