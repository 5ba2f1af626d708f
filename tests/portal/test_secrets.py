"""Passwords of ledgers are in the settings alone; invitations by what a provider verified; answers outlive an upgrade,
and a stored one writes nothing."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.portal.made import Bench, make_bench
from tests.postgres_fixture import postgres_server
from tests.queries.ledgers import fresh_database

import leeward as lw
from leeward.portal import oidc, people, proposals
from leeward.portal.app import make_app
from leeward.portal.backup import make_backup
from leeward.portal.guards import Portal
from leeward.portal.settings import Provider, Settings, read_settings
from leeward.portal.store import open_store, reading, tables, writing
from leeward.queries.language.query import Query
from leeward.queries.ledger import budgets
from leeward.queries.privacy.accounting import micro

assert postgres_server  # pytest finds the fixture here

CANARY = "canary-pa55word"
PAGES = ("/", "/decisions", "/custody/indexes", "/audit", "/audit/log.ndjson", "/admin", "/custody/releases")
CALLS = ("/api/v1/proposals", "/api/v1/log", "/api/v1/projects", "/api/v1/openapi.json", "/metrics")


def with_canary(url: str) -> str:
    """A URL with a password, which a server that trusts everybody does not look at."""
    return sa.make_url(url).set(password=CANARY).render_as_string(hide_password=False)


def texts_in(portal: Portal) -> str:
    """All that is in the tables of a portal's database."""
    with reading(portal.database) as connection:
        return " ".join(
            str(tuple(row))
            for table in tables.metadata.sorted_tables
            for row in connection.execute(sa.select(table))
        )


# -- H2 ----


