"""Settings, proxies, backup, and both databases."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.portal.made import Bench, make_bench
from tests.portal.served import free_port
from tests.portal.test_parts import all_parts
from tests.postgres_fixture import postgres_server
from tests.waiting import wait_until

import leeward as lw
from leeward.portal.app import make_app
from leeward.portal.backup import make_backup
from leeward.portal.middleware import client_address
from leeward.portal.settings import Settings, read_settings

assert postgres_server  # pytest finds the fixture here

PUBLIC = "https://portal.hospital.example/leeward"


@pytest.mark.parametrize("path", ["/leeward", ""], ids=["prefix kept", "prefix stripped"])
@pytest.mark.parametrize("forwarded", [True, False])
def test_behind_a_proxy_that_ends_tls(bench: Bench, path: str, forwarded: bool) -> None:
    from starlette.testclient import TestClient

    settings = dataclasses.replace(bench.portal.settings, public_url=PUBLIC, hosts=("upstream:8000",))
    host = "portal.hospital.example" if forwarded else "upstream:8000"
    headers = {"host": host}
    if forwarded:
        headers |= {
            "x-forwarded-proto": "http",
            "x-forwarded-host": "evil.example",
            "x-forwarded-prefix": "/evil",
        }
    client = TestClient(
        make_app(settings), base_url=f"http://{host}/", headers=headers, follow_redirects=False
    )
    reply = client.get(f"{path}/")
    assert (reply.status_code, reply.headers["location"]) == (303, "/leeward/sign-in")
    page = client.get(f"{path}/sign-in")
    assert 'href="/leeward/static/portal.css"' in page.text and "evil" not in page.text
    assert page.headers["strict-transport-security"]
    assert client.get(f"{path}/static/portal.css").status_code == 200
    client.headers["cookie"] = f"__Host-leeward={bench.cookies['rita']}"
    assert "Rita" in client.get(f"{path}/").text
    form = {"csrf": bench.csrf["rita"], "index": bench.index, "terms": "fever", "epsilon": "0.3"}
    pay = f"{path}/projects/{bench.project['one']}/answers"
    for origin, status in (("https://portal.hospital.example", 303), (f"http://{host}", 403)):
        assert client.post(pay, data=form, headers={"origin": origin}).status_code == status


def test_a_forwarded_address_is_believed_from_a_proxy_that_is_named() -> None:
    def scope(*forwarded: str) -> dict[str, Any]:
        return {
            "client": ("10.0.0.5", 1),
            "headers": [(b"x-forwarded-for", each.encode()) for each in forwarded],
        }

    assert client_address(scope("1.2.3.4"), ()) == "10.0.0.5"
    assert client_address(scope("6.6.6.6, 1.2.3.4"), ("10.0.0.5",)) == "1.2.3.4"
    assert client_address(scope("6.6.6.6", "1.2.3.4, 10.0.0.9"), ("10.0.0.5", "10.0.0.9")) == "1.2.3.4"
    assert client_address(scope("1.2.3.4, unknown"), ("10.0.0.5",)) == "10.0.0.5"
    assert client_address(scope(), ("10.0.0.5",)) == "10.0.0.5"


def test_settings_are_read_and_wrong_ones_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    file = tmp_path / "portal.toml"
    file.write_text(
        'public_url = "https://a.example/b/"\nhosts = ["c:1"]\n[provider]\nissuer = "https://i"\nclient_id = "c"\n'
    )
    file.chmod(0o644)
    with pytest.raises(lw.BadInput, match="others can read"):
        read_settings(tmp_path)
    file.chmod(0o600)
    found = read_settings(tmp_path)
    assert (found.prefix, found.host, found.origin, found.hosts) == (
        "/b",
        "a.example",
        "https://a.example",
        ("c:1",),
    )
    assert "secret" not in repr(found)
    for text, message in (
        ("publik_url = 'x'", "public_url"),
        ("public_url = 'http://portal.example'", "https"),
        ("public_url = 'portal'", "no address"),
        ("[provider]\nissuer = 'https://x'", "client_id"),
        ("[provider]\nissuer = 'https://x'\nclient_id = 'y'\nalgorithms = ['HS256']", "algorithms"),
        ("slot = 9", "slot"),
        ("= 1", "not TOML"),
    ):
        file.write_text(text)
        with pytest.raises(lw.BadInput, match=message):
            read_settings(tmp_path)


def test_a_backup_is_restored(fresh: Bench, tmp_path: Path) -> None:
    token = fresh.token("rita")
    first = fresh.ask(token, "a", fresh.question("fever", "0.5")).json()
    copied = make_backup(fresh.portal.settings, tmp_path / "backup")
    assert copied == (["portal.db", f"ledgers/{fresh.index}/ledger.db"], [])
    assert (tmp_path / "backup").stat().st_mode & 0o077 == 0
    fresh.ask(token, "b", fresh.question("cough", "0.5"))
    folder, index = fresh.folder, fresh.folder / "indexes" / "clinic"
    from leeward.queries.ledger import families

    families.close(fresh.portal.indexes.session(fresh.index).ledger)
    for name in ("", "-wal", "-shm"):
        (index / f"ledger.db{name}").unlink(missing_ok=True)
    shutil.copy2(tmp_path / "backup" / "ledgers" / fresh.index / "ledger.db", index / "ledger.db")
    shutil.copy2(tmp_path / "backup" / "portal.db", folder / "portal.db")
    for name in ("-wal", "-shm"):
        (folder / f"portal.db{name}").unlink(missing_ok=True)
    restored = dataclasses.replace(fresh, gate=make_app(fresh.portal.settings))
    assert (
        restored.ask(token, "c", fresh.question("rash", "0.5")).status_code == 503
    )  # an older copy is refused
    lw.budget(index, accept_restored="the disk failed")
    app: Any = make_app(fresh.portal.settings)
    restored = dataclasses.replace(fresh, gate=app, portal=app.app.state.portal)
    again = restored.ask(token, "d", fresh.question("fever", "0.5"))
    assert again.status_code == 200 and again.json()["answer"] == first["answer"]
    assert again.json()["remaining"] == 3  # what is remembered as spent stays spent: 1 of 4
    assert lw.audit(index).passed


def test_everything_on_postgresql(tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench(tmp_path / "portal", database=postgres, ledger=postgres)
    token = bench.token("rita")
    first = bench.ask(token, "a", bench.question("fever", "0.5"))
    assert first.status_code == 201
    assert bench.ask(token, "a", bench.question("fever", "0.5")).json()["answer"] == first.json()["answer"]
    assert bench.ask(token, "b", bench.question("cough", "9")).status_code == 402
    assert bench.client("rita").get(f"/answers/{first.json()['id']}").status_code == 200
    page = bench.client("audrey").get("/audit?again=true").text
    assert "Every check passed" in page and "FAILED" not in page
    copied, servers = make_backup(bench.portal.settings, tmp_path / "backup")
    assert copied == [] and len(servers) == 1 and "pg_dump" in servers[0]
    monkeypatch.setattr("leeward.portal.asking.PART", 2)
    monkeypatch.setattr("leeward.portal.proposals.PART", 1)
    monkeypatch.setattr("leeward.portal.api.MOST_ENTRIES", 3)
    for terms in ("cough", "rash"):
        assert bench.ask(token, terms, bench.question(terms, "0.5")).status_code == 201
    for login, path, most in (
        ("rita", f"/api/v1/projects/{bench.project['one']}/answers", 2),
        ("anna", "/api/v1/proposals", 1),
        ("audrey", "/api/v1/log", 3),
    ):
        parts = all_parts(bench.client(login), path)
        assert len(parts) > 1 and max(map(len, parts)) == most
    assert (
        "3 answers, ε 1.5 in all"
        in bench.client("rita").get(f"/projects/{bench.project['one']}/answers").text
    )
    for _ in range(5):
        wrong = {"login": "ruth", "password": "a wrong password"}
        assert bench.client().post("/sign-in", data=wrong).status_code == 403
    assert "5 tries" in bench.client("ida").get("/admin").text


def test_migrations_make_the_tables_that_the_code_names(tmp_path: Path) -> None:
    import sqlalchemy as sa

    from leeward.portal.store import open_store, reading
    from leeward.portal.store.tables import metadata

    with reading(open_store(tmp_path)) as connection:
        there = sa.inspect(connection)
        for table in metadata.sorted_tables:
            assert [each["name"] for each in there.get_columns(table.name)] == [
                each.name for each in table.columns
            ]
    assert (tmp_path / "portal.db").stat().st_mode & 0o077 == 0


def test_a_later_portals_database_is_refused(tmp_path: Path) -> None:
    from leeward.portal.store import open_store, writing

    with writing(open_store(tmp_path)) as connection:
        connection.exec_driver_sql("UPDATE portal_version SET version_num = '9999'")
    with pytest.raises(lw.BadInput, match="later version"):
        open_store(tmp_path)


def test_two_workers_answer_and_their_figures_are_one_sum(fresh: Bench, tmp_path: Path) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    call = "import sys; from leeward.runs.portal import serve; from pathlib import Path; serve("
    call += f"Path(sys.argv[1]), '127.0.0.1', {port}, print, 2, public_url='{address}')"
    server = subprocess.Popen(
        [sys.executable, "-c", call, str(fresh.folder)],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        cookies = {"leeward": fresh.cookies["ida"]}
        for asked in range(1, 200):
            with httpx.Client(base_url=address, timeout=30, cookies=cookies) as client:  # a connection each
                figures = _when_there(client, "/metrics", server).text
            total = re.findall(r'requests_total{.*route="/metrics".*} (\d+)', figures)
            assert sum(map(int, total)) == asked - 1  # of all workers together; this one is counted after it
            if len(list(tmp_path.glob("leeward-metrics-*/counter_*.db"))) == 2:  # both have answered
                break
        else:
            raise AssertionError("one worker answered everything")
    finally:
        server.terminate()
        assert server.wait(30) is not None


def _when_there(client: httpx.Client, path: str, server: subprocess.Popen[bytes]) -> httpx.Response:
    found: list[httpx.Response] = []

    def there() -> bool:
        assert server.poll() is None, "the server ended"
        with suppress(httpx.ConnectError):
            found.append(client.get(path))
        return bool(found)

    wait_until(there, "the server answers")
    assert found[0].status_code == 200, found[0].text
    return found[0]


def test_health_and_the_age_of_the_backup(bench: Bench) -> None:
    client = bench.client()
    assert client.get("/health/live").text == "alive" and client.get("/health/ready").text == "ready"
    assert client.get("/metrics").status_code == 303
    text = bench.client("ida").get("/metrics").text
    assert 'route="/health/live"' in text
    make_backup(Settings(folder=bench.folder), bench.folder.parent / "backup")
    assert "none by" not in bench.client("ida").get("/admin").text
