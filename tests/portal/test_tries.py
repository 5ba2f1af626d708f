"""Wrong passwords: who waits, who does not, and what is written down."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient
from tests.portal.made import Bench

from leeward.portal import accounts, journal, passwords
from leeward.portal.store import open_store, reading, tables, writing

PASSWORD = "a long password"


@pytest.fixture(name="house")
def portal_with_local_accounts(fresh: Bench) -> Bench:
    for login in ("ruth", "karl"):
        _, link = accounts.make_account(fresh.portal.database, login, login.title())
        accounts.set_up(fresh.portal.database, link, PASSWORD)
    return fresh


def browser(bench: Bench, address: str) -> TestClient:
    base = bench.portal.settings.public_url
    return TestClient(bench.gate, base_url=base, follow_redirects=False, client=(address, 1))


def attempt(client: Any, login: str, password: str = "a wrong password") -> int:
    return int(client.post("/sign-in", data={"login": login, "password": password}).status_code)


def grow_older(bench: Bench, minutes: float) -> None:
    """As if so much time had passed since the tries."""
    with writing(bench.portal.database) as connection:
        for row in connection.execute(sa.select(tables.tries)).all():
            time = datetime.fromisoformat(row.time) - timedelta(minutes=minutes)
            change = tables.tries.update().where(tables.tries.c.id == row.id)
            connection.execute(change.values(time=time.isoformat(timespec="milliseconds")))


def test_guessing_at_a_name_locks_nobody_out_elsewhere(house: Bench) -> None:
    attacker = browser(house, "10.0.0.66")
    assert [attempt(attacker, "ruth") for _ in range(7)] == [403] * 5 + [429] * 2
    assert attempt(attacker, "ruth", PASSWORD) == 429
    assert attempt(browser(house, "10.0.0.1"), "ruth", PASSWORD) == 303
    assert attempt(attacker, "karl", PASSWORD) == 303  # nor anybody else where the guesses came from


def test_a_browser_that_signed_in_before_is_not_locked_out_from_its_own_address(house: Bench) -> None:
    """All people of the house have one address behind a proxy that is not named."""
    own, attacker = browser(house, "10.0.0.1"), browser(house, "10.0.0.1")
    assert attempt(own, "ruth", PASSWORD) == 303
    assert [attempt(attacker, f"name {each}") for each in range(15)] == [403] * 15
    assert [attempt(attacker, "ruth") for _ in range(6)] == [403] * 5 + [429]
    assert attempt(attacker, "karl", PASSWORD) == 429  # the address is used up
    assert attempt(own, "ruth", PASSWORD) == 303
    assert attempt(own, "karl", PASSWORD) == 429  # the cookie is of one name
    assert [attempt(own, "ruth") for _ in range(6)] == [403] * 5 + [429]  # and bounds its own guesses


def test_the_quarter_of_an_hour_slides(house: Bench) -> None:
    """Not ten tries over the edge of a window; what was refused does not count."""
    client = browser(house, "10.0.0.1")
    assert [attempt(client, "ruth") for _ in range(3)] == [403] * 3
    grow_older(house, 14)
    assert [attempt(client, "ruth") for _ in range(6)] == [403] * 2 + [429] * 4
    wait = int(client.post("/sign-in", data={"login": "ruth", "password": "x"}).headers["retry-after"])
    assert 0 < wait <= 60
    grow_older(house, 1.1)
    assert [attempt(client, "ruth") for _ in range(4)] == [403] * 3 + [429]
    assert attempt(client, "karl", PASSWORD) == 303


def test_the_right_password_forgets_the_wrong_ones(house: Bench) -> None:
    client = browser(house, "10.0.0.1")
    for _ in range(3):
        assert [attempt(client, "ruth") for _ in range(4)] == [403] * 4
        assert attempt(client, "ruth", PASSWORD) == 303


def test_the_journal_tells_guesses_apart_and_holds_no_name(house: Bench) -> None:
    for login in ("ruth", "my password, in the wrong field", "ruth"):
        attempt(browser(house, "10.0.0.66"), login)
    with reading(house.portal.database) as connection:
        bodies = [entry.body for entry in journal.entries(connection)]
    failed = [json.loads(body) for body in bodies if "sign-in failed" in body]
    assert [each["address"] for each in failed] == ["10.0.0.66"] * 3
    names = [each["name"] for each in failed]
    assert names[0] == names[2] != names[1] and all(len(name) == 64 for name in names)
    with reading(house.portal.database) as connection:
        kept = connection.execute(sa.select(tables.tries)).all()
    assert "my password" not in "\n".join([*bodies, *map(str, kept)])


def test_an_administrator_lets_somebody_in_again(house: Bench) -> None:
    client = browser(house, "10.0.0.1")
    for number in range(15):
        attempt(client, f"name {number}")
    for _ in range(5):
        attempt(client, "ruth")
    page = house.client("ida").get("/admin").text
    assert "Ruth from 10.0.0.1: 5 tries" in page and "Any name from 10.0.0.1: 20 tries" in page
    read_only = house.client("audrey").get("/admin").text
    assert "Ruth from 10.0.0.1" in read_only and "Let in again" not in read_only
    assert house.post("audrey", "/admin/tries", place="10.0.0.1").status_code == 403
    assert attempt(client, "ruth", PASSWORD) == 429
    assert house.post("ida", "/admin/tries", place="10.0.0.1").status_code == 303
    assert attempt(client, "ruth", PASSWORD) == 303
    assert "refused now" not in house.client("ida").get("/admin").text
    log = house.client("audrey").get("/api/v1/log", params={"index": "portal"}).json()
    assert [each["by"] for each in log if each["event"] == "tries forgiven"] == [house.ids["ida"]]


def test_a_database_of_the_version_before_is_brought_up(tmp_path: Path) -> None:
    database = open_store(tmp_path)
    _, link = accounts.make_account(database, "ruth", "Ruth")
    accounts.set_up(database, link, PASSWORD)
    with writing(database) as connection:
        for table in ("portal_tries", "portal_key"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
        connection.exec_driver_sql("CREATE TABLE portal_counters (bucket TEXT)")
        connection.exec_driver_sql("ALTER TABLE portal_people DROP COLUMN email")
        connection.exec_driver_sql("UPDATE portal_version SET version_num = '0001'")
    database = open_store(tmp_path, upgrade=print)
    with reading(database) as connection:
        there = sa.inspect(connection)
        assert not there.has_table("portal_counters")
        assert {each["name"] for each in there.get_columns("portal_people")} >= {"email", "name"}
    row = passwords.sign_in(database, "ruth", PASSWORD, "10.0.0.1")
    assert row is not None and row["name"] == "Ruth"