def test_a_ledgers_password_is_in_no_table_reply_log_or_backup(
    tmp_path: Path, postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = with_canary(fresh_database(postgres))
    bench = make_bench(tmp_path / "portal", ledger=url)
    reply = bench.ask(bench.token("rita"), "a", bench.question("fever", "0.5"))
    assert reply.status_code == 201
    for login in bench.ids:
        client = bench.client(login)
        for path in (*PAGES, *CALLS, f"/projects/{bench.project['one']}", f"/answers/{reply.json()['id']}"):
            assert CANARY not in client.get(path).text, (login, path)
    copied, servers = make_backup(bench.portal.settings, tmp_path / "backup")
    assert (copied, len(servers)) == (["portal.db"], 1) and CANARY not in servers[0]
    for path in (*(tmp_path / "backup").rglob("*"), *bench.folder.rglob("*")):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes(), path
    assert CANARY not in texts_in(bench.portal) and CANARY not in caplog.text
    assert CANARY not in repr(bench.portal.settings)


def test_an_approver_sees_which_ledger_is_confirmed(fresh: Bench) -> None:
    page = fresh.client("anna").get("/decisions").text
    assert "in the index&#39;s folder" in page
    body = fresh.client("audrey").get("/api/v1/proposals").json()[-1]["body"]
    assert body["place"] == "in the index's folder"


def test_a_custodian_names_a_ledger_of_the_settings(fresh: Bench) -> None:
    """Neither a URL nor a name that is not there makes the server open anything."""
    for ledger in ("postgresql://10.0.0.1:22/x", "sqlite:////etc/passwd", "main"):
        form = {"folder": "clinic", "name": "Again", "ledger": ledger, "reason": "r"}
        reply = fresh.post("carl", "/custody/indexes", **form)
        assert reply.status_code == 422 and "does not name" in reply.text


def old_portal(tmp_path: Path, url: str) -> Settings:
    """A portal as the version before kept it: the ledger's URL in the index and in its proposal."""
    bench = make_bench(tmp_path / "portal", ledger=url)
    first = bench.ask(bench.token("rita"), "a", bench.question("fever", "0.5"))
    assert first.status_code == 201
    with writing(bench.portal.database) as connection:
        connection.execute(tables.indexes.update().values(ledger=url))
        for row in connection.execute(sa.select(tables.proposals)).all():
            body = row.body
            if "ledger" in body:
                body |= {"ledger": url}
                del body["place"]
                this = tables.proposals.c.id == row.id
                connection.execute(tables.proposals.update().where(this).values(body=body))
        connection.exec_driver_sql("ALTER TABLE portal_answers DROP COLUMN plan")
        connection.exec_driver_sql("DROP TABLE portal_key")
        connection.exec_driver_sql("UPDATE portal_version SET version_num = '0001'")
    return bench.portal.settings


def test_an_upgrade_takes_passwords_out_and_keeps_the_answers(
    tmp_path: Path, postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = with_canary(fresh_database(postgres))
    before = old_portal(tmp_path, url)
    open_store(before.folder, upgrade=print)
    app: Any = make_app(dataclasses.replace(before, ledgers={}))
    portal: Portal = app.app.state.portal
    assert CANARY not in texts_in(portal) and "[ledgers]" in caplog.text and CANARY not in caplog.text
    make_backup(dataclasses.replace(before, ledgers={"any": url}), tmp_path / "backup")
    assert CANARY.encode() not in (tmp_path / "backup" / "portal.db").read_bytes()
    index = portal.indexes.rows()[0]["id"]
    with pytest.raises(lw.BadInput, match=r"`ledgers` does not name postgresql.*\*\*\*"):
        portal.indexes.session(index)
    app = make_app(dataclasses.replace(before, ledgers={"any": url}))
    portal = app.app.state.portal
    with reading(portal.database) as connection:
        answer, project = connection.execute(sa.select(tables.answers.c.id, tables.answers.c.project)).one()
        person = connection.scalar(
            sa.select(tables.members.c.person).where(tables.members.c.project == project)
        )
        viewer = people.viewer_of(connection, person)
    assert viewer is not None
    row, found = portal.asking.answer(viewer, answer)
    assert row["plan"] is None and found.values, "an answer from before plans were kept"


def test_settings_name_ledgers(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    file = tmp_path / "portal.toml"
    file.write_text(f'[ledgers]\nmain = "postgresql://ann:{CANARY}@h/x"\nown = "ledgers/a.db"\n')
    file.chmod(0o600)
    found = read_settings(tmp_path)
    assert found.ledger("own") == f"sqlite:///{tmp_path}/ledgers/a.db"
    assert found.place_of_ledger("main") == "postgresql+pg8000://ann:***@h/x"
    assert found.ledger("postgresql+pg8000://ann:***@h/x") == found.ledger("main")
    for text in ("main = 7", f'main = "://{CANARY}"'):
        file.write_text(f"[ledgers]\n{text}\n")
        with pytest.raises(lw.BadInput) as refused:
            read_settings(tmp_path)
        assert CANARY not in str(refused.value)


# -- M10 ----


def test_the_cap_is_not_promised_to_the_maker_and_to_a_project(tmp_path: Path) -> None:
    """`leeward index` allots all to whoever runs it; once the portal opens the index that is over."""
    from tests.portal.made import make_index

    from leeward.queries.ledger import opening

    bench = make_bench(tmp_path / "portal", allotted=4)
    folder = bench.folder / "indexes" / "second"
    data_set = make_index(folder, epsilon=10, patients=30)
    ledger = opening.open_ledger(folder, folder)
    budgets.allot(ledger, data_set, "root", micro(10))
    budgets.allot(ledger, data_set, "ann", micro(3))
    made = proposals.propose_index(bench.portal.indexes, bench.viewer("carl"), "second", "Second", "", "test")
    proposals.decide(bench.portal.indexes, bench.viewer("anna"), made, "confirmed", "test")
    assert {each.user: each.most for each in budgets.allotments(ledger, data_set)} == {
        "ann": micro(3),
        "root": 0,
    }
    bench.index = next(row["id"] for row in bench.portal.indexes.rows() if row["name"] == "Second")
    with pytest.raises(lw.BadInput, match="would exceed the cap"):
        bench.allot("one", 8)  # 3 are ann's
    bench.allot("one", 7)
    assert lw.audit(folder).passed


# -- M12 ----


def test_an_answer_outlives_another_canonical_form(fresh: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    question = fresh.question("fever & cough", "0.5", conditions={"age": "10..20"}, by="age")
    first = fresh.ask(fresh.token("rita"), "a", question).json()
    real = Query.canonical
    monkeypatch.setattr(Query, "canonical", lambda query: f"v2: {real(query)}")
    path = f"/answers/{first['id']}"
    assert fresh.client("rita").get(path).status_code == 200
    again = fresh.client("rita").get(f"/api/v1{path}").json()
    told = ("answer", "interval", "epsilon", "sensitivity", "unit", "counted", "by")
    assert {name: again[name] for name in told} == {name: first[name] for name in told}


# -- M13 ----


def test_an_address_counts_where_the_provider_verified_it() -> None:
    assert oidc.address_of({"email": "a@h", "email_verified": True}) == "a@h"
    for verified in (False, "true", 1, None):
        assert oidc.address_of({"email": "a@h", "email_verified": verified}) is None
    assert oidc.address_of({"email": ["a@h"], "email_verified": True}) is None


def test_nobody_is_invited_in_anothers_place(fresh: Bench) -> None:
    """Neither by an address of another issuer, nor by a login name that is another issuer's subject."""
    database, carl = fresh.portal.database, fresh.viewer("carl")
    with writing(database) as connection:
        for issuer in ("https://old.example", "https://sso.example"):
            people.admit(connection, issuer, f"sub of {issuer}", "Eve", "prof@hospital.example")
        people.admit(connection, "https://sso.example", "paul", "Eve", None)
        mine = people.admit(connection, people.LOCAL, "paul", "Paul", None)
    assert mine is not None

    def invited(login: str, issuer: str | None) -> set[str]:
        before = {each["id"] for each in people.members_of(database, fresh.project["two"])}
        people.change_member(database, carl, fresh.project["two"], login, "researcher", issuer)
        return {each["id"] for each in people.members_of(database, fresh.project["two"])} - before

    assert invited("paul", "https://sso.example") == {mine["id"]}
    with pytest.raises(lw.BadInput, match="no one account"):
        invited("prof@hospital.example", None)
    (found,) = invited("prof@hospital.example", "https://sso.example")
    with reading(database) as connection:
        row = connection.execute(sa.select(tables.people).where(tables.people.c.id == found)).one()
    assert row.issuer == "https://sso.example"


@pytest.mark.parametrize(
    "issuer", ["http://sso.hospital.example", "sso.hospital.example", "http://127.0.0.1.evil.example"]
)
def test_an_issuer_in_clear_text_is_refused(issuer: str) -> None:
    with pytest.raises(lw.BadInput, match="https"):
        Provider(issuer=issuer, client_id="x")
    assert Provider(issuer="http://127.0.0.1:9/realm", client_id="x")


@pytest.mark.parametrize(
    ("held", "taken"),
    [(["pwd", "mfa"], True), ("mfa", True), (["pwd"], False), (None, False), ("mfa2", False)],
)
def test_a_provider_can_be_asked_for_a_second_factor(held: object, taken: bool) -> None:
    import time

    provider = Provider(issuer="https://sso.example", client_id="x", required={"amr": "mfa"})
    claims = {
        "iss": provider.issuer,
        "aud": "x",
        "exp": time.time() + 9,
        "iat": time.time(),
        "sub": "s",
        "nonce": "n",
    }
    fault = oidc.Client(provider, "https://x/callback")._fault({**claims, "amr": held}, "n")
    assert (fault is None) is taken and (taken or "`amr`" in str(fault))


# -- a stored answer writes nothing ----


def writes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each transaction that writes, from now on."""
    from leeward.portal import asking, store
    from leeward.queries.ledger import families, opening

    seen: list[str] = []
    real = opening.writing

    def counted(ledger: Any, **more: Any) -> Any:
        seen.append(ledger.place)
        return real(ledger, **more)

    for module in (asking, store, families):
        monkeypatch.setattr(module, "writing", counted)
    return seen


def test_a_stored_answer_writes_nothing(fresh: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    token, question = fresh.token("rita"), fresh.question("fever", "0.5")
    first = fresh.ask(token, "a", question)
    app: Any = make_app(fresh.portal.settings)  # another process, which remembers nothing
    fresh.gate = app
    seen = writes(fresh, monkeypatch)
    for key in ("b", "c"):
        again = fresh.ask(token, key, question)
        assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
        assert again.json()["answer"] == first.json()["answer"] and again.json()["remaining"] == 3.5
    again = fresh.ask(token, "a", question)  # whose reply was lost
    assert (again.status_code, again.json()) == (201, first.json())
    assert seen == []
    fresh.ask(token, "d", fresh.question("cough", "0.5"))
    assert len(seen) == 3  # the charge, the answer, and who asked


def test_what_a_project_asks_first_is_kept_once(fresh: Bench) -> None:
    """Another project's stored answer is free, and one row says that this one asked."""
    fresh.allot("two", 2)
    paid = fresh.ask(fresh.token("rita"), "a", fresh.question("fever", "0.5"))
    token = fresh.token("rob", "two")
    numbers = {
        fresh.ask(token, key, fresh.question("fever", "0.5", project="two")).json()["id"] for key in "bcd"
    }
    assert len(numbers) == 1 and numbers != {paid.json()["id"]}
    assert len(fresh.portal.asking.answers_of(fresh.project["two"], "", "")[0]) == 1


def test_a_backup_of_two_kinds_of_databases(tmp_path: Path, postgres: str) -> None:
    """Accounts on PostgreSQL, the ledger on SQLite: that is copied, and what is to be done with the other is said."""
    url = with_canary(fresh_database(postgres))
    bench = make_bench(tmp_path / "portal", database=url)
    bench.ask(bench.token("rita"), "a", bench.question("fever", "0.5"))
    copied, servers = make_backup(bench.portal.settings, tmp_path / "backup")
    assert copied == [f"ledgers/{bench.index}/ledger.db"]
    assert len(servers) == 1 and "before a backup" in servers[0] and CANARY not in servers[0]
    assert "none by" not in bench.client("ida").get("/admin").text
    (bench.folder / "indexes" / "clinic" / "ledger.db").rename(tmp_path / "gone.db")
    with pytest.raises(lw.BadInput, match="no database here to copy"):
        make_backup(bench.portal.settings, tmp_path / "another")
    assert not (tmp_path / "another").exists()
    assert open_store(bench.folder, url).place in servers[0]
